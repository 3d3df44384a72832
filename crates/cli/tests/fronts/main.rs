//! The fronts on pipes: the real program, driven by clients that leave nothing unread.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod backend;
#[path = "../../../dialects/tests/render/check.rs"]
mod check;
mod claude;
mod every_front;
#[path = "../shared/examples.rs"]
mod examples;
mod recording;
mod rpc;
#[expect(dead_code, unused_imports, reason = "each test program uses a part of it")]
#[path = "../shared/mod.rs"]
mod shared;
#[path = "../shared/speaker/mod.rs"]
mod speaker;
