//! The commands that talk to a server, run as real programs over real sockets: on the server's machine, and
//! on another machine that knows only its address.

mod attach;
mod broken_connections;
mod commands;
mod harness;
mod permit;
mod reading;
mod restart;
mod servers;
