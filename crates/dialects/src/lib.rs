//! What others say: one folder per wire, translated to and from the agentwire protocol.
//!
//! Pure: text in, values out. No clock, no file, no process, no socket.

pub mod agent;
pub mod codex;
mod diff;
pub mod gemini;
pub mod json;
mod ledger;
pub mod tape;

use crate::agent::AgentDialect;
use crate::json::Value;

/// Every agent wire that agentwire speaks. To add an agent, add its folder and its line here.
pub fn agents() -> &'static [&'static dyn AgentDialect] {
    &[&codex::Codex, &codex::CodexExec, &gemini::Gemini]
}

/// The agent wire of that name.
pub fn agent(name: &str) -> Option<&'static dyn AgentDialect> {
    agents().iter().copied().find(|dialect| dialect.name() == name)
}

/// The agent wire that this line belongs to.
pub fn recognise(message: Value<'_>) -> Option<&'static dyn AgentDialect> {
    agents().iter().copied().find(|dialect| dialect.recognises(message))
}
