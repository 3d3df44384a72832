//! Without file descriptors the server refuses connections, and keeps running.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Instant;

use serde_json::json;

use crate::shared::{PATIENCE, Server, read_answer};

const LOWERED: [&str; 4] = ["sh", "-c", "ulimit -n 256; exec \"$@\"", "sh"];

#[test]
fn half_open_connections_keep_nobody_waiting() {
    let server = Server::launched(&LOWERED, &[]);
    let session = server.session("/hang");
    server.until(&session, "turnStarted");
    let head = format!(
        "GET /v1/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
        server.http, server.token
    );
    let mut crowd: Vec<TcpStream> = (0..400).map(|_| server.stream()).collect();
    let mut served = 0;
    // The oldest silent connections have made room for the newest.
    for mut stream in crowd.drain(200..) {
        let _ = stream.write_all(head.as_bytes());
        stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
        let mut first = [0; 12];
        if std::io::Read::read(&mut stream, &mut first).is_ok_and(|count| count == 12) {
            served += usize::from(&first == b"HTTP/1.1 200");
        }
    }
    assert!(served > 0, "nobody is served");
    // Nobody waits because of those that are still connected.
    assert_eq!(server.ask("GET", "/v1/sessions", None).status, 200);
    drop(crowd);
    // The server and its sessions still run, and new sessions start.
    let begun = Instant::now();
    let answer = loop {
        let mut stream = server.stream();
        stream.write_all(head.as_bytes()).expect("it listens");
        let answer = read_answer(stream);
        if answer.status == 200 {
            break answer;
        }
        assert_eq!(answer.code(), "overloaded");
        assert!(begun.elapsed() < PATIENCE, "it never recovers");
    };
    assert_eq!(answer.json()["sessions"][0]["state"], "working");
    let session = server.session("/say hi");
    server.until(&session, "turnCompleted");
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn sessions_beyond_the_descriptors_are_refused_as_overload() {
    let server = Server::launched(&LOWERED, &[]);
    let body = json!({ "agentType": "demo", "prompt": "/hang" });
    let mut started = Vec::new();
    let refused = loop {
        let answer = server.ask("POST", "/v1/sessions", Some(&body));
        match answer.status {
            201 => started.push(answer.json()["id"].as_str().expect("an id").to_owned()),
            _ => break answer,
        }
        assert!(started.len() < 256, "there is no end");
    };
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
    assert!(refused.headers.contains_key("retry-after"));
    assert!(started.len() > 5, "{}", started.len());
    // Running sessions continue: they can be read, interrupted and stopped.
    for id in &started {
        server.until(id, "turnStarted");
    }
    server.post(&format!("/v1/sessions/{}/interrupt", started[0]), &json!({}));
    for id in &started[..3] {
        server.post(&format!("/v1/sessions/{id}/stop"), &json!({}));
    }
    let begun = Instant::now();
    while server.ask("POST", "/v1/sessions", Some(&body)).status != 201 {
        assert!(begun.elapsed() < PATIENCE, "it never recovers");
    }
    assert_eq!(server.stop(), Some(0));
}

/// The limit that we raise for ourselves is not passed to agents: programs that use `select` fail with a
/// higher one.
#[test]
fn agents_get_the_limit_that_we_were_given() {
    let launcher = ["sh", "-c", "ulimit -S -n 200; exec \"$@\"", "sh"];
    let server = Server::launched(&launcher, &[]);
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", server.pid()));
    let own = limits.expect("limits");
    let own = own.lines().find(|line| line.starts_with("Max open files")).expect("a line");
    let soft: u64 = own.split_whitespace().nth(3).and_then(|n| n.parse().ok()).expect("a number");
    assert!(soft > 200, "{own}");
    let body = json!({ "agentType": "demo", "prompt": "/bash ulimit -n",
        "config": { "approvalMode": "autoAll" } });
    let session = server.post("/v1/sessions", &body)["id"].as_str().expect("an id").to_owned();
    let done = server.until(&session, "toolCompleted").pop().expect("an event");
    assert!(done["result"].to_string().contains("200"), "{done}");
}
