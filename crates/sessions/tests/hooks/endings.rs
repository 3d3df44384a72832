//! Interrupts, stops and deaths while hooks wait: everything is settled, nothing hangs.

use agentwire_protocol::event::{
    EventKind, RequestKind, RequestOutcome, SessionEndReason, SettledBy, TurnFailure,
};
use agentwire_protocol::{ApprovalMode, Command, Event};

use crate::harness::{ACP, CODEX, PATIENCE, Session, config, hooks};

fn end_of(events: &[Event<'_>]) -> SessionEndReason {
    match &events.last().unwrap().kind {
        EventKind::SessionEnded(ended) => ended.reason,
        other => panic!("the last event is {other:?}"),
    }
}

#[tokio::test]
async fn an_interrupt_withdraws_hooks_and_denies_what_they_held() {
    for agent in [CODEX, ACP] {
        let mut session = Session::start(agent, config(&hooks(&["PreToolUse"])), "ASK").await;
        let hook = session.hook("PreToolUse").await.request_id.to_string();
        session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
        let settled = session.settled(&hook).await;
        assert_eq!((settled.outcome, settled.by), (RequestOutcome::Withdrawn, SettledBy::Gateway));
        let permission = session.request().await;
        assert_eq!(permission.kind, RequestKind::Permission);
        let settled = session.settled(&permission.request_id.decode()).await;
        assert_eq!((settled.outcome, settled.by), (RequestOutcome::Denied, SettledBy::Gateway));
        assert_eq!(session.failed().await.reason, TurnFailure::Interrupted);
        session.end().await;
    }
}

#[tokio::test]
async fn an_interrupt_lets_the_turn_end_that_its_hooks_held() {
    let mut session = Session::start(CODEX, config(&hooks(&["Stop"])), "go").await;
    let hook = session.hook("Stop").await.request_id.to_string();
    session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
    assert_eq!(session.settled(&hook).await.outcome, RequestOutcome::Withdrawn);
    session.completed().await;
    session.prompt("go").await;
    session.hook("Stop").await;
    assert_eq!(end_of(&session.end().await), SessionEndReason::Completed);
}

#[tokio::test]
async fn what_a_hook_guards_is_denied_when_nobody_is_left() {
    let mut config = config(&hooks(&["PreToolUse"]));
    config.approval_mode = Some(ApprovalMode::AutoAll);
    let mut session = Session::start(CODEX, config, "ASK").await;
    let hook = session.hook("PreToolUse").await.request_id.to_string();
    session.handle.send(Command::Finish).await.unwrap();
    assert_eq!(session.settled(&hook).await.outcome, RequestOutcome::Withdrawn);
    let permission = session.request().await.request_id.to_string();
    let settled = session.settled(&permission).await;
    assert_eq!((settled.outcome, settled.by), (RequestOutcome::Denied, SettledBy::Gateway));
    assert_eq!(end_of(&session.over().await), SessionEndReason::Completed);
}

#[tokio::test]
async fn a_stop_waits_for_no_hook() {
    let wanted = hooks(&["SessionStart", "UserPromptSubmit", "PreToolUse", "Stop", "SessionEnd"]);
    use SessionEndReason::{Cancelled, Completed};
    for (prompt, answered, reason) in
        [("ASK", 0, Cancelled), ("ASK", 1, Cancelled), ("ASK", 2, Cancelled), ("go", 2, Completed)]
    {
        let mut session = Session::start(CODEX, config(&wanted), prompt).await;
        for _ in 0..answered {
            let hook = session.request().await;
            session.answer(&hook, &serde_json::json!({})).await;
        }
        session.request().await;
        let events = tokio::time::timeout(PATIENCE, session.end()).await.unwrap();
        assert_eq!(end_of(&events), reason);
    }
}

#[tokio::test]
async fn the_death_of_the_agent_settles_what_waits() {
    let script = CODEX.1.replace("*DIE*) exit 3 ;;", "").replace(
        "\\\"availableDecisions\\\":[\\\"accept\\\",\\\"cancel\\\"]}}\" ;;",
        "\\\"availableDecisions\\\":[\\\"accept\\\",\\\"cancel\\\"]}}\"\n exit 3 ;;",
    );
    assert!(script.contains("exit 3"));
    let wanted = hooks(&["PreToolUse", "UserPromptSubmit", "SessionEnd"]);
    let mut session = Session::start((CODEX.0, &script), config(&wanted), "ASK").await;
    let hook = session.hook("UserPromptSubmit").await;
    session.answer(&hook, &serde_json::json!({})).await;
    let events = session.over().await;
    assert_eq!(end_of(&events), SessionEndReason::Failed);
    let raised = |kind: RequestKind| {
        let fits = |event: &&Event<'_>| matches!(&event.kind, EventKind::RequestRaised(request) if request.kind == kind);
        events.iter().filter(fits).count()
    };
    assert_eq!((raised(RequestKind::Permission), raised(RequestKind::Hook)), (1, 3));
}
