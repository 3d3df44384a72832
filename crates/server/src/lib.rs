//! The server: the pump that serves every front, and the transports it runs over. Starts no processes.

pub mod connection;
mod event_pages;
pub mod http;
mod log_reads;
mod read_budget;
pub mod serve;
pub mod tokens;
pub mod traces;

pub use connection::Connection;
pub use serve::{Closing, Terms, serve};
