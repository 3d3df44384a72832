//! The pump over memory: what clients see of it, whatever they speak.
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
