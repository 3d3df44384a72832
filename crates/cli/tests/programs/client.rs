//! The verbs that talk to a server: the program itself, over real sockets, on the server's machine and
//! on another that knows only its address.

mod attach;
mod broken_connections;
mod commands;
mod harness;
mod permit;
mod reading;
mod restart;
mod servers;
