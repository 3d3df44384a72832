//! `agentwire backend`: the program itself, with the demo agent, over pipes.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod asking;
mod client;
mod documents;
#[path = "../shared/program.rs"]
mod program;
mod sessions;
mod wrong;
