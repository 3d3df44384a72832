//! Pending work, and what the session waits for.

use agentwire_dialects::agent::AgentDialect;
use agentwire_protocol::Json;
use agentwire_protocol::event::{TurnFailed, TurnFailure, TurnStarted};
use serde_json::json;

use super::*;

fn state(folds_prompts: bool) -> DerivedState {
    let record = json!({
        "summary": {
            "id": "s", "agentType": "claude", "state": "idle", "createdAt": "", "updatedAt": "",
            "lastSeq": 0, "turns": 0, "openRequests": 0,
            "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
        },
        "owner": null, "config": {}, "open": {},
    });
    let record: Record = serde_json::from_value(record).unwrap();
    DerivedState::new(record, agentwire_dialects::claude::CLAUDE.tools(), folds_prompts)
}

fn note<'k>(state: &mut DerivedState, kind: impl Into<EventKind<'k>>) {
    let mut draft = Draft { agent: Agent::main(), kind: kind.into(), native: None };
    if let EventKind::RequestRaised(request) = &draft.kind {
        let raised = state.raised(request, &draft.agent, Asker::Agent);
        return state.open_request(raised, 1);
    }
    state.note(&mut draft);
}

fn begun(ids: &[&str]) -> TurnStarted<'static> {
    TurnStarted {
        turn_number: 1,
        prompt: None,
        message_ids: ids.iter().map(|id| Text::from((*id).to_owned())).collect(),
        origin: TurnOrigin::Prompt,
    }
}

fn failed() -> TurnFailed<'static> {
    TurnFailed::new(1, TurnFailure::Error, "x")
}

fn fate(id: &str, state: &'static str) -> StatusChanged<'static> {
    let details = Json::of(&json!({ "messageId": id }));
    StatusChanged::new(Status::Queue).message(Text::from(state)).details(details)
}

fn request(kind: RequestKind, input: &serde_json::Value) -> RequestRaised<'static> {
    RequestRaised::new("r", kind, Some(Json::of(input)))
}

/// Work is pending until each prompt has had its turn or its end.
#[test]
fn a_prompt_is_waited_for_by_its_id() {
    let mut state = state(true);
    ["a", "b", "c", "d"].iter().for_each(|id| state.promise(id));
    note(&mut state, fate("a", "started"));
    note(&mut state, begun(&["a"]));
    let details = Json::of(&json!({ "messageId": "b" }));
    note(&mut state, StatusChanged::new(Status::Prompted).details(details));
    note(&mut state, failed());
    assert_eq!(state.waiting().collect::<Vec<_>>(), ["c", "d"]);
    note(&mut state, fate("c", "cancelled"));
    assert!(state.is_busy());
    note(&mut state, fate("d", "completed"));
    assert!(!state.is_busy());
}

/// An old version folds prompts into one turn without reporting it.
#[test]
fn who_tells_no_fates_has_none_left_after_a_turn() {
    let mut folding = state(true);
    ["a", "b"].iter().for_each(|id| folding.promise(id));
    note(&mut folding, begun(&["a"]));
    note(&mut folding, failed());
    assert!(!folding.is_busy());
    let mut other = state(false);
    ["a", "b"].iter().for_each(|id| other.promise(id));
    note(&mut other, begun(&[]));
    note(&mut other, failed());
    assert_eq!(other.waiting().collect::<Vec<_>>(), ["b"]);
}

/// A session knows how its last turn ended.
#[test]
fn the_last_turn_is_told() {
    let mut state = state(true);
    assert_eq!(state.record.summary.last_turn, None);
    for (reason, end) in [
        (TurnFailure::Interrupted, TurnEnd::Interrupted),
        (TurnFailure::Error, TurnEnd::Failed),
        (TurnFailure::Died, TurnEnd::Failed),
    ] {
        note(&mut state, begun(&[]));
        note(&mut state, TurnFailed::new(1, reason, "x"));
        assert_eq!(state.record.summary.last_turn, Some(end));
    }
}

/// An agent that waits for an answer has a good reason to be silent.
#[test]
fn an_agent_that_waits_does_not_stall() {
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call" });
    let notice = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
    for (kind, input, may_stall) in [
        (RequestKind::Permission, json!({}), false),
        (RequestKind::Question, json!({}), false),
        (RequestKind::Hook, json!({}), false),
        (RequestKind::Mcp, call, false),
        (RequestKind::Mcp, notice, true),
        (RequestKind::Other, json!({}), true),
    ] {
        let mut state = state(true);
        note(&mut state, begun(&[]));
        assert!(state.may_stall());
        note(&mut state, request(kind, &input));
        assert_eq!(state.may_stall(), may_stall, "{kind:?}");
    }
}
