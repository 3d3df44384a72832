//! What hooks get about tools, and how their answers combine.

use agentwire_dialects::tape::Agent;
use agentwire_protocol::event::{ToolKind, ToolStarted};
use agentwire_protocol::{Json, Text};
use serde_json::{Value, json};

use super::input::ToolCall;
use super::output::{Decision, Output};

fn call(own: &str, kind: ToolKind, server: Option<&str>, arguments: &Value) -> (String, Value) {
    let started = ToolStarted {
        tool_id: Text::from("t"),
        tool_name: Text::from(own),
        arguments: Some(Json::of(arguments)),
        kind,
        title: Some(Text::from("a title")),
        server: server.map(Text::from),
    };
    let call = ToolCall::started(&started, &Agent::main());
    (call.name.clone(), call.input.read().unwrap())
}

#[test]
fn tools_have_the_names_that_claude_gives_them() {
    let name = |own: &str, kind| call(own, kind, None, &json!({})).0;
    assert_eq!(name("command_execution", ToolKind::Execute), "Bash");
    assert_eq!(name("replace", ToolKind::Edit), "Edit");
    assert_eq!(name("write_file", ToolKind::Edit), "Write");
    assert_eq!(name("glob", ToolKind::Search), "Glob");
    assert_eq!(name("grep_search", ToolKind::Search), "Grep");
    assert_eq!(name("web_search", ToolKind::Fetch), "WebSearch");
    assert_eq!(name("web_fetch", ToolKind::Fetch), "WebFetch");
    assert_eq!(name("frobnicate", ToolKind::Other), "frobnicate");
    assert_eq!(call("add", ToolKind::Mcp, Some("calc"), &json!({})).0, "mcp__calc__add");
}

#[test]
fn inputs_have_the_fields_that_hooks_look_for_where_they_are_certain() {
    let bash = |input: Value| call("x", ToolKind::Execute, None, &input).1["command"].clone();
    assert_eq!(bash(json!({ "command": "ls", "cwd": "/w" })), "ls");
    assert_eq!(bash(json!({ "command": ["rm", "-r", "x"] })), "rm -r x");
    assert_eq!(bash(json!({ "toolCallId": "c" })), "a title");
    let change = |path: &str, kind: &str| json!({ "path": path, "kind": { "type": kind } });
    let one =
        call("file_change", ToolKind::Edit, None, &json!({ "changes": [change("/a", "add")] }));
    assert_eq!((one.0.as_str(), &one.1["file_path"]), ("Write", &json!("/a")));
    // With two files, neither may represent the other.
    let changes = json!({ "changes": [change("/a", "add"), change("/b", "update")] });
    let two = call("file_change", ToolKind::Edit, None, &changes);
    assert_eq!((two.0.as_str(), two.1.get("file_path")), ("Edit", None));
    assert_eq!(two.1["changes"], changes["changes"]);
}

#[test]
fn of_several_answers_the_strictest_counts() {
    let read = |output: Value| Output::read(&Json::of(&output)).unwrap();
    let specific = |fields: Value| read(json!({ "hookSpecificOutput": fields }));
    let all = Output::all(vec![
        specific(json!({ "permissionDecision": "ask", "permissionDecisionReason": "hm" })),
        specific(json!({ "permissionDecision": "deny", "permissionDecisionReason": "no" })),
        specific(json!({ "permissionDecision": "allow", "additionalContext": "one" })),
        specific(json!({ "additionalContext": "two" })),
    ]);
    assert_eq!(all.decision, Some(Decision::Deny));
    assert_eq!(all.blocked().as_deref(), Some("no"));
    assert_eq!(all.context.as_deref(), Some("one\n\ntwo"));
    let stop = Output::all(vec![read(json!({ "continue": false, "stopReason": "enough" }))]);
    assert_eq!(stop.blocked().as_deref(), Some("enough"));
    let nothing = read(json!({ "continue": true, "suppressOutput": true, "reason": null }));
    assert!(nothing.decision.is_none() && nothing.blocked().is_none());
    for wrong in [json!("no"), json!({ "decision": "perhaps" }), json!({ "continue": 0 })] {
        assert!(Output::read(&Json::of(&wrong)).is_err(), "{wrong}");
    }
}
