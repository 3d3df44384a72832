//! Many clients, and clients that do not read: there is a limit, and commands that stop an agent get
//! through.

use std::io::{Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use serde_json::json;

use crate::operations::Figures;
use crate::shared::{PATIENCE, Server, read_answer};

#[test]
fn beyond_the_limit_clients_are_told_to_come_back() {
    let server = Server::with(&["--max-connections", "8"]);
    let session = server.session("/hang");
    let path = format!("/v1/sessions/{session}/ws");
    // A WebSocket counts as a client while it is open.
    let begun = Instant::now();
    let mut sockets = Vec::new();
    while sockets.len() < 8 {
        let bearer = format!("Bearer {}", server.token);
        // An earlier connection may not be closed yet.
        match server.socket_at(&server.http, &path, &[("authorization", &bearer)]) {
            Ok(socket) => sockets.push(socket),
            Err(status) => assert_eq!(status, 503),
        }
        assert!(begun.elapsed() < PATIENCE, "there is never room");
    }
    for socket in &mut sockets {
        socket.until(|frame| frame["type"] == "turnStarted");
    }
    for _ in 0..20 {
        let mut stream = server.stream();
        let head = format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", server.http);
        let _ = stream.write_all(head.as_bytes());
        let answer = read_answer(stream);
        assert_eq!((answer.status, answer.code().as_str()), (503, "overloaded"));
        assert!(answer.headers["retry-after"].parse::<u32>().is_ok_and(|seconds| seconds > 0));
    }
    // Connected clients are still served, and their places become free again.
    sockets[0].say(&json!({ "id": 1, "command": "interrupt" }));
    sockets[0].until(|frame| frame["id"] == 1);
    drop(sockets);
    loop {
        let mut stream = server.stream();
        let head = format!(
            "GET /v1/sessions HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\r\n",
            server.http, server.token
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        if read_answer(stream).status == 200 {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "places are never free again");
    }
}

/// Connections without a token take no places from those with one, however many there are: the oldest is
/// closed first.
#[test]
fn strangers_lock_nobody_out() {
    let server = Server::with(&["--max-connections", "16"]);
    let session = server.session("/hang");
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    socket.until(|frame| frame["type"] == "turnStarted");
    let mut crowd = Vec::new();
    for number in 0..100 {
        let mut stream = server.stream();
        // Some send nothing, some send half a request, some request what needs no token and stay.
        let said = match number % 3 {
            0 => String::new(),
            1 => "GET /v1/sessions HTTP/1.1\r\nhost:".to_owned(),
            _ => format!("GET /healthz HTTP/1.1\r\nhost: {}\r\n\r\n", server.http),
        };
        let _ = stream.write_all(said.as_bytes());
        crowd.push(stream);
        if number % 10 == 0 {
            assert_eq!(server.ask("GET", "/v1/sessions", None).status, 200, "{number}");
        }
    }
    // The oldest is closed; the one with a token is not.
    let mut rest = Vec::new();
    let _ = crowd[0].read_to_end(&mut rest);
    assert!(rest.is_empty());
    socket.say(&json!({ "id": 1, "command": "interrupt" }));
    socket.until(|frame| frame["id"] == 1);
}

/// Sets the flag on drop, so also when a test fails.
struct Enough<'a>(&'a AtomicBool);

impl Drop for Enough<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// However many commands wait for a session, an interrupt and a denial get through.
#[test]
fn what_stops_an_agent_is_never_behind_work() {
    let server = Server::start();
    let session = server.session("/write a.txt x\n/hang");
    let request = server.until(&session, "requestRaised").pop().expect("it")["requestId"].clone();
    let place = |what: &str| format!("/v1/sessions/{session}{what}");
    let is_enough = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..16 {
            let (server, place, is_enough) = (&server, &place, &is_enough);
            scope.spawn(move || {
                let mut socket = server.socket(&place("/ws"));
                while !is_enough.load(Ordering::Relaxed) {
                    for number in 0..40 {
                        socket.say(&json!({ "id": format!("{client}/{number}"),
                            "command": "prompt", "prompt": format!("/say {}", "x".repeat(10_000)) }));
                    }
                    let last = format!("{client}/39");
                    socket.until(|frame| frame["id"] == *last && frame.get("type").is_none());
                }
            });
        }
        // Stops the flood in any case.
        let _enough = Enough(&is_enough);
        let begun = Instant::now();
        while Figures::of(&server).get("agentwire_commands_waiting") < 8.0 {
            assert!(begun.elapsed() < PATIENCE, "nothing piles up");
        }
        let deny = json!({ "behavior": "deny" });
        let denied = format!("/requests/{}", request.as_str().expect("an id"));
        assert_eq!(server.ask("POST", &place(&denied), Some(&deny)).status, 200);
        server.until(&session, "requestSettled");
        assert_eq!(server.ask("POST", &place("/interrupt"), Some(&json!({}))).status, 200);
        server.until(&session, "turnFailed");
    });
    assert_eq!(server.ask("POST", &place("/stop"), Some(&json!({}))).status, 200);
}

/// Clients that never read or that disappear slow nobody down.
#[test]
fn clients_that_do_not_read_slow_nobody() {
    let server = Server::start();
    // More than all buffers on the way hold.
    let session = server.session(&["/blob 1000000"; 12].join("\n"));
    let path = format!("/v1/sessions/{session}");
    let stuck: Vec<_> = (0..10).map(|_| server.socket(&format!("{path}/ws"))).collect();
    let streams: Vec<_> = (0..10)
        .map(|_| {
            let mut stream = server.stream();
            let head = format!(
                "GET {path}/events HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
                 accept: text/event-stream\r\n\r\n",
                server.http, server.token
            );
            stream.write_all(head.as_bytes()).expect("it listens");
            stream
        })
        .collect();
    let events = server.until(&session, "turnCompleted");
    for (number, event) in (1_u64..).zip(&events) {
        assert_eq!(event["seq"], number);
    }
    // Close with a reset.
    for stream in &streams {
        rustix::net::sockopt::set_socket_linger(stream, Some(std::time::Duration::ZERO))
            .expect("an option");
    }
    drop((stuck, streams));
    let mut half = server.stream();
    half.write_all(b"GET /healthz HTTP/1.1\r\n").expect("it listens");
    half.shutdown(std::net::Shutdown::Write).expect("it is half open");
    let mut rest = Vec::new();
    let _ = half.read_to_end(&mut rest);
    assert_eq!(server.get(&path)["state"], "idle");
    assert_eq!(server.stop(), Some(0));
}
