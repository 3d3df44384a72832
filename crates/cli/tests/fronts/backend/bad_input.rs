//! Invalid input gets an error, and the connection and its sessions continue.

use serde_json::{Value, json};

use crate::backend::client::Client;

fn is(error: &Value, id: Option<&str>, code: &str) {
    assert_eq!(
        (&error["type"], error.get("id").and_then(Value::as_str), &error["payload"]["code"]),
        (&json!("error"), id, &json!(code)),
        "{error}"
    );
}

#[test]
fn wrong_input_is_told_and_ends_nothing() {
    let mut client = Client::new();
    let session = client.create("/say one", &json!({}));
    assert_eq!(client.result(), "one");
    client.bytes(b"{not json\n");
    is(&client.next("error"), None, "INVALID_MESSAGE");
    client.bytes(b"\xff\xfe\n\n");
    is(&client.next("error"), None, "INVALID_MESSAGE");
    client.send(&json!({ "type": "session.dance", "id": "a" }));
    is(&client.next("error"), Some("a"), "INVALID_MESSAGE");
    client.send(&json!({ "type": "session.send", "id": "b", "session_id": session, "payload": { "message": 5 } }));
    is(&client.next("error"), Some("b"), "INVALID_MESSAGE");
    client.say("session.send", "c", "no-such-session", &json!({ "message": "hi" }));
    is(&client.next("error"), Some("c"), "SESSION_NOT_FOUND");
    client.say("callback.response", "cb-99", &session, &json!({ "behavior": "allow" }));
    is(&client.next("error"), Some("cb-99"), "CALLBACK_NOT_FOUND");
    client.say("query.call", "d", &session, &json!({ "method": "fly", "args": [] }));
    is(&client.next("error"), Some("d"), "QUERY_METHOD_FAILED");
    client.say("session.send", "s", &session, &json!({ "message": "/say two" }));
    assert_eq!(client.result(), "two");
    client.kill(&session);
    client.finish();
}

#[test]
fn a_session_that_cannot_be_had_is_refused() {
    let mut client = Client::new();
    let mut refused = |payload: Value, code: &str, names: &str| {
        client.send(&json!({ "type": "session.create", "id": "x", "payload": payload }));
        let error = client.next("error");
        is(&error, Some("x"), code);
        let message = error["payload"]["message"].as_str().expect("a text");
        assert!(message.contains(names), "{message}");
    };
    refused(json!({ "prompt": "hi", "cwd": "/no/such" }), "SESSION_CREATE_FAILED", "/no/such");
    refused(json!({ "prompt": "hi", "agent": "codex" }), "SESSION_CREATE_FAILED", "codex");
    refused(
        json!({ "prompt": "hi", "options": { "permission_mode": "sideways" } }),
        "SESSION_CREATE_FAILED",
        "sideways",
    );
    refused(json!({ "prompt": "hi", "options": { "resume": 7 } }), "INVALID_MESSAGE", "resume");
    refused(json!({ "cwd": "/" }), "INVALID_MESSAGE", "prompt");
    client.finish();
}

#[test]
fn an_overlong_line_is_passed_over() {
    let mut client = Client::new();
    let chunk = vec![b'x'; 1 << 20];
    for _ in 0..65 {
        client.bytes(&chunk);
    }
    client.bytes(b"\n");
    let error = client.next("error");
    is(&error, None, "INVALID_MESSAGE");
    assert!(error["payload"]["message"].as_str().expect("a text").contains("68157440"), "{error}");
    let session = client.create("/say on", &json!({}));
    assert_eq!(client.result(), "on");
    client.kill(&session);
    client.finish();
}

#[test]
fn half_a_line_at_the_end_is_a_line() {
    let mut client = Client::new();
    client.bytes(br#"{"type":"session.create","id":"half","payl"#);
    let rest = client.rest();
    let [error] = rest.as_slice() else { panic!("{rest:?}") };
    is(error, None, "INVALID_MESSAGE");
    let mut client = Client::new();
    client.bytes(br#"{"type":"session.kill","id":"whole","session_id":"none"}"#);
    let rest = client.rest();
    let [error] = rest.as_slice() else { panic!("{rest:?}") };
    is(error, Some("whole"), "SESSION_NOT_FOUND");
}
