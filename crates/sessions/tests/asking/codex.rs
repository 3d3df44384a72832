//! Codex cannot bypass the rules either: not by not asking, nor by asking for something else.

use agentwire_protocol::event::{EventKind, RequestOutcome, SettledBy, TurnFailure};
use agentwire_protocol::{AgentType, SessionConfig};
use serde_json::{Value, json};

use super::MODES;
use super::harness::{self, Session};

async fn start(turn: &[Value], ends: bool, config: Value) -> Session {
    let lines: Vec<String> = turn.iter().map(Value::to_string).collect();
    let script = include_str!("codex.sh")
        .replace("LINES", &lines.join("\n"))
        .replace("ENDS", if ends { "true" } else { "false" });
    let config: SessionConfig = serde_json::from_value(config).unwrap();
    Session::start((AgentType::Codex, &script), config, "go").await
}

fn item(method: &str, status: &str, item: &Value) -> Value {
    let mut item = item.clone();
    item["id"] = "c1".into();
    item["status"] = status.into();
    json!({ "method": format!("item/{method}"),
        "params": { "threadId": "t1", "turnId": "u1", "item": item } })
}

fn asks(method: &str, mut params: Value) -> Value {
    params["threadId"] = "t1".into();
    params["turnId"] = "u1".into();
    params["itemId"] = "c1".into();
    json!({ "id": 0, "method": format!("item/{method}/requestApproval"), "params": params })
}

fn shell(command: &str) -> Value {
    json!({ "type": "commandExecution", "command": command, "cwd": "/w" })
}

fn change(path: &str) -> Value {
    let change = json!({ "path": path, "kind": { "type": "add" }, "diff": "x" });
    json!({ "type": "fileChange", "changes": [change] })
}

#[tokio::test]
async fn a_denied_call_of_codex_that_runs_unasked_fails_the_turn() {
    let calls = [
        ("Bash(rm:*)", shell("/bin/bash -lc 'rm -rf x'")),
        ("Bash", shell("ls")),
        ("Edit", change("a")),
        ("Edit(secrets/**)", change("secrets/b")),
        ("WebSearch", json!({ "type": "webSearch", "query": "x" })),
        ("Read", json!({ "type": "imageView", "path": "a.png" })),
        ("Agent", json!({ "type": "collabAgentToolCall", "tool": "spawnAgent" })),
        (
            "mcp__s__t",
            json!({ "type": "mcpToolCall", "server": "s", "tool": "t", "arguments": {} }),
        ),
    ];
    for (at, (rule, call)) in calls.into_iter().enumerate() {
        let both = [item("started", "inProgress", &call), item("completed", "completed", &call)];
        let output = json!({ "method": "item/mcpToolCall/progress",
            "params": { "threadId": "t1", "itemId": "c1", "message": "x" } });
        let begun = [both[0].clone(), output];
        // The item ends and the turn does not; both end; nothing ends; only the turn ends.
        let runs = [(&both[..], false), (&both[..], true), (&begun[..], false), (&both[..1], true)];
        for (turn, ends) in runs {
            let mode = MODES[at % MODES.len()];
            let servers = json!({ "s": { "command": "true" } });
            let config = json!({ "approvalMode": mode, "blockedTools": [rule],
                "mcpServers": servers });
            let mut session = start(turn, ends, config).await;
            let failed = session
                .until(|kind| match kind {
                    EventKind::TurnFailed(failed) => Some((**failed).clone()),
                    EventKind::TurnCompleted(_) => panic!("{rule} was broken by {call}"),
                    _ => None,
                })
                .await;
            let error = failed.error.to_string();
            assert_eq!(failed.reason, TurnFailure::Error, "{rule}: {error}");
            assert!(error.contains(rule) && error.contains("c1"), "{error}");
            let events = session.end().await;
            let told = harness::count(&events, |kind| match kind {
                EventKind::Error(told) => told.message.decode().contains(rule),
                _ => false,
            });
            assert_eq!(told, 1, "{rule}");
        }
    }
    // What no rule denies continues.
    let turn =
        [item("started", "inProgress", &shell("ls")), item("completed", "completed", &shell("ls"))];
    let config = json!({ "approvalMode": "ask", "blockedTools": ["Bash(rm:*)", "Edit"] });
    let mut session = start(&turn, true, config).await;
    session.completed().await;
    session.end().await;
}

/// Rules that deny see both what is asked for and what the call said; where these differ, nothing else
/// allows.
#[tokio::test]
async fn a_request_is_judged_with_what_its_call_started_as() {
    let ls = json!({ "command": "ls", "cwd": "/w" });
    let table = [
        (shell("rm -rf x"), asks("commandExecution", ls.clone()), "Bash(rm:*)", true),
        (
            shell("ls"),
            asks("commandExecution", json!({ "command": "rm x", "cwd": "/w" })),
            "Bash(rm:*)",
            true,
        ),
        (change("secrets/b"), asks("commandExecution", ls.clone()), "Edit(secrets/**)", true),
        (shell("rm -rf x"), asks("fileChange", json!({})), "Bash(rm:*)", true),
        (shell("rm -rf x"), asks("commandExecution", ls), "Bash(curl:*)", false),
    ];
    for (call, request, rule, is_denied) in table {
        for mode in MODES {
            let config = json!({ "approvalMode": mode, "blockedTools": [rule],
                "allowedTools": ["Bash(ls)"] });
            let turn = [item("started", "inProgress", &call), request.clone()];
            let mut session = start(&turn, false, config).await;
            let raised = session.request().await;
            let id = raised.request_id.decode().into_owned();
            if is_denied {
                let settled = session.settled(&id).await;
                let by = (settled.outcome, settled.by);
                assert_eq!(by, (RequestOutcome::Denied, SettledBy::Policy), "{call} {mode}");
                session.completed().await;
            } else {
                // A rule or a mode would have answered before this.
                let answer = agentwire_protocol::Settlement::deny(id.as_str(), "no");
                session.settle(answer).await.unwrap();
                let settled = session.settled(&id).await;
                assert_eq!(settled.by, SettledBy::Client, "{call} {mode}");
            }
            session.end().await;
        }
    }
}

/// What the agent has used counts before its next call, however fast it asks.
#[tokio::test]
async fn a_budget_holds_before_the_next_call_of_codex() {
    let used = |tokens: u64| {
        let tokens = json!({ "totalTokens": tokens, "inputTokens": tokens, "outputTokens": 0,
            "cachedInputTokens": 0, "reasoningOutputTokens": 0 });
        json!({ "method": "thread/tokenUsage/updated", "params": { "threadId": "t1",
            "turnId": "u1", "tokenUsage": { "last": tokens, "total": tokens } } })
    };
    let make = json!({ "command": "make", "cwd": "/w" });
    for (limit, tokens, is_reached) in [
        (json!({ "maxBudgetTokens": 1000 }), 1000, true),
        (json!({ "maxBudgetTokens": 1000 }), 999, false),
        (json!({ "maxBudgetUsd": 0.001 }), 1_000_000, true),
        (json!({ "maxBudgetUsd": 1000.0 }), 1000, false),
    ] {
        for on_limit in ["ask", "fail"] {
            let turn = [
                used(tokens),
                item("started", "inProgress", &shell("make")),
                asks("commandExecution", make.clone()),
            ];
            let mut config = json!({ "approvalMode": "autoAll", "onLimit": on_limit });
            config.as_object_mut().unwrap().extend(limit.as_object().unwrap().clone());
            let session = start(&turn, false, config).await;
            super::keeps_limit(session, is_reached, on_limit == "ask", r#""decision":"accept""#)
                .await;
        }
    }
}
