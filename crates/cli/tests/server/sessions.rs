//! Sessions over REST, pages and streams.

use std::io::{BufRead as _, BufReader, Write as _};
use std::time::Instant;

use serde_json::{Value, json};

use crate::shared::{PATIENCE, Server};

#[test]
fn a_session_is_begun_read_answered_and_ended() {
    let server = Server::start();
    let body = json!({ "agentType": "demo", "prompt": "/write a.txt x" });
    let created = server.ask("POST", "/v1/sessions", Some(&body));
    assert_eq!(created.status, 201);
    let session = created.json()["id"].as_str().expect("an id").to_owned();
    assert_eq!(created.headers["location"], format!("/v1/sessions/{session}"));
    let raised = server.until(&session, "requestRaised").pop().expect("a request");
    let inbox = server.get("/v1/requests?state=open");
    let request = &inbox["requests"][0];
    assert_eq!(request["sessionId"], session.as_str());
    assert_eq!(request["requestId"], raised["requestId"]);
    assert_eq!(request["toolName"], "Write");
    let id = request["requestId"].as_str().expect("an id");
    let place = format!("/v1/sessions/{session}/requests/{id}");
    assert_eq!(server.get(&place)["inputDigest"], request["inputDigest"]);
    let wrong = json!({ "behavior": "allow", "inputDigest": "0" });
    assert_eq!(server.ask("POST", &place, Some(&wrong)).code(), "conflict");
    server.post(&place, &json!({ "behavior": "allow", "inputDigest": request["inputDigest"] }));
    let again = server.ask("POST", &place, Some(&json!({ "behavior": "deny" })));
    assert_eq!((again.status, again.code().as_str()), (409, "requestSettled"));
    server.until(&session, "turnCompleted");
    assert_eq!(std::fs::read_to_string(server.work().join("a.txt")).expect("it ran"), "x");
    assert_eq!(server.get("/v1/requests")["requests"], json!([]));
    let taken =
        server.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "prompt": "/hang" }));
    let events = server.until(&session, "turnStarted");
    assert!(taken["messageId"].is_string() && !events.is_empty());
    server.post(&format!("/v1/sessions/{session}/interrupt"), &json!({}));
    server.until(&session, "turnFailed");
    let query = json!({ "method": "supportedModels", "args": [] });
    let models = server.post(&format!("/v1/sessions/{session}/query"), &query);
    assert!(models["result"].is_array(), "{models}");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    server.until(&session, "sessionEnded");
    let shown = server.get(&format!("/v1/sessions/{session}"));
    assert_eq!((&shown["state"], &shown["turns"]), (&json!("ended"), &json!(2)));
    let late = server.ask(
        "POST",
        &format!("/v1/sessions/{session}/prompt"),
        Some(&json!({ "prompt": "x" })),
    );
    assert_eq!(late.code(), "conflict");
    assert_eq!(server.ask("DELETE", &format!("/v1/sessions/{session}"), None).status, 200);
    assert_eq!(
        server.ask("GET", &format!("/v1/sessions/{session}"), None).code(),
        "sessionNotFound"
    );
    assert_eq!(server.stop(), Some(0));
}

#[test]
fn pages_streams_and_sockets_give_the_same_bytes() {
    let server = Server::start();
    let session = server.session("/think hm\n/say one two three\n/read nothing\n/plan a | b");
    server.until(&session, "turnCompleted");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    server.until(&session, "sessionEnded");
    for profile in ["full", "lean", "core"] {
        let path = format!("/v1/sessions/{session}/events?profile={profile}");
        let whole = server.ask("GET", &format!("{path}&limit=10000"), None).text;
        let whole = &whole[whole.find('[').expect("a list")..];
        let mut paged = Vec::new();
        let mut after = 0;
        loop {
            let page = server.get(&format!("{path}&limit=3&after={after}"));
            after = page["next"].as_u64().expect("a number");
            let events = page["events"].as_array().expect("events").clone();
            assert!(events.len() <= 3);
            paged.extend(events);
            if page["ended"] == true {
                break;
            }
        }
        let streamed = stream(&server, &path, None);
        let mut socket = server.socket(&format!("/v1/sessions/{session}/ws?profile={profile}"));
        let told: Vec<String> = (0..streamed.len()).filter_map(|_| socket.next()).collect();
        assert_eq!(streamed.iter().map(|(_, data)| data.clone()).collect::<Vec<_>>(), told);
        assert!(whole.starts_with(&format!("[{}]", told.join(","))), "{profile}");
        assert_eq!(paged.len(), told.len());
        for (event, told) in paged.iter().zip(&told) {
            assert_eq!(event, &serde_json::from_str::<Value>(told).expect("JSON"));
        }
        // From the middle.
        let (middle, _) = streamed[streamed.len() / 2];
        let rest = stream(&server, &path, Some(middle));
        assert_eq!(rest, streamed[streamed.len() / 2 + 1..]);
    }
    let last =
        server.get(&format!("/v1/sessions/{session}"))["lastSeq"].as_u64().expect("a number");
    // A reader of a session that has ended need not reconnect.
    let path = format!("/v1/sessions/{session}/events");
    let bearer = format!("Bearer {}", server.token);
    let headers = [
        ("authorization", &*bearer),
        ("accept", "text/event-stream"),
        ("last-event-id", &*last.to_string()),
    ];
    assert_eq!(server.raw("GET", &path, &headers, b"").status, 204);
    let beyond = server.get(&format!("{path}?after={}", last + 5));
    assert_eq!(beyond["resume"], json!({ "missing": { "from": last + 1, "to": last + 5 } }));
    assert_eq!(server.get(&format!("{path}?after={last}"))["resume"], "exact");
}

/// The ids and data of a stream's events, up to its end.
fn stream(server: &Server, path: &str, after: Option<u64>) -> Vec<(u64, String)> {
    let mut stream = server.stream();
    let after = after.map(|after| format!("last-event-id: {after}\r\n")).unwrap_or_default();
    let head = format!(
        "GET {path} HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {}\r\n\
         accept: text/event-stream\r\nconnection: close\r\n{after}\r\n",
        server.http, server.token
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    let mut events = Vec::new();
    let mut id = 0;
    for line in BufReader::new(stream).lines() {
        let line = line.expect("a line");
        if let Some(number) = line.strip_prefix("id: ") {
            id = number.parse().expect("a number");
        } else if let Some(data) = line.strip_prefix("data: ") {
            match data {
                "{}" => return events,
                data => events.push((id, data.to_owned())),
            }
        }
    }
    panic!("the stream has no end: {events:?}");
}

#[test]
fn a_page_waits_for_its_first_event() {
    let server = Server::start();
    let session = server.session("/say hello");
    let events = server.until(&session, "turnCompleted");
    let last = events.last().expect("events")["seq"].as_u64().expect("a number");
    let path = format!("/v1/sessions/{session}/events?after={last}&wait=60");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| server.get(&path));
        server.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "prompt": "/say more" }));
        let page = waiting.join().expect("a page");
        assert_eq!(page["events"][0]["seq"], last + 1);
    });
}

#[test]
fn what_is_said_again_counts_once() {
    let server = Server::start();
    let bearer = format!("Bearer {}", server.token);
    let headers = [
        ("authorization", &*bearer),
        ("content-type", "application/json"),
        ("idempotency-key", "k1"),
    ];
    let body = json!({ "agentType": "demo", "prompt": "/say {turns}" }).to_string();
    let create =
        || server.raw("POST", "/v1/sessions", &headers, body.as_bytes()).json()["id"].clone();
    let first = create();
    assert_eq!((create(), create()), (first.clone(), first.clone()));
    let session = first.as_str().expect("an id");
    server.until(session, "turnCompleted");
    let id = "00000000-0000-4000-8000-000000000001";
    for _ in 0..3 {
        let prompt = json!({ "prompt": "/say {turns}", "messageId": id });
        let taken = server.post(&format!("/v1/sessions/{session}/prompt"), &prompt);
        assert_eq!(taken["messageId"], id);
    }
    let begun = Instant::now();
    loop {
        let now = server.get(&format!("/v1/sessions/{session}"));
        if now["turns"] == 2 && now["state"] == "idle" {
            break;
        }
        assert!(begun.elapsed() < PATIENCE, "{now}");
    }
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    let events = server.until(session, "sessionEnded");
    let turns = events.iter().filter(|event| event["type"] == "turnStarted");
    assert_eq!(turns.count(), 2);
    // Also after the session has ended, and after a restart.
    let prompt = |server: &Server, id: &str| {
        let body = json!({ "prompt": "/say {turns}", "messageId": id });
        server.ask("POST", &format!("/v1/sessions/{session}/prompt"), Some(&body))
    };
    let again = prompt(&server, id);
    assert_eq!((again.status, again.json()), (202, json!({ "messageId": id, "repeated": true })));
    let other = "00000000-0000-4000-8000-000000000002";
    assert_eq!(prompt(&server, other).code(), "conflict");
    assert_eq!(server.get("/v1/sessions")["sessions"].as_array().map(Vec::len), Some(1));
}

/// The answer to a stop says how the session ended, whatever it was doing.
#[test]
fn a_stop_is_answered_when_the_session_is_over() {
    let server = Server::start();
    for prompt in ["/say hi", "/hang", "/write a.txt x", "/bash true"] {
        let session = server.session(prompt);
        server.until(&session, "turnStarted");
        for _ in 0..2 {
            let stopped = server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
            assert_eq!(stopped["state"], "ended", "{prompt}: {stopped}");
            assert!(stopped["reason"].is_string(), "{prompt}: {stopped}");
        }
    }
}

#[test]
fn sessions_are_listed_by_pages() {
    let server = Server::start();
    let ids: Vec<String> = (0..5).map(|_| server.session("/say hi")).collect();
    let mut listed = Vec::new();
    let mut path = "/v1/sessions?sort=created&limit=2".to_owned();
    loop {
        let page = server.get(&path);
        let sessions = page["sessions"].as_array().expect("sessions").clone();
        listed.extend(sessions.iter().map(|it| it["id"].as_str().expect("an id").to_owned()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/v1/sessions?sort=created&limit=2&after={next}");
    }
    listed.reverse();
    assert_eq!(listed, ids);
}

#[test]
fn what_is_wrong_gets_a_code_and_a_sentence() {
    let server = Server::start();
    let session = server.session("/say hi");
    let nobody = "00000000-0000-4000-8000-000000000000";
    for (method, path, body, status, code) in [
        ("GET", "/nothing", "", 404, "unknownMethod"),
        ("PUT", "/v1/sessions", "{}", 405, "unknownMethod"),
        ("POST", "/v1/sessions", "", 400, "invalidJson"),
        ("POST", "/v1/sessions", "{", 400, "invalidJson"),
        ("POST", "/v1/sessions", "[]", 400, "invalidMessage"),
        ("POST", "/v1/sessions", "{}", 400, "invalidMessage"),
        ("POST", "/v1/sessions", r#"{"agentType":"fly","prompt":"x"}"#, 400, "invalidMessage"),
        ("POST", "/v1/sessions", r#"{"agentType":"demo","prompt":7}"#, 400, "invalidMessage"),
        ("GET", "/v1/sessions?limit=x", "", 400, "invalidMessage"),
        ("GET", "/v1/sessions?after=x", "", 404, "sessionNotFound"),
        ("GET", "/v1/sessions/x", "", 404, "sessionNotFound"),
        ("GET", &format!("/v1/sessions/{nobody}"), "", 404, "sessionNotFound"),
        ("GET", &format!("/v1/sessions/{nobody}/events"), "", 404, "sessionNotFound"),
        ("GET", &format!("/v1/sessions/{session}/events?after=-1"), "", 400, "invalidMessage"),
        ("GET", &format!("/v1/sessions/{session}/events?after=x"), "", 400, "invalidMessage"),
        ("GET", &format!("/v1/sessions/{session}/events?limit=x"), "", 400, "invalidMessage"),
        ("GET", &format!("/v1/sessions/{session}/events?profile=all"), "", 400, "invalidMessage"),
        ("GET", &format!("/v1/sessions/{session}/ws"), "", 400, "invalidMessage"),
        ("POST", &format!("/v1/sessions/{session}/prompt"), "{}", 400, "invalidMessage"),
        (
            "POST",
            &format!("/v1/sessions/{session}/prompt"),
            r#"{"prompt":""}"#,
            400,
            "invalidMessage",
        ),
        ("PATCH", &format!("/v1/sessions/{session}"), r#"{"modle":"x"}"#, 400, "invalidMessage"),
        (
            "POST",
            &format!("/v1/sessions/{session}/requests/r"),
            r#"{"behavior":"allow"}"#,
            404,
            "requestNotFound",
        ),
        (
            "POST",
            &format!("/v1/sessions/{session}/requests/r"),
            r#"{"requestId":"s","behavior":"allow"}"#,
            400,
            "invalidMessage",
        ),
        ("GET", "/v1/requests?state=closed", "", 400, "invalidMessage"),
        ("GET", "/api/sessions/x/events?offset=-1", "", 400, "invalidMessage"),
        ("POST", "/api/sessions", r#"{"agentId":"fly","prompt":"x"}"#, 400, "invalidMessage"),
    ] {
        let bearer = format!("Bearer {}", server.token);
        let headers = [("authorization", &*bearer), ("content-type", "application/json")];
        let answer = server.raw(method, path, &headers, body.as_bytes());
        assert_eq!(
            (answer.status, answer.code().as_str()),
            (status, code),
            "{method} {path} {body}"
        );
    }
}

/// A key makes a request count once, and does not change its result.
#[test]
fn an_agent_that_does_not_start_is_told_with_a_key_too() {
    let server = Server::with_script("#!/no/such/interpreter\n");
    let bearer = format!("Bearer {}", server.token);
    let body = json!({ "agentType": "claude", "prompt": "x" }).to_string();
    for key in [None, Some("k1"), Some("k2")] {
        let mut headers =
            vec![("authorization", bearer.as_str()), ("content-type", "application/json")];
        headers.extend(key.map(|key| ("idempotency-key", key)));
        let answer = server.raw("POST", "/v1/sessions", &headers, body.as_bytes());
        assert_eq!((answer.status, &*answer.code()), (502, "startFailed"), "{key:?}");
    }
}

#[test]
fn what_a_body_says_is_heard() {
    let server = Server::start();
    let session = server.session("/hang");
    server.until(&session, "turnStarted");
    let place = |what: &str| format!("/v1/sessions/{session}/{what}");
    let waits = server.post(&place("prompt"), &json!({ "prompt": "/say late" }));
    let done = server.post(&place("interrupt"), &json!({ "cancelQueued": true }));
    assert_eq!(done["cancelled"], json!([waits["messageId"]]), "{done}");
    // A missing body is the same as an empty one.
    for _ in 0..2 {
        assert_eq!(server.ask("POST", &place("interrupt"), None).status, 200);
    }
    // The refusal of an unsupported query names the agent.
    let body = json!({ "method": "nope" });
    let unsupported = server.ask("POST", &place("query"), Some(&body)).json();
    assert_eq!(unsupported["detail"], "demo does not support the query nope");
    assert_eq!(server.ask("POST", &place("stop"), None).status, 200);
}

#[test]
fn an_answer_fits_what_was_asked() {
    let server = Server::start();
    for (prompt, wrong, right) in [
        (
            "/write a.txt x",
            vec![
                json!({ "behavior": "allow", "updatedInput": "x" }),
                json!({ "behavior": "allow", "updatedInput": ["x"] }),
            ],
            json!({ "behavior": "allow" }),
        ),
        (
            "/ask Which? | a | b",
            vec![
                json!({ "answers": { "What?": "a" } }),
                json!({ "answers": { "Which?": "a", "What?": "a" } }),
            ],
            json!({ "answers": { "Which?": "a" } }),
        ),
    ] {
        let session = server.session(prompt);
        let raised = server.until(&session, "requestRaised");
        let id = raised.last().expect("a request")["requestId"].as_str().expect("an id").to_owned();
        let place = format!("/v1/sessions/{session}/requests/{id}");
        for wrong in wrong {
            assert_eq!(
                server.ask("POST", &place, Some(&wrong)).code(),
                "invalidMessage",
                "{wrong}"
            );
        }
        server.post(&place, &right);
        server.until(&session, "turnCompleted");
    }
}

/// A stream of a session that has ended does not hide a gap.
#[test]
fn a_stream_tells_what_is_missing_though_nothing_comes() {
    let server = Server::start();
    let session = server.session("/say hi");
    server.until(&session, "turnCompleted");
    server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
    let last = server.until(&session, "sessionEnded").len();
    let bearer = format!("Bearer {}", server.token);
    let headers = [("authorization", bearer.as_str()), ("accept", "text/event-stream")];
    let from = |after: usize| {
        let path = format!("/v1/sessions/{session}/events?after={after}");
        server.raw("GET", &path, &headers, b"")
    };
    let exact = from(last);
    assert_eq!((exact.status, &*exact.headers["agentwire-resume"]), (204, "exact"));
    let gap = from(last + 9);
    let missing = format!("missing {}-{}", last + 1, last + 9);
    assert_eq!((gap.status, &gap.headers["agentwire-resume"]), (200, &missing));
    assert!(gap.text.contains("event: resume") && gap.text.contains("event: end"), "{gap:?}");
}

#[test]
fn an_agent_that_says_nothing_at_its_start_is_ended() {
    let server = Server::with_settings(
        "[limits]\ncall_timeout = 1\n[agents.claude]\ncommand = ['sh', '-c', 'echo not today >&2; exec sleep 600', 'sh']\n",
    );
    let body = json!({ "agentType": "claude", "prompt": "hello" });
    let id = server.post("/v1/sessions", &body)["id"].as_str().expect("an id").to_owned();
    let events = server.until(&id, "sessionEnded");
    let end = events.last().expect("an end");
    assert_eq!(end["reason"], "failed", "{end}");
    let why = end["error"].as_str().expect("why");
    assert!(why.contains("claude said nothing for 1 s") && why.contains("not today"), "{why}");
    assert!(events.iter().any(|event| event["type"] == "error" && event["code"] == "startFailed"));
}

#[test]
fn a_fork_names_what_it_goes_on_from() {
    let server = Server::start();
    let first = server.session("/say the plum");
    server.until(&first, "turnCompleted");
    let fork =
        json!({ "agentType": "demo", "prompt": "/say {turns}", "sessionId": first, "fork": true });
    let forked = server.post("/v1/sessions", &fork)["id"].as_str().expect("an id").to_owned();
    assert_ne!(forked, first);
    let events = server.until(&forked, "turnCompleted");
    assert_eq!(events[0]["forkedFrom"], json!(first), "{}", events[0]);
    let alone = json!({ "agentType": "demo", "prompt": "", "fork": true });
    assert_eq!(server.ask("POST", "/v1/sessions", Some(&alone)).code(), "invalidMessage");
}
