//! Hooks that report tools, turns and the session's own start and end.

use agentwire_protocol::event::{EventKind, RequestOutcome, Status, TurnFailure};
use agentwire_protocol::{Command, Settlement};
use serde_json::json;

use crate::harness::{
    ACP, CLAUDE, CODEX, EXEC, Session, carriers, config, count, decision, hooks, input,
};

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
    assert_eq!(settled, Some(RequestOutcome::Withdrawn));
}

#[tokio::test]
async fn a_hook_may_make_the_agent_go_on_but_not_for_ever() {
    let mut session = Session::start(CODEX, config(&hooks(&["Stop"])), "go").await;
    for round in 0..=8 {
        let stop = session.hook("Stop").await;
        assert_eq!(input(&stop)["stop_hook_active"], round > 0);
        let output = json!({ "decision": "block", "reason": format!("MORE {round}") });
        session.answer(&stop, &output).await;
        session.completed().await;
    }
    assert!(session.warning().await.contains("8 times"));
    let heard = session.heard();
    assert!(heard.contains("MORE 7") && !heard.contains("MORE 8"), "{heard}");
    // The user's next prompt starts over.
    session.prompt("something else").await;
    let stop = session.hook("Stop").await;
    assert_eq!(input(&stop)["stop_hook_active"], false);
    session.end().await;
}

#[tokio::test]
async fn a_turn_ends_when_its_hooks_are_answered() {
    for (prompt, event) in
        [("go", "Stop"), ("ALONE", "PostToolUse"), ("BROKEN", "PostToolUseFailure")]
    {
        let mut session = Session::start(CODEX, config(&hooks(&[event])), prompt).await;
        let hook = session.hook(event).await;
        // It waits with the turn, and comes after it.
        session.prompt("NEXT").await;
        session.answer(&hook, &json!({})).await;
        session.completed().await;
        if event == "Stop" {
            let hook = session.hook(event).await;
            session.answer(&hook, &json!({})).await;
        }
        session.completed().await;
        let events = session.end().await;
        let place = |is_it: &dyn Fn(&EventKind<'_>) -> bool| {
            events.iter().position(|event| is_it(&event.kind)).unwrap()
        };
        let settled = place(&|kind| matches!(kind, EventKind::RequestSettled(_)));
        assert!(settled < place(&|kind| matches!(kind, EventKind::TurnCompleted(_))));
        // Each line of the agent is in the log once.
        assert_eq!(carriers(&events, "turn/completed").len(), 2);
    }
}

#[tokio::test]
async fn a_turn_that_the_agent_begins_meanwhile_comes_after_the_end_of_the_last() {
    let mut session = Session::start(CODEX, config(&hooks(&["Stop"])), "ASK").await;
    let permission = session.request().await.request_id.to_string();
    session.prompt("NEXT").await;
    session.settle(Settlement::allow(permission.as_str())).await.unwrap();
    let stops = [session.hook("Stop").await, session.hook("Stop").await];
    for stop in &stops {
        session.answer(stop, &json!({})).await;
    }
    while count(&session.seen, |kind| matches!(kind, EventKind::TurnCompleted(_))) < 2 {
        session.next().await.unwrap();
    }
    let turns = session.seen.iter().filter_map(|event| match &event.kind {
        EventKind::TurnStarted(turn) => Some((turn.turn_number, "started")),
        EventKind::TurnCompleted(turn) => Some((turn.turn_number, "completed")),
        _ => None,
    });
    let turns: Vec<_> = turns.collect();
    assert_eq!(turns, [(1, "started"), (1, "completed"), (2, "started"), (2, "completed")]);
    session.end().await;
}

#[tokio::test]
async fn nobody_makes_the_agent_go_on_by_silence() {
    for finishes in [false, true] {
        let entry = json!({ "hookCallbackIds": ["s"], "timeout": 1, "onFailure": "block" });
        let mut session = Session::start(CODEX, config(&json!({ "Stop": [entry] })), "go").await;
        let stop = session.hook("Stop").await;
        if finishes {
            session.handle.send(Command::Finish).await.unwrap();
        }
        let settled = session.settled(&stop.request_id.decode()).await;
        assert_eq!(settled.outcome, RequestOutcome::Withdrawn);
        session.completed().await;
        let events = session.end().await;
        assert_eq!(count(&events, |kind| matches!(kind, EventKind::TurnStarted(_))), 1);
    }
}

#[tokio::test]
async fn what_there_is_nothing_to_choose_by_fits_every_matcher() {
    let entry = |id: &str| json!([{ "matcher": "Bash", "hookCallbackIds": [id] }]);
    let wanted = json!({ "UserPromptSubmit": entry("u"), "Stop": entry("s") });
    let mut session = Session::start(CODEX, config(&wanted), "go").await;
    let hook = session.hook("UserPromptSubmit").await;
    session.answer(&hook, &json!({})).await;
    session.hook("Stop").await;
    session.end().await;
}

#[tokio::test]
async fn what_a_hook_wants_of_a_tools_output_is_said_to_be_in_vain() {
    let mut session = Session::start(CODEX, config(&hooks(&["PostToolUse"])), "ALONE").await;
    let hook = session.hook("PostToolUse").await;
    let output = json!({ "hook_specific_output": { "updated_mcp_tool_output": "less" } });
    session.answer(&hook, &output).await;
    assert!(session.warning().await.contains("updatedMCPToolOutput"));
    session.end().await;
}

#[tokio::test]
async fn a_session_may_be_kept_from_its_first_prompt() {
    for output in [
        json!({ "continue": false, "stopReason": "closed" }),
        json!({ "decision": "block", "reason": "closed" }),
    ] {
        for prompt in ["FIRST", ""] {
            let mut session =
                Session::start(CODEX, config(&hooks(&["SessionStart"])), prompt).await;
            let start = session.hook("SessionStart").await;
            session.answer(&start, &output).await;
            if prompt.is_empty() {
                session.prompt("FIRST").await;
            }
            assert_eq!(session.failed().await.error.decode(), "closed");
            session.prompt("SECOND").await;
            session.completed().await;
            assert!(!session.heard().contains("FIRST"), "{}", session.heard());
            session.end().await;
        }
    }
}

#[tokio::test]
async fn an_agent_that_has_hooks_raises_them_and_nobody_else_does() {
    let wanted =
        ["SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd"];
    let mut session = Session::start(CLAUDE, config(&hooks(&wanted)), "go").await;
    // Except for those that it never calls.
    let hook = session.hook("SessionStart").await;
    let output = json!({ "hookSpecificOutput": { "additionalContext": "FIRST THIS" } });
    session.answer(&hook, &output).await;
    let hook = session.hook("PreToolUse").await;
    assert_eq!(hook.request_id.decode(), "h1");
    session.answer(&hook, &json!({})).await;
    let permission = session.request().await.request_id.to_string();
    session.settle(Settlement::allow(permission.as_str())).await.unwrap();
    session.completed().await;
    let heard = session.heard();
    assert!(heard.contains("FIRST THIS\\n\\ngo"), "{heard}");
    assert!(heard.contains("\"Stop\":[") && !heard.contains("\"SessionStart\":["), "{heard}");
    let events = session.end().await;
    assert_eq!(count(&events, |kind| matches!(kind, EventKind::RequestRaised(_))), 4);
}

#[tokio::test]
async fn hooks_that_no_event_shows_are_refused_by_name() {
    for (hooks, word) in [
        (json!({ "PreCompact": [{}], "Setup": [] }), "PreCompact"),
        (json!({ "PreToolUse": [{ "matcher": "(" }] }), "matcher"),
    ] {
        let refused = Session::try_start(CODEX, config(&hooks), "go").await;
        let error = refused.err().unwrap();
        assert!(error.message.contains(word), "{}", error.message);
    }
}
