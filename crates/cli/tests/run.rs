//! `agentwire run`, `attach` and `logs`: the program itself, with the demo agent, over pipes and on a
//! pseudo-terminal.
#![expect(clippy::expect_used, clippy::indexing_slicing, reason = "a test fails by panicking")]

#[path = "run/home.rs"]
mod home;
#[path = "run/narrow.rs"]
mod narrow;
#[path = "run/pipes.rs"]
mod pipes;
#[path = "run/policy.rs"]
mod policy;
#[path = "run/pty.rs"]
mod pty;
#[path = "run/reading.rs"]
mod reading;
#[path = "run/signals.rs"]
mod signals;
#[path = "run/terminal.rs"]
mod terminal;
#[path = "run/trust.rs"]
mod trust;
#[path = "run/welcome.rs"]
mod welcome;
