//! The specification's messages, each with all of its fields and no others; and what a page may say.

use agentwire_dialects::front::Ask;
use agentwire_protocol::{ApprovalMode, Command};
use serde_json::{Value, json};

use crate::page::{Page, SESSION};

/// What a field may be; `?` is that or null.
type Fields = &'static [(&'static str, &'static str)];

const USAGE: Fields = &[
    ("input_tokens", "integer"),
    ("output_tokens", "integer"),
    ("cache_read_tokens", "integer"),
    ("cache_creation_tokens", "integer"),
    ("cost_usd", "number"),
];

const MESSAGES: &[(&str, Fields)] = &[
    ("session.created", &[("session_id", "string")]),
    (
        "agent.spawned",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("parent_id", "string?"),
            ("label", "string"),
            ("task_description", "string?"),
        ],
    ),
    (
        "agent.output",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("content", "string"),
            ("content_type", "text|thinking"),
        ],
    ),
    (
        "agent.tool_use",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("tool_name", "string"),
            ("tool_input", "object"),
            ("tool_use_id", "string"),
            ("model", "string?"),
        ],
    ),
    (
        "agent.tool_result",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("tool_use_id", "string"),
            ("result", "string"),
            ("is_error", "boolean"),
        ],
    ),
    (
        "agent.question",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("question_id", "string"),
            ("question", "string"),
            ("options", "options"),
        ],
    ),
    (
        "agent.completed",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("result", "string?"),
            ("usage", "usage"),
        ],
    ),
    (
        "agent.status",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("status", "working|waiting_tool|waiting_user|completed|error"),
        ],
    ),
    ("session.completed", &[("session_id", "string"), ("total_usage", "usage")]),
    ("permission_mode.changed", &[("session_id", "string"), ("permission_mode", "string")]),
    (
        "permission.request",
        &[
            ("session_id", "string"),
            ("agent_id", "string"),
            ("permission_id", "string"),
            ("tool_name", "string"),
            ("tool_input", "object"),
            ("tool_use_id", "string"),
        ],
    ),
    (
        "error",
        &[
            ("session_id", "string?"),
            ("agent_id", "string?"),
            ("message", "string"),
            (
                "code",
                "INVALID_JSON|INVALID_MESSAGE|HANDLER_ERROR|SESSION_CREATE_FAILED|SESSION_NOT_FOUND|\
                 INPUT_FAILED|INTERRUPT_FAILED|PERMISSION_MODE_CHANGE_FAILED|\
                 PERMISSION_RESPONSE_FAILED",
            ),
        ],
    ),
];

/// Fails on what is not a message of the specification.
pub(crate) fn check(frame: &Value) {
    let kind = frame["type"].as_str().expect("a type");
    let known = MESSAGES.iter().find(|(name, _)| *name == kind);
    let (_, fields) = known.unwrap_or_else(|| panic!("{frame}"));
    let names: Vec<&String> = frame.as_object().expect("an object").keys().collect();
    assert_eq!(names, ["payload", "type"], "{frame}");
    has(&frame["payload"], fields, frame);
}

fn has(value: &Value, fields: Fields, frame: &Value) {
    let object = value.as_object().unwrap_or_else(|| panic!("{frame}"));
    let mut names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    assert_eq!(object.keys().collect::<Vec<_>>(), names, "{frame}");
    for (name, kind) in fields {
        let value = &object[*name];
        let fits = match *kind {
            "string" => value.is_string(),
            "string?" => value.is_string() || value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_u64(),
            "number" => value.is_number(),
            "object" => value.is_object(),
            "usage" => {
                has(value, USAGE, frame);
                true
            }
            "options" => value.as_array().is_some_and(|options| {
                let option: Fields = &[("label", "string"), ("description", "string?")];
                options.iter().for_each(|value| has(value, option, frame));
                true
            }),
            words => value.as_str().is_some_and(|value| words.split('|').any(|word| word == value)),
        };
        assert!(fits, "{name}: {frame}");
    }
}

fn turn(page: &mut Page) {
    page.event(json!({ "type": "turnStarted", "turnNumber": 1 }));
}

fn completed(page: &mut Page, more: Value) {
    let mut event = json!({ "type": "turnCompleted", "turnNumber": 1, "usage": {
        "inputTokens": 1000, "outputTokens": 100, "totalTokens": 1100,
    } });
    event.as_object_mut().expect("an object").extend(more.as_object().expect("fields").clone());
    page.event(event);
}

#[test]
fn a_session_from_its_beginning_to_its_end() {
    let mut page = Page::new();
    page.say(
        "session.create",
        json!({ "prompt": "go", "cwd": "/w", "allowed_tools": [],
        "permission_mode": "plan", "model": "sonnet" }),
    );
    let Ask::Start(new) = page.start() else { panic!("no start") };
    let config = &new.config;
    assert_eq!(new.prompt.as_ref().map(|prompt| &*prompt.text), Some("go"));
    assert_eq!(config.working_directory.as_deref(), Some("/w"));
    assert_eq!(config.permission_mode.as_deref(), Some("plan"));
    assert_eq!(config.approval_mode, None::<ApprovalMode>);
    assert_eq!((config.model.as_deref(), &config.allowed_tools), (Some("sonnet"), &None));
    let said = page.said();
    assert_eq!(said[0]["payload"], json!({ "session_id": SESSION }));
    assert_eq!(
        said[1]["payload"],
        json!({ "session_id": SESSION, "agent_id": "main", "parent_id": null, "label": "Main",
            "task_description": "go" })
    );
    assert!(page.followed);
    turn(&mut page);
    page.event(json!({ "type": "thinkingChunk", "content": "hm" }));
    page.event(json!({ "type": "textChunk", "content": "hello", "isComplete": false }));
    page.event(json!({ "type": "textChunk", "content": "", "isComplete": true }));
    completed(&mut page, json!({}));
    let said = page.said();
    let kinds: Vec<&str> =
        said.iter().map(|frame| frame["type"].as_str().expect("a type")).collect();
    assert_eq!(
        kinds,
        ["agent.status", "agent.output", "agent.output", "agent.status", "session.completed"]
    );
    assert_eq!(said[1]["payload"]["content_type"], "thinking");
    assert_eq!(
        said[4]["payload"]["total_usage"],
        json!({ "input_tokens": 1000, "output_tokens": 100, "cache_read_tokens": 0,
            "cache_creation_tokens": 0, "cost_usd": 0.0045 })
    );
    page.say("user.input", json!({ "session_id": SESSION, "agent_id": null, "text": "more" }));
    assert!(matches!(page.command().1, Command::Prompt(prompt) if prompt.text == "more"));
    page.say("session.kill", json!({ "session_id": SESSION }));
    assert_eq!(page.command().1, Command::Stop);
    assert!(!page.followed);
    page.say("session.interrupt", json!({ "session_id": SESSION }));
    assert_eq!(page.error(), "SESSION_NOT_FOUND");
    page.is_quiet();
}

#[test]
fn money_is_the_agents_own_figure_else_the_prices_else_the_specifications() {
    let cost = |more: Value| {
        let mut page = Page::running();
        turn(&mut page);
        completed(&mut page, more);
        let said = page.said();
        said[said.len() - 1]["payload"]["total_usage"]["cost_usd"].as_f64().expect("a figure")
    };
    let usage = json!({ "inputTokens": 7, "outputTokens": 0, "totalTokens": 7 });
    assert!((cost(json!({ "costUsd": 0.5 })) - 0.5).abs() < 1e-9);
    assert!((cost(json!({ "models": [{ "model": "dear", "usage": usage }] })) - 7.0).abs() < 1e-9);
    assert!((cost(json!({})) - 0.0045).abs() < 1e-9);
}

#[test]
fn subagents_have_labels_and_end_after_their_call() {
    let mut page = Page::running();
    turn(&mut page);
    page.said();
    let spawn = |page: &mut Page, id: &str, parent: &str| {
        page.event(
            json!({ "type": "toolStarted", "toolId": id, "toolName": "Task", "kind": "agent",
            "agentId": parent, "arguments": { "prompt": "p" } }),
        );
        page.event(json!({ "type": "agentSpawned", "agentId": id, "parentAgentId": parent,
            "prompt": format!("for {id}") }));
    };
    for (id, parent) in [("a", "main"), ("a1", "a"), ("b", "main"), ("a2", "a"), ("a21", "a2")] {
        spawn(&mut page, id, parent);
    }
    let labels: Vec<(String, String)> = page
        .said()
        .iter()
        .filter(|frame| frame["type"] == "agent.spawned")
        .map(|frame| {
            let text = |name: &str| frame["payload"][name].as_str().expect("text").to_owned();
            (text("agent_id"), text("label"))
        })
        .collect();
    let expected =
        [("a", "Sub1"), ("a1", "Sub1.1"), ("b", "Sub2"), ("a2", "Sub1.2"), ("a21", "Sub1.2.1")];
    assert_eq!(labels, expected.map(|(id, label)| (id.to_owned(), label.to_owned())));
    page.event(json!({ "type": "agentFinished", "agentId": "b", "parentAgentId": "main",
        "outcome": "completed", "result": "done",
        "usage": { "inputTokens": 10, "outputTokens": 1, "totalTokens": 11 } }));
    page.event(json!({ "type": "toolCompleted", "toolId": "b", "success": true,
        "result": [{ "type": "text", "text": "one" }, { "type": "text", "text": "two" }] }));
    let said = page.said();
    let kinds: Vec<&str> =
        said.iter().map(|frame| frame["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["agent.status", "agent.tool_result", "agent.completed"]);
    assert_eq!(said[1]["payload"]["result"], "one\ntwo");
    assert_eq!(said[2]["payload"]["result"], "done");
    assert_eq!(said[2]["payload"]["usage"]["input_tokens"], 10);
}

#[test]
fn a_permission_is_asked_once_it_is_the_users_and_answered_once() {
    let mut page = Page::running();
    turn(&mut page);
    page.event(json!({ "type": "toolStarted", "toolId": "t", "toolName": "Bash",
        "arguments": { "command": "ls" }, "kind": "execute" }));
    page.said();
    let raise = |page: &mut Page, id: &str| {
        page.event(json!({ "type": "requestRaised", "requestId": id, "kind": "permission",
            "inputDigest": "d", "toolName": "Bash", "toolUseId": "t", "input": { "command": "ls" } }));
    };
    raise(&mut page, "ruled");
    page.event(json!({ "type": "requestSettled", "requestId": "ruled", "outcome": "allowed",
        "by": "policy" }));
    page.pause();
    // What a rule settles is no matter of the user's.
    page.is_quiet();
    raise(&mut page, "r");
    page.pause();
    let said = page.said();
    assert_eq!(said[0]["payload"]["status"], "waiting_user");
    assert_eq!(
        said[1]["payload"],
        json!({ "session_id": SESSION, "agent_id": "main", "permission_id": "r",
            "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_use_id": "t" })
    );
    let answer = json!({ "session_id": SESSION, "permission_id": "r", "approved": false });
    page.say("permission.response", answer.clone());
    let (call, command) = page.command();
    assert!(
        matches!(command, Command::Settle(settlement) if settlement.request_id.as_str() == "r")
    );
    page.done(call);
    page.say("permission.response", answer);
    assert_eq!(page.error(), "PERMISSION_RESPONSE_FAILED");
    page.event(json!({ "type": "requestSettled", "requestId": "r", "outcome": "denied",
        "by": "client" }));
    assert_eq!(page.said()[0]["payload"]["status"], "waiting_tool");
}

#[test]
fn questions_come_one_at_a_time_and_an_input_answers() {
    let mut page = Page::running();
    turn(&mut page);
    page.said();
    page.event(json!({ "type": "requestRaised", "requestId": "q", "kind": "question",
        "inputDigest": "d", "agentId": "sub", "questions": [
            { "question": "Which?", "options": [{ "label": "A", "description": "first" }] },
            { "question": "Why?", "id": "why", "options": [{ "label": "B" }] },
        ] }));
    page.pause();
    let said = page.said();
    let question = &said[said.len() - 1]["payload"];
    assert_eq!((&question["question"], &question["question_id"]), (&json!("Which?"), &json!("q")));
    assert_eq!(question["options"], json!([{ "label": "A", "description": "first" }]));
    // Nobody is named: what is asked is answered all the same.
    page.say("user.input", json!({ "session_id": SESSION, "agent_id": null, "text": "A" }));
    let next = page.said();
    assert_eq!(next[0]["payload"]["question"], "Why?");
    assert_eq!(next[0]["payload"]["question_id"], "q-2");
    // The main agent asks nothing: what is said to it is a prompt.
    page.say("user.input", json!({ "session_id": SESSION, "agent_id": "main", "text": "go on" }));
    assert!(matches!(page.command().1, Command::Prompt(prompt) if prompt.text == "go on"));
    page.say("user.input", json!({ "session_id": SESSION, "agent_id": "sub", "text": "so" }));
    let Command::Settle(settlement) = page.command().1 else { panic!("no answer") };
    let answers = settlement.answers.expect("answers");
    let told: Vec<(&str, &str)> =
        answers.iter().map(|(key, answer)| (key.as_str(), answer.get())).collect();
    assert_eq!(told, [("Which?", "\"A\""), ("why", "\"so\"")]);
    page.say("user.input", json!({ "session_id": SESSION, "agent_id": "sub", "text": "again" }));
    assert_eq!(page.error(), "INPUT_FAILED");
}

#[test]
fn what_no_page_can_answer_is_not_left_open() {
    let mut page = Page::running();
    page.event(json!({ "type": "requestRaised", "requestId": "m", "kind": "mcp",
        "inputDigest": "d", "name": "server", "input": {} }));
    let Command::Settle(settlement) = page.command().1 else { panic!("no answer") };
    assert!(settlement.error.is_some());
}

#[test]
fn a_failed_turn_is_an_error_and_the_session_goes_on() {
    let mut page = Page::running();
    turn(&mut page);
    page.said();
    page.event(json!({ "type": "error", "message": "no model" }));
    page.event(json!({ "type": "turnFailed", "turnNumber": 1, "error": "no model",
        "reason": "error" }));
    let said = page.said();
    let kinds: Vec<&str> =
        said.iter().map(|frame| frame["type"].as_str().expect("a type")).collect();
    assert_eq!(kinds, ["error", "agent.status", "session.completed"]);
    assert_eq!(said[1]["payload"]["status"], "error");
    turn(&mut page);
    page.event(json!({ "type": "turnFailed", "turnNumber": 2, "error": "stopped",
        "reason": "interrupted" }));
    assert_eq!(page.types(), ["agent.status", "agent.status", "session.completed"]);
}

#[test]
fn bad_words_are_told_by_the_specifications_codes() {
    let mut page = Page::running();
    for (line, code) in [
        ("", "INVALID_JSON"),
        ("{", "INVALID_JSON"),
        ("[]", "INVALID_MESSAGE"),
        ("7", "INVALID_MESSAGE"),
        (r#"{"type":7}"#, "INVALID_MESSAGE"),
        (r#"{"type":"fly","payload":{}}"#, "INVALID_MESSAGE"),
        (r#"{"type":"session.create"}"#, "INVALID_MESSAGE"),
        (r#"{"type":"session.create","payload":[]}"#, "INVALID_MESSAGE"),
        (r#"{"type":"session.create","payload":{"prompt":7}}"#, "INVALID_MESSAGE"),
        (r#"{"type":"session.create","payload":{"prompt":"x","modle":"y"}}"#, "INVALID_MESSAGE"),
        (r#"{"type":"session.create","payload":{"prompt":""}}"#, "INVALID_MESSAGE"),
    ] {
        page.line(line);
        assert_eq!(page.error(), code, "{line}");
    }
    page.bytes(b"\xff");
    assert_eq!(page.error(), "INVALID_JSON");
    page.is_quiet();
}
