//! What screens read: lean events, pages from the end, and one event.

use std::io::Write as _;

use serde_json::{Value, json};

use crate::shared::{Server, read_answer};

/// A session that has ended, and its events as they are in the log.
fn ended(server: &Server, prompt: &str) -> (String, Vec<Value>) {
    let session = server.session(prompt);
    server.until(&session, "turnCompleted");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    let events = server.until(&session, "sessionEnded");
    (session, events)
}

fn without_native(mut event: Value) -> Value {
    event.as_object_mut().expect("an event").remove("native");
    event
}

#[test]
fn lean_events_are_all_events_without_the_agents_lines() {
    let server = Server::start();
    let (session, events) =
        ended(&server, "/think \"native\":[1]\n/say one two\n/read nothing\n/raw not json");
    assert!(events.iter().any(|event| event["native"].is_array()));
    let lean: Vec<_> = events.iter().cloned().map(without_native).collect();
    let path = format!("/v1/sessions/{session}/events");
    assert_eq!(server.get(&format!("{path}?profile=lean&limit=10000"))["events"], json!(lean));
    // Over the socket of many sessions, and of one.
    let mut socket = server.socket("/v1/ws");
    socket.say(&json!({ "id": 1, "command": "attach", "sessionId": session, "profile": "lean" }));
    assert_eq!(socket.frame()["reply"]["id"], session.as_str());
    let told: Vec<_> = lean.iter().map(|_| socket.frame()).collect();
    assert_eq!(told, lean);
    // Each event by its number.
    for event in &events {
        let one = format!("{path}/{}", event["seq"]);
        assert_eq!(&server.get(&one), event);
        assert_eq!(server.get(&format!("{one}?profile=lean")), without_native(event.clone()));
    }
    let other = events.iter().find(|event| event["type"] == "statusChanged").expect("a status");
    let omitted = server.ask("GET", &format!("{path}/{}?profile=core", other["seq"]), None);
    for answer in [
        omitted,
        server.ask("GET", &format!("{path}/{}", events.len() + 1), None),
        server.ask("GET", &format!("{path}/0"), None),
        server.ask("GET", &format!("{path}/x"), None),
    ] {
        assert_eq!((answer.status, answer.code().as_str()), (404, "sessionNotFound"));
    }
}

#[test]
fn pages_from_the_end_have_the_same_events() {
    let server = Server::start();
    let (session, events) =
        ended(&server, "/repeat 300 word \n/blob 70000\n/plan a | b\n/blob 3000000");
    let last = events.len() as u64;
    let path = format!("/v1/sessions/{session}/events");
    for profile in ["full", "lean", "core"] {
        let whole = server.get(&format!("{path}?profile={profile}&limit=10000"));
        for limit in [1, 7, 1000] {
            let (mut found, mut before, mut next) = (Vec::new(), u64::MAX >> 11, last);
            loop {
                let page =
                    server.get(&format!("{path}?before={before}&limit={limit}&profile={profile}"));
                let events = page["events"].as_array().expect("events").clone();
                assert!(events.len() <= limit);
                assert_eq!((&page["next"], &page["last"]), (&json!(next), &json!(last)));
                assert_eq!(page["ended"], next == last);
                let numbers = events.iter().map(|event| event["seq"].as_u64().expect("a number"));
                assert!(numbers.is_sorted(), "a page is in order");
                found.splice(0..0, events);
                let Some(previous) = page["previous"].as_u64() else { break };
                (before, next) = (previous, previous - 1);
            }
            assert_eq!(json!(found), whole["events"], "{profile} {limit}");
        }
    }
    // Between two numbers, before the first event, and from the middle back to the start.
    let seqs = |query: &str| -> Vec<u64> {
        let page = server.get(&format!("{path}?{query}"));
        let events = page["events"].as_array().expect("events").clone();
        events.iter().map(|event| event["seq"].as_u64().expect("a number")).collect()
    };
    assert_eq!(seqs("before=9&after=4&limit=100"), [5, 6, 7, 8]);
    assert_eq!(seqs("before=9&after=4&limit=2"), [7, 8]);
    assert_eq!(seqs("before=4"), [1, 2, 3]);
    for empty in ["before=1", "before=0", "before=5&after=4", "before=5&after=9"] {
        assert_eq!(seqs(empty), [0; 0], "{empty}");
    }
    assert!(server.get(&format!("{path}?before=4"))["previous"].is_null());
    // A page of the usual kind leads back too.
    assert_eq!(server.get(&format!("{path}?after=4&limit=1"))["previous"], 5);
    assert!(server.get(&format!("{path}?limit=1"))["previous"].is_null());
}

#[test]
fn limits_are_clamped_and_bodies_that_are_empty_need_no_type() {
    let server = Server::start();
    let session = server.session("/say hi");
    let count = server.until(&session, "turnCompleted").len();
    let path = format!("/v1/sessions/{session}/events");
    let length = |query: &str| {
        server.get(&format!("{path}?{query}"))["events"].as_array().expect("events").len()
    };
    assert_eq!(length("limit=-5"), 1);
    assert_eq!(length("limit=-99999999999999999999999&before=99"), 1);
    assert!(length("wait=-1") >= count);
    assert_eq!(server.get("/v1/sessions?limit=-1")["sessions"].as_array().map(Vec::len), Some(1));
    for wrong in ["limit=", "limit=-", "limit=x", "wait=1.5", "before=x"] {
        assert_eq!(server.ask("GET", &format!("{path}?{wrong}"), None).status, 400, "{wrong}");
    }
    let mut socket = server.socket("/v1/ws");
    for limit in [json!(-1), json!(0), json!(1), json!(u64::MAX)] {
        socket.say(&json!({ "id": limit, "command": "list", "limit": limit }));
        assert_eq!(socket.frame()["reply"]["sessions"].as_array().map(Vec::len), Some(1));
    }
    // A body of unknown length that turns out to be empty, and one that does not.
    for (body, status) in [("0\r\n\r\n", 200), ("2\r\n{}\r\n0\r\n\r\n", 415)] {
        let mut stream = server.stream();
        let head = format!(
            "POST /v1/sessions/{session}/finish HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: text/plain\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n{body}",
            server.http, server.token
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        assert_eq!(read_answer(stream).status, status, "{body:?}");
    }
    // A denial is accepted as any type, but nothing else is.
    let session = server.session("/write a.txt x");
    let raised = server.until(&session, "requestRaised").pop().expect("a request");
    let id = raised["requestId"].as_str().expect("an id");
    let place = format!("/v1/sessions/{session}/requests/{id}");
    let bearer = format!("Bearer {}", server.token);
    for kind in [None, Some("text/plain")] {
        let mut headers = vec![("authorization", &*bearer)];
        headers.extend(kind.map(|kind| ("content-type", kind)));
        let allowed = server.raw("POST", &place, &headers, br#"{"behavior":"allow"}"#);
        assert_eq!(allowed.status, 415, "{allowed:?}");
    }
    let headers = [("authorization", &*bearer), ("content-type", "text/plain")];
    let denied = server.raw("POST", &place, &headers, br#"{"behavior":"deny"}"#);
    assert_eq!(denied.status, 200, "{denied:?}");
}

#[test]
fn a_session_may_wait_for_its_first_prompt() {
    let server = Server::start();
    for prompt in [json!({}), json!({ "prompt": "" }), json!({ "prompt": null })] {
        let mut body = json!({ "agentType": "demo" });
        body.as_object_mut().expect("it").extend(prompt.as_object().expect("it").clone());
        let created = server.post("/v1/sessions", &body);
        let session = created["id"].as_str().expect("an id").to_owned();
        server.until(&session, "sessionStarted");
        assert_eq!(server.get(&format!("/v1/sessions/{session}"))["turns"], 0);
        let path = format!("/v1/sessions/{session}/prompt");
        server.post(&path, &json!({ "prompt": "/say {turns}" }));
        let events = server.until(&session, "turnCompleted");
        assert!(events.iter().any(|event| event["type"] == "turnStarted"));
        assert_eq!(server.get(&format!("/v1/sessions/{session}"))["title"], "/say {turns}");
        server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    }
    // The same on a line.
    let mut socket = server.socket("/v1/ws");
    socket.say(&json!({ "id": 1, "command": "start", "agentType": "demo", "profile": "lean" }));
    let session = socket.until(|frame| frame["id"] == 1)["reply"]["id"].clone();
    socket.until(|frame| frame["type"] == "sessionStarted");
    socket.say(&json!({ "id": 2, "command": "prompt", "sessionId": session, "prompt": "/say hi" }));
    let done = socket.until(|frame| frame["type"] == "turnCompleted");
    assert_eq!((&done["sessionId"], &done["native"]), (&session, &Value::Null));
}
