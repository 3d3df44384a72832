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
mod sessions;
mod wrong;
