//! Agents under a keeper: nothing outlives them, nothing hangs on them, nothing leaks to them.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;
mod endings;
mod hostile;
mod pipes;
mod start;
