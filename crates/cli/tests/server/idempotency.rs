//! L7: a key has one effect, ever, on every front that supports keys.

use std::thread;

use serde_json::{Value, json};

use crate::shared::{Answer, Server};

impl Server {
    fn keyed(&self, path: &str, key: &str, body: &Value) -> Answer {
        let bearer = format!("Bearer {}", self.token);
        let headers = [
            ("authorization", &*bearer),
            ("content-type", "application/json"),
            ("idempotency-key", key),
        ];
        self.raw("POST", path, &headers, body.to_string().as_bytes())
    }

    /// How often the session was started, and how many turns it started.
    fn starts_and_turns(&self, session: &str) -> (usize, usize) {
        let events = self.get(&format!("/v1/sessions/{session}/events?limit=10000"));
        let events = events["events"].as_array().expect("events");
        let count = |kind| events.iter().filter(|event| event["type"] == kind).count();
        (count("sessionStarted"), count("turnStarted"))
    }

    fn idle(&self, session: &str, turns: u64) {
        loop {
            let now = self.get(&format!("/v1/sessions/{session}"));
            if now["state"] == "idle" && now["turns"] == turns {
                break;
            }
        }
    }
}

#[test]
fn a_session_goes_on_once_for_a_key() {
    let server = Server::start();
    let session = server.session("/say one");
    server.idle(&session, 1);
    let body = json!({ "agentType": "demo", "prompt": "/say two", "sessionId": session });
    // At the same time, and one after another.
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let answer = server.keyed("/v1/sessions", "next", &body);
                assert_eq!((answer.status, &answer.json()["id"]), (201, &json!(session)));
            });
        }
    });
    server.idle(&session, 2);
    let repeat = |server: &Server| {
        let answer = server.keyed("/v1/sessions", "next", &body);
        assert_eq!((answer.status, &answer.json()["id"]), (201, &json!(session)));
        answer.json()["state"].clone()
    };
    assert_eq!(repeat(&server), "idle");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    assert_eq!(repeat(&server), "ended");
    assert_eq!(server.starts_and_turns(&session), (1, 2));
    let server = server.again();
    assert_eq!(repeat(&server), "ended");
    // Another key resumes it, and is then used, too.
    assert_eq!(server.keyed("/v1/sessions", "resumed", &body).status, 201);
    server.idle(&session, 3);
    assert_eq!(repeat(&server), "idle");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    assert_eq!(server.keyed("/v1/sessions", "resumed", &body).json()["state"], "ended");
    assert_eq!(server.starts_and_turns(&session), (2, 3));
}

/// A start that only changes the session counts, too.
#[test]
fn a_key_without_a_prompt_counts_once() {
    let server = Server::start();
    let session = server.session("/say one");
    server.idle(&session, 1);
    let body = json!({
        "agentType": "demo", "prompt": "", "sessionId": session, "config": { "model": "other" }
    });
    assert_eq!(server.keyed("/v1/sessions", "change", &body).json()["model"], "other");
    let path = format!("/v1/sessions/{session}");
    let back = server.ask("PATCH", &path, Some(&json!({ "model": "third" })));
    assert_eq!(back.status, 200);
    assert_eq!(server.keyed("/v1/sessions", "change", &body).json()["model"], "third");
    server.post(&format!("{path}/stop"), &json!({}));
    assert_eq!(server.keyed("/v1/sessions", "change", &body).json()["state"], "ended");
    assert_eq!(server.starts_and_turns(&session), (1, 1));
}

#[test]
fn a_key_of_a_prompt_starts_nothing_later() {
    let server = Server::start();
    let session = server.session("/say one");
    server.idle(&session, 1);
    let path = format!("/v1/sessions/{session}/prompt");
    let prompt = json!({ "prompt": "/say two" });
    assert_eq!(server.keyed(&path, "p", &prompt).status, 202);
    server.idle(&session, 2);
    let body = json!({ "agentType": "demo", "prompt": "/say two", "sessionId": session });
    assert_eq!(server.keyed("/v1/sessions", "p", &body).status, 201);
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    assert_eq!(server.keyed("/v1/sessions", "p", &body).json()["state"], "ended");
    assert_eq!(server.keyed(&path, "p", &prompt).json()["repeated"], true);
    assert_eq!(server.starts_and_turns(&session), (1, 2));
}

#[test]
fn a_key_on_a_line_counts_once_as_well() {
    let server = Server::start();
    let session = server.session("/say one");
    server.idle(&session, 1);
    let start = json!({ "id": "s", "command": "start", "agentType": "demo", "prompt": "/say two",
        "sessionId": session, "idempotencyKey": "line" });
    let send = || {
        let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
        socket.say(&start);
        socket.until(|frame| frame["id"] == "s" && frame.get("type").is_none())
    };
    assert_eq!(send()["reply"]["id"], json!(session));
    server.idle(&session, 2);
    assert_eq!(send()["reply"]["state"], "idle");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    assert_eq!(send()["reply"]["state"], "ended");
    assert_eq!(server.starts_and_turns(&session), (1, 2));
}

/// The same key with other content is an error of the client, on every front that supports keys.
#[test]
fn a_key_is_for_one_content() {
    let server = Server::start();
    let start = |text: &str| json!({ "agentType": "demo", "prompt": text });
    let first = server.keyed("/v1/sessions", "k", &start("/say one"));
    assert_eq!(first.status, 201);
    let session = first.json()["id"].as_str().expect("an id").to_owned();
    let conflict = |answer: Answer| {
        assert_eq!((answer.status, &answer.json()["code"]), (409, &json!("conflict")));
    };
    conflict(server.keyed("/v1/sessions", "k", &start("/say two")));
    let prompt = format!("/v1/sessions/{session}/prompt");
    server.idle(&session, 1);

    let say = |text: &str| server.keyed(&prompt, "p", &json!({ "prompt": text }));
    assert_eq!(say("/say two").json()["repeated"], json!(null));
    conflict(say("/say three"));
    assert_eq!(say("/say two").json()["repeated"], true);
    server.idle(&session, 2);

    // A token has one set of keys on all wires.
    let line = |text: &str| {
        let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
        let start = json!({ "id": "s", "command": "start", "agentType": "demo", "prompt": text,
            "sessionId": session, "idempotencyKey": "p" });
        socket.say(&start);
        socket.until(|frame| frame["id"] == "s" && frame.get("type").is_none())
    };
    assert_eq!(line("/say two")["reply"]["id"], json!(session));
    assert_eq!(line("/say three")["error"]["code"], "conflict");
    assert_eq!(server.starts_and_turns(&session), (1, 2));

    // A start that continues a session is a prompt under the same key.
    let go_on = json!({ "agentType": "demo", "sessionId": session, "prompt": "/say four" });
    assert_eq!(server.keyed("/v1/sessions", "g", &go_on).status, 201);
    server.idle(&session, 3);
    let say = |text: &str| server.keyed(&prompt, "g", &json!({ "prompt": text }));
    conflict(say("/say five"));
    assert_eq!(say("/say four").json()["repeated"], true);
    assert_eq!(server.starts_and_turns(&session), (1, 3));

    let board = |text: &str| {
        server.keyed("/api/sessions", "k", &json!({ "agentId": "demo", "prompt": text }))
    };
    let first = board("/say one");
    assert_eq!(first.status, 200);
    conflict(board("/say two"));
    assert_eq!(board("/say one").json()["id"], first.json()["id"]);
}
