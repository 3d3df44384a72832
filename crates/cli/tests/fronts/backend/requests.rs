//! Callbacks: permissions, questions and hooks.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::backend::client::Client;

const HOOKS: [&str; 12] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PermissionRequest",
];

#[test]
fn a_denial_reaches_the_agent() {
    let mut client = Client::new();
    let session = client.create("/write made.txt x\n/say {result}", &json!({}));
    let callback = client.next("callback.request");
    client.answer(&callback, &json!({ "behavior": "deny", "message": "not today" }));
    assert!(client.result().contains("not today"));
    assert!(!client.work().join("made.txt").exists());
    client.kill(&session);
    client.finish();
}

#[test]
fn a_suggested_rule_is_taken() {
    let mut client = Client::new();
    let session = client.create("/bash echo a\n/bash echo a\n/say {result}", &json!({}));
    let callback = client.next("callback.request");
    let suggestions = callback["payload"]["suggestions"].clone();
    assert_eq!(suggestions[0]["rules"][0]["toolName"], "Bash", "{callback}");
    let rules: Vec<Value> = suggestions
        .as_array()
        .expect("a list")
        .iter()
        .map(|rule| {
            let mut rule = rule.clone();
            rule["destination"] = json!("session");
            rule
        })
        .collect();
    client.answer(&callback, &json!({ "behavior": "allow", "updated_permissions": rules }));
    // No second request.
    assert_eq!(client.result(), "a");
    client.kill(&session);
    client.finish();
}

#[test]
fn a_question_is_answered() {
    let mut client = Client::new();
    let session = client.create("/ask Tea? | Yes | No", &json!({}));
    let callback = client.next("callback.request");
    assert_eq!(callback["payload"]["tool_name"], "AskUserQuestion");
    let mut input = callback["payload"]["tool_input"].clone();
    assert_eq!(input["questions"][0]["question"], "Tea?");
    input["answers"] = json!({ "Tea?": "No" });
    client.answer(&callback, &json!({ "behavior": "allow", "updated_input": input }));
    assert_eq!(client.result(), "No");
    client.kill(&session);
    client.finish();
}

#[test]
fn every_hook_that_the_agent_has_is_called() {
    let mut client = Client::new();
    let hooks: serde_json::Map<String, Value> =
        HOOKS.iter().map(|event| ((*event).to_owned(), json!([{}]))).collect();
    let session = client.create(
        "/bash echo hi\n/bash exit 3\n/task look\n/say around\n/end\n/say done",
        &json!({ "hooks": hooks }),
    );
    let mut called = BTreeSet::new();
    let mut is_ending = false;
    loop {
        let frame = client.frame();
        let payload = &frame["payload"];
        match frame["type"].as_str().expect("a type") {
            "callback.request" if payload["callback_type"] == "hook" => {
                let event = payload["hook_event"].as_str().expect("an event");
                assert_eq!(payload["hook_input"]["hook_event_name"], event);
                assert_eq!(payload["hook_input"]["session_id"], session.as_str());
                called.insert(event.to_owned());
                if !is_ending {
                    client.answer(&frame, &json!({ "continue": true }));
                }
            }
            "callback.request" => client.answer(&frame, &json!({ "behavior": "allow" })),
            "session.killed" => break,
            "sdk.message" if payload["type"] == "result" && !is_ending => {
                is_ending = true;
                client.say("session.kill", "k", &session, &json!({}));
            }
            other => assert!(other == "sdk.message" || is_ending, "{frame}"),
        }
    }
    let missing: Vec<_> = HOOKS.iter().filter(|event| !called.contains(**event)).collect();
    // The demo agent does not compact its context and sends no notifications.
    assert!(
        missing.iter().all(|event| ["Notification", "PreCompact"].contains(event)),
        "{missing:?}"
    );
    client.finish();
}

#[test]
fn what_a_hook_says_in_snake_case_is_done() {
    let mut client = Client::new();
    let hooks = json!({ "hooks": { "PreToolUse": [{ "matcher": "Bash" }] } });
    let session = client.create("/bash echo one\n/say {result}", &hooks);
    let callback = client.next("callback.request");
    client.answer(
        &callback,
        &json!({ "hook_specific_output": {
            "hook_event_name": "PreToolUse", "permission_decision": "allow",
            "updated_input": { "command": "echo two" },
        } }),
    );
    assert_eq!(client.result(), "two");
    client.say(
        "session.send",
        "s",
        &session,
        &json!({ "message": "/bash echo three\n/say {result}" }),
    );
    let callback = client.next("callback.request");
    client.answer(
        &callback,
        &json!({ "hook_specific_output": {
            "hook_event_name": "PreToolUse", "permission_decision": "deny",
            "permission_decision_reason": "no threes",
        } }),
    );
    assert!(client.result().contains("no threes"));
    client.kill(&session);
    client.finish();
}

#[test]
fn an_answer_counts_once() {
    let mut client = Client::new();
    let session = client.create("/bash echo a\n/say {result}", &json!({}));
    let callback = client.next("callback.request");
    client.answer(&callback, &json!({ "behaviour": "allow" }));
    let error = client.next("error");
    assert_eq!(
        (&error["id"], &error["payload"]["code"]),
        (&callback["id"], &json!("INVALID_MESSAGE"))
    );
    client.answer(&callback, &json!({ "behavior": "allow" }));
    client.answer(&callback, &json!({ "behavior": "deny" }));
    let error = client.next("error");
    assert_eq!(
        (&error["id"], &error["session_id"], &error["payload"]["code"]),
        (&callback["id"], &json!(session), &json!("CALLBACK_NOT_FOUND"))
    );
    assert!(error["payload"]["details"]["settled"].is_string(), "{error}");
    assert_eq!(client.result(), "a");
    client.kill(&session);
    client.finish();
}

#[test]
fn no_answer_in_time_is_a_denial() {
    let mut client = Client::with(&[("AGENTWIRE_REQUEST_TIMEOUT", "1")]);
    let session = client.create("/bash echo a\n/say {result}", &json!({}));
    let callback = client.next("callback.request");
    let error = client.next("error");
    assert_eq!(
        (&error["id"], &error["session_id"], &error["payload"]["code"]),
        (&callback["id"], &json!(session), &json!("CALLBACK_TIMEOUT"))
    );
    assert_ne!(client.result(), "a");
    client.answer(&callback, &json!({ "behavior": "allow" }));
    let error = client.next("error");
    assert_eq!(error["payload"]["details"], json!({ "settled": "denied by gateway" }));
    client.kill(&session);
    client.finish();
}

#[test]
fn what_allows_is_read_strictly_and_what_denies_is_never_refused_for_its_form() {
    let mut client = Client::new();
    for junk in
        [json!({ "because": "no", "updated_input": 1 }), json!({ "message": 7, "interrupt": "x" })]
    {
        let session = client.create("/write made.txt x\n/say done", &json!({}));
        let callback = client.next("callback.request");
        for (fields, said) in [
            (
                json!({ "behavior": "allow", "update_input": { "file_path": "other.txt" } }),
                "update_input",
            ),
            (json!({ "behavior": "allow", "input": {} }), "input"),
            (json!({ "behavior": "allow", "updated_input": {}, "updatedInput": {} }), "updated"),
            (json!({ "behavior": "always" }), "always"),
            (json!({ "message": "no" }), "behavior"),
        ] {
            client.answer(&callback, &fields);
            let error = client.next("error");
            assert!(error.to_string().contains(said), "{fields}: {error}");
            assert!(error.to_string().contains("stays open"), "{fields}: {error}");
        }
        let mut denial = junk.clone();
        denial["behavior"] = json!("deny");
        client.answer(&callback, &denial);
        assert_eq!(client.result(), "done", "{denial}");
        assert!(!client.work().join("made.txt").exists());
        client.kill(&session);
    }
    client.finish();
}
