//! `UserPromptSubmit`: a prompt waits for its hooks, and the prompts after it wait too.

use agentwire_protocol::command::Image;
use agentwire_protocol::event::{EventKind, TurnFailure};
use agentwire_protocol::{Command, ErrorCode, Prompt, SessionState, Settlement};
use serde_json::json;

use crate::harness::{ACP, CODEX, Session, config, hooks, input};

#[tokio::test]
async fn a_blocked_prompt_is_a_turn_that_failed_and_never_reaches_the_agent() {
    let mut session = Session::start(CODEX, config(&hooks(&["UserPromptSubmit"])), "SECRET").await;
    let hook = session.hook("UserPromptSubmit").await;
    assert_eq!(input(&hook)["prompt"], "SECRET");
    session.prompt("SECOND").await;
    session.answer(&hook, &json!({ "decision": "block", "reason": "not that" })).await;
    let failed = session.failed().await;
    assert_eq!((failed.reason, &*failed.error.decode()), (TurnFailure::Error, "not that"));
    assert_eq!(failed.turn_number, 1);
    let hook = session.hook("UserPromptSubmit").await;
    assert_eq!(input(&hook)["prompt"], "SECOND");
    let id = hook.request_id.to_string();
    session.settle(Settlement::deny(id.as_str(), "nor that")).await.unwrap();
    assert_eq!(session.failed().await.error.decode(), "nor that");
    session.prompt("THIRD").await;
    let hook = session.hook("UserPromptSubmit").await;
    session.answer(&hook, &json!({})).await;
    let number = session.until(|kind| match kind {
        EventKind::TurnCompleted(turn) => Some(turn.turn_number),
        _ => None,
    });
    assert_eq!(number.await, 3);
    let heard = session.heard();
    assert!(!heard.contains("SECRET") && !heard.contains("SECOND"), "{heard}");
    session.end().await;
}

#[tokio::test]
async fn prompts_keep_their_order_and_get_what_hooks_add() {
    let config = config(&hooks(&["UserPromptSubmit"]));
    let mut session = Session::start(CODEX, config, "").await;
    for text in ["ONE", "TWO", "THREE"] {
        session.prompt(text).await;
    }
    for text in ["ONE", "TWO", "THREE"] {
        let hook = session.hook("UserPromptSubmit").await;
        assert_eq!(input(&hook)["prompt"], text);
        let added = format!("added to {text}");
        let output = json!({ "hookSpecificOutput": { "additionalContext": added } });
        session.answer(&hook, &output).await;
    }
    for _ in 0..3 {
        session.completed().await;
    }
    let heard = session.heard();
    let at = |text: &str| heard.find(&format!("{text}\\n\\nadded to {text}")).unwrap();
    assert!(at("ONE") < at("TWO") && at("TWO") < at("THREE"), "{heard}");
    session.end().await;
}

/// A text that hooks have judged stays as it is.
#[tokio::test]
async fn a_prompt_that_waits_is_cancelled_or_changed_before_its_hooks_see_it() {
    let config = config(&hooks(&["UserPromptSubmit"]));
    let mut session = Session::start(CODEX, config, "HANG").await;
    let hook = session.hook("UserPromptSubmit").await;
    session.answer(&hook, &json!({})).await;
    session.until(|kind| matches!(kind, EventKind::TurnStarted(_)).then_some(())).await;
    for id in ["ONE", "TWO", "THREE"] {
        let prompt = Prompt { message_id: Some(id.to_owned()), ..Prompt::text(id) };
        session.handle.send(Command::Prompt(prompt)).await.unwrap();
    }
    let cancel = |id: &str| Command::Cancel { message_id: id.to_owned() };
    let edit = |id: &str| Command::Edit { message_id: id.to_owned(), text: format!("{id} other") };
    let first = session.hook("UserPromptSubmit").await;
    for command in [edit("ONE"), cancel("ONE")] {
        let error = session.handle.send(command).await.unwrap_err();
        assert_eq!(error.code, ErrorCode::Conflict, "{}", error.message);
    }
    session.handle.send(cancel("TWO")).await.unwrap();
    session.handle.send(edit("THREE")).await.unwrap();
    session.answer(&first, &json!({})).await;
    let hook = session.hook("UserPromptSubmit").await;
    assert_eq!(input(&hook)["prompt"], "THREE other");
    session.answer(&hook, &json!({})).await;
    // They wait for the turn, and hooks have let them pass.
    let error = session.handle.send(edit("ONE")).await.unwrap_err();
    assert!(error.message.contains("hooks"), "{}", error.message);
    session.handle.send(cancel("ONE")).await.unwrap();
    session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
    session.failed().await;
    session.completed().await;
    let heard = session.heard();
    assert!(heard.contains("THREE other") && !heard.contains("TWO"), "{heard}");
    assert!(!heard.contains("ONE"), "{heard}");
    session.end().await;
}

#[tokio::test]
async fn a_prompt_that_is_blocked_while_a_turn_runs_fails_after_it() {
    let config = config(&hooks(&["UserPromptSubmit"]));
    let mut session = Session::start(CODEX, config, "HANG").await;
    let hook = session.hook("UserPromptSubmit").await;
    session.answer(&hook, &json!({})).await;
    session.until(|kind| matches!(kind, EventKind::TurnStarted(_)).then_some(())).await;
    session.prompt("BLOCKED").await;
    let hook = session.hook("UserPromptSubmit").await;
    session.answer(&hook, &json!({ "decision": "block", "reason": "no" })).await;
    session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
    let first = session.failed().await;
    assert_eq!((first.turn_number, first.reason), (1, TurnFailure::Interrupted));
    let second = session.failed().await;
    assert_eq!((second.turn_number, &*second.error.decode()), (2, "no"));
    session.end().await;
}

#[tokio::test]
async fn an_interrupt_gives_up_the_prompt_that_waits_and_the_session_goes_on() {
    for event in ["UserPromptSubmit", "SessionStart"] {
        let mut session = Session::start(CODEX, config(&hooks(&[event])), "FIRST").await;
        session.hook(event).await;
        let waits =
            |summary: &agentwire_protocol::SessionSummary| summary.state == SessionState::Working;
        session.handle.until(waits).await;
        let asked = std::time::Instant::now();
        session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
        assert!(
            asked.elapsed() < std::time::Duration::from_secs(5),
            "an interrupt waits for nobody"
        );
        let failed = session.failed().await;
        assert_eq!(failed.reason, TurnFailure::Interrupted);
        session.prompt("SECOND").await;
        if event == "UserPromptSubmit" {
            let hook = session.hook(event).await;
            session.answer(&hook, &json!({})).await;
        }
        session.completed().await;
        let heard = session.heard();
        assert!(!heard.contains("FIRST") && heard.contains("SECOND"), "{heard}");
        session.end().await;
    }
}

#[tokio::test]
async fn a_prompt_that_the_agent_cannot_take_fails_under_its_own_id() {
    let mut session = Session::start(ACP, config(&hooks(&["UserPromptSubmit"])), "").await;
    session.handle.until(|summary| summary.state == SessionState::Idle).await;
    let image = Image { media_type: "image/png".to_owned(), data: "AA==".to_owned() };
    let id = "4e5b7a52-2f6b-4a0e-9d5c-6a2d3a4f5b6c";
    let message_id = Some(id.to_owned());
    let prompt = Prompt { images: vec![image], message_id, ..Prompt::text("look") };
    session.handle.send(Command::Prompt(prompt)).await.unwrap();
    let hook = session.hook("UserPromptSubmit").await;
    session.answer(&hook, &json!({})).await;
    let ids = session.until(|kind| match kind {
        EventKind::TurnStarted(turn) => {
            Some(turn.message_ids.iter().map(ToString::to_string).collect::<Vec<_>>())
        }
        _ => None,
    });
    assert_eq!(ids.await, [id]);
    assert!(session.failed().await.error.decode().contains("images"));
    session.end().await;
}
