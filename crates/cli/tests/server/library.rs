//! The client library over every transport, with the real program at the other end.

mod attach;
mod broken_connections;
mod child;
mod conversation;
mod harness;
mod scenarios;
