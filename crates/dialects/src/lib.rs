//! Translates other wires to and from the agentwire protocol: one folder per wire.
//!
//! Pure: text in, values out. No clock, no file, no process, no socket.

pub mod acp;
pub mod agent;
pub mod backend;
pub mod board;
pub mod claude;
pub mod codex;
pub mod demo;
pub mod describe;
mod diff;
mod digest;
pub mod front;
pub mod gemini;
pub mod hooks;
mod images;
pub mod insights;
pub mod json;
pub mod jsonrpc;
mod ledger;
pub mod mcp;
pub mod overrides;
pub mod permission_updates;
pub mod program;
pub mod project;
pub mod prompt_queue;
pub mod query;
mod recent_ids;
mod sent_text;
pub mod tape;
mod tool_display;
pub mod transcript;
pub mod unified;

use std::sync::LazyLock;

use agentwire_protocol::{AgentType, ErrorCode, GatewayError};

use crate::agent::AgentDialect;
use crate::json::{Fault, Scanner, Value, repair};
use crate::program::Program;

/// Every agent that agentwire drives. To add one, add its folder and its line here.
static PROGRAMS: [&Program; AgentType::ALL.len()] =
    [&claude::PROGRAM, &codex::PROGRAM, &gemini::PROGRAM, &acp::PROGRAM, &demo::PROGRAM];

static WIRES: LazyLock<Vec<&'static dyn AgentDialect>> = LazyLock::new(|| {
    PROGRAMS.iter().flat_map(|program| program.wires).map(|wire| wire.dialect).collect()
});

/// The agents' programs, in the order of preference when no agent is named.
pub fn programs() -> &'static [&'static Program] {
    &PROGRAMS
}

/// Every agent wire that agentwire speaks.
pub fn agents() -> &'static [&'static dyn AgentDialect] {
    &WIRES
}

pub fn agent(name: &str) -> Option<&'static dyn AgentDialect> {
    agents().iter().copied().find(|dialect| dialect.name() == name)
}

pub fn recognise(message: Value<'_>) -> Option<&'static dyn AgentDialect> {
    agents().iter().copied().find(|dialect| dialect.recognises(message))
}

/// The agent wire that these bytes belong to, read as a tape reads them.
pub fn recognise_line(scanner: &mut Scanner, line: &[u8]) -> Option<&'static dyn AgentDialect> {
    let text = tape::bare(std::str::from_utf8(line).ok()?);
    match scanner.scan(text) {
        Ok(document) => recognise(document.root()),
        Err(Fault::Loose) => recognise(scanner.scan(&repair(text).ok()?).ok()?.root()),
        Err(Fault::Syntax) => None,
    }
}

pub fn program(agent: AgentType) -> &'static Program {
    // A test checks that each agent has one.
    let found = PROGRAMS.iter().find(|program| program.agent == agent);
    found.copied().unwrap_or(&acp::PROGRAM)
}

/// The wire that drives an agent: its default, or the named one.
pub fn driver(
    agent: AgentType,
    name: Option<&str>,
) -> Result<&'static dyn AgentDialect, GatewayError> {
    named_driver(agent, name).map(|(_, dialect)| dialect)
}

/// The same, with its name as users write it. The name of its dialect may be another one.
pub fn named_driver(
    agent: AgentType,
    name: Option<&str>,
) -> Result<(&'static str, &'static dyn AgentDialect), GatewayError> {
    let drivers = program(agent).drivers;
    let found = drivers.iter().find(|(driver, _)| name.is_none_or(|name| name == *driver));
    found.copied().ok_or_else(|| {
        let (agent, name) = (agent.as_str(), name.unwrap_or_default());
        let names: Vec<&str> = drivers.iter().map(|(name, _)| *name).collect();
        let message = format!("{agent} has no driver {name}; use {}", names.join(" or "));
        GatewayError::new(ErrorCode::Unsupported, message)
    })
}
