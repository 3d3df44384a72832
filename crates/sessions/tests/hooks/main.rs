//! Hooks that the gateway raises for agents that have none. Scripts act as the agents.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod endings;
#[expect(dead_code, reason = "the tests in `given` need more of it")]
mod harness;
mod late;
mod permissions;
mod prompts;
mod tools;
