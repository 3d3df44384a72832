//! The known state follows the events as the gateway's state does.

use agentwire_protocol::{AgentType, SessionId};
use serde_json::{Value, json};

use super::*;

fn summary(state: SessionState, open_requests: u64, last_seq: u64) -> SessionSummary {
    let summary = json!({
        "id": SessionId::from("s"), "agentType": AgentType::Claude, "state": state,
        "createdAt": "t", "updatedAt": "t", "lastSeq": last_seq, "turns": 0,
        "usage": TokenUsage::default(), "openRequests": open_requests,
    });
    serde_json::from_value(summary).unwrap()
}

/// Applies events numbered from `first` on, and returns the state after each.
fn states(snapshot: &mut Snapshot, first: u64, events: &[(&str, Value)]) -> Vec<SessionState> {
    let note = |(seq, (kind, more)): (u64, &(&str, Value))| {
        let mut event = json!({
            "id": "e", "sessionId": "s", "seq": seq, "type": kind, "timestamp": "t", "agentId": "main",
        });
        event.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        snapshot.apply(&Event::from_json(&event.to_string()).unwrap());
        snapshot.summary.state
    };
    (first..).zip(events).map(note).collect()
}

fn raised(id: &str, kind: &str) -> (&'static str, Value) {
    ("requestRaised", json!({ "requestId": id, "kind": kind, "inputDigest": "d" }))
}

fn settled(id: &str) -> (&'static str, Value) {
    ("requestSettled", json!({ "requestId": id, "outcome": "allowed", "by": "client" }))
}

const WORKING: SessionState = SessionState::Working;
const PERMISSION: SessionState = SessionState::WaitingPermission;
const QUESTION: SessionState = SessionState::WaitingQuestion;

fn turn(name: &'static str) -> (&'static str, Value) {
    let usage = json!({ "inputTokens": 1, "outputTokens": 1, "totalTokens": 2 });
    (name, json!({ "turnNumber": 1, "usage": usage, "prompt": "Fix  the\ntest" }))
}

#[test]
fn a_settled_permission_is_no_longer_waited_for() {
    let mut snapshot = Snapshot::new(summary(SessionState::Idle, 0, 0));
    let events = [
        turn("turnStarted"),
        raised("h", "hook"),
        raised("p", "permission"),
        settled("p"),
        settled("h"),
        turn("turnCompleted"),
    ];
    let expected = [WORKING, WORKING, PERMISSION, WORKING, WORKING, SessionState::Idle];
    assert_eq!(states(&mut snapshot, 1, &events), expected);
    assert_eq!(snapshot.summary.open_requests, 0);
    assert_eq!(snapshot.summary.title.as_deref(), Some("Fix the test"));
    assert_eq!(snapshot.summary.usage.total_tokens, 2);
}

/// An open request outlasts its turn; settling it afterwards leaves the session idle.
#[test]
fn requests_outlast_their_turn() {
    let mut snapshot = Snapshot::new(summary(SessionState::Idle, 0, 0));
    let events =
        [turn("turnStarted"), raised("p", "permission"), turn("turnCompleted"), settled("p")];
    let expected = [WORKING, PERMISSION, PERMISSION, SessionState::Idle];
    assert_eq!(states(&mut snapshot, 1, &events), expected);
}

/// The client attaches while a request waits; reading from the first event shows its kind.
#[test]
fn past_events_show_the_kind_of_open_requests() {
    let past = [turn("turnStarted"), raised("q", "question")];
    let more = [raised("p", "permission"), settled("p"), settled("q")];
    let mut snapshot = Snapshot::new(summary(QUESTION, 1, 2));
    assert_eq!(states(&mut snapshot, 1, &past), [QUESTION, QUESTION]);
    assert_eq!(states(&mut snapshot, 3, &more), [PERMISSION, QUESTION, WORKING]);
    // Without the past events, the state stays as the summary says.
    let mut snapshot = Snapshot::new(summary(QUESTION, 1, 2));
    assert_eq!(states(&mut snapshot, 3, &more[2..]), [WORKING]);
    // A request that was raised and settled in the past is not open.
    let past = [turn("turnStarted"), raised("old", "permission")];
    let mut snapshot = Snapshot::new(summary(QUESTION, 1, 9));
    assert_eq!(states(&mut snapshot, 1, &past), [QUESTION, QUESTION]);
    assert_eq!(states(&mut snapshot, 10, &more[2..]), [WORKING]);
}

#[test]
fn who_stalled_and_speaks_works_again() {
    let mut snapshot = Snapshot::new(summary(SessionState::Stalled, 0, 7));
    let said = [("textChunk", json!({ "content": "hm" }))];
    assert_eq!(states(&mut snapshot, 8, &said), [WORKING]);
}

#[test]
fn what_an_agent_says_of_itself_is_known() {
    let mut snapshot = Snapshot::new(summary(SessionState::Starting, 0, 0));
    let info = json!({ "model": "m", "agentVersion": "1", "nativeSessionId": "n" });
    let events = [
        ("statusChanged", json!({ "status": "ready", "info": info })),
        ("statusChanged", json!({ "status": "session", "message": "n2" })),
    ];
    assert_eq!(states(&mut snapshot, 1, &events), [SessionState::Idle; 2]);
    let SessionSummary { model, agent_version, native_session_id, .. } = snapshot.summary;
    assert_eq!(
        [model, agent_version, native_session_id].map(Option::unwrap),
        ["m".to_owned(), "1".to_owned(), "n2".to_owned()]
    );
}

/// Values of a newer gateway, and a log that was replaced.
#[test]
fn unknown_values_still_end_turns_and_sessions() {
    let mut snapshot = Snapshot::new(summary(SessionState::Idle, 0, 0));
    let events = [
        ("turnStarted", json!({ "turnNumber": 1, "origin": "dream" })),
        raised("r", "riddle"),
        ("requestSettled", json!({ "requestId": "r", "outcome": "guessed", "by": "client" })),
        ("turnFailed", json!({ "turnNumber": 1, "error": "no", "reason": "eclipsed" })),
        ("sessionEnded", json!({ "reason": "eclipsed" })),
    ];
    let expected = [WORKING, WORKING, WORKING, SessionState::Idle, SessionState::Ended];
    assert_eq!(states(&mut snapshot, 1, &events), expected);
    assert_eq!(snapshot.summary.open_requests, 0);
    snapshot.forget(2);
    snapshot.replace_summary(&summary(SessionState::Idle, 0, 3));
    assert_eq!((snapshot.summary.state, snapshot.summary.last_seq), (SessionState::Idle, 3));
}
