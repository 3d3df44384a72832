//! `agentwire demo-agent`: an agent with Claude's protocol, real tools and no model. Its prompt
//! scripts it; see docs/demo-agent.md.
//!
//! One thread does everything in order and waits in one place ([`agent::Agent::wait`]); other threads
//! only read: stdin, the outputs of commands, MCP servers.

mod active_agents;
mod agent;
mod checkpoints;
mod command;
mod control;
mod files;
mod flags;
mod hooks;
mod ids;
mod input;
mod json;
mod mcp;
mod memory;
mod messages;
mod output;
mod permission;
mod requests;
mod result;
mod rules;
mod schema;
mod script;
mod subagent;
mod tools;
mod tour;
mod turn;
mod usage;

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use serde_json::json;
use uuid::Uuid;

use self::agent::{Agent, Session};
use self::flags::Flags;
use self::ids::Ids;
use self::memory::Memory;
use self::output::Output;
use crate::args::DemoAgent;
use crate::print;

pub(crate) fn run(args: &DemoAgent) -> io::Result<ExitCode> {
    let flags = match Flags::read(&args.args) {
        Ok(flags) => flags,
        Err(message) => return Ok(refuse(&message)),
    };
    if flags.version {
        let mut out = Output::default();
        out.raw(flags::VERSION.as_bytes())?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    if flags.help {
        let is_short = !args.args.iter().any(|arg| arg == "--help");
        print::line(flags::help(is_short).trim_end())?;
        return Ok(ExitCode::SUCCESS);
    }
    let directory = flags.state_dir.clone().or_else(state_directory);
    let opened = open(&flags, directory.as_deref())?;
    let (id, memory) = match opened {
        OpenedConversation::Session(id, memory) => (id, memory),
        OpenedConversation::InUse(id) => {
            return Ok(refuse(&format!("Error: Session ID {id} is already in use.")));
        }
        OpenedConversation::Unknown(id, message) => {
            not_found(&id, &message)?;
            return Ok(refuse(&message));
        }
    };
    let session = Session {
        ids: Ids::new(&id, memory.runs),
        id,
        directory: env::current_dir()?,
        resumed: flags.resume.is_some(),
    };
    let code = Agent::new(flags, session, memory).serve()?;
    Ok(ExitCode::from(code))
}

enum OpenedConversation {
    Session(String, Memory),
    /// The conversation exists already.
    InUse(String),
    /// The conversation does not exist; with the message to print.
    Unknown(String, String),
}

/// Finds or starts the conversation, and starts to save it.
fn open(flags: &Flags, directory: Option<&Path>) -> io::Result<OpenedConversation> {
    let load = |id: &str| match directory {
        Some(directory) => Memory::load(directory, id),
        None => Ok(Memory::default()),
    };
    let wanted = flags.session_id.clone();
    let (id, mut memory) = match &flags.resume {
        Some(id) if Uuid::try_parse(id).is_err() => {
            let message = format!(
                "Error: --resume requires a valid session ID. Provided value \"{id}\" is not a UUID."
            );
            return Ok(OpenedConversation::Unknown(id.clone(), message));
        }
        Some(id) => {
            let memory = load(id)?;
            if memory.prompts.is_empty() {
                let message = format!("No conversation found with session ID: {id}");
                return Ok(OpenedConversation::Unknown(id.clone(), message));
            }
            if flags.fork {
                let new = wanted.unwrap_or_else(|| Uuid::new_v4().to_string());
                (new.clone(), memory.fork(directory, &new))
            } else {
                (id.clone(), memory)
            }
        }
        None => {
            let id = wanted.unwrap_or_else(|| Uuid::new_v4().to_string());
            let memory = load(&id)?;
            if !memory.prompts.is_empty() {
                return Ok(OpenedConversation::InUse(id));
            }
            (id, memory)
        }
    };
    if directory.is_some() && !flags.forget {
        memory.start_saving(flags.fork)?;
    }
    Ok(OpenedConversation::Session(id, memory))
}

/// Claude prints it on both outputs.
fn not_found(id: &str, message: &str) -> io::Result<()> {
    let mut out = Output::default();
    out.line(&json!({
        "type": "result",
        "subtype": "error_during_execution",
        "duration_ms": 0,
        "duration_api_ms": 0,
        "is_error": true,
        "num_turns": 0,
        "stop_reason": null,
        "session_id": id,
        "total_cost_usd": 0,
        "usage": usage::Usage::default().to_json(),
        "modelUsage": {},
        "permission_denials": [],
        "uuid": Ids::new(id, 0).uuid().to_string(),
        "errors": [message],
        "result_index": 0,
    }))?;
    out.flush()
}

fn refuse(message: &str) -> ExitCode {
    print::aside(message);
    ExitCode::FAILURE
}

/// The default directory for conversations.
fn state_directory() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let data = set("XDG_DATA_HOME").or_else(|| Some(set("HOME")?.join(".local/share")))?;
    Some(data.join("agentwire/demo"))
}
