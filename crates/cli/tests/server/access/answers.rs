//! What an answer to a request may contain, and what it may grant, on every wire of the server.

use serde_json::{Value, json};

use crate::shared::{Server, Socket};

/// A client that answers requests.
enum Wire<'s> {
    Rest(&'s Server, String),
    Unified(Socket),
    Rpc(Socket),
}

impl Wire<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Rest(..) => "REST",
            Self::Unified(_) => "unified",
            Self::Rpc(_) => "rpc",
        }
    }

    fn answer(&mut self, session: &str, request: &str, fields: &Value) -> (bool, String) {
        let mut answer = fields.clone();
        match self {
            Self::Rest(server, token) => {
                let path = format!("/v1/sessions/{session}/requests/{request}");
                let answer = server.ask_as(token, "POST", &path, Some(fields));
                (answer.status == 200, answer.text)
            }
            Self::Unified(socket) => {
                answer["id"] = json!("a");
                answer["command"] = json!("settle");
                answer["sessionId"] = json!(session);
                answer["requestId"] = json!(request);
                socket.say(&answer);
                let reply = socket.until(|it| it["id"] == "a" && it.get("type").is_none());
                (reply.get("error").is_none(), reply.to_string())
            }
            Self::Rpc(socket) => {
                answer["sessionId"] = json!(session);
                answer["requestId"] = json!(request);
                let call = json!({ "jsonrpc": "2.0", "id": 7, "method": "request/settle", "params": answer });
                socket.say(&call);
                let reply = socket.until(|it| it["id"] == 7);
                (reply.get("error").is_none(), reply.to_string())
            }
        }
    }
}

fn wires<'s>(server: &'s Server, token: &str) -> [Wire<'s>; 3] {
    let bearer = format!("Bearer {token}");
    let socket = |path: &str| {
        let headers = [("authorization", &*bearer)];
        server.socket_at(&server.http, path, &headers).expect("it opens")
    };
    let session = server.session("/say hi");
    [
        Wire::Rest(server, token.to_owned()),
        Wire::Unified(socket(&format!("/v1/sessions/{session}/ws"))),
        Wire::Rpc(socket("/rpc")),
    ]
}

/// A session that asks to run this command, and the id of its request.
fn asking(server: &Server, command: &str) -> (String, String) {
    let session = server.session(&format!("/bash {command}"));
    let raised = server.until(&session, "requestRaised").pop().expect("it asks");
    (session, raised["requestId"].as_str().expect("an id").to_owned())
}

fn is_open(server: &Server, session: &str, request: &str) -> bool {
    let path = format!("/v1/sessions/{session}/requests/{request}");
    server.ask("GET", &path, None).status == 200
}

fn outcome(server: &Server, session: &str) -> Value {
    server.until(session, "requestSettled").pop().expect("it is settled")["outcome"].clone()
}

#[test]
fn what_allows_is_read_strictly_and_what_denies_is_never_refused_for_its_form() {
    let server = Server::start();
    for mut wire in wires(&server, &server.token) {
        let name = wire.name();
        let (session, request) = asking(&server, "touch made");
        for (fields, said) in [
            (json!({ "behavior": "allow", "update_input": { "command": "true" } }), "update_input"),
            (json!({ "behavior": "allow", "updated_input": {} }), "updated_input"),
            (json!({ "behavior": "allow", "updatedinput": null }), "updatedinput"),
            (json!({ "behavior": "allow", "updatedInput": "true" }), "updatedInput"),
            (json!({ "behavior": "allow", "remember": "forever" }), "forever"),
            (json!({ "behavior": "Allow" }), "Allow"),
            (json!({ "behavior": "yes" }), "yes"),
            (json!({ "behavior": true }), "failed to read"),
            (json!({ "behavior": ["deny"] }), "failed to read"),
            (json!({ "message": "no" }), "behavior"),
        ] {
            let (is_taken, told) = wire.answer(&session, &request, &fields);
            assert!(!is_taken && told.contains(said), "{name} {fields}: {told}");
            assert!(is_open(&server, &session, &request), "{name} {fields}");
        }
        let (_, told) = wire.answer(&session, &request, &json!({ "behavior": "deny" }));
        assert_eq!(outcome(&server, &session), "denied", "{name}: {told}");
        for fields in [
            json!({ "behavior": "deny", "because": "no", "updated_input": 1, "x": null }),
            json!({ "behavior": "deny", "message": 7, "interrupt": "please", "remember": "ever" }),
            json!({ "behavior": "deny", "updatedInput": [], "updatedPermissions": {}, "answers": 1 }),
            json!({ "behavior": "deny", "hookOutput": "no", "error": false, "inputDigest": 1 }),
        ] {
            let (session, request) = asking(&server, "touch made");
            let (is_taken, told) = wire.answer(&session, &request, &fields);
            assert!(is_taken, "{name} {fields}: {told}");
            assert_eq!(outcome(&server, &session), "denied", "{name} {fields}");
        }
        assert!(!server.work().join("made").exists(), "{name}");
    }
}

#[test]
fn an_answer_gives_what_was_asked_for_and_shown() {
    let server = Server::start();
    let approve = server.verb(&["token", "create", "--scope", "approve"]);
    let mode =
        json!([{ "type": "setMode", "mode": "bypassPermissions", "destination": "session" }]);
    let rules = json!([{
        "type": "addRules",
        "rules": [{ "toolName": "Bash" }],
        "behavior": "allow",
        "destination": "userSettings",
    }]);
    for mut wire in wires(&server, &approve) {
        let name = wire.name();
        let (session, request) = asking(&server, "touch made");
        for fields in [
            json!({ "hookOutput": { "behavior": "allow", "updatedPermissions": mode } }),
            json!({ "hookOutput": { "behavior": "allow", "updated_permissions": mode } }),
            json!({ "behavior": "allow", "hookOutput": { "behavior": "allow" } }),
            json!({ "hookOutput": { "optionId": "allow_always" } }),
            json!({ "behavior": "allow", "updatedPermissions": mode }),
            json!({ "behavior": "allow", "updatedPermissions": rules }),
        ] {
            let (is_taken, told) = wire.answer(&session, &request, &fields);
            assert!(!is_taken && told.contains("forbidden"), "{name} {fields}: {told}");
            assert!(is_open(&server, &session, &request), "{name} {fields}");
        }
        let fields = json!({ "behavior": "allow", "updatedInput": { "command": "echo changed" } });
        let (is_taken, told) = wire.answer(&session, &request, &fields);
        assert!(is_taken, "{name}: {told}");
        assert_eq!(outcome(&server, &session), "allowed", "{name}");
    }
    assert!(!server.work().join("made").exists());
}

/// Names in snake case and in camel case give the same rule, both for the check and for what is stored.
#[test]
fn a_rule_is_kept_as_it_was_checked() {
    let server = Server::start();
    let approve = server.verb(&["token", "create", "--scope", "approve"]);
    let update = |rule: &Value| {
        let update = json!({
            "type": "addRules", "destination": "session", "behavior": "allow", "rules": [rule],
        });
        json!({ "behavior": "allow", "updatedPermissions": [update] })
    };
    for token in [&approve, &server.token] {
        for mut wire in wires(&server, token) {
            let name = wire.name();
            let (session, request) = asking(&server, "touch one");
            for rule in [
                json!({ "toolName": "Write", "tool_name": "Bash", "rule_content": "touch one" }),
                json!({ "toolName": "Bash", "ruleContent": "touch one", "rule_content": "touch two" }),
                json!({ "toolName": "Bash", "ruleContent": "touch one", "content": "x" }),
                json!({ "toolName": "Bash", "rulecontent": "touch one" }),
            ] {
                let (is_taken, told) = wire.answer(&session, &request, &update(&rule));
                assert!(!is_taken, "{name} {rule}: {told}");
                assert!(is_open(&server, &session, &request), "{name} {rule}");
            }
            let narrow = json!({ "toolName": "Bash", "rule_content": "touch one" });
            let (is_taken, told) = wire.answer(&session, &request, &update(&narrow));
            assert!(is_taken, "{name}: {told}");
            let settled = server.until(&session, "requestSettled").pop().expect("it is settled");
            assert!(settled["reason"].to_string().contains("touch one"), "{name}: {settled}");
            server.until(&session, "turnCompleted");
            // Another call of the same tool is asked about.
            let path = format!("/v1/sessions/{session}/prompt");
            server.post(&path, &json!({ "prompt": "/bash touch two" }));
            let events = format!("/v1/sessions/{session}/events?limit=10000");
            let asked = |kind: &str| {
                let events = server.get(&events);
                let events = events["events"].as_array().expect("events").clone();
                events.into_iter().filter(|event| event["type"] == kind).count()
            };
            while asked("requestRaised") < 2 {
                assert!(asked("turnCompleted") < 2, "{name}: the second call was not asked for");
            }
            assert!(!server.work().join("two").exists(), "{name}");
        }
    }
}

/// The same for hooks: decisions and messages are accepted with names in either case, and nothing else.
#[test]
fn a_hook_is_answered_by_decisions_and_words() {
    let server = Server::start();
    let approve = server.verb(&["token", "create", "--scope", "approve"]);
    let begin = || {
        let config = json!({ "hooks": { "PermissionRequest": [{}] } });
        let body = json!({ "agentType": "demo", "prompt": "/bash touch made", "config": config });
        let session = server.post("/v1/sessions", &body)["id"].as_str().expect("an id").to_owned();
        let mut raised = Vec::new();
        while raised.len() < 2 {
            let events = server.get(&format!("/v1/sessions/{session}/events?limit=10000"));
            let events = events["events"].as_array().expect("events").clone();
            raised = events.into_iter().filter(|event| event["type"] == "requestRaised").collect();
        }
        let hook = raised.iter().find(|event| event["kind"] == "hook").expect("a hook");
        (session, hook["requestId"].as_str().expect("an id").to_owned())
    };
    let decision = |more: &str| {
        let mut decision = json!({ "behavior": "allow" });
        decision[more] =
            json!([{ "type": "setMode", "mode": "acceptEdits", "destination": "session" }]);
        json!({ "hookEventName": "PermissionRequest", "decision": decision })
    };
    for mut wire in wires(&server, &approve) {
        let name = wire.name();
        let (session, hook) = begin();
        for output in [
            json!({ "hookSpecificOutput": decision("updatedPermissions") }),
            json!({ "hookSpecificOutput": decision("updated_permissions") }),
            json!({ "hook_specific_output": decision("updated_permissions") }),
            json!({ "updated_permissions": [] }),
        ] {
            let (is_taken, told) = wire.answer(&session, &hook, &json!({ "hookOutput": output }));
            assert!(!is_taken && told.contains("forbidden"), "{name} {output}: {told}");
            assert!(is_open(&server, &session, &hook), "{name} {output}");
        }
        let output = json!({ "hook_specific_output": {
            "hook_event_name": "PermissionRequest", "decision": { "behavior": "deny", "message": "no" },
        } });
        let (is_taken, told) = wire.answer(&session, &hook, &json!({ "hookOutput": output }));
        assert!(is_taken, "{name}: {told}");
        server.until(&session, "turnCompleted");
    }
    assert!(!server.work().join("made").exists());
}

#[test]
fn nobody_resumes_the_operators_session_without_its_guards() {
    let server = Server::start();
    let drive = server.verb(&["token", "create", "--scope", "drive"]);
    let over = |token: &str, config: Value| {
        let body = json!({ "agentType": "demo", "prompt": "/say hi", "config": config });
        let created = server.ask_as(token, "POST", "/v1/sessions", Some(&body)).json();
        let session = created["id"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned();
        server.until(&session, "turnCompleted");
        server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
        session
    };
    let hooks = || json!({ "hooks": { "PreToolUse": [{}] } });
    for (config, field) in [
        (hooks(), "hooks"),
        (json!({ "env": { "GUARD": "on" } }), "env"),
        (json!({ "nativeArgs": ["--disallowedTools=Bash"] }), "nativeArgs"),
    ] {
        let session = over(&server.token, config.clone());
        for fork in [false, true] {
            for config in [json!({}), hooks()] {
                let mut body = json!({ "agentType": "demo", "prompt": "/say hi",
                    "sessionId": session, "config": config });
                if fork {
                    body["fork"] = json!(true);
                }
                let answer = server.ask_as(&drive, "POST", "/v1/sessions", Some(&body));
                assert_eq!(answer.code(), "forbidden", "{body}");
                assert!(
                    answer.text.contains(field) && !answer.text.contains("GUARD"),
                    "{answer:?}"
                );
            }
        }
        let body = json!({ "agentType": "demo", "prompt": "/say hi", "sessionId": session, "config": config });
        server.post("/v1/sessions", &body);
        // Neither a start without the guards nor a fork turns it into a session without guards.
        let mut session = session;
        for fork in [false, true] {
            let stopped = format!("/v1/sessions/{session}/stop");
            server.post(&stopped, &json!({}));
            let mut body =
                json!({ "agentType": "demo", "prompt": "/say hi", "sessionId": session });
            if fork {
                body["fork"] = json!(true);
            }
            let again = server.post("/v1/sessions", &body);
            session = again["id"].as_str().expect("an id").to_owned();
            server.until(&session, "turnCompleted");
            server.post(&format!("/v1/sessions/{session}/stop"), &json!({}));
            let body = json!({ "agentType": "demo", "prompt": "/say hi", "sessionId": session });
            let answer = server.ask_as(&drive, "POST", "/v1/sessions", Some(&body));
            assert_eq!(answer.code(), "forbidden", "{field} {fork}");
        }
    }
    // A client may leave out what it brought itself.
    let session = over(&drive, hooks());
    let body = json!({ "agentType": "demo", "prompt": "/say hi", "sessionId": session });
    assert_eq!(server.ask_as(&drive, "POST", "/v1/sessions", Some(&body)).status, 201);
}

#[test]
fn a_key_is_its_tokens_own() {
    let server = Server::start();
    let tokens = ["a", "b"]
        .map(|name| server.verb(&["token", "create", "--scope", "drive", "--name", name]));
    for key in ["7d2f9c1e-8a34-4b56-9c78-0d1e2f3a4b5c", "order-1"] {
        let send = |token: &str, path: &str, body: &Value| {
            let bearer = format!("Bearer {token}");
            let headers = [
                ("authorization", &*bearer),
                ("idempotency-key", key),
                ("content-type", "application/json"),
            ];
            server.raw("POST", path, &headers, body.to_string().as_bytes()).json()
        };
        let create = json!({ "agentType": "demo", "prompt": "/say hi" });
        let [first, second] =
            [0, 1].map(|at| send(&tokens[at], "/v1/sessions", &create)["id"].clone());
        assert_ne!(first, second, "{key}");
        assert_eq!(send(&tokens[0], "/v1/sessions", &create)["id"], first, "{key}");
        let path = format!("/v1/sessions/{}/prompt", first.as_str().expect("an id"));
        let prompt = json!({ "prompt": "/say again" });
        let [mine, theirs] = [0, 1].map(|at| send(&tokens[at], &path, &prompt));
        assert_ne!(mine["messageId"], theirs["messageId"], "{key}: {mine} {theirs}");
        assert_ne!(theirs["repeated"], true, "{key}: {theirs}");
        assert_eq!(send(&tokens[0], &path, &prompt)["repeated"], true, "{key}");
    }
}
