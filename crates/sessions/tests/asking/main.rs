//! The gateway decides, and an agent that speaks ACP, or Codex, cannot bypass it. Scripts act as the
//! agents.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking"
)]

mod codex;
#[expect(dead_code, reason = "hooks need more of it")]
#[path = "../hooks/harness.rs"]
mod harness;

use agentwire_protocol::event::{
    EventKind, RequestOutcome, SessionEndReason, SettledBy, Status, TurnFailure,
};
use agentwire_protocol::{
    AgentType, ApprovalMode, Command, Configure, ErrorCode, SessionConfig, Settlement,
};
use serde_json::{Value, json};

use harness::Session;

/// What the agent says, and whether it ends its turn by itself.
struct Script {
    opened: Value,
    turn: Vec<Value>,
    ends: bool,
}

impl Script {
    fn new(turn: Vec<Value>, ends: bool) -> Self {
        Self { opened: json!({ "sessionId": "s1" }), turn, ends }
    }

    fn text(&self) -> String {
        let lines: Vec<String> = self.turn.iter().map(Value::to_string).collect();
        include_str!("acp.sh")
            .replace("OPENED", &self.opened.to_string())
            .replace("LINES", &lines.join("\n"))
            .replace("ENDS", if self.ends { "true" } else { "false" })
    }

    async fn start(&self, config: Value) -> Session {
        let config: SessionConfig = serde_json::from_value(config).unwrap();
        Session::start((AgentType::Acp, &self.text()), config, "go").await
    }
}

fn update(mut update: Value, kind: &str) -> Value {
    update["sessionUpdate"] = kind.into();
    json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s1", "update": update } })
}

fn call(status: &str, more: Value) -> Value {
    let mut call = more;
    call["toolCallId"] = "c1".into();
    call["status"] = status.into();
    update(call, "tool_call")
}

fn permission(call: Value) -> Value {
    let mut call = call;
    call["toolCallId"] = "c1".into();
    let option = |id: &str, kind: &str| json!({ "optionId": id, "name": id, "kind": kind });
    let options = [
        option("forever", "allow_always"),
        option("once", "allow_once"),
        option("no", "reject_once"),
        option("never", "reject_always"),
    ];
    json!({ "jsonrpc": "2.0", "id": 0, "method": "session/request_permission",
        "params": { "sessionId": "s1", "toolCall": call, "options": options } })
}

fn shell(command: &str) -> Value {
    json!({ "title": command, "kind": "execute", "rawInput": { "command": command } })
}

fn diff(path: &str) -> Value {
    json!({ "type": "diff", "path": path, "oldText": "a", "newText": "b" })
}

fn raw(kind: &str, raw: &Value) -> Value {
    json!({ "title": "x", "kind": kind, "rawInput": raw })
}

/// Calls that a rule denies, each with its rule.
fn denied() -> Vec<(&'static str, Value)> {
    vec![
        ("Bash(rm:*)", shell("rm -rf x")),
        ("Bash", shell("ls")),
        ("Edit", json!({ "title": "Edit", "kind": "edit", "rawInput": { "path": "a" } })),
        ("Edit", json!({ "title": "Edit", "kind": "read", "content": [diff("a")] })),
        ("Read(.env)", json!({ "title": "Read", "kind": "read", "rawInput": { "path": ".env" } })),
        (
            "Read(.env)",
            json!({ "title": "x", "kind": "fetch", "rawInput": { "url": "file:///w/.env" } }),
        ),
        (
            "Edit(secrets/**)",
            json!({ "title": "x", "kind": "edit", "content": [diff("a"), diff("secrets/b")] }),
        ),
        // Wherever the input names the file.
        ("Read(.env)", raw("read", &json!({ "path": "a", "items": [{ "path": "b/.env" }] }))),
        ("Read(.env)", raw("read", &json!({ "path": "a", "x": ["b/.env"] }))),
        (
            "Edit(//etc/**)",
            raw("edit", &json!({ "path": "a", "edits": [{ "file_path": "/etc/x" }] })),
        ),
        ("Edit(//etc/**)", raw("edit", &json!({ "path": "a", "output": "/etc/x" }))),
        ("Edit(//etc/**)", raw("move", &json!({ "from": "a", "to": "/etc/x" }))),
    ]
}

const MODES: [&str; 4] = ["ask", "askDangerous", "autoEdit", "autoAll"];

/// What an agent does before it has an answer is judged by the mode in force then.
#[tokio::test]
async fn a_call_that_has_run_before_its_answer_fails_the_turn() {
    let done = update(json!({ "toolCallId": "c1", "status": "completed" }), "tool_call_update");
    let turn = vec![call("pending", shell("make")), permission(shell("make")), done];
    // Each turn has its own call.
    let script = Script::new(turn, true).text();
    let script = script.replace("<<'TURN'", "<<TURN").replace("\"c1\"", "\"c$prompt\"");
    let start = async |mode: ApprovalMode| {
        let config = SessionConfig { approval_mode: Some(mode), ..SessionConfig::default() };
        Session::start((AgentType::Acp, &script), config, "go").await
    };
    let fails = async |session: &mut Session| {
        let failed = session.failed().await;
        let error = failed.error.to_string();
        assert_eq!(failed.reason, TurnFailure::Error, "{error}");
        assert!(error.contains("without waiting for an answer"), "{error}");
    };
    let mut session = start(ApprovalMode::Ask).await;
    fails(&mut session).await;
    session.end().await;

    let mut session = start(ApprovalMode::AutoAll).await;
    session.completed().await;
    let ask = Configure { approval_mode: Some(ApprovalMode::Ask), ..Configure::default() };
    session.handle.send(Command::Configure(ask)).await.unwrap();
    session.prompt("again").await;
    fails(&mut session).await;
    session.end().await;
}

#[tokio::test]
async fn a_denied_call_that_runs_unasked_fails_the_turn() {
    for (at, (rule, tool)) in denied().into_iter().enumerate() {
        for (status, ends) in [("in_progress", false), ("completed", true), ("in_progress", true)] {
            let script = Script::new(vec![call(status, tool.clone())], ends);
            let mode = MODES[at % MODES.len()];
            let config = json!({ "approvalMode": mode, "blockedTools": [rule] });
            let mut session = script.start(config).await;
            let failed = session
                .until(|kind| match kind {
                    EventKind::TurnFailed(failed) => Some((**failed).clone()),
                    EventKind::TurnCompleted(_) => panic!("{rule} was broken by {tool}"),
                    _ => None,
                })
                .await;
            let error = failed.error.to_string();
            assert_eq!(failed.reason, TurnFailure::Error, "{rule} {status}: {error}");
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
    let script = Script::new(vec![call("completed", shell("ls"))], true);
    let config = json!({ "approvalMode": "ask", "blockedTools": ["Bash(rm:*)", "Edit"] });
    let mut session = script.start(config).await;
    session.completed().await;
    session.end().await;
}

#[tokio::test]
async fn a_rule_holds_in_every_mode() {
    for (rule, tool) in denied() {
        let mode = json!({ "approvalMode": "autoAll" });
        for mut config in [mode, json!({ "permissionMode": "bypassPermissions" })] {
            config["blockedTools"] = json!([rule]);
            let script = Script::new(vec![permission(tool.clone())], false);
            let mut session = script.start(config).await;
            let request = session.request().await;
            let settled = session.settled(&request.request_id.decode()).await;
            assert_eq!((settled.outcome, settled.by), (RequestOutcome::Denied, SettledBy::Policy));
            session.completed().await;
            assert!(session.heard().contains(r#""optionId":"no""#), "{rule}");
            session.end().await;
        }
    }
}

/// Someone has to decide what is not clearly inside, and sees all of it.
#[tokio::test]
async fn all_of_a_call_is_judged() {
    let first = |kind: &str, more: Value| {
        let mut first = more;
        first["kind"] = kind.into();
        first["title"] = "x".into();
        call("pending", first)
    };
    for (mode, turn, shows) in [
        (
            "askDangerous",
            vec![first("think", json!({})), permission(json!({ "kind": "execute" }))],
            "execute",
        ),
        (
            "askDangerous",
            vec![first("execute", json!({})), permission(json!({ "kind": "think" }))],
            "execute",
        ),
        (
            "autoEdit",
            vec![permission(
                json!({ "title": "x", "kind": "edit", "content": [diff("a"), diff("/etc/b")] }),
            )],
            "/etc/b",
        ),
        (
            "autoEdit",
            vec![
                first("edit", json!({ "locations": [{ "path": "/etc/c" }] })),
                permission(json!({ "rawInput": { "path": "a", "note": "/etc/c" } })),
            ],
            "/etc/c",
        ),
        (
            "autoEdit",
            vec![permission(json!({ "title": "x", "kind": "edit", "rawInput": { "path": "a" },
                "content": [diff("b")] }))],
            "rawInput",
        ),
        (
            "askDangerous",
            vec![permission(json!({ "title": "x", "kind": "read",
                "locations": [{ "path": "file:///etc/passwd" }] }))],
            "file:///etc/passwd",
        ),
        (
            "askDangerous",
            vec![permission(
                json!({ "title": "x", "kind": "read", "rawInput": { "path": "a", "command": "id" } }),
            )],
            "id",
        ),
    ] {
        let script = Script::new(turn.clone(), false);
        let config = json!({ "approvalMode": mode, "allowedTools": ["WebFetch"] });
        let mut session = script.start(config).await;
        let request = session.request().await;
        let input = request.input.as_ref().unwrap().get().to_owned();
        assert!(input.contains(shows), "{turn:?}: {input}");
        let id = request.request_id.to_string();
        session.settle(Settlement::deny(id.as_str(), "no")).await.unwrap();
        let settled = session.settled(&id).await;
        assert_eq!(settled.by, SettledBy::Client, "{turn:?}");
        session.end().await;
    }
}

/// Nothing in an input leads outside without asking, and kinds that contradict each other ask, in whatever
/// order they come.
#[tokio::test]
async fn no_field_and_no_kind_hides_what_a_call_does() {
    let started = |kind: &str, more: Value| {
        let mut tool = more;
        tool["kind"] = kind.into();
        tool["title"] = "x".into();
        call("pending", tool)
    };
    let inside = || json!({ "rawInput": { "path": "a", "content": "b" } });
    let kinds = |first: &str, later: &str| {
        let mut changed = inside();
        changed["kind"] = later.into();
        vec![
            vec![started(first, json!({})), permission(changed.clone())],
            vec![started(first, inside()), permission(changed.clone())],
            vec![
                started(first, json!({})),
                update(json!({ "toolCallId": "c1", "kind": later }), "tool_call_update"),
                permission(inside()),
            ],
        ]
    };
    let mut table: Vec<(&str, Vec<Value>, bool)> = Vec::new();
    for (mode, kind, input) in [
        ("autoEdit", "edit", json!({ "path": "a", "edits": [{ "file_path": "/etc/x" }] })),
        ("askDangerous", "edit", json!({ "path": "a", "output": "/etc/x" })),
        ("askDangerous", "edit", json!({ "path": "a", "folder": "/etc" })),
        ("askDangerous", "search", json!({ "path": "a", "pattern": "../../../etc/*" })),
        ("askDangerous", "think", json!({ "code": "x", "url": "y" })),
    ] {
        table.push((mode, vec![permission(raw(kind, &input))], false));
    }
    for (mode, kind, input) in [
        ("autoEdit", "edit", json!({ "file_path": "a", "old_string": "/a", "new_string": "../b" })),
        ("askDangerous", "think", json!({ "thought": "x" })),
    ] {
        table.push((mode, vec![permission(raw(kind, &input))], true));
    }
    for other in ["fetch", "switch_mode", "other"] {
        for mode in ["autoEdit", "askDangerous"] {
            table.extend(kinds(other, "edit").into_iter().map(|turn| (mode, turn, false)));
            table.extend(kinds("edit", other).into_iter().map(|turn| (mode, turn, false)));
        }
    }
    table.extend(kinds("read", "edit").into_iter().map(|turn| ("autoEdit", turn, true)));
    for (mode, turn, is_allowed) in table {
        let script = Script::new(turn.clone(), false);
        let mut session = script.start(json!({ "approvalMode": mode })).await;
        let id = session.request().await.request_id.to_string();
        if !is_allowed {
            let denied = session.settle(Settlement::deny(id.as_str(), "no")).await;
            denied.unwrap_or_else(|error| panic!("{mode} {turn:?}: {error:?}"));
        }
        let by = if is_allowed { SettledBy::Policy } else { SettledBy::Client };
        assert_eq!(session.settled(&id).await.by, by, "{mode} {turn:?}");
        session.completed().await;
        session.end().await;
    }
}

#[tokio::test]
async fn an_address_of_a_file_is_no_host() {
    for raw in
        [json!({ "url": "file:///etc/passwd" }), json!({ "prompt": "Read FILE:/etc/passwd now" })]
    {
        let fetch = json!({ "title": "x", "kind": "fetch", "rawInput": raw });
        let script = Script::new(vec![permission(fetch)], false);
        let config = json!({ "approvalMode": "askDangerous", "allowedTools": ["WebFetch"] });
        let mut session = script.start(config).await;
        let id = session.request().await.request_id.to_string();
        session.settle(Settlement::deny(id.as_str(), "no")).await.unwrap();
        assert_eq!(session.settled(&id).await.by, SettledBy::Client);
        session.end().await;
    }
}

#[tokio::test]
async fn a_title_allows_nothing() {
    let tool = json!({ "title": "update_plan", "kind": "other", "rawInput": {} });
    let script = Script::new(vec![permission(tool)], false);
    let mut session = script.start(json!({ "allowedTools": ["update_plan"] })).await;
    let id = session.request().await.request_id.to_string();
    session.settle(Settlement::deny(id.as_str(), "no")).await.unwrap();
    assert_eq!(session.settled(&id).await.by, SettledBy::Client);
    session.end().await;
}

#[tokio::test]
async fn always_is_once_for_the_agent_and_exact_here() {
    let script = Script::new(vec![permission(shell("touch made"))], false);
    let mut session = script.start(json!({})).await;
    let id = session.request().await.request_id.to_string();
    let always: Settlement = serde_json::from_value(
        json!({ "requestId": id, "behavior": "allow", "remember": "session" }),
    )
    .unwrap();
    session.settle(always).await.unwrap();
    let reason = session.settled(&id).await.reason.unwrap().to_string();
    assert_eq!(reason, "allowed for this session: Bash(touch made)");
    session.completed().await;
    session.prompt("again").await;
    let id = session.request().await.request_id.to_string();
    assert_eq!(session.settled(&id).await.by, SettledBy::Policy);
    session.completed().await;
    let heard = session.heard();
    assert_eq!(heard.matches(r#""optionId":"once""#).count(), 2, "{heard}");
    assert!(!heard.contains("forever"), "{heard}");
    session.end().await;
}

#[tokio::test]
async fn a_lasting_option_is_refused_and_the_request_stays_open() {
    let script = Script::new(vec![permission(shell("touch made"))], false);
    let mut session = script.start(json!({})).await;
    let id = session.request().await.request_id.to_string();
    let error = session.try_answer(&id, &json!({ "optionId": "forever" })).await.unwrap_err();
    assert_eq!(error.code, ErrorCode::Unsupported);
    session.settle(Settlement::allow(id.as_str())).await.unwrap();
    session.completed().await;
    assert!(!session.heard().contains("forever"));
    session.end().await;
}

#[tokio::test]
async fn an_answer_to_what_a_call_was_is_none_to_what_it_is() {
    let changed = update(
        json!({ "toolCallId": "c1", "rawInput": { "command": "rm -rf /" } }),
        "tool_call_update",
    );
    let script = Script::new(vec![permission(shell("ls")), changed], false);
    let mut session = script.start(json!({})).await;
    let first = session.request().await;
    let settled = session.settled(&first.request_id.decode()).await;
    assert_eq!(settled.outcome, RequestOutcome::Withdrawn);
    let second = session.request().await;
    assert!(second.input.as_ref().unwrap().get().contains("rm -rf /"));
    let late = session.settle(Settlement::allow(first.request_id.to_string())).await.unwrap_err();
    assert_eq!(late.code, ErrorCode::RequestNotFound);
    let mut stale = Settlement::allow(second.request_id.to_string());
    stale.input_digest = Some(first.input_digest.clone());
    assert_eq!(session.settle(stale).await.unwrap_err().code, ErrorCode::Conflict);
    assert!(!session.heard().contains("outcome"));
    session.settle(Settlement::deny(second.request_id.to_string(), "no")).await.unwrap();
    session.completed().await;
    session.end().await;
}

fn modes(current: &str, all: &[&str]) -> Value {
    let all: Vec<Value> = all.iter().map(|id| json!({ "id": id, "name": id })).collect();
    json!({ "sessionId": "s1", "modes": { "currentModeId": current, "availableModes": all } })
}

#[tokio::test]
async fn an_agent_in_a_mode_that_approves_is_set_right_or_refused() {
    let mut script = Script::new(vec![], true);
    script.opened = modes("bypassPermissions", &["default", "bypassPermissions"]);
    let mut session = script.start(json!({ "approvalMode": "autoAll" })).await;
    session.completed().await;
    assert!(session.heard().contains(r#""modeId":"default""#));
    session.end().await;

    script.opened = modes("bypassPermissions", &["bypassPermissions"]);
    let mut session = script.start(json!({})).await;
    let failed = session.failed().await;
    assert!(failed.error.decode().contains("bypassPermissions"), "{failed:?}");
    assert!(!session.heard().contains("session/prompt"));
    session.end().await;
}

#[tokio::test]
async fn an_agent_that_leaves_the_mode_that_asks_ends_the_session() {
    let moved = update(json!({ "currentModeId": "bypassPermissions" }), "current_mode_update");
    for ends in [true, false] {
        let mut script = Script::new(vec![moved.clone()], ends);
        script.opened = modes("default", &["default", "bypassPermissions"]);
        let mut session = script.start(json!({})).await;
        let failed = session.failed().await;
        assert!(failed.error.decode().contains("bypassPermissions"), "{failed:?}");
        let events = session.over().await;
        let Some(EventKind::SessionEnded(ended)) = events.last().map(|event| &event.kind) else {
            panic!("it did not end");
        };
        assert_eq!(ended.reason, SessionEndReason::Failed);
        assert!(ended.error.as_ref().unwrap().decode().contains("bypassPermissions"));
    }
}

#[tokio::test]
async fn a_mode_that_approves_is_the_gateways() {
    let mut script = Script::new(vec![permission(shell("touch made"))], false);
    script.opened = modes("default", &["default", "acceptEdits", "bypassPermissions"]);
    let mut session = script.start(json!({})).await;
    let id = session.request().await.request_id.to_string();
    let change = json!({ "permissionMode": "bypassPermissions" });
    session.handle.send(Command::Configure(serde_json::from_value(change).unwrap())).await.unwrap();
    let mode = |kind: &EventKind<'_>| match kind {
        EventKind::StatusChanged(status) if status.status == Status::Mode => {
            Some(status.message.as_ref().unwrap().to_string())
        }
        _ => None,
    };
    assert_eq!(session.until(mode).await, "bypassPermissions");
    session.settle(Settlement::allow(id.as_str())).await.unwrap();
    session.completed().await;
    session.prompt("again").await;
    let id = session.request().await.request_id.to_string();
    assert_eq!(session.settled(&id).await.by, SettledBy::Policy);
    session.completed().await;
    assert!(!session.heard().contains("set_mode"));
    session.end().await;
}

/// A turn that reaches a budget ends with it, and the agent never receives `allows`.
async fn keeps_limit(mut session: Session, is_reached: bool, asks: bool, allows: &str) {
    if !is_reached {
        session.completed().await;
        assert!(session.heard().contains(allows));
        session.end().await;
        return;
    }
    if asks {
        let id = session
            .until(|kind| match kind {
                EventKind::RequestRaised(request) => {
                    Some(request.request_id.to_string()).filter(|id| id.starts_with("limit-"))
                }
                _ => None,
            })
            .await;
        session.settle(Settlement::deny(id.as_str(), "no")).await.unwrap();
    }
    let failed = session.failed().await;
    assert_eq!(failed.reason, TurnFailure::Budget, "{failed:?}");
    assert!(!session.heard().contains(allows), "{}", session.heard());
    session.end().await;
}

/// An agent that reports the session's cost so far: the cost counts before its next call.
#[tokio::test]
async fn a_budget_holds_before_the_next_call() {
    for (cost, is_reached) in [(0.5, true), (0.4, false)] {
        for on_limit in ["ask", "fail"] {
            let cost = json!({ "used": 1, "size": 10,
                "cost": { "amount": cost, "currency": "USD" } });
            let turn = vec![update(cost, "usage_update"), permission(shell("make"))];
            let config = json!({ "approvalMode": "autoAll", "onLimit": on_limit,
                "maxBudgetUsd": 0.5 });
            let session = Script::new(turn, false).start(config).await;
            keeps_limit(session, is_reached, on_limit == "ask", r#""optionId":"once""#).await;
        }
    }
}
