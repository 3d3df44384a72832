//! Claude: what each command and answer is on its stdin, what it replies, how it is started.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "a test that meets what it does not expect shall fail"
)]

mod common;
#[path = "claude/deciding.rs"]
mod deciding;

use agentwire_dialects::agent::{AgentDialect, Exit, Launch, Setup, Start};
use agentwire_dialects::claude::CLAUDE;
use agentwire_dialects::tape::{Action, Draft, Sink, Tape};
use agentwire_protocol::{Call, CommandFrame, ErrorCode, GatewayError, Json, SessionConfig};
use serde_json::{Value, json};

const CALL: Call = Call(7);

/// A live session after `initialize` was written.
struct Live {
    tape: Tape,
    seen: Seen,
}

#[derive(Default)]
struct Seen {
    events: Vec<Value>,
    stdin: Vec<Value>,
    actions: Vec<Action>,
    replies: Vec<Result<Value, ErrorCode>>,
    /// What was said of those that failed.
    errors: Vec<String>,
}

impl Sink for Seen {
    fn event(&mut self, draft: Draft<'_>) {
        self.events.push(serde_json::from_str(&common::stamped(draft, 1)).expect("an event"));
    }
    fn action(&mut self, action: Action) {
        match action {
            Action::Write(line) => {
                assert!(!line.contains('\n'), "{line}");
                self.stdin.push(serde_json::from_str(&line).expect("JSON"));
            }
            other => self.actions.push(other),
        }
    }
    fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        assert_eq!(call, CALL);
        self.errors.extend(result.as_ref().err().map(|error| error.message.clone()));
        let result = result.map(|json| json.read().expect("JSON")).map_err(|error| error.code);
        self.replies.push(result);
    }
}

impl Live {
    fn new() -> Self {
        Self::with(Setup::default())
    }

    fn with(setup: Setup) -> Self {
        let mut live = Self { tape: Tape::new(&CLAUDE, &setup), seen: Seen::default() };
        live.tape.start(&mut live.seen);
        live
    }

    fn agent(&mut self, line: Value) -> Vec<Value> {
        self.tape.line(line.to_string().as_bytes(), &mut self.seen);
        std::mem::take(&mut self.seen.events)
    }

    fn send(&mut self, frame: &str) -> Result<(), GatewayError> {
        let frame = CommandFrame::from_json(frame).expect("a command");
        self.tape.command(CALL, &frame.command, &mut self.seen)
    }

    /// Sends a command; gives what was written.
    fn command(&mut self, frame: Value) -> Vec<Value> {
        self.seen.stdin.clear();
        self.send(&frame.to_string()).expect("a command that is taken");
        std::mem::take(&mut self.seen.stdin)
    }

    fn refused(&mut self, frame: Value) -> GatewayError {
        self.seen.stdin.clear();
        let error = self.send(&frame.to_string()).expect_err("a command that is refused");
        assert!(self.seen.stdin.is_empty());
        error
    }

    /// The one request that was written, and the agent's reply to it.
    fn answered(&mut self, frame: Value, response: Value) -> (Value, Result<Value, ErrorCode>) {
        let written = self.command(frame);
        let [line] = written.as_slice() else { panic!("{written:?}") };
        assert_eq!(line["type"], "control_request");
        let mut body = response;
        body["request_id"] = line["request_id"].clone();
        self.agent(json!({ "type": "control_response", "response": body }));
        (line["request"].clone(), self.seen.replies.pop().expect("a reply"))
    }

    fn asks(&mut self, request: Value) {
        let line = json!({ "type": "control_request", "request_id": "r1", "request": request });
        let events = self.agent(line);
        assert_eq!(events.last().expect("an event")["type"], "requestRaised");
    }

    /// The `response` of the control response that settles `r1`.
    fn settled(&mut self, answer: Value) -> Value {
        let mut frame = answer;
        frame["command"] = json!("settle");
        frame["requestId"] = json!("r1");
        let written = self.command(frame);
        let [line] = written.as_slice() else { panic!("{written:?}") };
        assert_eq!(line["type"], "control_response");
        assert_eq!(line["response"]["request_id"], "r1");
        assert!(self.seen.events.is_empty(), "the session tells that it is settled");
        line["response"].clone()
    }
}

fn success(response: Value) -> Value {
    json!({ "subtype": "success", "response": response })
}

fn mcp() -> Value {
    json!({ "subtype": "mcp_message", "server_name": "calc",
        "message": { "jsonrpc": "2.0", "id": 3, "method": "tools/list" } })
}

fn elicitation() -> Value {
    json!({ "subtype": "elicitation", "mcp_server_name": "form", "message": "Name?",
        "requested_schema": { "type": "object", "properties": { "name": { "type": "string" } } } })
}

fn other() -> Value {
    json!({ "subtype": "oauth_token_refresh" })
}

fn bash() -> Value {
    json!({
        "subtype": "can_use_tool", "tool_name": "Bash", "input": { "command": "ls" },
        "tool_use_id": "t1", "permission_suggestions": [
            { "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "ls" }],
              "behavior": "allow", "destination": "localSettings" },
            { "type": "setMode", "mode": "acceptEdits", "destination": "session" },
        ],
    })
}

fn question() -> Value {
    json!({ "subtype": "can_use_tool", "tool_name": "AskUserQuestion", "tool_use_id": "t1",
        "input": { "questions": [{ "question": "Which?", "options": [{ "label": "A" }] }] } })
}

fn hook(event: &str) -> Value {
    json!({ "subtype": "hook_callback", "callback_id": "hook_0",
        "input": { "hook_event_name": event, "tool_name": "Bash" } })
}

#[test]
fn every_answer_in_the_words_of_the_agent() {
    let (message, form, other) = (mcp(), elicitation(), other());
    let denied = |event: &str, output: Value| {
        (hook(event), json!({ "behavior": "deny", "message": "no" }), output)
    };
    let table = [
        (
            bash(),
            json!({ "behavior": "allow" }),
            json!({ "behavior": "allow", "updatedInput": { "command": "ls" }, "toolUseID": "t1" }),
        ),
        (
            bash(),
            json!({ "behavior": "allow", "updatedInput": { "command": "ls -a" },
                "updatedPermissions": [{ "type": "x" }] }),
            json!({ "behavior": "allow", "updatedInput": { "command": "ls -a" },
                "updatedPermissions": [{ "type": "x" }], "toolUseID": "t1" }),
        ),
        (
            bash(),
            json!({ "behavior": "allow", "remember": "session" }),
            // The gateway remembers it; Claude is told "once".
            json!({ "behavior": "allow", "updatedInput": { "command": "ls" }, "toolUseID": "t1" }),
        ),
        (
            bash(),
            json!({ "behavior": "deny", "message": "no", "interrupt": true }),
            json!({ "behavior": "deny", "message": "no", "interrupt": true, "toolUseID": "t1" }),
        ),
        (
            bash(),
            json!({ "behavior": "deny" }),
            json!({ "behavior": "deny", "message": "The user denied this request.", "toolUseID": "t1" }),
        ),
        (
            question(),
            json!({ "answers": { "Which?": ["A", "B"] } }),
            json!({ "behavior": "allow", "toolUseID": "t1", "updatedInput": {
                "questions": [{ "question": "Which?", "options": [{ "label": "A" }] }],
                "answers": { "Which?": "A, B" } } }),
        ),
        (
            hook("PreToolUse"),
            json!({ "hookOutput": { "continue": true, "system_message": "m", "hook_specific_output": {
                "hook_event_name": "PreToolUse", "updated_input": { "file_path": "x" } } } }),
            json!({ "continue": true, "systemMessage": "m", "hookSpecificOutput": {
                "hookEventName": "PreToolUse", "updatedInput": { "file_path": "x" } } }),
        ),
        (
            hook("PermissionRequest"),
            json!({ "hookOutput": { "hook_specific_output": { "decision": {
                "behavior": "allow", "updated_input": { "file_path": "x" }, "updated_permissions":
                    [{ "type": "addRules", "rules": [{ "tool_name": "Bash", "rule_content": "ls" }] }] } } } }),
            json!({ "hookSpecificOutput": { "decision": {
                "behavior": "allow", "updatedInput": { "file_path": "x" }, "updatedPermissions":
                    [{ "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "ls" }] }] } } }),
        ),
        (
            hook("PostToolUse"),
            json!({ "hookOutput": { "hook_specific_output": { "updated_mcp_tool_output": { "a_b": 1 } } } }),
            json!({ "hookSpecificOutput": { "updatedMCPToolOutput": { "a_b": 1 } } }),
        ),
        (hook("Stop"), json!({ "behavior": "allow" }), json!({})),
        (hook("PreToolUse"), json!({ "behavior": "allow" }), json!({})),
        (
            hook("PreToolUse"),
            json!({ "behavior": "allow", "updatedInput": { "command": "ls -a" } }),
            json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
                "permissionDecision": "allow", "updatedInput": { "command": "ls -a" } } }),
        ),
        (
            hook("PermissionRequest"),
            json!({ "behavior": "allow", "updatedInput": { "command": "ls -a" },
                "updatedPermissions": [{ "type": "x" }] }),
            json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest",
                "decision": { "behavior": "allow", "updatedInput": { "command": "ls -a" },
                    "updatedPermissions": [{ "type": "x" }] } } }),
        ),
        denied(
            "PreToolUse",
            json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
            "permissionDecision": "deny", "permissionDecisionReason": "no" } }),
        ),
        denied(
            "PermissionRequest",
            json!({ "hookSpecificOutput": {
            "hookEventName": "PermissionRequest",
            "decision": { "behavior": "deny", "message": "no" } } }),
        ),
        denied("UserPromptSubmit", json!({ "decision": "block", "reason": "no" })),
        (
            message.clone(),
            json!({ "hookOutput": { "jsonrpc": "2.0", "id": 3, "result": { "tools": [] } } }),
            json!({ "mcp_response": { "jsonrpc": "2.0", "id": 3, "result": { "tools": [] } } }),
        ),
        (
            message.clone(),
            json!({ "hookOutput": { "mcp_response": { "id": 3 } } }),
            json!({ "mcp_response": { "id": 3 } }),
        ),
        (
            message.clone(),
            json!({ "behavior": "allow" }),
            json!({ "mcp_response": { "jsonrpc": "2.0", "id": 3, "result": {} } }),
        ),
        (
            message,
            json!({ "behavior": "deny", "message": "no" }),
            json!({ "mcp_response": { "jsonrpc": "2.0", "id": 3,
                "error": { "code": -32000, "message": "no" } } }),
        ),
        (
            form.clone(),
            json!({ "answers": { "name": "Ada" } }),
            json!({ "action": "accept", "content": { "name": "Ada" } }),
        ),
        (form, json!({ "behavior": "deny" }), json!({ "action": "decline" })),
        (other, json!({ "hookOutput": { "token": "t" } }), json!({ "token": "t" })),
    ];
    for (request, answer, expected) in table {
        let mut live = Live::new();
        live.asks(request.clone());
        let response = live.settled(answer);
        assert_eq!(response["subtype"], "success", "{request}");
        assert_eq!(response["response"], expected, "{request}");
        assert_eq!(live.seen.replies, [Ok(json!({}))]);
        // Settled once: a second answer finds nothing.
        let again =
            live.refused(json!({ "command": "settle", "requestId": "r1", "behavior": "allow" }));
        assert_eq!(again.code, ErrorCode::RequestNotFound);
    }
}

#[test]
fn a_denial_that_has_no_word_is_an_error() {
    for request in [hook("Stop"), json!({ "subtype": "ui_read_selection" })] {
        let mut live = Live::new();
        live.asks(request);
        let response = live.settled(json!({ "behavior": "deny", "message": "no" }));
        assert_eq!(response, json!({ "subtype": "error", "request_id": "r1", "error": "no" }));
    }
}

#[test]
fn an_answer_that_does_not_fit_is_refused_and_leaves_the_request_open() {
    for (request, answer) in [
        (bash(), json!({ "answers": { "Which?": "A" } })),
        (hook("Stop"), json!({ "hookOutput": "text" })),
        (bash(), json!({})),
    ] {
        let mut live = Live::new();
        live.asks(request);
        let mut frame = answer;
        frame["command"] = json!("settle");
        frame["requestId"] = json!("r1");
        assert_eq!(live.refused(frame).code, ErrorCode::InvalidMessage);
        live.settled(json!({ "behavior": "deny" }));
    }
}

#[test]
fn what_an_answer_cannot_carry_is_refused_by_name() {
    let updated = || json!({ "behavior": "allow", "updatedInput": {} });
    let rules = || json!({ "behavior": "allow", "updatedPermissions": [] });
    let always = || json!({ "behavior": "allow", "remember": "session" });
    for (request, answer, name) in [
        (hook("Stop"), updated(), "updatedInput"),
        (hook("Stop"), rules(), "updatedPermissions"),
        (hook("PreToolUse"), rules(), "updatedPermissions"),
        (hook("PreToolUse"), always(), "remember"),
        (mcp(), rules(), "updatedPermissions"),
        (mcp(), always(), "remember"),
        (elicitation(), rules(), "updatedPermissions"),
        (elicitation(), always(), "remember"),
        (other(), rules(), "updatedPermissions"),
        (other(), always(), "remember"),
    ] {
        let mut live = Live::new();
        live.asks(request.clone());
        let mut frame = answer;
        frame["command"] = json!("settle");
        frame["requestId"] = json!("r1");
        let error = live.refused(frame);
        assert_eq!(error.code, ErrorCode::Unsupported, "{request}");
        assert!(error.message.contains(name), "{error}");
        live.settled(json!({ "behavior": "deny" }));
    }
}

#[test]
fn a_denial_that_ends_the_turn_interrupts_it() {
    let settle = |interrupt| json!({ "command": "settle", "requestId": "r1", "behavior": "deny", "interrupt": interrupt });
    for request in [hook("PreToolUse"), hook("Stop"), mcp(), elicitation(), other()] {
        let mut live = Live::new();
        live.asks(request.clone());
        let written = live.command(settle(true));
        assert_eq!(written.len(), 2, "{request}");
        assert_eq!(written[0]["type"], "control_response");
        assert_eq!(written[1]["request"], json!({ "subtype": "interrupt" }));
        live.asks(request);
        assert_eq!(live.command(settle(false)).len(), 1);
    }
    // A permission says it itself.
    let mut live = Live::new();
    live.asks(bash());
    assert_eq!(live.command(settle(true)).len(), 1);
    live.agent(json!({ "type": "callback.request", "id": "r1", "payload": {
        "callback_type": "can_use_tool", "tool_name": "Bash", "tool_input": {} } }));
    assert_eq!(live.command(settle(true)).len(), 2);
}

#[test]
fn an_agent_that_hangs_can_be_interrupted_and_stopped() {
    let mut live = Live::new();
    let query = || json!({ "command": "query", "method": "getUsage", "args": [] });
    (0..1024).for_each(|_| assert_eq!(live.command(query()).len(), 1));
    assert_eq!(live.refused(query()).code, ErrorCode::Overloaded);
    assert_eq!(live.command(json!({ "command": "interrupt" })).len(), 1);
    assert_eq!(live.command(json!({ "command": "stop" })).len(), 1);
}

#[test]
fn callbacks_are_answered_as_they_came() {
    let mut live = Live::new();
    live.agent(json!({ "type": "callback.request", "id": "cb", "session_id": "s", "payload": {
        "callback_type": "can_use_tool", "tool_name": "Bash", "tool_input": { "command": "ls" },
        "tool_use_id": "t1", "suggestions": [] } }));
    let allow = json!({ "command": "settle", "requestId": "cb", "behavior": "allow" });
    assert_eq!(
        live.command(allow),
        [json!({ "type": "callback.response", "id": "cb", "session_id": "s",
            "payload": { "behavior": "allow", "updated_input": { "command": "ls" } } })]
    );
}

#[test]
fn a_denied_tool_is_told_as_denied() {
    let mut live = Live::new();
    let call = json!({ "type": "tool_use", "id": "t1", "name": "Bash", "input": {} });
    live.agent(json!({ "type": "assistant", "message": { "content": [call] } }));
    live.asks(bash());
    live.settled(json!({ "behavior": "deny", "interrupt": true }));
    let events = live.agent(json!({ "type": "user",
        "message": { "content": [{ "type": "tool_result", "tool_use_id": "t1", "is_error": true,
            "content": "The user doesn't want to proceed with this tool use." }] },
        "tool_result_meta": [{ "id": "t1", "non_execution_kind": "user-rejected" }] }));
    assert_eq!(events.len(), 1);
    assert_eq!(
        (&events[0]["type"], &events[0]["reason"]),
        (&json!("toolFailed"), &json!("denied"))
    );
}

#[test]
fn prompts_are_user_lines() {
    let uuid = "00000000-0000-4000-8000-000000000001";
    let mut live = Live::new();
    let prompt = json!({ "command": "prompt", "prompt": "Hi" });
    let line = json!({ "type": "user", "message": { "role": "user", "content": "Hi" }, "parent_tool_use_id": null });
    assert_eq!(live.command(prompt)[0], line);
    let now = json!({ "command": "prompt", "prompt": "Hi", "messageId": uuid, "delivery": "now" });
    let mut urgent = line;
    urgent["uuid"] = json!(uuid);
    urgent["priority"] = json!("now");
    assert_eq!(live.command(now), [urgent]);
    let image = json!({ "command": "prompt", "prompt": "What?", "delivery": "steer",
        "images": [{ "mediaType": "image/png", "data": "aGk=" }] });
    let written = live.command(image);
    assert_eq!(
        written[0]["message"]["content"],
        json!([{ "type": "text", "text": "What?" }, { "type": "image", "source": {
            "type": "base64", "media_type": "image/png", "data": "aGk=" } }])
    );
    let bad = json!({ "command": "prompt", "prompt": "Hi", "messageId": "m1" });
    assert_eq!(live.refused(bad).code, ErrorCode::InvalidMessage);
}

#[test]
fn turns_know_their_prompts() {
    let uuid = |n: u8| format!("00000000-0000-4000-8000-00000000000{n}");
    let fate =
        |n, state| json!({ "type": "command_lifecycle", "command_uuid": uuid(n), "state": state });
    let init = || json!({ "type": "system", "subtype": "init", "session_id": "s" });
    let result = || json!({ "type": "result", "subtype": "success", "is_error": false });
    let mut live = Live::new();
    for n in 1..=4 {
        let text = format!("prompt {n}");
        live.command(json!({ "command": "prompt", "prompt": text, "messageId": uuid(n) }));
    }
    let started = |events: &[Value]| {
        events.iter().find(|event| event["type"] == "turnStarted").cloned().expect("a turn")
    };
    // Two become one turn, one joins it, one is cancelled, and the next turn is the agent's own.
    live.agent(fate(1, "started"));
    live.agent(fate(2, "started"));
    assert_eq!(started(&live.agent(init()))["prompt"], "prompt 1\n\nprompt 2");
    let joined = live.agent(fate(3, "started"));
    assert_eq!(
        (&joined[1]["status"], &joined[1]["message"]),
        (&json!("prompted"), &json!("prompt 3"))
    );
    live.agent(fate(4, "cancelled"));
    live.agent(result());
    let own = started(&live.agent(init()));
    assert_eq!((own.get("prompt"), &own["origin"]), (None, &json!("agent")));
}

#[test]
fn old_versions_take_prompts_in_order() {
    let mut live = Live::new();
    live.command(json!({ "command": "prompt", "prompt": "one" }));
    let events = live.agent(json!({ "type": "system", "subtype": "init" }));
    assert_eq!(events[1]["prompt"], "one");
    assert!(events[1].get("origin").is_none());
}

#[test]
fn interrupt_and_stop_do_not_wait() {
    let mut live = Live::new();
    assert_eq!(
        live.command(json!({ "command": "interrupt" }))[0]["request"],
        json!({ "subtype": "interrupt" })
    );
    assert_eq!(
        live.command(json!({ "command": "interrupt", "cancelQueued": true }))[0]["request"],
        json!({ "subtype": "interrupt", "cancel_queued": true })
    );
    let stop = live.command(json!({ "command": "stop" }));
    assert_eq!(stop[0]["request"]["subtype"], "end_session");
    assert_eq!(live.seen.actions, [Action::CloseStdin]);
    assert_eq!(live.seen.replies.len(), 3);
}

#[test]
fn queries_and_changes_reply_with_what_the_agent_says() {
    let query =
        |method: &str, args: Value| json!({ "command": "query", "method": method, "args": args });
    let table = [
        (query("setModel", json!(["opus"])), json!({ "subtype": "set_model", "model": "opus" })),
        (query("setModel", json!([])), json!({ "subtype": "set_model" })),
        (
            query("setPermissionMode", json!(["plan"])),
            json!({ "subtype": "set_permission_mode", "mode": "plan" }),
        ),
        (
            query("setMaxThinkingTokens", json!([1024])),
            json!({ "subtype": "set_max_thinking_tokens", "max_thinking_tokens": 1024 }),
        ),
        (
            query("setMaxThinkingTokens", json!([null])),
            json!({ "subtype": "set_max_thinking_tokens", "max_thinking_tokens": null }),
        ),
        (
            json!({ "command": "configure", "model": null }),
            json!({ "subtype": "set_model", "model": null }),
        ),
        (
            json!({ "command": "configure", "maxThinkingTokens": null }),
            json!({ "subtype": "set_max_thinking_tokens", "max_thinking_tokens": null }),
        ),
        (
            query("rewindFiles", json!(["m1", { "dryRun": true }])),
            json!({ "subtype": "rewind_files", "user_message_id": "m1", "dry_run": true }),
        ),
        (
            json!({ "command": "rewind", "messageId": "m1" }),
            json!({ "subtype": "rewind_files", "user_message_id": "m1" }),
        ),
        (
            query("mcpToggle", json!(["calc", false])),
            json!({ "subtype": "mcp_toggle", "serverName": "calc", "enabled": false }),
        ),
        (
            query("mcpSetServers", json!([{ "calc": { "type": "sdk" } }])),
            json!({ "subtype": "mcp_set_servers", "servers": { "calc": { "type": "sdk" } } }),
        ),
        (query("getContextUsage", json!([null])), json!({ "subtype": "get_context_usage" })),
        (query("stopTask", json!(["t"])), json!({ "subtype": "stop_task", "task_id": "t" })),
        (
            query("renameSession", json!(["T"])),
            json!({ "subtype": "rename_session", "title": "T" }),
        ),
        (
            json!({ "command": "configure", "approvalMode": "autoAll" }),
            json!({ "subtype": "set_permission_mode", "mode": "default" }),
        ),
    ];
    for (frame, request) in table {
        let mut live = Live::new();
        let (written, reply) = live.answered(frame.clone(), success(json!({ "x": 1 })));
        assert_eq!((written, reply), (request, Ok(json!({ "x": 1 }))), "{frame}");
        let (_, reply) = live.answered(frame, json!({ "subtype": "error", "error": "no" }));
        assert_eq!(reply, Err(ErrorCode::AgentFailed));
    }
    let mut live = Live::new();
    let status = query("mcpServerStatus", json!([]));
    let (_, reply) = live.answered(status, success(json!({ "mcpServers": [{ "name": "calc" }] })));
    assert_eq!(reply, Ok(json!([{ "name": "calc" }])));
}

#[test]
fn several_changes_have_one_reply() {
    let change = json!({ "command": "configure", "model": "opus", "permissionMode": "plan", "maxThinkingTokens": 9 });
    let ids = |written: &[Value]| -> Vec<Value> {
        written.iter().map(|line| line["request_id"].clone()).collect()
    };
    let answer = |live: &mut Live, id: &Value, subtype: &str| {
        live.agent(json!({ "type": "control_response",
            "response": { "subtype": subtype, "request_id": id, "error": "no" } }));
    };
    let mut live = Live::new();
    let written = live.command(change.clone());
    for id in ids(&written) {
        assert!(live.seen.replies.is_empty());
        answer(&mut live, &id, "success");
    }
    assert_eq!(live.seen.replies, [Ok(json!({}))]);
    let mut live = Live::new();
    let written = live.command(change);
    answer(&mut live, &ids(&written)[0], "error");
    answer(&mut live, &ids(&written)[1], "success");
    answer(&mut live, &ids(&written)[2], "error");
    assert_eq!(live.seen.replies, [Err(ErrorCode::AgentFailed)]);
}

#[test]
fn the_greeting_answers_queries_before_and_after_it_came() {
    let query = |method: &str| json!({ "command": "query", "method": method, "args": [] });
    let mut live = Live::new();
    let id = live.seen.stdin[0]["request_id"].clone();
    assert!(live.command(query("supportedModels")).is_empty());
    assert!(live.seen.replies.is_empty());
    let events = live.agent(json!({ "type": "control_response", "response": { "subtype": "success", "request_id": id,
        "response": { "commands": [], "models": [{ "value": "opus" }], "account": { "email": "a" } },
        "pending_permission_requests": [{ "request_id": "p1", "request": bash() }] } }));
    assert_eq!((&events[0]["status"], &events[1]["requestId"]), (&json!("ready"), &json!("p1")));
    live.command(query("accountInfo"));
    live.command(query("supportedCommands"));
    assert_eq!(
        live.seen.replies,
        [Ok(json!([{ "value": "opus" }])), Ok(json!({ "email": "a" })), Ok(json!([]))]
    );
}

#[test]
fn what_it_cannot_do_is_refused_by_name() {
    let mut live = Live::new();
    let error = live.refused(json!({ "command": "query", "method": "fly", "args": [] }));
    assert_eq!((error.code, error.message.contains("fly")), (ErrorCode::Unsupported, true));
    let error = live.refused(json!({ "command": "configure", "permissionMode": "yolo" }));
    assert_eq!((error.code, error.message.contains("yolo")), (ErrorCode::Unsupported, true));
    let error = live.refused(json!({ "command": "attach" }));
    assert_eq!(error.code, ErrorCode::Unsupported);
    let error =
        live.refused(json!({ "command": "settle", "requestId": "none", "behavior": "allow" }));
    assert_eq!(error.code, ErrorCode::RequestNotFound);
}

#[test]
fn the_end_of_the_process_answers_every_call() {
    for method in ["supportedModels", "getUsage"] {
        let mut live = Live::new();
        live.command(json!({ "command": "query", "method": method, "args": [] }));
        live.asks(json!({ "subtype": "mcp_message", "server_name": "s", "message": {} }));
        live.tape.end(Exit::Code(1), &mut live.seen);
        assert_eq!(live.seen.replies, [Err(ErrorCode::AgentFailed)]);
        assert_eq!(live.seen.events[0]["outcome"], "withdrawn");
    }
}

/// What Claude says of a session that it does not open is the answer to who waits for its greeting.
#[test]
fn a_process_that_does_not_begin_says_why() {
    let why = "No conversation found with session ID: 9b2f";
    let result = |subtype: &str| json!({ "type": "result", "subtype": subtype, "is_error": true, "errors": [why] });
    let query = json!({ "command": "query", "method": "initialization", "args": [] });
    let mut live = Live::new();
    live.command(query);
    live.agent(result("error_during_execution"));
    live.tape.end(Exit::Code(1), &mut live.seen);
    assert_eq!(live.seen.errors, [why]);
    // Later it is the error of a turn.
    let mut live = Live::new();
    let id = live.seen.stdin[0]["request_id"].clone();
    let greeting = json!({ "commands": [], "models": [] });
    live.agent(json!({ "type": "control_response", "response": {
        "subtype": "success", "request_id": id, "response": greeting } }));
    live.agent(result("error_during_execution"));
    live.command(json!({ "command": "query", "method": "getUsage", "args": [] }));
    live.tape.end(Exit::Code(1), &mut live.seen);
    assert_eq!(live.seen.errors, ["the agent ended before it answered"]);
}

/// Claude says nothing of a change to the mode in which it runs; the gateway keeps some in its place.
#[test]
fn every_change_of_the_mode_is_told_once() {
    let mut live = Live::new();
    let mut change = |mode: &str, echo: Option<&str>| {
        let written = live
            .command(json!({ "command": "query", "method": "setPermissionMode", "args": [mode] }));
        let id = &written[0]["request_id"];
        let reply = json!({ "subtype": "success", "request_id": id, "response": {} });
        let mut events = live.agent(json!({ "type": "control_response", "response": reply }));
        if let Some(mode) = echo {
            events.extend(live.agent(
                json!({ "type": "system", "subtype": "status", "status": null, "permissionMode": mode }),
            ));
        }
        let modes = events.iter().filter(|event| event["status"] == "mode");
        modes
            .map(|event| event["message"].as_str().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(change("acceptEdits", None), ["acceptEdits"]);
    assert_eq!(change("plan", Some("plan")), ["plan"]);
    assert_eq!(change("acceptEdits", Some("default")), ["acceptEdits"]);
    assert_eq!(change("default", None), ["default"]);
}

#[test]
fn prompts_that_never_began_fail_with_the_process() {
    let uuid = |n: u8| format!("00000000-0000-4000-8000-00000000000{n}");
    let died = ("turnFailed", "died");
    let cut = ("turnFailed", "interrupted");
    for (stop, exit, failed) in [
        (false, Exit::Code(1), died),
        (false, Exit::Signal(11), died),
        (false, Exit::Signal(15), cut),
        (true, Exit::Code(0), cut),
        (true, Exit::Signal(9), cut),
    ] {
        let mut live = Live::new();
        for n in 1..=3 {
            let text = format!("prompt {n}");
            live.command(json!({ "command": "prompt", "prompt": text, "messageId": uuid(n) }));
        }
        // The first runs, the second is taken from the queue of the agent, the third waits.
        live.agent(json!({ "type": "system", "subtype": "init", "user_message_uuids": [uuid(1)] }));
        live.agent(json!({ "type": "result", "subtype": "success" }));
        live.agent(
            json!({ "type": "command_lifecycle", "command_uuid": uuid(2), "state": "started" }),
        );
        if stop {
            live.command(json!({ "command": "stop" }));
        }
        live.tape.end(exit, &mut live.seen);
        let told = live.seen.events.iter().map(|event| {
            let how = event.get("prompt").or(event.get("reason")).and_then(Value::as_str);
            (event["type"].as_str().expect("a type"), how.expect("a prompt or a reason"))
        });
        let begun = |prompt| ("turnStarted", prompt);
        assert_eq!(
            told.collect::<Vec<_>>(),
            [begun("prompt 2"), failed, begun("prompt 3"), failed]
        );
        // Nothing is left for the next process.
        live.seen.events.clear();
        live.tape.end(Exit::Code(0), &mut live.seen);
        assert!(live.seen.events.is_empty());
    }
}

#[test]
fn a_prompt_that_is_done_fails_no_more() {
    let uuid = "00000000-0000-4000-8000-000000000001";
    let mut live = Live::new();
    live.command(json!({ "command": "prompt", "prompt": "/x", "messageId": uuid }));
    for state in ["started", "completed"] {
        live.agent(json!({ "type": "command_lifecycle", "command_uuid": uuid, "state": state }));
    }
    live.tape.end(Exit::Code(0), &mut live.seen);
    assert!(live.seen.events.is_empty());
}

#[test]
fn of_a_long_input_the_path_is_remembered_and_the_result_tells_the_rest() {
    let mut live = Live::new();
    let mut call = |name: &str, input: Value, told: Value| {
        let id = format!("{name}-{}", input.to_string().len());
        let call = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        live.agent(json!({ "type": "assistant", "message": { "content": [call] } }));
        let result = json!({ "type": "tool_result", "tool_use_id": id, "content": "ok" });
        let events = live.agent(json!({ "type": "user", "message": { "content": [result] },
            "tool_use_result": told }));
        events.last().expect("an event").clone()
    };
    for size in [10, 100_000] {
        let kept = size == 10;
        let text = "a".repeat(size);
        let write = json!({ "file_path": "/f", "content": text });
        let edit = json!({ "file_path": "/f", "old_string": text, "new_string": "b" });
        let edits =
            json!({ "file_path": "/f", "edits": [{ "old_string": text, "new_string": "b" }] });
        for (name, input, field) in
            [("Write", write, "after"), ("Edit", edit, "diff"), ("MultiEdit", edits, "diff")]
        {
            let changed = call(name, input, json!("ok"));
            assert_eq!(
                (&changed["type"], &changed["filePath"]),
                (&json!("fileChanged"), &json!("/f"))
            );
            assert_eq!(changed.get(field).is_some(), kept, "{name}");
        }
        let todos = json!([{ "content": text, "status": "pending" }]);
        let plan = call("TodoWrite", json!({ "todos": todos }), json!({ "newTodos": todos }));
        assert_eq!(
            (&plan["type"], &plan["entries"][0]["content"]),
            (&json!("planUpdated"), &json!(text))
        );
    }
}

#[test]
fn a_board_that_has_more_to_do_goes_on() {
    let line = |name: &str| json!({ "type": name, "payload": { "line": "l", "message": "m" } });
    let kinds = |events: Vec<Value>| -> Vec<Value> {
        events.into_iter().map(|mut event| event["type"].take()).collect()
    };
    let mut live = Live::new();
    live.command(json!({ "command": "prompt", "prompt": "one" }));
    assert_eq!(kinds(live.agent(line("error"))), ["turnStarted", "turnFailed"]);
    assert_eq!(kinds(live.agent(line("log"))), ["other"]);
    live.command(json!({ "command": "prompt", "prompt": "two" }));
    assert_eq!(kinds(live.agent(line("log"))), ["turnStarted", "textChunk"]);
    // A process that fails did not end the turn well.
    live.tape.end(Exit::Code(1), &mut live.seen);
    assert_eq!(live.seen.events[0]["reason"], "died");
}

#[test]
fn messages_to_servers_outlive_the_turn() {
    let mut live = Live::new();
    live.agent(json!({ "type": "system", "subtype": "init" }));
    live.asks(json!({ "subtype": "mcp_message", "server_name": "s", "message": { "id": 1 } }));
    live.agent(json!({ "type": "result", "subtype": "success" }));
    live.settled(json!({ "behavior": "allow" }));
}

#[test]
fn a_line_break_in_a_value_does_not_break_the_line() {
    let mut live = Live::new();
    live.asks(bash());
    live.send("{\"command\":\"settle\",\"requestId\":\"r1\",\"behavior\":\"allow\",\"updatedInput\":{\n\"command\":\r\n\"a\\nb\"}}")
        .expect("an answer");
    let line = live.seen.stdin.pop().expect("a line");
    assert_eq!(line["response"]["response"]["updatedInput"], json!({ "command": "a\nb" }));
}

#[test]
fn a_session_that_is_another_than_asked_for_is_told() {
    let mut live = Live::with(Setup { resume: Some("wanted".to_owned()), ..Setup::default() });
    let init = |id: &str| json!({ "type": "system", "subtype": "init", "session_id": id });
    let events = live.agent(init("wanted"));
    assert_eq!(events[0]["status"], "ready");
    let events = live.agent(init("other"));
    assert_eq!((&events[0]["status"], &events[0]["message"]), (&json!("session"), &json!("other")));
}

#[test]
fn totals_of_a_resumed_process_hold_the_past() {
    let mut live = Live::with(Setup { resume: Some("s".to_owned()), ..Setup::default() });
    let mut result = |total: f64, tokens: u64| {
        live.agent(json!({ "type": "system", "subtype": "init", "session_id": "s" }));
        let events = live.agent(json!({ "type": "result", "subtype": "success", "total_cost_usd": total,
            "usage": { "input_tokens": 5, "output_tokens": 1 },
            "modelUsage": { "opus": { "inputTokens": tokens, "outputTokens": 0, "costUSD": total } } }));
        let done = events.last().expect("an event").clone();
        (done["usage"]["totalTokens"].clone(), done.get("costUsd").cloned())
    };
    assert_eq!(result(9.0, 900), (json!(6), None));
    assert_eq!(result(9.5, 1000), (json!(100), Some(json!(0.5))));
    // The totals began anew.
    assert_eq!(result(0.25, 10), (json!(10), Some(json!(0.25))));
}

#[test]
fn requests_of_subagents_carry_their_agent() {
    let mut live = Live::new();
    let call = json!({ "type": "tool_use", "id": "sub", "name": "Agent", "input": {} });
    live.agent(json!({ "type": "assistant", "message": { "content": [call] } }));
    live.agent(json!({ "type": "system", "subtype": "task_started", "task_id": "a1",
        "tool_use_id": "sub", "task_type": "local_agent" }));
    // Its tool call was not seen; Claude's own id of the agent tells.
    let mut request = bash();
    request["agent_id"] = json!("a1");
    let events =
        live.agent(json!({ "type": "control_request", "request_id": "r1", "request": request }));
    assert_eq!(
        (&events[0]["agentId"], &events[0]["parentAgentId"]),
        (&json!("sub"), &json!("main"))
    );
}

#[test]
fn a_tool_is_closed_once_in_any_order() {
    let call = json!({ "type": "assistant", "message": { "content": [
        { "type": "tool_use", "id": "t1", "name": "Bash", "input": {} }] } });
    let result = json!({ "type": "user", "message": { "content": [
        { "type": "tool_result", "tool_use_id": "t1", "content": "x" }] } });
    let end = json!({ "type": "result", "subtype": "success" });
    for lines in [
        [&call, &result, &result, &call, &end],
        [&call, &end, &result, &call, &result],
        [&result, &call, &result, &end, &call],
    ] {
        let mut live = Live::new();
        let events: Vec<_> = lines.iter().flat_map(|line| live.agent((*line).clone())).collect();
        let count = |kinds: &[&str]| {
            events.iter().filter(|e| kinds.contains(&e["type"].as_str().expect("a type"))).count()
        };
        assert_eq!(count(&["toolCompleted", "toolFailed"]), 1, "{events:?}");
        assert!(count(&["toolStarted"]) <= 1);
    }
}

#[test]
fn text_that_is_said_anew_is_a_new_block() {
    let mut live = Live::new();
    let delta = |text: &str| {
        json!({ "type": "stream_event", "event": { "type": "content_block_delta",
        "index": 0, "delta": { "type": "text_delta", "text": text } } })
    };
    live.agent(delta("wrong"));
    let whole = json!({ "type": "assistant", "message": { "content": [{ "type": "text", "text": "right" }] } });
    let events = live.agent(whole);
    let said: Vec<_> =
        events.iter().map(|e| (e["content"].clone(), e["isComplete"].clone())).collect();
    assert_eq!(said, [(json!(""), json!(true)), (json!("right"), json!(true))]);
}

fn start(config: Value) -> Result<Launch, GatewayError> {
    let config: SessionConfig = serde_json::from_value(config).expect("a config");
    CLAUDE.launch(&Start {
        config: &config,
        resume: None,
        fork: false,
        native_session_id: None,
        prompt: Some(&agentwire_protocol::Prompt::text("secret")),
    })
}

#[test]
fn every_option_is_one_word() {
    const PLAIN: usize = 7;
    let plain = start(json!({})).expect("a launch");
    assert_eq!(plain.args.len(), PLAIN);
    assert_eq!(plain.shown_args()[PLAIN - 1], "--include-partial-messages");
    let table = [
        (json!({ "model": "-x" }), vec!["--model=-x"]),
        (json!({ "fallbackModel": "--y" }), vec!["--fallback-model=--y"]),
        (json!({ "maxTurns": 3 }), vec!["--max-turns=3"]),
        (json!({ "maxBudgetUsd": 0.5 }), vec!["--max-budget-usd=0.5"]),
        (json!({ "maxThinkingTokens": 9 }), vec!["--max-thinking-tokens=9"]),
        // The gateway's rules allow, not Claude's.
        (json!({ "allowedTools": ["-a", "b"] }), vec![]),
        (json!({ "blockedTools": ["Bash"] }), vec!["--disallowedTools=Bash"]),
        (json!({ "betas": ["b"] }), vec!["--betas=b"]),
        (json!({ "settingSources": [] }), vec!["--setting-sources="]),
        (json!({ "additionalDirectories": ["-d", "/e"] }), vec!["--add-dir=-d", "--add-dir=/e"]),
        (
            json!({ "sandboxMode": "fullAccess" }),
            vec![r#"--settings={"sandbox":{"enabled":false}}"#],
        ),
        (
            json!({ "sandbox": { "enabled": true, "excludedCommands": ["git"] } }),
            vec![r#"--settings={"sandbox":{"enabled":true,"excludedCommands":["git"]}}"#],
        ),
        (
            json!({ "mcpServers": { "s": { "command": "run", "env": { "KEY": "secret" } }, "h": { "type": "sdk" } } }),
            vec!["--mcp-config={file:mcp.json}"],
        ),
        (json!({ "systemPrompt": "secret", "agents": {}, "hooks": {} }), vec![]),
        (
            json!({ "nativeArgs": [r#"--settings={"env":{"K":"secret"}}"#, "--brief", "--settings=s.json"] }),
            vec!["--settings={file:native-0.json}", "--brief", "--settings=s.json"],
        ),
        (
            json!({ "nativeArgs": [r#"--mcp-config={"mcpServers":{"s":{"headers":{"K":"secret"},"x":1}}}"#] }),
            vec!["--mcp-config={file:native-0.json}"],
        ),
    ];
    for (config, expected) in table {
        let launch = start(config.clone()).expect("a launch");
        assert_eq!(launch.shown_args()[PLAIN..], expected, "{config}");
        assert!(launch.shown_args().iter().all(|word| !word.contains("secret")), "{config}");
    }
    let with_server =
        start(json!({ "mcpServers": { "s": { "command": "run" } } })).expect("a launch");
    assert_eq!(with_server.files["mcp.json"], br#"{"mcpServers":{"s":{"command":"run"}}}"#);
    let whole = start(json!({ "includePartialMessages": false })).expect("a launch");
    assert_eq!(whole.args.len(), PLAIN - 1);
    let copies = start(json!({ "enableFileCheckpointing": true })).expect("a launch");
    assert_eq!(copies.env["CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING"], "true");
}

#[test]
fn modes_and_sessions() {
    let mode = |config| start(config).expect("a launch").shown_args()[5].clone();
    for (config, expected) in [
        (json!({ "approvalMode": "ask" }), "default"),
        (json!({ "approvalMode": "askDangerous" }), "default"),
        (json!({ "approvalMode": "autoEdit" }), "default"),
        (json!({ "approvalMode": "autoAll" }), "default"),
        (json!({ "permissionMode": "default" }), "default"),
        (json!({ "permissionMode": "acceptEdits" }), "default"),
        (json!({ "permissionMode": "bypassPermissions" }), "default"),
        (json!({ "approvalMode": "ask", "permissionMode": "plan" }), "plan"),
        (json!({ "approvalMode": "autoAll", "permissionMode": "dontAsk" }), "dontAsk"),
        (json!({ "permissionMode": "auto" }), "auto"),
    ] {
        assert_eq!(mode(config), format!("--permission-mode={expected}"));
    }
    let config = SessionConfig::default();
    let session = |resume, native_session_id| {
        let start = Start { config: &config, resume, fork: false, native_session_id, prompt: None };
        CLAUDE.launch(&start).expect("a launch").shown_args().last().cloned()
    };
    assert_eq!(session(Some("-r"), Some("n")).as_deref(), Some("--resume=-r"));
    assert_eq!(session(None, Some("n")).as_deref(), Some("--session-id=n"));
    let start = Start {
        config: &config,
        resume: Some("-r"),
        fork: true,
        native_session_id: Some("n"),
        prompt: None,
    };
    let args = CLAUDE.launch(&start).expect("a launch").shown_args();
    assert!(
        args.ends_with(&["--resume=-r", "--fork-session", "--session-id=n"].map(str::to_owned))
    );
}

#[test]
fn options_it_cannot_take_are_refused_by_name() {
    for (config, name) in [
        (json!({ "sandboxMode": "readOnly" }), "sandboxMode readOnly"),
        (json!({ "permissionMode": "--yolo" }), "--yolo"),
        (json!({ "permissionMode": "auto", "blockedTools": ["Bash"] }), "auto together with"),
        (json!({ "nativeOptions": { "hooks": {} } }), "nativeOptions hooks"),
        (json!({ "outputFormat": { "type": "xml", "schema": {} } }), "outputFormat"),
        (json!({ "systemPrompt": { "type": "preset", "preset": "other" } }), "systemPrompt"),
    ] {
        let error = start(config).expect_err("a refusal");
        assert_eq!(error.code, ErrorCode::Unsupported);
        assert!(error.message.contains(name), "{error}");
    }
}

#[test]
fn initialize_says_what_has_no_flag() {
    let config = json!({
        "systemPrompt": { "type": "preset", "preset": "claude_code", "append": "Be short." },
        "agents": { "helper": { "description": "d", "prompt": "p" } },
        "outputFormat": { "type": "json_schema", "schema": { "type": "object" } },
        "mcpServers": { "calc": { "type": "sdk" }, "own": { "command": "run" } },
        "hooks": { "PreToolUse": [{ "matcher": "Bash" }, { "timeout": 5 }],
            "SessionStart": [{}], "Stop": [{}] },
    });
    let config: SessionConfig = serde_json::from_value(config).expect("a config");
    let live = Live::with(Setup { config, ..Setup::default() });
    assert_eq!(
        live.seen.stdin[0]["request"],
        json!({
            "subtype": "initialize", "forwardSubagentText": true, "appendSystemPrompt": "Be short.",
            "agents": { "helper": { "description": "d", "prompt": "p" } },
            "jsonSchema": { "type": "object" }, "sdkMcpServers": ["calc"],
            "hooks": {
                "PreToolUse": [
                    { "timeout": 604_800, "hookCallbackIds": ["agentwire-policy"],
                        "onFailure": "block" },
                    { "matcher": "Bash", "hookCallbackIds": ["hook_0"] },
                    { "timeout": 5, "hookCallbackIds": ["hook_1"] },
                ],
                // It never calls those of the session's start, which is left to the gateway.
                "Stop": [{ "hookCallbackIds": ["hook_3"] }],
            },
        })
    );
    let config: SessionConfig =
        serde_json::from_value(json!({ "systemPrompt": "You." })).expect("a config");
    let live = Live::with(Setup { config, ..Setup::default() });
    assert_eq!(live.seen.stdin[0]["request"]["systemPrompt"], json!(["You."]));
}

#[test]
fn its_lines_are_recognised() {
    for case in common::cases().into_iter().filter(|case| case.dialect.name() == "claude") {
        let first = case.bytes.split(|byte| *byte == b'\n').next().expect("a line");
        let Ok(text) = std::str::from_utf8(first) else { continue };
        let mut scanner = agentwire_dialects::json::Scanner::new();
        let Ok(document) = scanner.scan(text) else { continue };
        let found = agentwire_dialects::recognise(document.root()).map(AgentDialect::name);
        // `active_goal`, `some_future_type` and the like are nobody's.
        if case.name.starts_with("real-") || case.name.starts_with("seed-") {
            assert_eq!(found, Some("claude"), "{}", case.name);
        }
    }
}
