//! Agents that never answer: only the client that asked waits.

use std::io::Write as _;

use serde_json::json;

use crate::load::{claude, narrow};
use crate::shared::Server;

/// Takes the whole work budget of the smallest setting.
const MESSAGE: usize = 8 << 20;

/// The longest body of a query.
const QUERY: usize = (1 << 20) - 1024;

/// Asserts that a large prompt of another client is accepted at the first attempt.
fn has_room(server: &Server, session: &str) {
    let prompt = json!({ "prompt": format!("/say {}", "a".repeat(2 << 20)) });
    let answer = server.ask("POST", &format!("/v1/sessions/{session}/prompt"), Some(&prompt));
    assert_eq!(answer.status, 202, "{}", answer.code());
}

#[test]
fn a_large_question_that_is_never_answered_holds_no_share() {
    let server = narrow("#!/bin/sh\nexec cat > /dev/null\n");
    let other = server.session("/say ready");
    server.until(&other, "turnCompleted");
    let session = claude(&server);
    let mut sockets = Vec::new();
    for _ in 0..2 {
        let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
        let args = [json!("a".repeat(MESSAGE))];
        let question =
            json!({ "id": 1, "command": "query", "method": "sideQuestion", "args": args });
        socket.say(&question);
        // Commands keep their order: the session has accepted the query before this.
        socket.say(&json!({ "id": 2, "command": "interrupt" }));
        let first = socket.until(|frame| frame["id"] == 1 || frame["id"] == 2);
        assert_eq!(first["id"], 2, "{first}");
        sockets.push(socket);
        has_room(&server, &other);
    }
    let body = json!({ "method": "sideQuestion", "args": ["a".repeat(QUERY)] }).to_string();
    let mut calls = Vec::new();
    for _ in 0..12 {
        let mut stream = server.stream();
        let head = format!(
            "POST /v1/sessions/{session}/query HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n",
            server.http,
            server.token,
            body.len()
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        stream.write_all(body.as_bytes()).expect("it is read");
        calls.push(stream);
    }
    has_room(&server, &other);
    drop((sockets, calls));
}
