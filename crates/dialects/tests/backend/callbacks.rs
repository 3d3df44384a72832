//! `callback.request` and `callback.response`.

use agentwire_protocol::event::{
    RequestOutcome, RequestSettled, SessionStarted, SettledBy, ToolKind, ToolStarted, TurnOrigin,
    TurnStarted, UNANSWERED,
};
use agentwire_protocol::{
    AgentType, Command, ErrorCode, EventKind, Json, SessionConfig, Settlement, Text,
};
use serde_json::{Value, json};

use crate::client::{Client, SESSION, request};

fn settled(
    outcome: RequestOutcome,
    by: SettledBy,
    reason: &'static str,
) -> RequestSettled<'static> {
    RequestSettled {
        request_id: Text::from("r1"),
        outcome,
        by,
        client: None,
        reason: Some(Text::from(reason)),
        updated_input: None,
    }
}

fn settlement(client: &mut Client) -> Value {
    match client.command() {
        Command::Settle(settlement) => serde_json::to_value(settlement).expect("JSON"),
        other => panic!("not an answer: {other:?}"),
    }
}

/// A client whose session is not of Claude.
fn other_agent() -> Client {
    let mut client = Client::with_session();
    client.event(SessionStarted {
        agent_type: AgentType::Codex,
        config: SessionConfig::default(),
        info: None,
        forked_from: None,
    });
    client
}

/// What the client is asked; its id.
fn asked(client: &mut Client, payload: &Value) -> String {
    let frame = client.frame();
    assert_eq!(
        (&frame["type"], &frame["session_id"], &frame["payload"]),
        (&"callback.request".into(), &SESSION.into(), payload)
    );
    frame["id"].as_str().expect("an id").to_owned()
}

#[test]
fn a_permission_is_asked_and_answered_in_snake_case() {
    let mut client = Client::with_session();
    client.event(request(&json!({
        "toolName": "Bash", "toolUseId": "t1",
        "input": { "command": "ls", "camelCase": { "snake_case": 1 } },
        "suggestions": [{
            "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "ls" }],
            "behavior": "allow", "destination": "localSettings",
        }],
    })));
    let rules = json!([{
        "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "ls" }],
        "behavior": "allow", "destination": "localSettings",
    }]);
    let id = asked(
        &mut client,
        &json!({
            "callback_type": "can_use_tool", "tool_name": "Bash", "tool_use_id": "t1",
            "tool_input": { "command": "ls", "camelCase": { "snake_case": 1 } }, "suggestions": rules,
        }),
    );
    let answer = json!({
        "behavior": "allow", "updated_input": { "command": "ls -l", "snake_case": 2 },
        "updated_permissions": rules,
    });
    client.say("callback.response", &id, &answer.to_string());
    assert_eq!(
        settlement(&mut client),
        json!({
            "requestId": "r1", "behavior": "allow",
            "updatedInput": { "command": "ls -l", "snake_case": 2 },
            "updatedPermissions": [{
                "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "ls" }],
                "behavior": "allow", "destination": "localSettings",
            }],
        })
    );
    // A second answer finds nothing, whether the first is taken already or not.
    client.say("callback.response", &id, r#"{"behavior":"deny"}"#);
    client.error("CALLBACK_NOT_FOUND");
    client.event(settled(RequestOutcome::Allowed, SettledBy::Client, ""));
    client.done("{}");
    client.say("callback.response", &id, r#"{"behavior":"deny"}"#);
    let error = client.error("CALLBACK_NOT_FOUND");
    assert_eq!((&error["id"], &error["session_id"]), (&json!(id), &json!(SESSION)));
    assert_eq!(error["payload"]["details"], json!({ "settled": "allowed by client" }));
}

#[test]
fn an_answer_that_comes_too_late_hears_how_it_was_settled() {
    let mut client = Client::with_session();
    client.event(request(&json!({ "toolName": "Bash", "input": {} })));
    let id = client.frame()["id"].as_str().expect("an id").to_owned();
    client.say("callback.response", &id, r#"{"behavior":"allow"}"#);
    client.event(settled(RequestOutcome::Denied, SettledBy::Policy, "a rule"));
    client.failed(ErrorCode::RequestSettled, "it is settled");
    let error = client.error("CALLBACK_NOT_FOUND");
    assert_eq!(error["payload"]["details"], json!({ "settled": "denied by policy" }));
}

#[test]
fn a_denial_has_its_words() {
    let mut client = Client::with_session();
    client.event(request(&json!({ "toolName": "Bash", "input": {} })));
    let id = client.frame()["id"].as_str().expect("an id").to_owned();
    client.say("callback.response", &id, r#"{"behavior":"deny","message":"no","interrupt":true}"#);
    let expected =
        json!({ "requestId": "r1", "behavior": "deny", "message": "no", "interrupt": true });
    assert_eq!(settlement(&mut client), expected);
    client.done("{}");
}

#[test]
fn the_input_given_back_is_no_change() {
    let mut client = Client::with_session();
    client.event(request(&json!({ "toolName": "Bash", "input": { "command": "ls", "cwd": "/" } })));
    let id = client.frame()["id"].as_str().expect("an id").to_owned();
    let answer = r#"{"behavior":"allow","updatedInput":{ "cwd": "/", "command": "ls" },"updatedPermissions":[]}"#;
    client.say("callback.response", &id, answer);
    assert_eq!(settlement(&mut client), json!({ "requestId": "r1", "behavior": "allow" }));
    client.done("{}");
}

#[test]
fn a_tool_of_another_agent_is_asked_for_as_it_was_shown() {
    let mut client = other_agent();
    let tool = ToolStarted {
        tool_id: Text::from("t1"),
        tool_name: Text::from("command_execution"),
        arguments: Some(Json::trusted(r#"{"command":"ls"}"#)),
        kind: ToolKind::Execute,
        title: None,
        server: None,
    };
    let turn = TurnStarted {
        turn_number: 1,
        prompt: None,
        message_ids: Vec::new(),
        origin: TurnOrigin::Prompt,
    };
    client.event(turn);
    client.event(tool);
    client.said();
    client.event(request(&json!({
        "toolName": "command_execution", "toolUseId": "t1", "input": { "command": null, "cwd": "/" },
        "message": "network", "blockedPath": "/etc",
    })));
    let rules = json!([{
        "type": "addRules", "rules": [{ "toolName": "Bash", "ruleContent": "ls" }],
        "behavior": "allow", "destination": "session",
    }]);
    let id = asked(
        &mut client,
        &json!({
            "callback_type": "can_use_tool", "tool_name": "Bash",
            "tool_input": { "command": "ls", "cwd": "/" }, "suggestions": rules, "tool_use_id": "t1",
            "decision_reason": "network", "blocked_path": "/etc",
        }),
    );
    // What cannot be kept for this agent is said, and nothing is allowed by it.
    for wrong in [
        json!([{ "type": "addRules", "rules": rules[0]["rules"], "behavior": "deny" }]),
        json!([{ "type": "addRules", "rules": [{ "tool_name": "Bash" }], "behavior": "allow" }]),
        json!([{ "type": "setMode", "mode": "acceptEdits" }]),
    ] {
        let answer = json!({ "behavior": "allow", "updated_permissions": wrong });
        client.say("callback.response", &id, &answer.to_string());
        let error = client.error("INVALID_MESSAGE");
        let kind = wrong[0]["type"].as_str().expect("a type");
        assert!(error["payload"]["message"].as_str().is_some_and(|text| text.contains(kind)));
    }
    // The rule is the gateway's to keep: the agent knows no such words.
    let answer = json!({
        "behavior": "allow", "updated_input": { "cwd": "/", "command": "ls" },
        "updated_permissions": rules,
    });
    client.say("callback.response", &id, &answer.to_string());
    assert_eq!(
        settlement(&mut client),
        json!({ "requestId": "r1", "behavior": "allow", "remember": "session" })
    );
    client.done("{}");
}

#[test]
fn a_hook_is_asked_in_snake_case_and_answered_in_the_clients_words() {
    let mut client = Client::with_session();
    let input = json!({ "hook_event_name": "PermissionRequest", "tool_input": { "aB": 1 },
        "permission_suggestions": [{ "type": "addRules", "rules": [{ "toolName": "Bash" }] }] });
    client.event(request(&json!({
        "kind": "hook", "name": "PermissionRequest", "toolUseId": "t1", "input": input,
    })));
    let input = json!({ "hook_event_name": "PermissionRequest", "tool_input": { "aB": 1 },
        "permission_suggestions": [{ "type": "addRules", "rules": [{ "toolName": "Bash" }] }] });
    let id = asked(
        &mut client,
        &json!({
            "callback_type": "hook", "hook_event": "PermissionRequest", "hook_input": input,
            "tool_use_id": "t1",
        }),
    );
    let answer = json!({
        "continue": true, "suppress_output": true, "stop_reason": "s", "decision": "approve",
        "system_message": "m", "reason": "r",
        "hook_specific_output": {
            "hook_event_name": "PreToolUse", "permission_decision": "allow",
            "permission_decision_reason": "r", "updated_input": { "file_path": "x" },
            "additional_context": "c",
            "decision": {
                "behavior": "allow", "updated_input": { "file_path": "x" },
                "updated_permissions": [{ "type": "addRules", "rules": [{ "tool_name": "Bash" }] }],
            },
        },
    });
    client.say("callback.response", &id, &answer.to_string());
    // What they are in the agent's is known where it is told.
    assert_eq!(settlement(&mut client), json!({ "requestId": "r1", "hookOutput": answer }));
    client.done("{}");
}

#[test]
fn an_answer_that_no_hook_can_give_is_refused() {
    let mut client = Client::with_session();
    client.event(request(&json!({ "kind": "hook", "name": "PreToolUse", "input": {} })));
    let id = client.frame()["id"].as_str().expect("an id").to_owned();
    for wrong in [
        json!({ "behavior": "deny" }),
        json!({ "continue": "no" }),
        json!({ "decision": "deny" }),
        json!({ "system_message": 1 }),
        json!({ "hook_specific_output": [] }),
        json!({ "hook_specific_output": { "permission_decision": "denied" } }),
        json!({ "hookSpecificOutput": { "permissionDecision": true } }),
        json!({ "hook_specific_output": { "updated_input": "ls" } }),
        json!({ "hook_specific_output": { "decision": "deny" } }),
        json!({ "hook_specific_output": { "decision": { "behavior": "no" } } }),
    ] {
        client.say("callback.response", &id, &wrong.to_string());
        let error = client.error("INVALID_MESSAGE");
        let message = error["payload"]["message"].as_str().expect("a message");
        assert!(message.ends_with("it stays open"), "{message}");
    }
    let answer = json!({ "decision": "block", "reason": null, "hook_specific_output": null });
    client.say("callback.response", &id, &answer.to_string());
    assert_eq!(settlement(&mut client), json!({ "requestId": "r1", "hookOutput": answer }));
    client.done("{}");
}

#[test]
fn a_question_of_any_agent_is_claudes() {
    let mut client = Client::with_session();
    let input = json!({ "questions": [{ "question": "Tea?", "header": "T", "options": [], "multiSelect": false }] });
    let questions = json!([{ "question": "Tea?" }]);
    client.event(request(&json!({
        "kind": "question", "toolName": "AskUserQuestion", "input": input, "questions": questions,
    })));
    let id = asked(
        &mut client,
        &json!({
            "callback_type": "can_use_tool", "tool_name": "AskUserQuestion", "tool_input": input,
        }),
    );
    let answered = json!({ "questions": [], "answers": { "Tea?": "Yes" } });
    let answer = json!({ "behavior": "allow", "updated_input": answered });
    client.say("callback.response", &id, &answer.to_string());
    assert_eq!(
        settlement(&mut client),
        json!({ "requestId": "r1", "behavior": "allow", "updatedInput": answered })
    );
    client.done("{}");

    let mut client = other_agent();
    client.event(request(&json!({
        "requestId": "r2", "kind": "question", "input": { "questions": "of its own" },
        "message": "The kitchen asks", "name": "kitchen",
        "questions": [
            { "question": "Tea?", "id": "q1", "header": "T", "multiSelect": true,
              "options": [{ "label": "Yes", "description": "hot" }, { "label": "No" }] },
            { "question": "Sugar?" },
        ],
    })));
    let id = asked(
        &mut client,
        &json!({
            "callback_type": "can_use_tool", "tool_name": "AskUserQuestion", "tool_input": { "questions": [
                { "question": "Tea?", "header": "T", "multiSelect": true, "options": [
                    { "label": "Yes", "description": "hot" }, { "label": "No", "description": "" } ] },
                { "question": "Sugar?", "header": "", "multiSelect": false, "options": [] },
            ], "message": "The kitchen asks", "metadata": { "source": "kitchen" } },
        }),
    );
    for wrong in [
        r#"{"behavior":"allow"}"#,
        r#"{"behavior":"allow","updated_input":{}}"#,
        r#"{"behavior":"allow","updated_input":{"answers":{"Milk?":"Yes"}}}"#,
    ] {
        client.say("callback.response", &id, wrong);
        client.error("INVALID_MESSAGE");
    }
    let answers = json!({ "Tea?": ["Yes", "No"], "Sugar?": "two" });
    let answer = json!({ "behavior": "allow", "updated_input": { "answers": answers } });
    client.say("callback.response", &id, &answer.to_string());
    assert_eq!(
        settlement(&mut client),
        json!({ "requestId": "r2", "answers": { "q1": ["Yes", "No"], "Sugar?": "two" } })
    );
    client.done("{}");
}

#[test]
fn what_no_client_can_answer_is_refused_for_it() {
    for kind in ["mcp", "other", "question"] {
        let mut client = Client::with_session();
        client.event(request(&json!({ "kind": kind, "name": "server" })));
        let Command::Settle(Settlement { error: Some(_), .. }) = client.command() else {
            panic!("{kind} is refused");
        };
        client.done("{}");
    }
}

#[test]
fn what_a_rule_settles_is_not_asked() {
    let mut client = Client::with_session();
    client.events([
        EventKind::from(request(&json!({ "toolName": "Bash" }))),
        settled(RequestOutcome::Allowed, SettledBy::Policy, "allowed by the rule Bash").into(),
    ]);
    client.silent();
}

#[test]
fn silence_ends_in_a_time_out() {
    for (outcome, word) in
        [(RequestOutcome::Denied, "denied"), (RequestOutcome::Withdrawn, "passed over")]
    {
        let mut client = Client::with_session();
        client.event(request(&json!({ "toolName": "Bash" })));
        let id = client.frame()["id"].as_str().expect("an id").to_owned();
        client.event(RequestSettled {
            reason: Some(Text::from(format!("{UNANSWERED} 1 s"))),
            ..settled(outcome, SettledBy::Gateway, "")
        });
        let error = client.error("CALLBACK_TIMEOUT");
        assert_eq!((&error["id"], &error["session_id"]), (&json!(id), &json!(SESSION)));
        let message = error["payload"]["message"].as_str().expect("a message");
        assert!(message.ends_with(&format!("it was {word}")), "{message}");
        client.say("callback.response", &id, r#"{"behavior":"allow"}"#);
        client.error("CALLBACK_NOT_FOUND");
    }
}

#[test]
fn what_is_withdrawn_is_over_without_a_word() {
    let mut client = Client::with_session();
    client.event(request(&json!({ "toolName": "Bash" })));
    client.frame();
    client.event(settled(RequestOutcome::Withdrawn, SettledBy::Agent, ""));
    client.silent();
}

#[test]
fn an_answer_that_is_not_taken_may_be_given_again() {
    let mut client = Client::with_session();
    client.event(request(&json!({ "toolName": "Bash", "input": {} })));
    let id = client.frame()["id"].as_str().expect("an id").to_owned();
    for wrong in ["{}", r#"{"behavior":"maybe"}"#, r#"{"behavior":"allow","updated_input":[]}"#] {
        client.say("callback.response", &id, wrong);
        client.error("INVALID_MESSAGE");
    }
    client.say("callback.response", &id, r#"{"behavior":"allow","updated_input":{"a":1}}"#);
    client.failed(ErrorCode::Unsupported, "codex cannot take updatedInput");
    client.error("INVALID_MESSAGE");
    // The id alone says which it is.
    client.line(&format!(
        r#"{{"type":"callback.response","id":"{id}","payload":{{"behavior":"allow"}}}}"#
    ));
    client.failed(ErrorCode::RequestSettled, "request r1 was settled before: denied by gateway");
    client.error("CALLBACK_NOT_FOUND");
}

#[test]
fn a_callback_that_never_was_is_not_found() {
    let mut client = Client::with_session();
    client.event(request(&json!({ "toolName": "Bash" })));
    assert_eq!(client.frame()["id"], "cb-1");
    for id in ["cb-2", "cb-01", "cb-x", "r1", ""] {
        client.say("callback.response", id, r#"{"behavior":"allow"}"#);
        client.error("CALLBACK_NOT_FOUND");
    }
    client.line(r#"{"type":"callback.response","payload":{"behavior":"allow"}}"#);
    client.error("INVALID_MESSAGE");
}
