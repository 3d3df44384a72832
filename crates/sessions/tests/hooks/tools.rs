//! Hooks that tell of tools, turns and the session's own beginning and end.

use agentwire_protocol::Settlement;
use agentwire_protocol::event::{EventKind, RequestOutcome, Status, TurnFailure};
use serde_json::json;

use crate::harness::{ACP, CLAUDE, CODEX, EXEC, Session, config, decision, hooks, input};

#[tokio::test]
async fn a_tool_that_runs_unasked_is_told_of_and_what_cannot_be_done_is_said_once() {
    let config = config(&hooks(&["PreToolUse", "PostToolUse"]));
    let mut session = Session::start(CODEX, config, "ALONE").await;
    for round in 0..2 {
        let before = session.hook("PreToolUse").await;
        let after = session.hook("PostToolUse").await;
        assert_eq!(input(&after)["tool_response"], "made");
        assert_eq!(input(&after)["tool_name"], "Bash");
        assert_eq!(input(&after)["tool_input"]["command"], "touch made");
        assert_eq!(before.tool_use_id, after.tool_use_id);
        session.answer(&before, &decision("deny", "too late")).await;
        let output = json!({ "hookSpecificOutput": { "additionalContext": "by the way" } });
        session.answer(&after, &output).await;
        if round == 0 {
            assert!(session.warning().await.contains("cannot be undone"));
            assert!(session.warning().await.contains("additionalContext"));
            session.prompt("ALONE again").await;
        }
    }
    let events = session.end().await;
    let warnings = events.iter().filter(|event| {
        matches!(&event.kind, EventKind::StatusChanged(status) if status.status == Status::Warning)
    });
    assert_eq!(warnings.count(), 2);
}

#[tokio::test]
async fn a_tool_that_is_silent_is_known_as_unasked_after_a_while() {
    let mut session = Session::start(CODEX, config(&hooks(&["PreToolUse"])), "LATER").await;
    let hook = session.hook("PreToolUse").await;
    assert_eq!(input(&hook)["tool_name"], "Bash");
    session.answer(&hook, &json!({ "continue": false, "stopReason": "no" })).await;
    let failed = session.failed().await;
    assert_eq!((failed.reason, &*failed.error.decode()), (TurnFailure::Interrupted, "no"));
    session.end().await;
}

#[tokio::test]
async fn a_failed_tool_raises_its_own_hook() {
    let config = config(&hooks(&["PostToolUse", "PostToolUseFailure"]));
    let mut session = Session::start(CODEX, config, "BROKEN").await;
    let hook = session.hook("PostToolUseFailure").await;
    assert_eq!(input(&hook)["is_interrupt"], false);
    session.answer(&hook, &json!({ "systemMessage": "look at this" })).await;
    let said = session.until(|kind| match kind {
        EventKind::StatusChanged(status) if status.status == Status::Notice => {
            status.message.as_ref().map(ToString::to_string)
        }
        _ => None,
    });
    assert_eq!(said.await, "look at this");
    session.end().await;
}

#[tokio::test]
async fn a_tool_that_was_asked_for_raises_each_hook_once() {
    for agent in [CODEX, ACP] {
        let config = config(&hooks(&["PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop"]));
        let mut session = Session::start(agent, config, "ASK").await;
        let hook = session.hook("PreToolUse").await;
        session.answer(&hook, &decision("allow", "")).await;
        let permission = session.request().await;
        session.settled(&permission.request_id.decode()).await;
        let hook = session.hook("PostToolUse").await;
        session.answer(&hook, &json!({})).await;
        let hook = session.hook("Stop").await;
        session.answer(&hook, &json!({})).await;
        let events = session.end().await;
        let hooks = events.iter().filter(|event| {
            matches!(&event.kind, EventKind::RequestRaised(request) if request.name.is_some()
                && request.callback_id.is_some())
        });
        assert_eq!(hooks.count(), 3);
    }
}

#[tokio::test]
async fn an_agent_of_one_process_a_turn_has_hooks_too() {
    let wanted = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];
    let mut config = config(&hooks(&wanted));
    config.driver = Some("exec".to_owned());
    let mut session = Session::start(EXEC, config, "go").await;
    for event in wanted {
        let hook = session.hook(event).await;
        let output = match event {
            "UserPromptSubmit" => json!({ "hookSpecificOutput": { "additionalContext": "MORE" } }),
            "Stop" => json!({ "decision": "block", "reason": "AGAIN" }),
            _ => json!({}),
        };
        session.answer(&hook, &output).await;
    }
    session.hook("PreToolUse").await;
    session.hook("PostToolUse").await;
    let stop = session.hook("Stop").await;
    assert_eq!(input(&stop)["stop_hook_active"], true);
    assert_eq!(session.heard(), "go\n\nMOREAGAIN");
    session.end().await;
}

#[tokio::test]
async fn the_session_tells_of_its_beginning_and_its_end() {
    let mut session =
        Session::start(CODEX, config(&hooks(&["SessionStart", "SessionEnd"])), "").await;
    let start = session.hook("SessionStart").await;
    assert_eq!(input(&start)["source"], "startup");
    let output = json!({ "hookSpecificOutput": { "additionalContext": "FIRST THIS" } });
    session.prompt("then this").await;
    session.answer(&start, &output).await;
    session.completed().await;
    assert!(session.heard().contains("FIRST THIS\\n\\nthen this"), "{}", session.heard());
    let events = session.end().await;
    let end = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RequestRaised(request) => Some(request.clone()),
        _ => None,
    });
    let end = end.unwrap();
    assert_eq!(end.name.as_ref().unwrap().decode(), "SessionEnd");
    assert_eq!(input(&end)["reason"], "other");
    let settled = events.iter().rev().find_map(|event| match &event.kind {
        EventKind::RequestSettled(settled) => Some(settled.outcome),
        _ => None,
    });
    assert_eq!(settled, Some(RequestOutcome::Denied));
}

#[tokio::test]
async fn a_hook_may_make_the_agent_go_on_but_not_for_ever() {
    let mut session = Session::start(CODEX, config(&hooks(&["Stop"])), "go").await;
    for round in 0..=8 {
        session.completed().await;
        let stop = session.hook("Stop").await;
        assert_eq!(input(&stop)["stop_hook_active"], round > 0);
        let output = json!({ "decision": "block", "reason": format!("MORE {round}") });
        session.answer(&stop, &output).await;
    }
    assert!(session.warning().await.contains("8 times"));
    let heard = session.heard();
    assert!(heard.contains("MORE 7") && !heard.contains("MORE 8"), "{heard}");
    // What the user wants next is a new beginning.
    session.prompt("something else").await;
    session.completed().await;
    let stop = session.hook("Stop").await;
    assert_eq!(input(&stop)["stop_hook_active"], false);
    session.end().await;
}

#[tokio::test]
async fn an_agent_that_has_hooks_raises_them_and_nobody_else_does() {
    let wanted = ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop"];
    let mut session = Session::start(CLAUDE, config(&hooks(&wanted)), "go").await;
    let hook = session.hook("PreToolUse").await;
    assert_eq!(hook.request_id.decode(), "h1");
    session.answer(&hook, &json!({})).await;
    let permission = session.request().await.request_id.to_string();
    session.settle(Settlement::allow(permission.as_str())).await.unwrap();
    session.completed().await;
    let events = session.end().await;
    let raised = events.iter().filter(|event| matches!(event.kind, EventKind::RequestRaised(_)));
    assert_eq!(raised.count(), 2);
}

#[tokio::test]
async fn hooks_that_no_event_shows_are_refused_by_name() {
    for (hooks, word) in [
        (json!({ "PreCompact": [{}] }), "PreCompact"),
        (json!({ "PreToolUse": [{ "matcher": "(" }] }), "matcher"),
    ] {
        let refused = Session::try_start(CODEX, config(&hooks), "go").await;
        let error = refused.err().unwrap();
        assert!(error.message.contains(word), "{}", error.message);
    }
}
