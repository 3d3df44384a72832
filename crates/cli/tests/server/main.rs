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
mod held;
mod insights;
mod logs;
mod many;
mod open;
mod operations;
mod place;
mod sessions;
mod sockets;
#[path = "../shared/specified.rs"]
mod specified;
mod traces;
mod trust;
