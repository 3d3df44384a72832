//! The backend's front by itself: lines, replies and events in; lines and calls out.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

mod callbacks;
mod client;
mod create;
mod fixtures;
mod lives;
mod queries;
