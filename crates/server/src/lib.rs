//! Who listens: the pump behind every front, and the wires it runs over. Starts no process.

pub mod connection;
pub mod http;
mod log_reads;
mod pages;
mod read_budget;
pub mod serve;
pub mod tokens;
pub mod traces;

pub use connection::Connection;
pub use serve::{Closing, Terms, serve};
