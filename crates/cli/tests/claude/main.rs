//! `agentwire claude`, the real program over its real wire, without an SDK.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod client;
mod documents;
mod endings;
#[path = "../shared/examples.rs"]
mod examples;
#[path = "../shared/program.rs"]
mod program;
mod trust;
