//! WebSockets: the unified protocol and JSON-RPC, and how they end.

use serde_json::json;

use crate::shared::Server;

#[test]
fn a_session_is_driven_over_its_socket() {
    let server = Server::start();
    let session = server.session("/say one");
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    let first = socket.frame();
    assert_eq!((&first["seq"], &first["type"]), (&json!(1), &json!("sessionStarted")));
    socket.until(|frame| frame["type"] == "turnCompleted");
    socket.say(&json!({ "id": "p", "command": "prompt", "prompt": "/write a.txt x" }));
    let taken = socket.until(|frame| frame["id"] == "p" && frame.get("type").is_none());
    assert!(taken["reply"]["messageId"].is_string(), "{taken}");
    let raised = socket.until(|frame| frame["type"] == "requestRaised");
    socket.say(&json!({ "id": "s", "command": "settle", "requestId": raised["requestId"],
        "behavior": "allow" }));
    socket.until(|frame| frame["type"] == "turnCompleted");
    socket.text("not json");
    let refused = socket.until(|frame| frame.get("error").is_some());
    assert_eq!(refused["error"]["code"], "invalidJson");
    drop(socket);
    // The session belongs to no client: it continues.
    assert_eq!(server.get(&format!("/v1/sessions/{session}"))["state"], "idle");
}

/// A watcher of a session keeps seeing its events when it ends and another client resumes it.
#[test]
fn a_session_that_is_resumed_is_seen_by_who_watched_it() {
    let server = Server::start();
    let session = server.session("/say one");
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    socket.until(|frame| frame["type"] == "turnCompleted");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    let ended = socket.until(|frame| frame["type"] == "sessionEnded");
    // A watcher that connects after the end waits, too.
    let mut late = server.socket(&format!("/v1/sessions/{session}/ws?after={}", ended["seq"]));
    let again = json!({ "agentType": "demo", "sessionId": session, "prompt": "/say two" });
    server.post("/v1/sessions", &again);
    for socket in [&mut socket, &mut late] {
        let mut next = ended["seq"].as_u64().expect("a number");
        loop {
            let event = socket.frame();
            next += 1;
            assert_eq!(event["seq"], next, "{event}");
            if event["type"] == "turnCompleted" {
                break;
            }
        }
    }
}

#[test]
fn who_attaches_is_told_whether_something_is_missing() {
    let server = Server::start();
    let session = server.session("/say one");
    server.until(&session, "turnCompleted");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    let last = server.until(&session, "sessionEnded").len() as u64;
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws?after={}", last + 10));
    let missing = json!({ "missing": { "from": last + 1, "to": last + 10 } });
    assert_eq!(socket.frame()["error"]["details"], missing);
    for (after, resume) in [(1, json!("exact")), (last + 10, missing)] {
        socket.say(&json!({ "id": after, "command": "attach", "after": after }));
        let reply = socket.until(|frame| frame["id"] == after && frame.get("type").is_none());
        assert_eq!((&reply["reply"]["resume"], &reply["reply"]["id"]), (&resume, &json!(session)));
    }
    let answer = server.ask("GET", &format!("/v1/sessions/{session}/events?after=1"), None);
    assert_eq!(answer.headers["agentwire-resume"], "exact");
    let answer =
        server.ask("GET", &format!("/v1/sessions/{session}/events?after={}", last + 10), None);
    assert_eq!(answer.headers["agentwire-resume"], format!("missing {}-{}", last + 1, last + 10));
}

#[test]
fn json_rpc_runs_a_prompt() {
    let server = Server::start();
    let mut socket = server.socket("/rpc");
    socket.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "run",
        "params": { "agent": "demo", "prompt": "/say hello" } }));
    let reply = socket.until(|frame| frame["id"] == 1);
    assert_eq!(reply["result"]["result"], "hello");
}

#[test]
fn those_who_watch_are_told_when_the_server_stops() {
    let server = Server::start();
    let session = server.session("/hang");
    let mut sockets: Vec<_> =
        (0..20).map(|_| server.socket(&format!("/v1/sessions/{session}/ws"))).collect();
    for socket in &mut sockets {
        socket.until(|frame| frame["type"] == "turnStarted");
    }
    assert_eq!(server.stop(), Some(0));
    for mut socket in sockets {
        while socket.next().is_some() {}
    }
}

/// An event may be many times as long as the agent's line it contains.
#[test]
fn an_event_of_any_length_is_seen() {
    let script = "#!/bin/sh\nhead -c 24000000 /dev/zero | tr '\\0' '\\1'\necho\necho after\ncat > /dev/null\n";
    let server = Server::with_script(script);
    let created = server.post("/v1/sessions", &json!({ "agentType": "claude", "prompt": "x" }));
    let session = created["id"].as_str().expect("an id").to_owned();
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    while socket.next().expect("one more frame").len() < 24_000_000 {}
    while !socket.next().expect("one more frame").contains("after") {}
}

/// The same if another process resumes it.
#[test]
fn a_session_that_another_process_resumes_is_seen_by_who_watched_it() {
    let server = Server::start();
    let session = server.session("/say one");
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    socket.until(|frame| frame["type"] == "turnCompleted");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    let ended = socket.until(|frame| frame["type"] == "sessionEnded");
    let other = server.beside();
    let again = json!({ "agentType": "demo", "sessionId": session, "prompt": "/say two" });
    let mut next = ended["seq"].as_u64().expect("a number");
    // Once it has ended there, it may be resumed here.
    for process in [&other, &server, &other] {
        process.post("/v1/sessions", &again);
        process.until_turn(&session, next);
        process.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
        loop {
            let event = socket.frame();
            next += 1;
            assert_eq!(event["seq"], next, "{event}");
            if event["type"] == "sessionEnded" {
                break;
            }
        }
    }
}

/// A UUID is the same in upper and lower case.
#[test]
fn ids_are_read_alike_on_every_wire() {
    let server = Server::start();
    let session = server.session("/say one");
    let loud = session.to_uppercase();
    assert_eq!(server.get(&format!("/v1/sessions/{loud}"))["id"], session);
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    socket.say(&json!({ "id": "i", "command": "interrupt", "sessionId": loud }));
    let reply = socket.until(|frame| frame["id"] == "i" && frame.get("type").is_none());
    assert!(reply["reply"].is_object(), "{reply}");
    let mut socket = server.socket("/rpc");
    socket.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/interrupt",
        "params": { "sessionId": loud } }));
    let reply = socket.until(|frame| frame["id"] == 1);
    assert!(reply["result"].is_object(), "{reply}");
}
