//! Prompts that wait more than once: the log says only once that each waits, and its hooks run once.

use std::collections::BTreeMap;

use agentwire_protocol::event::{EventKind, RequestKind, Status};
use agentwire_protocol::{AgentType, Command, Event, Prompt, SessionConfig, Settlement};
use serde_json::{Value, json};

use crate::harness::{Session, count, hooks, input};

const ACP: (AgentType, &str) = (AgentType::Acp, include_str!("acp.sh"));

/// A turn uses 12 tokens.
fn config(more: Value) -> SessionConfig {
    let mut config = json!({ "maxBudgetTokens": 10 });
    let fields = config.as_object_mut().unwrap();
    let Value::Object(more) = more else { panic!("no fields: {more}") };
    fields.extend(more);
    serde_json::from_value(config).unwrap()
}

/// How often the log says that each prompt waits.
pub(crate) fn queued(events: &[Event<'_>]) -> BTreeMap<String, usize> {
    let mut queued = BTreeMap::new();
    for event in events {
        let EventKind::StatusChanged(status) = &event.kind else { continue };
        if status.status == Status::Queue {
            assert_eq!(status.message.as_ref().unwrap().decode(), "queued");
            let details: Value = status.details.as_ref().unwrap().read().unwrap();
            let id = details.get("messageId").and_then(Value::as_str).unwrap();
            *queued.entry(id.to_owned()).or_default() += 1;
        }
    }
    queued
}

pub(crate) fn once(ids: &[&str]) -> BTreeMap<String, usize> {
    ids.iter().map(|id| ((*id).to_owned(), 1)).collect()
}

async fn send(session: &Session, id: &str) {
    let message_id = Some(id.to_owned());
    let prompt = Prompt { message_id, ..Prompt::text(format!("PLAN-good {id}")) };
    session.handle.send(Command::Prompt(prompt)).await.unwrap();
}

/// Allows the next request, which must be the limit's.
async fn allow_more(session: &mut Session) {
    let request = session.request().await;
    assert_eq!(request.kind, RequestKind::Permission, "{request:?}");
    assert_eq!(request.name.as_ref().unwrap().decode(), "maxBudgetTokens");
    assert!(request.allow_is_once && request.input_is_fixed);
    session.settle(Settlement::allow(request.request_id.to_string())).await.unwrap();
}

#[tokio::test]
async fn prompts_that_wait_at_a_limit_are_announced_once() {
    let mut session = Session::start(ACP, config(json!({})), "PLAN-good").await;
    session.completed().await;
    for id in ["one", "two", "three"] {
        send(&session, id).await;
    }
    allow_more(&mut session).await;
    session.completed().await;
    let mut turns = 1;
    while turns < 3 {
        // The agent has all of them: the limit is reached within the next turn.
        let wants_more = session.until(|kind| match kind {
            EventKind::RequestRaised(request) => Some(Some(request.request_id.to_string())),
            EventKind::TurnCompleted(_) => Some(None),
            _ => None,
        });
        match wants_more.await {
            Some(id) => session.settle(Settlement::allow(id)).await.unwrap(),
            None => turns += 1,
        }
    }
    let events = session.end().await;
    assert_eq!(queued(&events), once(&["one", "two", "three"]));
    assert_eq!(count(&events, |kind| matches!(kind, EventKind::TurnStarted(_))), 4);
}

#[tokio::test]
async fn a_prompt_that_waits_for_hooks_a_turn_and_a_limit_is_announced_once_and_hooked_once() {
    let schema = json!({ "type": "object" });
    let config = config(json!({
        "hooks": hooks(&["UserPromptSubmit"]),
        "outputFormat": { "type": "json_schema", "schema": schema },
    }));
    let mut session = Session::start(ACP, config, "PLAN-waits").await;
    let hook = session.hook("UserPromptSubmit").await;
    session.answer(&hook, &json!({})).await;
    session.until(|kind| matches!(kind, EventKind::TurnStarted(_)).then_some(())).await;
    for id in ["one", "two"] {
        send(&session, id).await;
        let hook = session.hook("UserPromptSubmit").await;
        assert_eq!(input(&hook)["prompt"], format!("PLAN-good {id}"));
        session.answer(&hook, &json!({})).await;
    }
    // The turn ends beyond the limit, and both prompts wait there.
    session.handle.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
    for _ in ["one", "two"] {
        allow_more(&mut session).await;
        session.completed().await;
    }
    let events = session.end().await;
    assert_eq!(queued(&events), once(&["one", "two"]));
    let is_hook = |kind: &EventKind<'_>| match kind {
        EventKind::RequestRaised(request) => request.kind == RequestKind::Hook,
        _ => false,
    };
    assert_eq!(count(&events, is_hook), 3);
    assert_eq!(count(&events, |kind| matches!(kind, EventKind::TurnStarted(_))), 3);
}
