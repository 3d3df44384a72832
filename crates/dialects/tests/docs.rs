//! The JSON blocks of docs/protocols are tests.
//!
//! Under one heading, blocks run in order on one tape: `jsonl agent` lines go in, `jsonl commands` are
//! sent. `jsonl events`, `jsonl stdin` and `jsonl messages` (Claude's, with pieces) must be exactly what
//! has come out since; an expected object need only name the fields it is about. `jsonl agent of NAME` is a
//! whole run of another agent. `json config` followed by `text argv` shows a launch.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test reads fixtures and fails by panicking"
)]

mod common;

use std::collections::BTreeSet;
use std::path::Path;

use agentwire_dialects::agent::{AgentDialect, Exit, Setup, Start};
use agentwire_dialects::claude::render::{Options, Renderer};
use agentwire_dialects::tape::{Action, Draft, Sink, Tape};
use agentwire_protocol::{Call, CommandFrame, Event, GatewayError, Json, Prompt, SessionConfig};
use serde_json::Value;

#[test]
fn documents_say_what_is() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols");
    for dialect in agentwire_dialects::agents() {
        let name = format!("{}.md", dialect.name());
        let Ok(text) = std::fs::read_to_string(folder.join(&name)) else {
            panic!("docs/protocols/{name} is missing");
        };
        let mut blocks = 0;
        for section in text.split("\n#") {
            blocks += check(
                *dialect,
                section,
                &format!("{name}: {}", section.lines().next().unwrap_or("")),
            );
        }
        assert!(blocks >= 4, "{name} has {blocks} blocks that are tests; write at least 4");
    }
}

#[derive(Default)]
struct TranslatedLine {
    events: Vec<Value>,
    stdin: Vec<Value>,
    messages: Vec<Value>,
    renderer: Renderer,
}

impl Sink for TranslatedLine {
    fn event(&mut self, draft: Draft<'_>) {
        let event = common::stamped(draft, 1);
        self.events.push(serde_json::from_str(&event).expect("an event"));
        let event = Event::from_json(&event).expect("an event");
        let messages = &mut self.messages;
        self.renderer.event(&event, &mut |line| {
            messages.push(serde_json::from_str(line).expect("messages are JSON"));
        });
    }
    fn action(&mut self, action: Action) {
        if let Action::Write(line) = action {
            self.stdin.push(serde_json::from_str(&line).expect("stdin lines are JSON"));
        }
    }
    fn reply(&mut self, _: Call, result: Result<Json<'static>, GatewayError>) {
        result.expect("commands in documents succeed");
    }
}

fn check(dialect: &dyn AgentDialect, section: &str, name: &str) -> usize {
    let blocks = blocks(section);
    let live = blocks.iter().any(|(info, _)| info == "jsonl commands" || info == "jsonl stdin");
    let mut tape = Tape::new(dialect, &Setup { recording: !live, ..Setup::default() });
    let mut seen = TranslatedLine::default();
    let mut config = SessionConfig::default();
    if live {
        tape.start(&mut seen);
    }
    for (info, text) in &blocks {
        match info.as_str() {
            "jsonl agent" => tape.feed(text.as_bytes(), &mut seen),
            "jsonl agent end" => {
                tape.feed(text.as_bytes(), &mut seen);
                tape.end(Exit::Unknown, &mut seen);
            }
            "jsonl commands" => {
                for line in text.lines() {
                    let frame = CommandFrame::from_json(line).expect(name);
                    tape.command(Call(1), &frame.command, &mut seen).expect(name);
                }
            }
            "jsonl events" => compare(&std::mem::take(&mut seen.events), text, name),
            "jsonl stdin" => compare(&std::mem::take(&mut seen.stdin), text, name),
            "jsonl messages" => compare(&std::mem::take(&mut seen.messages), text, name),
            "json config" => config = serde_json::from_str(text).expect(name),
            "text argv" => {
                let start = Start {
                    config: &config,
                    resume: None,
                    fork: false,
                    native_session_id: None,
                    prompt: Some(&Prompt::text("hi")),
                };
                let launch = dialect.launch(&start).expect(name);
                let argv: Vec<String> =
                    [launch.program.clone()].into_iter().chain(launch.shown_args()).collect();
                assert_eq!(argv.join("\n"), text.trim_end(), "{name}");
            }
            _ => {
                if let Some(agent) = info.strip_prefix("jsonl agent of ") {
                    let renderer = Renderer::new(Options { partial: true });
                    seen = TranslatedLine { renderer, ..TranslatedLine::default() };
                    let mut tape = Tape::recording(agentwire_dialects::agent(agent).expect(name));
                    tape.feed(text.as_bytes(), &mut seen);
                    tape.end(Exit::Unknown, &mut seen);
                }
            }
        }
    }
    blocks.len()
}

#[test]
fn the_commands_of_the_unified_protocol_are_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/protocols/unified.md");
    let text = std::fs::read_to_string(path).expect("the document");
    let blocks = blocks(&text);
    let lines =
        blocks.iter().filter(|(info, _)| info == "jsonl").flat_map(|(_, text)| text.lines());
    let names: BTreeSet<&str> = lines
        .map(|line| CommandFrame::from_json(line).unwrap_or_else(|e| panic!("{line}: {e:?}")))
        .map(|frame| frame.command.name())
        .collect();
    assert_eq!(names.len(), 13, "{names:?}");
}

/// The fenced blocks with their info strings.
fn blocks(section: &str) -> Vec<(String, String)> {
    let mut blocks = Vec::new();
    let mut lines = section.lines();
    while let Some(line) = lines.next() {
        if let Some(info) = line.strip_prefix("```").filter(|info| !info.is_empty()) {
            let body: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            blocks.push((info.to_owned(), body.join("\n") + "\n"));
        }
    }
    blocks
}

fn compare(seen: &[Value], expected: &str, name: &str) {
    let expected: Vec<Value> =
        expected.lines().map(|line| serde_json::from_str(line).expect(name)).collect();
    let shown: Vec<String> = seen.iter().map(Value::to_string).collect();
    assert_eq!(seen.len(), expected.len(), "{name}: got\n{}", shown.join("\n"));
    for (seen, expected) in seen.iter().zip(&expected) {
        assert!(holds(seen, expected), "{name}:\n{seen}\nis not\n{expected}");
    }
}

/// Whether every field that `expected` names is the same in `seen`.
fn holds(seen: &Value, expected: &Value) -> bool {
    match (seen, expected) {
        (Value::Object(seen), Value::Object(expected)) => {
            expected.iter().all(|(key, value)| seen.get(key).is_some_and(|seen| holds(seen, value)))
        }
        (Value::Array(seen), Value::Array(expected)) => {
            seen.len() == expected.len() && seen.iter().zip(expected).all(|(s, e)| holds(s, e))
        }
        _ => seen == expected,
    }
}
