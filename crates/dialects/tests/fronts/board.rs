//! The board's events: in every recorded run each follows the specification's schema, and there is at most
//! one end.

use std::collections::{BTreeMap, BTreeSet};

use agentwire_dialects::agent::Exit;
use agentwire_dialects::board::Board;
use agentwire_protocol::{Event, Json};
use serde_json::{Value, json};

use crate::common;

/// §8.3 of the specification, verbatim.
fn schema() -> jsonschema::Validator {
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": "https://agent-board.dev/schemas/claude/session-event.json",
        "title": "ClaudeSessionEvent",
        "type": "object",
        "required": ["id", "sessionId", "type", "payload", "timestamp"],
        "properties": {
            "id": { "type": "string", "format": "uuid" },
            "sessionId": { "type": "string", "format": "uuid" },
            "type": {
                "type": "string",
                "enum": ["plan", "log", "diff", "action", "toolResult", "error", "cancelled"]
            },
            "payload": { "type": "object" },
            "timestamp": { "type": "string", "format": "date-time" }
        }
    });
    jsonschema::options().should_validate_formats(true).build(&schema).expect("a schema")
}

/// A field and a check of its type.
type Field = (&'static str, fn(&Value) -> bool);

/// The fields of each payload, §3.4.
fn fields(kind: &str) -> &'static [Field] {
    match kind {
        "plan" | "error" => &[("message", Value::is_string)],
        "log" => &[("line", Value::is_string)],
        "diff" => &[("diff", Value::is_string), ("file", Value::is_string)],
        "action" => &[("args", Value::is_object), ("tool", Value::is_string)],
        "toolResult" => &[
            ("output", Value::is_string),
            ("success", Value::is_boolean),
            ("tool", Value::is_string),
        ],
        _ => &[],
    }
}

fn told(board: &mut Board, line: &str) -> Vec<Value> {
    let event = Event::from_json(line).expect("an event");
    let mut told = Vec::new();
    board.event(&event, &mut |event: Json<'static>| {
        assert!(!event.get().contains('\n'), "{event:?}");
        told.push(serde_json::from_str(event.get()).expect("JSON"));
    });
    told
}

fn all(events: &[String]) -> Vec<Value> {
    let mut board = Board::default();
    events.iter().flat_map(|line| told(&mut board, line)).collect()
}

fn is_end(event: &Value) -> bool {
    matches!(event["type"].as_str(), Some("error" | "cancelled"))
}

#[test]
fn every_event_of_every_case_is_the_specifications() {
    let schema = schema();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for case in common::cases() {
        let events = common::events(case.dialect, &[&case.bytes], Some(Exit::Unknown));
        let told = all(&events);
        // Every rendering is the same.
        assert_eq!(told, all(&events), "{}", case.name);
        let ids: BTreeSet<&str> =
            told.iter().map(|event| event["id"].as_str().expect("an id")).collect();
        assert_eq!(ids.len(), told.len(), "{}", case.name);
        for event in &told {
            assert!(schema.is_valid(event), "{}: {event}", case.name);
            let kind = event["type"].as_str().expect("a type");
            *seen.entry(kind.to_owned()).or_default() += 1;
            let payload = event["payload"].as_object().expect("an object");
            let names: Vec<&str> = payload.keys().map(String::as_str).collect();
            let wanted = fields(kind);
            assert_eq!(names, wanted.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "{event}");
            assert!(wanted.iter().all(|(name, fits)| fits(&payload[*name])), "{event}");
            let names: Vec<&String> = event.as_object().expect("an object").keys().collect();
            assert_eq!(names, ["id", "payload", "sessionId", "timestamp", "type"]);
        }
        // At most one end, and nothing after it.
        let end = told.iter().position(is_end);
        assert!(end.is_none_or(|at| at == told.len() - 1), "{}: {told:?}", case.name);
    }
    for kind in ["plan", "log", "diff", "action", "toolResult", "error", "cancelled"] {
        assert!(seen.get(kind).is_some_and(|count| *count > 3), "{kind}: {seen:?}");
    }
}

/// §7.6: read by the specification's table, a session ends exactly once, with the right reason.
#[test]
fn what_the_board_says_is_read_back_with_one_end() {
    let claude = agentwire_dialects::agent("claude").expect("Claude's dialect");
    for case in common::cases() {
        let events = common::events(case.dialect, &[&case.bytes], Some(Exit::Unknown));
        let told = all(&events);
        let lines: String = told.iter().map(|event| format!("{event}\n")).collect();
        let back = common::events(claude, &[lines.as_bytes()], Some(Exit::Unknown));
        let back: Vec<Value> =
            back.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        let ends: Vec<&Value> = back.iter().filter(|it| it["type"] == "sessionEnded").collect();
        assert_eq!(ends.len(), 1, "{}", case.name);
        assert_eq!(back.last(), Some(ends[0]), "{}", case.name);
        let reason = match told.last().map(|event| event["type"].as_str().expect("a type")) {
            Some("error") => "failed",
            Some("cancelled") => "cancelled",
            _ => "completed",
        };
        assert_eq!(ends[0]["reason"], reason, "{}", case.name);
        // Nothing is lost on the way.
        let count = |kind: &str| back.iter().filter(|it| it["type"] == kind).count();
        let of = |kind: &str| told.iter().filter(|it| it["type"] == kind).count();
        assert_eq!(count("textChunk"), of("plan") + of("log"), "{}", case.name);
        assert_eq!(count("fileChanged"), of("diff"), "{}", case.name);
    }
}
