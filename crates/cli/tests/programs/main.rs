//! The program as a person or a script calls it: every command, its settings and its demo agent.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod client;
mod demo_agent;
mod documents;
mod play;
mod pty;
mod run;
mod settings;
#[expect(dead_code, unused_imports, reason = "each test program needs a part of it")]
#[path = "../shared/mod.rs"]
mod shared;
mod translate;
mod verbs;
