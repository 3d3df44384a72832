//! Malformed input gets an answer with a code and a sentence, or a close with a reason: never a 500, a hang
//! or a crash.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::shared::Server;

fn is_refusal(answer: &[u8]) -> bool {
    answer.is_empty() || answer.starts_with(b"HTTP/1.1 4") || answer.starts_with(b"HTTP/1.0 4")
}

/// Requests that are not HTTP, or strange HTTP.
#[test]
fn strange_requests_are_refused() {
    let server = Server::start();
    let own = format!("host: {}\r\nauthorization: Bearer {}\r\n", server.http, server.token);
    let end = "connection: close\r\n\r\n";
    let whole = |line: &str, more: &str| format!("{line}\r\n{own}{more}{end}").into_bytes();
    let mut strange: Vec<Vec<u8>> = vec![
        b"\r\n\r\n".to_vec(),
        b"GET\r\n\r\n".to_vec(),
        b"GET /\r\n\r\n".to_vec(),
        b"GET / HTTP/9.9\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1 extra\r\n\r\n".to_vec(),
        b"get  /  http/1.1\r\n\r\n".to_vec(),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n".to_vec(),
        b"\0\0\0\0\0\0\0\0\r\n\r\n".to_vec(),
        b"{\"jsonrpc\":\"2.0\"}\r\n\r\n".to_vec(),
        b"GET / HTTP/1.1\nhost: x\n\n".to_vec(),
        b"\xff\xfe GET / HTTP/1.1\r\n\r\n".to_vec(),
        whole("GET /v1/sessions HTTP/1.1", "bad header\r\n"),
        whole("GET /v1/sessions HTTP/1.1", ": empty\r\n"),
        whole("GET /v1/sessions HTTP/1.1", "x\0y: z\r\n"),
        whole("GET /v1/sessions HTTP/1.1", "x: \u{0}\r\n"),
        whole("POST /v1/sessions HTTP/1.1", "content-length: x\r\n"),
        whole("POST /v1/sessions HTTP/1.1", "content-length: -1\r\n"),
        whole("POST /v1/sessions HTTP/1.1", "content-length: 99999999999999999999\r\n"),
        whole("POST /v1/sessions HTTP/1.1", "content-length: 5\r\ncontent-length: 6\r\n"),
        whole("POST /v1/sessions HTTP/1.1", "transfer-encoding: gzip\r\n"),
        whole("POST /v1/sessions HTTP/1.1", "transfer-encoding: chunked, identity\r\n"),
        whole("CONNECT example.org:443 HTTP/1.1", ""),
        whole("OPTIONS * HTTP/1.1", ""),
        whole("GET /v1/sessions/%00 HTTP/1.1", ""),
        whole("GET /v1/sessions/%ff%fe HTTP/1.1", ""),
        whole("GET /v1/sessions/%zz HTTP/1.1", ""),
        whole("GET /v1/../../etc/passwd HTTP/1.1", ""),
        whole("GET /v1/sessions/..%2f..%2fetc%2fpasswd HTTP/1.1", ""),
        whole("GET /v1/sessions/\u{202e} HTTP/1.1", ""),
        whole("GET /v1/sessions?limit=\u{ff} HTTP/1.1", ""),
    ];
    let json = "content-type: application/json\r\n";
    let chunked = format!("{json}transfer-encoding: chunked\r\n");
    for chunks in ["zz\r\n{}\r\n0\r\n\r\n", "-1\r\n{}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n{}"] {
        let head = whole("POST /v1/sessions HTTP/1.1", &chunked);
        strange.push([&head, chunks.as_bytes()].concat());
    }
    for bytes in &strange {
        let mut stream = server.stream();
        let _ = stream.write_all(bytes);
        let _ = stream.shutdown(std::net::Shutdown::Write);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        let (asked, told) = (String::from_utf8_lossy(bytes), String::from_utf8_lossy(&answer));
        assert!(is_refusal(&answer), "{asked:?} {told:?}");
    }
    assert_eq!(server.get("/v1/sessions")["sessions"], json!([]));
}

/// Invalid ids, offsets, queries and bodies.
#[test]
fn wrong_values_are_refused_with_a_code_and_a_sentence() {
    let server = Server::start();
    let session = server.session("/say hi");
    server.until(&session, "turnCompleted");
    let at = |what: &str| format!("/v1/sessions/{session}{what}");
    let none = "00000000-0000-4000-8000-000000000000";
    let mut gets: Vec<String> = vec![
        "/v1/sessions?limit=x".into(),
        "/v1/sessions?limit=1&limit=2".into(),
        "/v1/sessions?after=x".into(),
        format!("/v1/sessions?after={none}"),
        "/v1/sessions?live=maybe".into(),
        "/v1/requests?state=closed".into(),
        "/v1/requests?sessionId=x".into(),
        format!("/v1/requests?sessionId={none}"),
        at("/events?after=-1"),
        at("/events?after=1.5"),
        at("/events?after=18446744073709551616"),
        at("/events?limit="),
        at("/events?profile=none"),
        at("/ws?after=x"),
        at("/ws?profile=x"),
        at("/ws"),
        at("/requests/none"),
        format!("/v1/sessions/{none}"),
        format!("/v1/sessions/{none}/events"),
        format!("/api/sessions/{session}/events?offset=-1"),
        format!("/api/sessions/{none}"),
        "/rpc".into(),
        "/insights".into(),
    ];
    for id in
        ["x", "1", "null", "..", "%2e%2e", "%20", "%F0%9F%A6%80", "'%20OR%201=1", &"9".repeat(4000)]
    {
        gets.push(format!("/v1/sessions/{id}"));
        gets.push(format!("/api/sessions/{id}"));
    }
    for path in gets {
        let answer = server.ask("GET", &path, None);
        assert!((400..500).contains(&answer.status), "{path} {answer:?}");
        answer.code();
    }
    let create = |body: Value| ("POST", "/v1/sessions".to_owned(), body.to_string());
    let bodies: Vec<(&str, String, String)> = vec![
        ("POST", "/v1/sessions".into(), String::new()),
        ("POST", "/v1/sessions".into(), "{".into()),
        ("POST", "/v1/sessions".into(), "[]".into()),
        ("POST", "/v1/sessions".into(), "null".into()),
        ("POST", "/v1/sessions".into(), "\"x\"".into()),
        ("POST", "/v1/sessions".into(), "{} {}".into()),
        ("POST", "/v1/sessions".into(), "{\"agentType\":\"demo\",\"prompt\":\"\\ud83d\"}".into()),
        ("POST", "/v1/sessions".into(), "[".repeat(100_000)),
        (
            "POST",
            "/v1/sessions".into(),
            format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000)),
        ),
        create(json!({})),
        create(json!({ "agentType": "nobody", "prompt": "x" })),
        create(json!({ "agentType": "demo", "prompt": 1 })),
        create(json!({ "agentType": "demo", "prompt": "x", "extra": 1 })),
        create(json!({ "agentType": "demo", "prompt": "x", "sessionId": "none" })),
        create(json!({ "agentType": "demo", "prompt": "x", "sessionId": none })),
        create(json!({ "agentType": "demo", "prompt": "x", "config": [] })),
        create(json!({ "agentType": "demo", "prompt": "x", "config": { "maxTurns": -1 } })),
        create(json!({ "agentType": "demo", "prompt": "x", "config": { "approvalMode": "all" } })),
        create(json!({ "agentType": "demo", "prompt": "x",
            "config": { "workingDirectory": "/nowhere/at/all" } })),
        ("POST", "/api/sessions".into(), json!({ "agentId": "nobody", "prompt": "x" }).to_string()),
        ("POST", "/api/sessions".into(), json!({ "agentId": "demo", "prompt": "" }).to_string()),
        ("POST", "/api/sessions".into(), "{".into()),
        ("PATCH", at(""), json!({ "approvalMode": "all" }).to_string()),
        ("PATCH", at(""), json!({ "unknown": 1 }).to_string()),
        ("PATCH", at(""), "x".into()),
        ("POST", at("/prompt"), "{}".into()),
        ("POST", at("/prompt"), json!({ "prompt": "" }).to_string()),
        ("POST", at("/prompt"), json!({ "prompt": "x", "images": [{}] }).to_string()),
        ("POST", at("/query"), "{}".into()),
        ("POST", at("/query"), json!({ "method": 1 }).to_string()),
        ("POST", at("/requests/none"), json!({ "behavior": "allow" }).to_string()),
        ("POST", at("/requests/none"), json!({ "behavior": "maybe" }).to_string()),
        (
            "POST",
            at("/requests/none"),
            json!({ "requestId": "other", "behavior": "deny" }).to_string(),
        ),
        ("POST", format!("/v1/sessions/{none}/prompt"), json!({ "prompt": "x" }).to_string()),
        ("POST", format!("/v1/sessions/{none}/stop"), "{}".into()),
        ("POST", format!("/v1/sessions/{none}/interrupt"), "{}".into()),
        ("DELETE", format!("/v1/sessions/{none}"), String::new()),
    ];
    let bearer = format!("Bearer {}", server.token);
    let headers = [("authorization", &*bearer), ("content-type", "application/json")];
    for (method, path, body) in bodies {
        let answer = server.raw(method, &path, &headers, body.as_bytes());
        let shown = &body[..body.len().min(80)];
        assert!((400..500).contains(&answer.status), "{method} {path} {shown} {answer:?}");
        answer.code();
    }
    // Bytes that are not UTF-8.
    let answer = server.raw("POST", "/v1/sessions", &headers, b"{\"prompt\":\"\xff\"}");
    assert_eq!((answer.status, answer.code().as_str()), (400, "invalidJson"));
    for key in ["", &"k".repeat(256), "\u{e9}"] {
        let headers = [headers[0], headers[1], ("idempotency-key", key)];
        let body = json!({ "agentType": "demo", "prompt": "/say x" }).to_string();
        let answer = server.raw("POST", "/v1/sessions", &headers, body.as_bytes());
        assert_eq!(answer.status, 400, "{key:?} {answer:?}");
    }
    let last =
        [("authorization", &*bearer), ("accept", "text/event-stream"), ("last-event-id", "x")];
    assert_eq!(server.raw("GET", &at("/events"), &last, b"").status, 400);
    assert_eq!(server.get("/v1/sessions")["sessions"].as_array().map(Vec::len), Some(1));
}

/// Invalid frames are answered, and the socket stays open.
#[test]
fn wrong_frames_are_answered_and_the_socket_goes_on() {
    let server = Server::start();
    let session = server.session("/say hi");
    server.until(&session, "turnCompleted");
    let frames = [
        "",
        " ",
        "x",
        "{",
        "[]",
        "null",
        "1",
        "\"x\"",
        "{}",
        "{\"id\":1}",
        "{\"command\":1}",
        "{\"id\":1,\"command\":\"none\"}",
        "{\"id\":1,\"command\":\"prompt\"}",
        "{\"id\":{},\"command\":\"prompt\",\"prompt\":\"x\"}",
        "{\"id\":1,\"command\":\"prompt\",\"sessionId\":\"x\",\"prompt\":\"x\"}",
        "{\"id\":1,\"command\":\"settle\"}",
        "{\"id\":1,\"command\":\"attach\",\"after\":-1}",
        "{\"id\":1,\"command\":\"start\",\"agentType\":\"nobody\",\"prompt\":\"x\"}",
        "{\"jsonrpc\":\"2.0\"}",
        "{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"run\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"none\"}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"run\",\"params\":[]}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"session/events\",\"params\":{\"sessionId\":\"x\"}}",
        "{\"type\":\"none\"}",
        "{\"type\":\"session.create\"}",
        "{\"type\":\"session.create\",\"payload\":{}}",
        "{\"type\":\"user.input\",\"payload\":{\"session_id\":\"x\",\"text\":\"x\"}}",
        "\u{0}",
        "{\"id\":1,\"command\":\"prompt\",\"prompt\":\"\\ud83d\"}",
    ];
    let bearer = format!("Bearer {}", server.token);
    let paths = [
        (&server.http, format!("/v1/sessions/{session}/ws")),
        (&server.http, "/rpc".to_owned()),
        (&server.insights, "/".to_owned()),
    ];
    for (address, path) in &paths {
        let headers = [("authorization", &*bearer)];
        let mut socket = server.socket_at(address, path, &headers).expect("it opens");
        for frame in frames {
            socket.text(frame);
        }
        socket.text(&"[".repeat(200_000));
        // The last message is answered after all of them.
        let (last, is_answer): (Value, fn(&Value) -> bool) = match path.as_str() {
            "/rpc" => {
                (json!({ "jsonrpc": "2.0", "id": "last", "method": "session/list" }), |frame| {
                    frame["id"] == "last" && frame.get("result").is_some()
                })
            }
            "/" => {
                (json!({ "type": "session.kill", "payload": { "session_id": "last" } }), |frame| {
                    frame["type"] == "error" && frame.to_string().contains("last")
                })
            }
            _ => (json!({ "id": "last", "command": "configure", "model": "x" }), |frame| {
                frame["id"] == "last" && frame.get("type").is_none()
            }),
        };
        socket.say(&last);
        socket.until(is_answer);
    }
    assert_eq!(server.get("/v1/sessions")["sessions"].as_array().map(Vec::len), Some(1));
}
