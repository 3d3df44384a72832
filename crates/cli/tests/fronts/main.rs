//! Every front, over every agent: the real program on pipes, with clients that leave nothing unread.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test reads what it expects and fails by panicking"
)]

mod agents;
mod bad_input;
mod burst;
#[path = "../../../dialects/tests/render/check.rs"]
mod check;
mod drive;
mod examples;
mod flood;
mod program;
mod recording;
mod schemas;
#[path = "../shared/speaker/mod.rs"]
mod speaker;
