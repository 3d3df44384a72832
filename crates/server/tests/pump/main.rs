//! The pump on in-memory connections: what clients see of it, on any front.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test reads what it expects and fails by panicking"
)]

mod ends;
mod harness;
mod input;
mod order;
mod slow;
