//! `agentwire serve`, the program itself, over real sockets.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test reads what it expects and fails by panicking"
)]

mod board;
mod damage;
mod dist;
mod documents;
mod door;
mod form;
mod guards;
mod harness;
mod held;
mod insights;
mod library;
mod load;
mod logs;
mod many;
mod once;
mod open;
mod operations;
mod sessions;
mod slow;
mod sockets;
#[path = "../shared/specified.rs"]
mod specified;
mod traces;
mod trust;
mod unanswered;
mod upgrade;
