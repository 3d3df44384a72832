//! Forms of requests: commands that stop something are accepted in any form, limits are reduced, and
//! unknown query parameters are ignored.

use serde_json::{Value, json};

use crate::shared::{Answer, Server};

/// Posts this body with this content type, if any.
fn post(server: &Server, path: &str, kind: Option<&str>, body: &str) -> Answer {
    let bearer = format!("Bearer {}", server.token);
    let mut headers = vec![("authorization", &*bearer)];
    headers.extend(kind.map(|kind| ("content-type", kind)));
    server.raw("POST", path, &headers, body.as_bytes())
}

const FORMS: [(Option<&str>, &str); 8] = [
    (None, ""),
    (Some("text/plain"), ""),
    (Some("application/x-www-form-urlencoded"), ""),
    (Some("application/json"), "{}"),
    (Some("application/json"), r#"{"reason":"enough","cancelQueued":"maybe","x":null}"#),
    (Some("application/json"), r#"{"a":1,"a":2}"#),
    (Some("application/json"), "not JSON"),
    (Some("application/x-www-form-urlencoded"), "{}"),
];

#[test]
fn what_stops_is_taken_in_any_form() {
    let server = Server::start();
    for (kind, body) in FORMS {
        let session = server.session("/hang");
        server.until(&session, "turnStarted");
        let answer = post(&server, &format!("/v1/sessions/{session}/interrupt"), kind, body);
        assert_eq!(answer.status, 200, "{kind:?} {body}: {answer:?}");
        server.until(&session, "turnFailed");
        let answer = post(&server, &format!("/v1/sessions/{session}/stop"), kind, body);
        assert_eq!(answer.json()["state"], "ended", "{kind:?} {body}");
        let create = json!({ "agentId": "demo", "prompt": "/hang" });
        let board = server.post("/api/sessions", &create)["id"].as_str().expect("an id").to_owned();
        let answer = post(&server, &format!("/api/sessions/{board}/cancel"), kind, body);
        assert_eq!(answer.json()["state"], "cancelled", "{kind:?} {body}");
    }
    // Over a WebSocket, and over JSON-RPC.
    let session = server.session("/hang");
    server.until(&session, "turnStarted");
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    socket.say(&json!({ "id": 1, "command": "interrupt", "cancelQueued": 7, "why": "enough" }));
    let reply = socket.until(|frame| frame["id"] == 1 && frame.get("type").is_none());
    assert!(reply.get("error").is_none(), "{reply}");
    server.until(&session, "turnFailed");
    let mut rpc = server.socket("/rpc");
    let params = json!({ "sessionId": session, "why": "enough", "cancelQueued": [] });
    for (id, method) in [(1, "session/interrupt"), (2, "session/kill")] {
        rpc.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        let reply = rpc.until(|frame| frame["id"] == id);
        assert!(reply.get("error").is_none(), "{method}: {reply}");
    }
    server.until(&session, "sessionEnded");
    // Requests that start something are still refused.
    let body = json!({ "agentType": "demo", "prompt": "/say hi", "why": "?" });
    assert_eq!(server.ask("POST", "/v1/sessions", Some(&body)).status, 400);
    assert_eq!(post(&server, "/v1/sessions", Some("text/plain"), &body.to_string()).status, 415);
}

#[test]
fn limits_are_cut_down_and_strange_words_of_a_query_are_passed_over() {
    let server = Server::start();
    let session = server.session("/say hi");
    let count = server.until(&session, "turnCompleted").len();
    let length = |path: &str, field: &str| {
        let answer = server.get(path);
        answer[field].as_array().unwrap_or_else(|| panic!("{path}: {answer}")).len()
    };
    for limit in ["501", "10001", "99999999999999999999999"] {
        assert_eq!(length(&format!("/v1/sessions?limit={limit}"), "sessions"), 1);
        let path = format!("/v1/sessions/{session}/events?limit={limit}&wait=0");
        assert!(length(&path, "events") >= count, "{limit}");
    }
    assert_eq!(length(&format!("/v1/sessions/{session}/events?limit=0"), "events"), 1);
    for path in ["/v1/sessions?colour=red", "/v1/sessions?limit=1&x"] {
        assert_eq!(length(path, "sessions"), 1, "{path}");
    }
    assert_eq!(length("/v1/requests?state=open&x=y", "requests"), 0);
    assert!(length(&format!("/v1/sessions/{session}/events?x=y"), "events") >= count);
}

#[test]
fn a_session_that_runs_is_stopped_before_it_is_forgotten() {
    let server = Server::start();
    for prompt in ["/say hi", "/hang", "/bash sleep 100"] {
        let session = server.session(prompt);
        let place = format!("/v1/sessions/{session}");
        assert_eq!(server.ask("DELETE", &place, None).status, 200, "{prompt}");
        assert_eq!(server.ask("GET", &place, None).status, 404, "{prompt}");
        assert_eq!(server.ask("DELETE", &place, None).status, 404, "{prompt}");
    }
    assert_eq!(server.get("/v1/status")["sessions"], 0);
}

#[test]
fn a_start_with_the_id_of_a_session_that_waits_goes_on_with_it() {
    let server = Server::start();
    let session = server.session("/say {turns}");
    server.until(&session, "turnCompleted");
    let start = |more: Value| {
        let mut body =
            json!({ "agentType": "demo", "prompt": "/say {turns}", "sessionId": session });
        body.as_object_mut().expect("it").extend(more.as_object().expect("it").clone());
        server.ask("POST", "/v1/sessions", Some(&body))
    };
    let texts = || {
        let events = server.get(&format!("/v1/sessions/{session}/events?limit=10000"));
        let events = events["events"].as_array().expect("events").clone();
        let done = events.iter().filter(|event| event["type"] == "turnCompleted").count();
        let started = events.iter().filter(|event| event["type"] == "sessionStarted").count();
        (done, started)
    };
    let answer = start(json!({}));
    assert_eq!((answer.status, &answer.json()["id"]), (201, &json!(session)));
    while texts().0 < 2 {}
    assert_eq!(texts(), (2, 1));
    // With another model, but without other limits, it runs.
    assert_eq!(start(json!({ "config": { "model": "other" } })).status, 201);
    while texts().0 < 3 {}
    assert_eq!(server.get(&format!("/v1/sessions/{session}"))["model"], "other");
    assert_eq!(start(json!({ "config": { "maxTurns": 9 } })).code(), "conflict");
    assert_eq!(start(json!({ "agentType": "claude" })).code(), "conflict");
    // Sent several times, it counts once, even while it runs.
    let bearer = format!("Bearer {}", server.token);
    let headers = [
        ("authorization", &*bearer),
        ("content-type", "application/json"),
        ("idempotency-key", "once"),
    ];
    let body = json!({ "agentType": "demo", "prompt": "/hang", "sessionId": session }).to_string();
    for _ in 0..3 {
        let answer = server.raw("POST", "/v1/sessions", &headers, body.as_bytes());
        assert_eq!(answer.status, 201, "{answer:?}");
    }
    assert_eq!(start(json!({})).code(), "conflict");
}

/// Valid JSON is never reported as invalid JSON: a wrong type is reported with the path of the field, on
/// every wire.
#[test]
fn a_wrong_type_is_told_by_the_path_of_the_field() {
    let server = Server::start();
    let session = server.session("/write a.txt x");
    let raised = server.until(&session, "requestRaised");
    let request = raised.last().expect("a request")["requestId"].clone();
    let place = |what: &str| format!("/v1/sessions/{session}{what}");
    let start = |more: Value| {
        let mut body = json!({ "agentType": "demo", "prompt": "x" });
        body.as_object_mut().expect("one").extend(more.as_object().expect("one").clone());
        body
    };
    let image = json!({ "prompt": "x", "images": [{ "mediaType": 1, "data": "" }] });
    let settle = place(&format!("/requests/{}", request.as_str().expect("an id")));
    for (method, path, command, body, field) in [
        ("POST", "/v1/sessions", "start", start(json!({ "prompt": 5 })), "prompt"),
        ("POST", "/v1/sessions", "start", start(json!({ "agentType": true })), "agentType"),
        ("POST", "/v1/sessions", "start", start(json!({ "fork": "no" })), "fork"),
        (
            "POST",
            "/v1/sessions",
            "start",
            start(json!({ "config": { "maxTurns": "many" } })),
            "config.maxTurns",
        ),
        (
            "POST",
            "/v1/sessions",
            "start",
            start(json!({ "config": { "approvalMode": true } })),
            "config.approvalMode",
        ),
        ("POST", &*place("/prompt"), "prompt", json!({ "prompt": true }), "prompt"),
        (
            "POST",
            &*place("/prompt"),
            "prompt",
            json!({ "prompt": "x", "delivery": true }),
            "delivery",
        ),
        ("POST", &*place("/prompt"), "prompt", image, "images[0].mediaType"),
        ("PATCH", &*place(""), "configure", json!({ "model": 5 }), "model"),
        ("PATCH", &*place(""), "configure", json!({ "approvalMode": false }), "approvalMode"),
        ("POST", &*place("/query"), "query", json!({ "method": 5 }), "method"),
        ("POST", &*settle, "settle", json!({ "behavior": true }), "behavior"),
        ("POST", &*settle, "settle", json!({ "behavior": "allow", "remember": [] }), "remember"),
    ] {
        let answer = server.ask(method, path, Some(&body));
        assert_eq!((answer.status, &*answer.code()), (400, "invalidMessage"), "{body}");
        let told = answer.json()["detail"].as_str().expect("a text").to_owned();
        assert!(told.contains(&format!("{field}: ")), "{body}: {told}");
        let mut frame = body.clone();
        frame["id"] = json!("f");
        frame["command"] = json!(command);
        if command == "settle" {
            frame["requestId"] = request.clone();
        }
        let mut socket = server.socket(&place("/ws"));
        socket.say(&frame);
        let error = socket.until(|frame| frame["id"] == "f")["error"].clone();
        assert_eq!(error["code"], "invalidMessage", "{frame}: {error}");
        let told = error["message"].as_str().expect("a text");
        assert!(told.contains(&format!("{field}: ")), "{frame}: {told}");
    }
    let mut rpc = server.socket("/rpc");
    for (method, params, field) in [
        ("session/send", json!({ "sessionId": session, "prompt": true }), "prompt"),
        ("session/events", json!({ "sessionId": session, "after": "x" }), "after"),
        (
            "request/settle",
            json!({ "sessionId": session, "requestId": request, "behavior": true }),
            "behavior",
        ),
    ] {
        rpc.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
        let error = rpc.until(|frame| frame["id"] == 1)["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["code"]),
            (&json!(-32602), &json!("invalidMessage")),
            "{error}"
        );
        assert!(error["message"].as_str().is_some_and(|told| told.contains(field)), "{error}");
    }
    // The request is still open: none of this answered it.
    server.post(&settle, &json!({ "behavior": "deny" }));
    let body = start(json!({ "fork": false }));
    assert_eq!(server.ask("POST", "/v1/sessions", Some(&body)).status, 201);
}

/// A denial is accepted whatever it was shown. An allow with fields that an allow cannot have is not.
#[test]
fn a_denial_is_never_refused_for_its_form() {
    let server = Server::start();
    let session = server.session("/write a.txt x");
    let raised = server.until(&session, "requestRaised");
    let request =
        raised.last().expect("a request")["requestId"].as_str().expect("an id").to_owned();
    let place = format!("/v1/sessions/{session}/requests/{request}");
    let interrupting = json!({ "behavior": "allow", "interrupt": true });
    let refused = server.ask("POST", &place, Some(&interrupting));
    assert_eq!(refused.code(), "invalidMessage");
    assert!(refused.text.contains("interrupt: "), "{refused:?}");
    let stale = json!({ "behavior": "allow", "inputDigest": "0" });
    assert_eq!(server.ask("POST", &place, Some(&stale)).code(), "conflict");
    server.post(&place, &json!({ "behavior": "deny", "inputDigest": "0" }));
    let settled = server.until(&session, "requestSettled");
    assert_eq!(settled.last().expect("an event")["outcome"], "denied");
}

/// Values with which no process can be started are refused with the path of the field, before anything
/// starts.
#[test]
fn variables_and_texts_that_no_process_can_have_are_refused() {
    let server = Server::start();
    let wrong = "GEMINI_CLI_SYSTEM_SETTINGS_PATH=/tmp/own";
    for (config, path) in [
        (json!({ "env": { wrong: "" } }), "env: "),
        (json!({ "env": { "": "x" } }), "env: "),
        (json!({ "env": { "a\0b": "x" } }), "env: "),
        (json!({ "env": { "A": "x\0" } }), "env.A: "),
        (json!({ "additionalDirectories": ["/tmp", "/tmp/\0"] }), "additionalDirectories[1]: "),
        (json!({ "nativeArgs": ["--x\0"] }), "nativeArgs[0]: "),
        (json!({ "workingDirectory": "/tmp\0" }), "workingDirectory: "),
        (
            json!({ "mcpServers": { "m": { "command": "x", "env": { "A=B": "" } } } }),
            "mcpServers.m.env: ",
        ),
    ] {
        for agent in ["demo", "gemini"] {
            let body = json!({ "agentType": agent, "prompt": "/say hi", "config": config });
            let answer = server.ask("POST", "/v1/sessions", Some(&body));
            assert_eq!(
                (answer.status, answer.code().as_str()),
                (400, "invalidMessage"),
                "{config}"
            );
            let detail = answer.json()["detail"].as_str().expect("a text").to_owned();
            assert!(detail.contains(path), "{config}: {detail}");
        }
    }
}

/// A refusal does not repeat a long value in full.
#[test]
fn a_refusal_is_short_however_long_the_name() {
    let server = Server::start();
    let session = server.session("/say hi");
    server.until(&session, "turnCompleted");
    let name = "a".repeat(2_000_000);
    for (path, body) in [
        (format!("/v1/sessions/{session}/prompt"), json!({ &name: 1 })),
        (format!("/v1/sessions/{session}/prompt"), json!({ "prompt": "x", "delivery": name })),
        ("/v1/sessions".to_owned(), json!({ "agentType": name })),
        ("/v1/sessions".to_owned(), json!({ "agentType": "demo", "config": { &name: 1 } })),
        (
            "/v1/sessions".to_owned(),
            json!({ "agentType": "demo", "config": { "env": { format!("{name}="): "" } } }),
        ),
        ("/v1/sessions".to_owned(), json!({ "agentType": "demo", "config": { "driver": name } })),
    ] {
        let answer = server.ask("POST", &path, Some(&body));
        assert!((400..500).contains(&answer.status), "{}", answer.status);
        assert!(answer.text.len() < 10_000, "{path}: {} bytes", answer.text.len());
    }
    let mut socket = server.socket(&format!("/v1/sessions/{session}/ws"));
    socket.say(&json!({ "id": 1, "command": name }));
    let reply = socket.until(|frame| frame["id"] == 1 && frame.get("type").is_none());
    assert!(reply.to_string().len() < 10_000);
    let mut rpc = server.socket("/rpc");
    rpc.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": name }));
    let reply = rpc.until(|frame| frame["id"] == 1);
    assert!(reply.to_string().len() < 10_000);
}

#[test]
fn a_field_of_the_config_in_the_wrong_place_is_told_the_right_one() {
    let server = Server::start();
    for (body, says) in [
        (json!({ "workingDirectory": "/tmp" }), "; did you mean config.workingDirectory?"),
        (json!({ "model": "m" }), "; did you mean config.model?"),
        (json!({ "colour": "red" }), " colour"),
    ] {
        let mut request = json!({ "agentType": "demo", "prompt": "/say hi" });
        request.as_object_mut().expect("an object").extend(body.as_object().expect("it").clone());
        let answer = server.ask("POST", "/v1/sessions", Some(&request));
        assert_eq!((answer.status, answer.code().as_str()), (400, "invalidMessage"));
        let detail = answer.json()["detail"].as_str().expect("words").to_owned();
        assert!(detail.ends_with(says), "{detail}");
    }
}
