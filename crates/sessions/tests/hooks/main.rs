//! Hooks that the gateway raises for agents that have none. Scripts act as the agents.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod endings;
mod harness;
mod late;
mod permissions;
mod prompts;
mod tools;
