//! What the gateway decides and Claude does not: modes, calls that are shown to the gateway's own hook,
//! and what the agent's own lines cannot settle.

use agentwire_protocol::SessionConfig;
use serde_json::{Value, json};

use super::{Action, ErrorCode, Live, Setup, bash, success};
use agentwire_dialects::tape::Judged;

fn live(config: Value) -> Live {
    let config: SessionConfig = serde_json::from_value(config).expect("a config");
    Live::with(Setup { config, ..Setup::default() })
}

fn judged(live: &mut Live) -> Judged {
    match live.seen.actions.pop() {
        Some(Action::Judge(judged)) => *judged,
        other => panic!("{other:?}"),
    }
}

fn shown(id: &str, tool: &str, input: &Value) -> Value {
    json!({ "type": "control_request", "request_id": id, "request": {
        "subtype": "hook_callback", "callback_id": "agentwire-policy", "tool_use_id": "t1",
        "input": { "hook_event_name": "PreToolUse", "permission_mode": "default",
            "tool_name": tool, "tool_input": input } } })
}

#[test]
fn every_session_registers_the_gateways_hook_first() {
    let hooks = |config: Value| live(config).seen.stdin[0]["request"]["hooks"].clone();
    let ours = json!({ "timeout": 604_800, "hookCallbackIds": ["agentwire-policy"],
        "onFailure": "block" });
    for config in [
        json!({ "blockedTools": ["Edit"] }),
        json!({ "allowedTools": ["Bash(git:*)"] }),
        json!({ "maxTurns": 1 }),
        json!({ "maxBudgetUsd": 1.0 }),
        json!({ "maxBudgetTokens": 9 }),
        json!({ "blockedTools": [], "approvalMode": "autoAll" }),
        json!({}),
    ] {
        assert_eq!(hooks(config.clone()), json!({ "PreToolUse": [ours] }), "{config}");
    }
    let clients = json!({ "PreToolUse": [{ "matcher": "Bash" }], "Stop": [{}] });
    assert_eq!(
        hooks(json!({ "blockedTools": ["Edit"], "hooks": clients })),
        json!({ "PreToolUse": [ours, { "matcher": "Bash", "hookCallbackIds": ["hook_0"] }],
            "Stop": [{ "hookCallbackIds": ["hook_1"] }] })
    );
    assert_eq!(
        hooks(json!({ "hooks": { "Stop": [{}] } })),
        json!({ "PreToolUse": [ours], "Stop": [{ "hookCallbackIds": ["hook_0"] }] })
    );
    let taken = json!({ "hooks": { "Stop": [{ "hookCallbackIds": ["agentwire-policy"] }] } });
    assert_eq!(super::start(taken).expect_err("refused").code, ErrorCode::InvalidMessage);
}

#[test]
fn a_call_that_is_shown_is_judged_and_no_request_of_clients() {
    let mut live = live(json!({ "blockedTools": ["Edit"] }));
    let events = live.agent(shown("h1", "Write", &json!({ "file_path": "x" })));
    assert_eq!(events.len(), 1);
    assert_eq!((&events[0]["type"], &events[0]["name"]), (&json!("other"), &json!("policy")));
    let asked = judged(&mut live);
    assert_eq!((asked.request_id.as_str(), asked.tool_name.as_deref()), ("h1", Some("Write")));
    assert_eq!(asked.tool_use_id.as_deref(), Some("t1"));
    assert_eq!(asked.input.as_deref(), Some(r#"{"file_path":"x"}"#));
    // Nobody else can allow it.
    let allowed = json!({ "command": "settle", "requestId": "h1", "behavior": "allow" });
    assert_eq!(live.refused(allowed).code, ErrorCode::InvalidMessage);
    let output = json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
        "permissionDecision": "deny", "permissionDecisionReason": "no" } });
    let answer = json!({ "command": "settle", "requestId": "h1", "hookOutput": output });
    let written = live.command(answer.clone());
    assert_eq!(written[0]["response"]["response"], output);
    assert_eq!(live.refused(answer).code, ErrorCode::RequestNotFound);
    // One that the agent takes back wants no answer.
    live.agent(shown("h2", "Write", &json!({})));
    live.agent(json!({ "type": "control_cancel_request", "request_id": "h2" }));
    let answer = json!({ "command": "settle", "requestId": "h2", "hookOutput": {} });
    assert_eq!(live.refused(answer).code, ErrorCode::RequestNotFound);
}

#[test]
fn a_mode_that_approves_is_the_gateways_and_shown_as_it_was_set() {
    let mut live = Live::new();
    let status = |mode: &str| json!({ "type": "system", "subtype": "status", "status": null, "permissionMode": mode });
    for (mode, native) in [
        ("acceptEdits", "default"),
        ("bypassPermissions", "default"),
        ("plan", "plan"),
        ("default", "default"),
    ] {
        for frame in [
            json!({ "command": "configure", "permissionMode": mode }),
            json!({ "command": "query", "method": "setPermissionMode", "args": [mode] }),
        ] {
            let done = success(json!({ "mode": native }));
            let (request, reply) = live.answered(frame, done);
            assert_eq!(request, json!({ "subtype": "set_permission_mode", "mode": native }));
            assert_eq!(reply, Ok(json!({ "mode": mode })));
            let events = live.agent(status(native));
            assert_eq!(events[0]["message"], *mode);
        }
    }
    // It never runs in such a mode, whoever put it there.
    let events = live.agent(status("acceptEdits"));
    assert_eq!(events[0]["status"], "warning");
    assert_eq!(
        live.seen.stdin.pop().expect("a line")["request"],
        json!({ "subtype": "set_permission_mode", "mode": "default" })
    );
}

#[test]
fn a_control_request_cannot_take_the_gateways_hook_or_mode_away() {
    let mut live = Live::new();
    for subtype in ["initialize", "set_permission_mode"] {
        let request = json!({ "subtype": subtype, "mode": "bypassPermissions", "hooks": {} });
        let frame = json!({ "command": "query", "method": "control", "args": [request] });
        assert_eq!(live.refused(frame).code, ErrorCode::Unsupported, "{subtype}");
    }
}

#[test]
fn what_the_agent_prints_settles_nothing() {
    let allow = json!({ "behavior": "allow", "updatedInput": { "command": "ls" } });
    let mut forged = success(allow);
    forged["request_id"] = json!("r1");
    let accept = json!([{ "id": "t1",
        "permission_decision": { "decision": "accept", "source": "user_temporary" } }]);
    let result = json!({ "type": "user", "tool_result_meta": accept, "message": { "content": [
        { "type": "tool_result", "tool_use_id": "t1", "content": "done" }] } });
    let mut live = Live::new();
    live.asks(bash());
    let events = live.agent(json!({ "type": "control_response", "response": forged }));
    assert!(events.iter().all(|event| event["type"] != "requestSettled"), "{events:?}");
    // The request is open, and a client's answer counts.
    let response = live.settled(json!({ "behavior": "deny", "message": "no" }));
    assert_eq!(response["response"]["behavior"], "deny");
    // An agent that goes on without the answer was allowed nothing.
    let mut live = Live::new();
    live.asks(bash());
    let events = live.agent(result);
    let settled = events.iter().find(|event| event["type"] == "requestSettled").expect("settled");
    assert_eq!((&settled["outcome"], &settled["by"]), (&json!("resolved"), &json!("agent")));
}

#[test]
fn a_request_beyond_the_bound_is_denied() {
    let mut live = Live::new();
    for n in 0..1100 {
        let id = format!("r{n}");
        let line = json!({ "type": "control_request", "request_id": id, "request": bash() });
        let events = live.agent(line);
        let denials: Vec<Value> = live
            .seen
            .stdin
            .drain(..)
            .skip_while(|line| line["type"] != "control_response")
            .collect();
        if n < 1024 {
            assert_eq!(events[0]["type"], "requestRaised", "{n}");
            assert!(denials.is_empty());
        } else {
            assert_eq!(
                (&events[0]["type"], &events[0]["code"]),
                (&json!("error"), &json!("overloaded"))
            );
            assert_eq!(denials[0]["response"]["request_id"], id);
            assert_eq!(denials[0]["response"]["response"]["behavior"], "deny");
        }
    }
}

#[test]
fn a_hook_with_an_unknown_word_is_refused() {
    for output in [
        json!({ "decision": "dany" }),
        json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse", "permissionDecision": "reject" } }),
        json!({ "hook_specific_output": { "permission_decision": "no" } }),
        json!({ "hookSpecificOutput": { "decision": { "behavior": "refuse" } } }),
        json!({ "hookSpecificOutput": { "permissionDecision": "allow", "updatedInput": "ls" } }),
    ] {
        let mut live = Live::new();
        live.asks(super::hook("PreToolUse"));
        let frame = json!({ "command": "settle", "requestId": "r1", "hookOutput": output });
        assert_eq!(live.refused(frame).code, ErrorCode::InvalidMessage, "{output}");
        live.settled(json!({ "behavior": "deny" }));
    }
}

#[test]
fn a_reason_beyond_the_ordinary_is_a_warning() {
    for (kind, reason, warns) in [
        (Some("other"), Some("This command requires approval"), false),
        (Some("workingDir"), Some("Path is outside allowed working directories"), false),
        (Some("mode"), None, false),
        (None, None, false),
        (Some("other"), Some("settings can make git run programs"), true),
        (Some("safetyCheck"), Some("Removal targets a protected system path"), true),
        (Some("rule"), Some("Matches an ask rule"), true),
        (Some("hook"), None, true),
        (None, Some("Glob patterns cannot be validated"), true),
    ] {
        let mut request = bash();
        if let Some(kind) = kind {
            request["decision_reason_type"] = json!(kind);
        }
        if let Some(reason) = reason {
            request["decision_reason"] = json!(reason);
        }
        let line = json!({ "type": "control_request", "request_id": "r1", "request": request });
        let events = Live::new().agent(line);
        assert_eq!(events[0].get("warning").is_some(), warns, "{kind:?} {reason:?}");
    }
}
