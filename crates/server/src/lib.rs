//! Who listens: the pump behind every front, and the wires it runs over. Starts no process.

pub mod connection;
mod held;
pub mod http;
pub mod looks;
mod reading;
pub mod serve;
pub mod tokens;
pub mod traces;

pub use connection::Connection;
pub use serve::{Closing, Terms, serve};
