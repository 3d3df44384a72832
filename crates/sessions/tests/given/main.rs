//! What the gateway adds for agents that lack it: structured answers, a wait before a resume, limits.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod changed;
#[expect(dead_code, reason = "the hooks' tests need more of it")]
#[path = "../hooks/harness.rs"]
mod harness;
mod interrupts;
mod limits;
mod rest;
mod structured;
mod waiting;
