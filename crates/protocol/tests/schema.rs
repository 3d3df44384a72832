//! The committed schemas match the types, and what the types write follows the schemas.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test reads fixtures and fails by panicking"
)]

use std::path::Path;

use agentwire_protocol::{Frame, SessionRequest, schema};
use serde_json::{Value, json};

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schema"))
}

fn committed(name: &str) -> Value {
    read(&folder().join(name))
}

fn specification(name: &str) -> Value {
    read(&Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/specification")).join(name))
}

fn read(path: &Path) -> Value {
    let text = std::fs::read_to_string(path).expect("the schema is committed");
    serde_json::from_str(&text).expect("a schema is JSON")
}

/// Run with `AGENTWIRE_UPDATE=1` to rewrite them.
#[test]
fn committed_schemas_are_current() {
    for (name, schema) in [
        ("event.json", schema::event()),
        ("request.json", schema::request()),
        ("command.json", schema::command()),
        ("reply.json", schema::reply()),
    ] {
        if std::env::var_os("AGENTWIRE_UPDATE").is_some() {
            let text = format!("{:#}\n", schema.as_value());
            std::fs::write(folder().join(name), text).expect("the schema can be written");
        }
        assert_eq!(&committed(name), schema.as_value(), "{name} is stale: AGENTWIRE_UPDATE=1");
    }
}

fn requests() -> Vec<(Value, bool)> {
    let with = |config: Value| json!({"agentType": "codex", "prompt": "hi", "config": config});
    vec![
        (json!({"agentType": "claude", "prompt": "hi"}), true),
        (json!({"agentType": "gemini", "prompt": "", "sessionId": "s"}), true),
        (
            with(json!({"model": "m", "approvalMode": "askDangerous", "sandboxMode": "readOnly"})),
            true,
        ),
        (with(json!({"allowedTools": ["Read"], "blockedTools": [], "projectId": "p"})), true),
        (with(json!({"maxTurns": 1})), true),
        (with(json!({"maxTurns": 1000})), true),
        (with(json!({"maxTurns": 0})), false),
        (with(json!({"maxTurns": 1001})), false),
        (with(json!({"maxTurns": -1})), false),
        (with(json!({"maxTurns": 1.5})), false),
        (with(json!({"approvalMode": "yolo"})), false),
        (with(json!({"sandboxMode": "docker"})), false),
        (with(json!({"allowedTools": "Read"})), false),
        (json!({"prompt": "hi"}), false),
        (json!({"agentType": "claude", "prompt": 5}), false),
        (json!({"agentType": "hal", "prompt": "hi"}), false),
        (json!({"agentType": "claude", "prompt": "é".repeat(100_000)}), true),
        (json!({"agentType": "claude", "prompt": "é".repeat(100_001)}), false),
        (json!([]), false),
    ]
}

/// The types, our schema and the specification's schema agree on every request.
#[test]
fn requests_have_the_bounds_of_the_specification() {
    let ours = jsonschema::validator_for(schema::request().as_value()).expect("a schema");
    let specification =
        jsonschema::validator_for(&specification("request.json")).expect("a schema");
    for (request, valid) in requests() {
        let text = request.to_string();
        let shown = &text[..text.len().min(100)];
        assert_eq!(SessionRequest::from_json(&text).is_ok(), valid, "the types: {shown}");
        assert_eq!(ours.is_valid(&request), valid, "our schema: {shown}");
        assert_eq!(specification.is_valid(&request), valid, "the specification: {shown}");
    }
    // The one difference: here, a session may wait for its first prompt.
    let request = json!({"agentType": "claude"});
    for same in [
        json!({"agentType": "claude", "prompt": ""}),
        json!({"agentType": "claude", "prompt": null}),
    ] {
        let read = SessionRequest::from_json(&same.to_string()).expect("a request");
        assert_eq!(json!(read), request);
    }
    let read = SessionRequest::from_json(&request.to_string()).expect("a request");
    assert_eq!((read.prompt.as_str(), json!(read)), ("", request.clone()));
    assert!(ours.is_valid(&request) && !specification.is_valid(&request));
}

#[test]
fn the_fields_of_a_session_are_listed() {
    let schema = agentwire_protocol::schema::request().to_value();
    let fields = schema["$defs"]["SessionConfig"]["properties"].as_object().expect("fields");
    let mut names: Vec<&str> = fields.keys().map(String::as_str).collect();
    names.sort_unstable();
    assert_eq!(names, agentwire_protocol::SessionConfig::FIELDS);
}

/// Lines, and whether they are accepted.
fn frames() -> Vec<(Value, bool)> {
    let command = |name: &str, fields: Value| {
        let mut frame = json!({"id": 1, "command": name, "sessionId": "s"});
        let (Some(frame_fields), Some(more)) = (frame.as_object_mut(), fields.as_object()) else {
            unreachable!("both are objects");
        };
        frame_fields.extend(more.clone());
        frame
    };
    let start = |more: Value| {
        command("start", {
            let mut fields = json!({"agentType": "demo", "prompt": "hi"});
            if let (Some(fields), Some(more)) = (fields.as_object_mut(), more.as_object()) {
                fields.extend(more.clone());
            }
            fields
        })
    };
    vec![
        (start(json!({})), true),
        (start(json!({"profile": "core", "idempotencyKey": "k", "config": {"model": "m"}})), true),
        (start(json!({"fork": true})), true),
        (start(json!({"colour": "red"})), false),
        (start(json!({"agentType": "hal"})), false),
        (command("attach", json!({})), true),
        (command("attach", json!({"after": 7, "profile": "full"})), true),
        (command("attach", json!({"after": -1})), false),
        (command("prompt", json!({"prompt": "x", "delivery": "steer", "messageId": "m"})), true),
        (
            command("prompt", json!({"prompt": "x", "images": [{"mediaType": "i", "data": "d"}]})),
            true,
        ),
        (command("prompt", json!({})), false),
        (command("prompt", json!({"prompt": "x", "delivery": "later"})), false),
        (command("interrupt", json!({"cancelQueued": true})), true),
        (command("stop", json!({})), true),
        (command("stop", json!({"now": true})), true),
        (command("interrupt", json!({"now": true})), true),
        (command("finish", json!({"now": true})), true),
        (command("finish", json!({})), true),
        (command("settle", json!({"requestId": "r", "behavior": "allow"})), true),
        (command("settle", json!({"behavior": "allow"})), false),
        (command("configure", json!({"model": null, "maxThinkingTokens": null})), true),
        (command("configure", json!({"model": 7})), false),
        (command("query", json!({"method": "m", "args": [1, {}]})), true),
        (command("query", json!({"args": []})), false),
        (command("rewind", json!({"messageId": "m"})), true),
        (json!({"command": "list", "live": true, "after": "s", "limit": 3}), true),
        (json!({"command": "list", "sessionId": "s"}), false),
        (
            json!({"command": "list", "state": "idle", "agent": "demo", "q": "x", "sort": "pinned"}),
            true,
        ),
        (json!({"command": "list", "sort": "colour"}), false),
        (command("label", json!({"title": null, "pinned": true, "tags": ["x"]})), true),
        (command("label", json!({"colour": "red"})), false),
        (json!({"command": "label", "pinned": true}), false),
        (command("show", json!({})), true),
        (json!({"command": "show"}), false),
        (json!({"command": "detach"}), false),
        (json!({"id": null, "command": "requests"}), true),
        (command("detach", json!({})), true),
        (json!({"command": "watch"}), true),
        (json!({"command": "watch", "after": "c.7"}), true),
        (json!({"command": "watch", "after": 7}), false),
        (json!({"command": "watch", "since": "c.7"}), false),
        (json!({"command": "unwatch", "why": "enough"}), true),
        (command("attach", json!({"profile": "lean"})), true),
        (command("dance", json!({})), false),
        (json!({"id": 1}), false),
        (json!([]), false),
    ]
}

#[test]
fn frames_are_taken_as_their_schema_says() {
    let schema = jsonschema::validator_for(schema::command().as_value()).expect("a schema");
    for (frame, valid) in frames() {
        let taken = Frame::from_json(&frame.to_string());
        assert_eq!(taken.is_ok(), valid, "{frame}: {taken:?}");
        assert_eq!(schema.is_valid(&frame), valid, "the schema: {frame}");
    }
}

/// Whatever the server refuses, the schema of a request refuses too.
#[test]
fn requests_are_taken_as_their_schema_says() {
    let schema = jsonschema::validator_for(schema::request().as_value()).expect("a schema");
    for (config, valid) in [
        (json!({}), true),
        (json!({"model": "m", "hooks": {"Stop": [{"matcher": "x"}]}}), true),
        (json!({"colour": "red"}), false),
        (json!({"working_directory": "/"}), false),
        (json!({"mcpServers": {"x": {"command": "c", "colour": "red"}}}), false),
        (json!({"hooks": {"Stop": [{"colour": "red"}]}}), false),
        (json!({"agents": {"a": {"description": "d", "prompt": "p", "colour": "red"}}}), false),
        (json!({"sandbox": {"colour": "red"}}), false),
        (json!({"sandbox": {"network": {"colour": "red"}}}), false),
    ] {
        let request = json!({"agentType": "demo", "prompt": "hi", "config": config});
        let taken = SessionRequest::from_json(&request.to_string());
        assert_eq!(taken.is_ok(), valid, "{request}: {taken:?}");
        assert_eq!(schema.is_valid(&request), valid, "the schema: {request}");
    }
    let request = json!({"agentType": "demo", "prompt": "hi", "colour": "red"});
    assert!(SessionRequest::from_json(&request.to_string()).is_err() && !schema.is_valid(&request));
}

/// Every command has a reply.
#[test]
fn the_table_of_replies_is_whole() {
    let (command, reply) = (schema::command().to_value(), schema::reply().to_value());
    let commands = command["discriminator"]["mapping"].as_object().expect("commands");
    let replies = reply["$defs"]["Replies"]["properties"].as_object().expect("replies");
    let names = |of: &serde_json::Map<String, Value>| {
        let mut names: Vec<String> = of.keys().cloned().collect();
        names.sort_unstable();
        names
    };
    assert_eq!(names(commands), names(replies));
}
