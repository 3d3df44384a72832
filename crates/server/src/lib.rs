//! Who listens: the pump behind every front, and the wires it runs over. Starts no process.

pub mod connection;
pub mod serve;

pub use connection::Connection;
pub use serve::{Closing, serve};
