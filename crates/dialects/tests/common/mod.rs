//! Fixture folders, and tapes over them.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::allow_attributes,
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    reason = "each test binary uses its own part"
)]

pub mod insights;

use std::fs;
use std::path::{Path, PathBuf};

use agentwire_dialects::agent::{AgentDialect, Exit};
use agentwire_dialects::tape::{Draft, Stamp, Tape};
use agentwire_protocol::Event;
use serde_json::Value;

pub struct Case {
    pub dialect: &'static dyn AgentDialect,
    pub folder: PathBuf,
    pub name: String,
    /// What the agent wrote to stdout.
    pub bytes: Vec<u8>,
}

/// Every case of every dialect. To add a case, add a folder with an `agent.jsonl`.
pub fn cases() -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures");
    let mut cases = Vec::new();
    for folder in folders(&root) {
        let name = file_name(&folder);
        let Some(dialect) = agentwire_dialects::agent(&name) else {
            panic!("fixtures/{name} is of no dialect in agents()");
        };
        for folder in folders(&folder) {
            let bytes = fs::read(folder.join("agent.jsonl")).expect("a case has an agent.jsonl");
            cases.push(Case { dialect, name: file_name(&folder), folder, bytes });
        }
    }
    assert!(cases.len() > 40, "the fixtures are missing");
    cases
}

fn folders(parent: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(parent).expect("a folder of fixtures");
    let mut folders: Vec<_> =
        entries.map(|entry| entry.expect("an entry").path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a name").to_string_lossy().into_owned()
}

/// The events of a recording, each as a whole JSON line, with fixed stamps.
pub fn events(dialect: &dyn AgentDialect, chunks: &[&[u8]], exit: Option<Exit>) -> Vec<String> {
    let mut lines = Vec::new();
    let mut tape = Tape::recording(dialect);
    let sink = &mut |draft: Draft<'_>| lines.push(stamped(draft, lines.len() as u64 + 1));
    for chunk in chunks {
        tape.feed(chunk, sink);
    }
    if let Some(exit) = exit {
        tape.end(exit, sink);
    }
    lines
}

pub fn stamped(draft: Draft<'_>, seq: u64) -> String {
    let stamp = Stamp {
        id: &format!("evt_{seq}"),
        session_id: "11111111-1111-4111-8111-111111111111",
        seq,
        timestamp: "2026-01-01T00:00:00.000Z",
    };
    draft.stamp(stamp, |event| {
        let mut line = Vec::new();
        event.write_line(&mut line).expect("an event can be written");
        String::from_utf8(line).expect("an event is UTF-8")
    })
}

/// An event as goldens show it: without its stamps, and without `agentId` if that is `main`.
pub struct Brief {
    pub name: String,
    pub fields: Value,
    /// How many of the agent's lines it carries.
    pub lines: usize,
}

pub fn brief(event: &str) -> Brief {
    let mut fields: Value = serde_json::from_str(event).expect("an event is JSON");
    let event = fields.as_object_mut().expect("an event is an object");
    let native = event.remove("native");
    for stamp in ["id", "sessionId", "seq", "timestamp"] {
        event.remove(stamp);
    }
    if event.get("agentId").is_some_and(|agent| agent == "main") {
        event.remove("agentId");
    }
    let name = event.remove("type").expect("an event has a type");
    let name = name.as_str().expect("a type is a string").to_owned();
    Brief { name, fields, lines: native.as_ref().and_then(Value::as_array).map_or(0, Vec::len) }
}

/// The agent's stdout, reassembled from the events.
pub fn tape_of(events: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for line in events {
        let event = Event::from_json(line).expect("an event can be read");
        event.native.iter().for_each(|native| native.write_to(&mut bytes));
    }
    bytes
}
