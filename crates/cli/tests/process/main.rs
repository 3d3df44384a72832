//! Agents under a keeper, and in a namespace: nothing outlives them, nothing hangs on them, nothing leaks to them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod endings;
mod hostile;
mod hydra;
mod namespace;
mod pipes;
mod start;
