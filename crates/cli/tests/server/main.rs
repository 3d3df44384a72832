//! `agentwire serve`, the program itself, over real sockets.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test reads what it expects and fails by panicking"
)]

mod access;
mod board;
mod browser_sign_in;
mod concurrent_clients;
mod damaged_store;
mod dist;
mod documents;
mod guards;
mod harness;
mod idempotency;
mod insights;
mod library;
mod load;
mod locked_store;
mod logs;
mod operations;
mod request_forms;
mod sessions;
mod slow_directory;
mod sockets;
#[path = "../shared/specified.rs"]
mod specified;
mod traces;
mod trust;
mod unanswered;
mod upgrade;
