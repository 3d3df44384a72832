//! While a large answer is checked, the turn stays open and can be given up.

use std::pin::pin;
use std::task::{Context, Waker};

use agentwire_dialects::acp::ACP;
use agentwire_dialects::agent::{AgentDialect as _, Capabilities};
use agentwire_dialects::tape::Sink as _;
use agentwire_protocol::event::{TextChunk, TurnOrigin, TurnStarted};
use agentwire_protocol::{Event, SessionConfig};
use serde_json::json;

use super::super::answer::LARGE;
use super::*;
use crate::session::hooks::Hooks;
use crate::session::journal::Journal;
use crate::session::state::DerivedState;

/// A session whose agent has sent `count` numbers and ended its turn.
fn answered(count: usize) -> Core {
    let schema = json!({ "type": "array", "items": { "type": "number" } });
    let config = json!({ "outputFormat": { "type": "json_schema", "schema": schema } });
    let config: SessionConfig = serde_json::from_value(config).unwrap();
    let record = json!({
        "summary": {
            "id": "s", "agentType": "acp", "state": "idle", "createdAt": "", "updatedAt": "",
            "lastSeq": 0, "turns": 0, "openRequests": 0,
            "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
        },
        "owner": null, "config": {}, "open": {},
    });
    let state = DerivedState::new(serde_json::from_value(record).unwrap(), ACP.tools(), false);
    let core = Core::new(Journal::new("s".into(), 0), state, Hooks::default(), None, None);
    let mut core = core.forming(Structured::new(Capabilities::default(), &config).unwrap());
    let text = format!("[{}1]", "1,".repeat(count - 1));
    let started = TurnStarted {
        turn_number: 1,
        prompt: None,
        message_ids: Vec::new(),
        origin: TurnOrigin::default(),
    };
    let completed: TurnCompleted<'_> = serde_json::from_value(json!({ "turnNumber": 1,
        "usage": { "inputTokens": 1, "outputTokens": 1, "totalTokens": 2 } }))
    .unwrap();
    let said = TextChunk { content: Text::from(text), is_complete: true, block_id: None };
    for kind in [EventKind::from(started), said.into(), completed.into()] {
        core.event(Draft { agent: Agent::main(), kind, native: None });
    }
    core
}

fn is_open(core: &Core) -> bool {
    core.state.record.open.turn.is_some()
}

#[tokio::test]
async fn a_large_answer_is_checked_apart_and_can_be_given_up() {
    let small = answered(10);
    assert!(!small.checks_answer() && !is_open(&small));

    let others = LARGE.acquire().await.unwrap();
    let (mut kept, mut dropped) = (answered(90_000), answered(90_000));
    for core in [&mut kept, &mut dropped] {
        assert!(core.checks_answer() && is_open(core));
        let waits = pin!(core.checked()).poll(&mut Context::from_waker(Waker::noop()));
        assert!(waits.is_pending());
    }
    dropped.give_up_answer(TurnFailure::Interrupted, "enough");
    assert!(!dropped.checks_answer() && !is_open(&dropped));
    let written = dropped.journal.take().expect("events");
    let (_, line) = written.events().last().expect("an event");
    let event = Event::from_json(str::from_utf8(line).unwrap()).unwrap();
    let EventKind::TurnFailed(failed) = event.kind else { panic!("{event:?}") };
    assert_eq!((failed.reason, &*failed.error.decode()), (TurnFailure::Interrupted, "enough"));
    assert!(dropped.checked().await.0.is_none());

    drop(others);
    let judged = kept.checked().await.0.expect("it is known");
    assert!(judged.is_ok(), "{judged:?}");
    assert!(is_open(&kept));
}
