//! `agentwire rpc`: the program itself with the demo agent, over pipes.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod bad_input;
mod client;
mod documents;
#[path = "../shared/examples.rs"]
mod examples;
#[path = "../shared/program.rs"]
mod program;
mod requests;
mod runs;
