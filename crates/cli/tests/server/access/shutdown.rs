//! The server stops while everybody is connected.

use std::io::{Read as _, Write as _};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::shared::{PATIENCE, Server, naming};

#[test]
fn everybody_is_told_and_every_agent_ends() {
    let server = Server::start();
    let (data, place) = (server.data(), server.work());
    let running = || naming(&data).len() + naming(&place).len();
    // A process tree that ignores SIGTERM and is partly in its own session. All its processes have the
    // directory in their arguments.
    let deaf = format!("trap '' TERM; while :; do sleep 1; done # {}", place.display());
    let tree = format!("/bash setsid sh -c \"{deaf}\" & {deaf}");
    let created = server.post(
        "/v1/sessions",
        &json!({ "agentType": "demo", "prompt": tree, "config": { "approvalMode": "autoAll" } }),
    );
    let session = created["id"].as_str().expect("an id");
    let stubborn = server.session("/hang");
    server.until(session, "toolStarted");
    server.until(&stubborn, "turnStarted");
    let path = format!("/v1/sessions/{stubborn}");
    let begun = Instant::now();
    while running() < 4 {
        assert!(begun.elapsed() < PATIENCE, "the tree never grows");
    }
    let mut sockets: Vec<_> = (0..30).map(|_| server.socket(&format!("{path}/ws"))).collect();
    sockets.extend((0..10).map(|_| server.socket(&format!("/ws/sessions/{stubborn}"))));
    sockets.extend((0..5).map(|_| server.socket("/rpc")));
    sockets.extend((0..5).map(|_| server.socket("/insights")));
    let ask = |target: &str, more: &str| {
        let mut stream = server.stream();
        let head = format!(
            "GET {target} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n{more}\r\n",
            server.http, server.token
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        stream
    };
    let after = server.get(&path)["lastSeq"].as_u64().expect("a number");
    let stream = "accept: text/event-stream\r\n";
    let mut streams: Vec<_> = (0..20).map(|_| ask(&format!("{path}/events"), stream)).collect();
    let polls = format!("{path}/events?after={after}&wait=60");
    streams.extend((0..15).map(|_| ask(&polls, "")));
    streams.extend((0..15).map(|_| ask("/healthz", "")));
    // All of them are being served.
    for socket in &mut sockets[..30] {
        socket.until(|frame| frame["type"] == "turnStarted");
    }
    for stream in &mut streams[..20] {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a first byte");
    }
    for stream in &mut streams[35..] {
        let mut byte = [0];
        stream.read_exact(&mut byte).expect("a first byte");
    }
    assert_eq!(sockets.len() + streams.len(), 100);
    let readers = std::thread::spawn(move || {
        for socket in &mut sockets {
            let (code, reason) = socket.closed();
            assert_eq!((code, reason.as_str()), (1001, "the server is stopping"));
        }
        for stream in &mut streams {
            stream.set_read_timeout(Some(PATIENCE)).expect("a time limit");
            let mut rest = Vec::new();
            stream.read_to_end(&mut rest).expect("it ends, and is not cut");
        }
    });
    let begun = Instant::now();
    // `stop` also checks that server.json is removed.
    assert_eq!(server.stop(), Some(0));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    readers.join().expect("everyone was notified");
    assert_eq!(running(), 0);
}
