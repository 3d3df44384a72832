//! A client that connects again: its sessions go on by their ids.

use agentwire_dialects::front::Ask;
use agentwire_protocol::command::Behavior;
use agentwire_protocol::{Command, ErrorCode};
use serde_json::{Value, json};

use crate::page::{Page, SESSION};

fn named(more: Value) -> Value {
    let mut payload = json!({ "session_id": SESSION });
    payload.as_object_mut().expect("an object").extend(more.as_object().expect("more").clone());
    payload
}

/// What a turn that asks for a permission left in the log: its number of events.
fn history(page: &mut Page) {
    page.event(json!({ "type": "sessionStarted", "agentType": "demo" }));
    page.event(json!({ "type": "turnStarted", "turnNumber": 1 }));
    page.event(json!({ "type": "textChunk", "content": "seen before", "isComplete": true }));
    page.event(json!({
        "type": "requestRaised", "requestId": "old", "kind": "permission", "toolName": "Write",
        "input": { "file_path": "/w/a" }, "inputDigest": "d",
    }));
    page.event(json!({
        "type": "requestSettled", "requestId": "old", "outcome": "allowed", "by": "client",
    }));
    page.event(json!({
        "type": "requestRaised", "requestId": "open", "kind": "permission", "toolName": "Write",
        "input": { "file_path": "/w/b" }, "inputDigest": "d",
    }));
}

const LAST: u64 = 6;

fn find(page: &mut Page) -> agentwire_protocol::Call {
    let (call, ask) = page.ask();
    assert!(matches!(&ask, Ask::Own(id) if id.as_str() == SESSION), "{ask:?}");
    call
}

#[test]
fn an_open_permission_is_shown_again_and_can_be_answered() {
    for approved in [true, false] {
        let mut page = Page::new();
        let answer = json!({ "permission_id": "open", "approved": approved });
        page.say("permission.response", named(answer));
        let call = find(&mut page);
        page.earlier(call, json!({ "lastSeq": LAST }));
        assert!(page.followed);
        assert_eq!(page.followed_after, 0);
        history(&mut page);
        // Nothing that was seen before is said again, but for what is open.
        let said = page.said();
        assert_eq!(said.last().expect("a message")["type"], "permission.request", "{said:?}");
        assert_eq!(said.last().expect("a message")["payload"]["permission_id"], "open");
        assert!(said.iter().all(|frame| frame["type"] != "agent.output"), "{said:?}");
        let (_, command) = page.command();
        let wanted = if approved { Behavior::Allow } else { Behavior::Deny };
        assert!(
            matches!(&command, Command::Settle(it) if it.request_id.as_str() == "open"
                && it.behavior == Some(wanted)),
            "{command:?}"
        );
        page.is_quiet();
        // From here on it is shown as it happens.
        page.event(json!({ "type": "textChunk", "content": "new", "isComplete": true }));
        assert!(page.types().contains(&"agent.output".to_owned()));
    }
}

#[test]
fn input_goes_on_with_the_session() {
    let mut page = Page::new();
    page.say("user.input", named(json!({ "agent_id": null, "text": "one" })));
    page.say("user.input", named(json!({ "agent_id": null, "text": "two" })));
    let call = find(&mut page);
    page.is_quiet();
    page.earlier(call, json!({ "lastSeq": 2 }));
    page.event(json!({ "type": "sessionStarted", "agentType": "demo" }));
    page.is_quiet();
    page.event(json!({ "type": "turnStarted", "turnNumber": 1 }));
    for text in ["one", "two"] {
        assert!(matches!(page.command().1, Command::Prompt(prompt) if prompt.text == text));
    }
}

/// What stops a session waits for nothing, and is not refused for its form.
#[test]
fn a_session_is_stopped_before_its_events_are_read() {
    for (kind, wanted) in [
        ("session.kill", Command::Stop),
        ("session.interrupt", Command::Interrupt { cancel_queued: false }),
    ] {
        let mut page = Page::new();
        page.say(kind, named(json!({ "reason": "bored", "force": true })));
        let call = find(&mut page);
        page.earlier(call, json!({ "lastSeq": 100_000 }));
        assert_eq!(page.command().1, wanted);
        page.is_quiet();
    }
}

#[test]
fn a_session_of_another_client_is_not_found() {
    for kind in ["user.input", "session.kill", "session.interrupt", "permission.response"] {
        let mut page = Page::new();
        let more = match kind {
            "user.input" => json!({ "text": "x" }),
            "permission.response" => json!({ "permission_id": "p", "approved": false }),
            _ => json!({}),
        };
        page.say(kind, named(more));
        let call = find(&mut page);
        page.refuse(call, ErrorCode::SessionNotFound);
        assert_eq!(page.error(), "SESSION_NOT_FOUND", "{kind}");
        page.is_quiet();
    }
}

#[test]
fn an_approval_with_an_unknown_field_is_refused_and_a_denial_is_not() {
    let mut page = Page::running();
    page.event(json!({
        "type": "requestRaised", "requestId": "r", "kind": "permission", "toolName": "Write",
        "input": { "file_path": "/w/a" }, "inputDigest": "d",
    }));
    page.pause();
    page.said();
    let answer = |approved: bool| {
        named(json!({ "permission_id": "r", "approved": approved, "updated_input": {} }))
    };
    page.say("permission.response", answer(true));
    assert_eq!(page.error(), "INVALID_MESSAGE");
    page.is_quiet();
    page.say("permission.response", answer(false));
    assert!(matches!(page.command().1, Command::Settle(it) if it.behavior == Some(Behavior::Deny)));
}
