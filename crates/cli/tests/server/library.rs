//! The client library over every way to a gateway, with the program itself at the other end.

mod attach;
mod broken_connections;
mod child;
mod conversation;
mod harness;
mod proxy;
