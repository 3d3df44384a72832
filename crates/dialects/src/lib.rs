//! What others say: one folder per wire, translated to and from the agentwire protocol.
//!
//! Pure: text in, values out. No clock, no file, no process, no socket.

pub mod acp;
pub mod agent;
pub mod backend;
pub mod board;
pub mod claude;
pub mod codex;
mod diff;
mod digest;
pub mod front;
pub mod gemini;
pub mod hooks;
pub mod insights;
pub mod json;
pub mod jsonrpc;
mod ledger;
pub mod mcp;
mod recent;
mod said;
pub mod tape;
pub mod transcript;
pub mod unified;
mod words;

use agentwire_protocol::{AgentType, GatewayError};

use crate::agent::AgentDialect;
use crate::json::{Fault, Scanner, Value, repair};

/// Every agent wire that agentwire speaks. To add an agent, add its folder and its line here.
pub fn agents() -> &'static [&'static dyn AgentDialect] {
    &[&claude::CLAUDE, &codex::Codex, &codex::CodexExec, &gemini::Gemini, &acp::ACP]
}

/// The agent wire of that name.
pub fn agent(name: &str) -> Option<&'static dyn AgentDialect> {
    agents().iter().copied().find(|dialect| dialect.name() == name)
}

/// The agent wire that this line belongs to.
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

/// The wire over which that agent is driven: its default, or the one that is named.
pub fn driver(
    agent: AgentType,
    name: Option<&str>,
) -> Result<&'static dyn AgentDialect, GatewayError> {
    match (agent, name) {
        (AgentType::Claude, None | Some("stream-json")) => Ok(&claude::CLAUDE),
        (AgentType::Demo, None | Some("stream-json")) => Ok(&claude::DEMO),
        (AgentType::Codex, None | Some("app-server")) => Ok(&codex::Codex),
        (AgentType::Codex, Some("exec")) => Ok(&codex::CodexExec),
        (AgentType::Gemini, None | Some("acp")) => Ok(&acp::GEMINI),
        (AgentType::Gemini, Some("stream-json")) => Ok(&gemini::Gemini),
        (AgentType::Acp, None | Some("acp")) => Ok(&acp::ACP),
        (_, Some(name)) => {
            Err(GatewayError::unsupported(agent.as_str(), &format!("the driver {name}")))
        }
    }
}
