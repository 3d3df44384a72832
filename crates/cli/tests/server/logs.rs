//! What the server logs to stderr.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::shared::{Server, read_answer};

fn lines(said: &str) -> Vec<Value> {
    said.lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}

#[test]
fn a_log_of_json_tells_what_happened_and_no_secret() {
    let server = Server::with(&["--log-level", "trace", "--log-format", "json"]);
    let session = server.session("/bash true");
    let request = server.until(&session, "requestRaised").pop().expect("a request");
    let id = request["requestId"].as_str().expect("an id").to_owned();
    server.post(&format!("/v1/sessions/{session}/requests/{id}"), &json!({ "behavior": "deny" }));
    server.until(&session, "turnCompleted");
    let wrong = "a-token-that-is-not-known";
    assert_eq!(server.ask_as(wrong, "GET", "/v1/status", None).status, 401);
    let foreign = [("host", "evil.example"), ("authorization", "Bearer x")];
    assert_eq!(server.raw("GET", "/v1/status", &foreign, b"").status, 403);
    let ticket = server.post("/v1/tickets", &json!({}));
    let ticket = ticket["ticket"].as_str().expect("a ticket").to_owned();
    let named = format!("agentwire, ticket.{ticket}");
    let headers = [("sec-websocket-protocol", named.as_str())];
    drop(server.socket_at(&server.http, "/rpc", &headers).expect("it opens"));
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    // Over a WebSocket, too.
    let other = server.session("/bash true");
    let mut socket = server.socket(&format!("/v1/sessions/{other}/ws"));
    let asked = socket.until(|frame| frame["type"] == "requestRaised")["requestId"].clone();
    socket.say(&json!({ "id": 1, "command": "settle", "requestId": asked, "behavior": "allow" }));
    socket.until(|frame| frame["type"] == "requestSettled");
    let token = server.token.clone();
    let (code, said) = server.stop_and_hear();
    assert_eq!(code, Some(0));
    for secret in [token.as_str(), wrong, &ticket] {
        assert!(!said.contains(secret), "{said}");
    }
    let told = lines(&said);
    for line in told.iter().filter(|line| line["ready"] != true) {
        for field in ["timestamp", "level", "target", "message"] {
            assert!(line[field].is_string(), "{line}");
        }
    }
    let found = |wanted: &[(&str, Value)]| {
        let fits = |line: &&Value| wanted.iter().all(|(name, value)| line[*name] == *value);
        let found = told.iter().find(fits);
        found.unwrap_or_else(|| panic!("no line has {wanted:?}: {said}"))
    };
    let info = || ("level", json!("INFO"));
    found(&[info(), ("message", json!("ready"))]);
    found(&[
        info(),
        ("message", json!("session started")),
        ("session", json!(session)),
        ("agent", json!("demo")),
    ]);
    found(&[
        info(),
        ("message", json!("session ended")),
        ("session", json!(session)),
        ("agent", json!("demo")),
        ("reason", json!("completed")),
    ]);
    for (session, request, outcome) in [(&session, json!(id), "denied"), (&other, asked, "allowed")]
    {
        let answered = ("message", json!("request answered"));
        found(&[
            info(),
            answered.clone(),
            ("session", json!(session)),
            ("request", request.clone()),
            ("outcome", json!(outcome)),
            ("by", json!("operator")),
        ]);
        let lines = told.iter().filter(|line| line["message"] == answered.1);
        assert_eq!(lines.filter(|line| line["request"] == request).count(), 1, "{said}");
    }
    found(&[info(), ("message", json!("client refused")), ("why", json!("unknown token"))]);
    found(&[
        info(),
        ("message", json!("client refused")),
        ("why", json!("the Host header does not name this server; add the name with --host")),
    ]);
    found(&[info(), ("message", json!("stopping"))]);
    let request = found(&[
        ("level", json!("DEBUG")),
        ("message", json!("request")),
        ("method", json!("POST")),
        ("route", json!("/v1/sessions/{id}/requests/{request}")),
        ("status", json!(200)),
    ]);
    assert!(request["ms"].is_u64(), "{request}");
}

/// Flags take precedence over the environment, and the environment over the file.
#[test]
fn settings_say_how_much_is_told_and_how() {
    let is_json = |server: Server, marks: bool| {
        let (_, said) = server.stop_and_hear();
        let mut told = said.lines().filter(|line| line.contains("stopping"));
        match told.next() {
            Some(line) => assert_eq!(line.starts_with('{'), marks, "{said}"),
            None => panic!("nothing was logged: {said}"),
        }
    };
    let file = "[server]\nlog_level = 'info'\nlog_format = 'json'\n";
    is_json(Server::set_up(&[], file, |_, _| {}), true);
    let text = |command: &mut std::process::Command, _: &std::path::Path| {
        command.env("AGENTWIRE_LOG_FORMAT", "text");
    };
    is_json(Server::set_up(&[], file, text), false);
    is_json(Server::set_up(&["--log-format", "json"], file, text), true);
    let (_, said) = Server::set_up(&["--log-level", "warn"], file, |_, _| {}).stop_and_hear();
    assert_eq!(said.lines().count(), 1, "only that it is ready: {said}");
}

/// The file sets addresses, host names and the connection limit; flags take precedence.
#[test]
fn the_server_runs_as_its_settings_say() {
    let file = "[server]\nhttp = '127.0.0.2:0'\ninsights = '127.0.0.3:0'\n\
                hosts = ['agents.example:1']\nconnections = 2\n";
    let server = Server::set_up(&["--http", "127.0.0.4:0"], file, |_, _| {});
    assert!(server.http.starts_with("127.0.0.4:"), "{}", server.http);
    let server = Server::set_up(&[], file, |_, _| {});
    assert!(server.http.starts_with("127.0.0.2:"), "{}", server.http);
    assert!(server.insights.starts_with("127.0.0.3:"), "{}", server.insights);
    let bearer = format!("Bearer {}", server.token);
    let ask = |host: &str| {
        let headers = [("host", host), ("authorization", bearer.as_str())];
        server.raw("GET", "/v1/status", &headers, b"").status
    };
    assert_eq!((ask("agents.example:1"), ask("other.example:1")), (200, 403));
    // As many authenticated connections as allowed, and one more.
    let mut held = Vec::new();
    for _ in 0..100 {
        let mut stream = server.stream();
        let head = format!(
            "GET /v1/status HTTP/1.1\r\nhost: agents.example:1\r\nauthorization: {bearer}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).expect("it listens");
        let mut first = [0; 12];
        // An earlier connection may not be closed yet.
        if stream.read_exact(&mut first).is_ok() && &first == b"HTTP/1.1 200" {
            held.push(stream);
        }
        if held.len() == 2 {
            break;
        }
    }
    let mut stream = server.stream();
    let _ = stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: agents.example:1\r\n\r\n");
    let refused = read_answer(stream);
    assert_eq!((refused.status, refused.code().as_str()), (503, "overloaded"));
}
