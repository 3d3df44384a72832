//! What each scope may do, on every wire.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};

use crate::shared::{Server, Socket};

const SCOPES: [&str; 4] = ["watch", "drive", "approve", "admin"];

fn tokens(server: &Server) -> Vec<(&'static str, String)> {
    let token = |scope| server.verb(&["token", "create", "--scope", scope, "--name", scope]);
    SCOPES.map(|scope| (scope, token(scope))).into()
}

fn allows(has: &str, needs: &str) -> bool {
    needs == "watch" || has == "admin" || has == needs
}

/// Every route with every scope.
#[test]
fn every_route_needs_what_it_says() {
    let server = Server::start();
    let tokens = tokens(&server);
    let session = server.session("/hang");
    let document = server.get("/openapi.json");
    let mut tried = 0;
    for (path, acts) in document["paths"].as_object().expect("paths") {
        for (method, act) in acts.as_object().expect("methods") {
            let Some(needs) = act["x-scope"].as_str() else {
                let open = ["/healthz", "/", "/page.js", "/page.css", "/v1/sign-in"];
                assert!(open.contains(&path.as_str()), "{path}");
                continue;
            };
            // Requests that would stop or delete the session use an unknown one.
            let id = match method.as_str() {
                "get" => session.as_str(),
                _ => "00000000-0000-4000-8000-000000000000",
            };
            let place = path.replace("{id}", id).replace("{request}", "none");
            for (scope, token) in &tokens {
                let method = method.to_ascii_uppercase();
                let answer = server.ask_as(token, &method, &place, Some(&json!({})));
                let may = allows(scope, needs);
                assert_eq!(answer.status == 403, !may, "{scope}: {method} {place} {answer:?}");
                assert_ne!(answer.status, 401, "{scope}: {method} {place}");
                assert!(answer.status < 500, "{scope}: {method} {place} {answer:?}");
                if !may {
                    assert_eq!(answer.code(), "forbidden");
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 90, "{tried}");
}

/// Options that give an agent more power than a session has by default, each with such a value.
fn wide() -> Vec<(&'static str, Value)> {
    vec![
        ("approvalMode", json!("autoAll")),
        ("approvalMode", json!("autoEdit")),
        ("approvalMode", json!("askDangerous")),
        ("permissionMode", json!("bypassPermissions")),
        ("permissionMode", json!("acceptEdits")),
        ("sandboxMode", json!("none")),
        ("sandboxMode", json!("fullAccess")),
        ("sandbox", json!({ "enabled": false })),
        ("allowedTools", json!(["Bash"])),
        ("additionalDirectories", json!(["/"])),
        ("mcpServers", json!({ "x": { "command": "true" } })),
        ("settingSources", json!(["user"])),
        ("settingSources", json!([])),
        ("trust", json!(true)),
        ("env", json!({ "A": "b" })),
        ("nativeArgs", json!(["--dangerously-skip-permissions"])),
        ("nativeOptions", json!({ "x": 1 })),
    ]
}

#[test]
fn what_widens_power_needs_admin_on_every_wire() {
    let server = Server::start();
    let tokens = tokens(&server);
    let session = server.session("/hang");
    let socket = |token: &str, address: &str, path: &str| -> Socket {
        let bearer = format!("Bearer {token}");
        server.socket_at(address, path, &[("authorization", &bearer)]).expect("it opens")
    };
    for (scope, token) in &tokens[1..3] {
        let mut unified = socket(token, &server.http, &format!("/v1/sessions/{session}/ws"));
        let mut rpc = socket(token, &server.http, "/rpc");
        for (number, (field, value)) in wide().into_iter().enumerate() {
            let config = json!({ field: value });
            let body = json!({ "agentType": "demo", "prompt": "/say hi", "config": config });
            let answer = server.ask_as(token, "POST", "/v1/sessions", Some(&body));
            assert_eq!((answer.status, &*answer.code()), (403, "forbidden"), "{scope} {config}");
            unified.say(&json!({ "id": number, "command": "start", "agentType": "demo",
                "prompt": "/say hi", "config": config }));
            let reply = unified.until(|frame| frame["id"] == number && frame.get("type").is_none());
            assert_eq!(reply["error"]["code"], "forbidden", "{scope} {config} {reply}");
            rpc.say(&json!({ "jsonrpc": "2.0", "id": number, "method": "session/create",
                "params": { "agent": "demo", "prompt": "/say hi", "options": config } }));
            let reply = rpc.until(|frame| frame["id"] == number);
            assert_eq!(reply["error"]["data"]["code"], "forbidden", "{scope} {config} {reply}");
        }
        // A running session.
        for change in
            [json!({ "approvalMode": "autoAll" }), json!({ "permissionMode": "bypassPermissions" })]
        {
            let place = format!("/v1/sessions/{session}");
            assert_eq!(server.ask_as(token, "PATCH", &place, Some(&change)).status, 403);
            let mut frame = change.clone();
            frame["id"] = json!("c");
            frame["command"] = json!("configure");
            unified.say(&frame);
            let reply = unified.until(|frame| frame["id"] == "c" && frame.get("type").is_none());
            assert_eq!(reply["error"]["code"], "forbidden", "{scope} {reply}");
        }
        // Queries to the agent that are really commands.
        for (method, args) in [
            ("setPermissionMode", json!(["bypassPermissions"])),
            ("setPermissionMode", json!([])),
            ("control", json!([{ "subtype": "set_permission_mode", "mode": "bypassPermissions" }])),
            ("mcpSetServers", json!([{ "x": { "command": "true" } }])),
            ("setConfigOption", json!(["mode", "yolo"])),
            ("somethingNew", json!([])),
        ] {
            let body = json!({ "method": method, "args": args });
            let place = format!("/v1/sessions/{session}/query");
            let answer = server.ask_as(token, "POST", &place, Some(&body));
            assert_eq!(answer.status, 403, "{scope} {body} {answer:?}");
            unified.say(&json!({ "id": "q", "command": "query", "method": method, "args": args }));
            let reply = unified.until(|frame| frame["id"] == "q" && frame.get("type").is_none());
            assert_eq!(reply["error"]["code"], "forbidden", "{scope} {reply}");
            rpc.say(&json!({ "jsonrpc": "2.0", "id": "q", "method": "query",
                "params": { "sessionId": session, "method": method, "args": args } }));
            let reply = rpc.until(|frame| frame["id"] == "q");
            assert_eq!(reply["error"]["data"]["code"], "forbidden", "{scope} {reply}");
        }
        // Insights.
        for (address, path) in [(&server.http, "/insights"), (&server.insights, "/")] {
            let mut page = socket(token, address, path);
            for extra in [
                json!({ "permission_mode": "bypassPermissions" }),
                json!({ "permission_mode": "acceptEdits" }),
                json!({ "allowed_tools": ["Bash"] }),
            ] {
                let mut payload = json!({ "prompt": "/say hi", "cwd": server.work(),
                    "allowed_tools": [], "permission_mode": "default" });
                for (name, value) in extra.as_object().expect("fields") {
                    payload[name] = value.clone();
                }
                page.say(&json!({ "type": "session.create", "payload": payload }));
                let refused = page.frame();
                assert_eq!(refused["type"], "error", "{scope} {extra} {refused}");
            }
        }
    }
    // Rules in an answer that go beyond the request.
    let asking = server.session("/write a.txt x");
    let request = server.until(&asking, "requestRaised").pop().expect("it")["requestId"].clone();
    let place = format!("/v1/sessions/{asking}/requests/{}", request.as_str().expect("an id"));
    for updates in [
        json!([{ "type": "setMode", "mode": "bypassPermissions", "destination": "session" }]),
        json!([{ "type": "addDirectories", "directories": ["/"], "destination": "session" }]),
        json!([{ "type": "removeRules", "rules": [], "behavior": "deny" }]),
        json!({}),
    ] {
        let body = json!({ "behavior": "allow", "updatedPermissions": updates });
        let answer = server.ask_as(&tokens[2].1, "POST", &place, Some(&body));
        assert_eq!(answer.status, 403, "{updates} {answer:?}");
    }
    // None of this started anything, and an admin may do all of it.
    assert_eq!(server.get("/v1/sessions")["sessions"].as_array().map(Vec::len), Some(2));
    let body = json!({ "agentType": "demo", "prompt": "/say hi",
        "config": { "approvalMode": "autoAll", "env": { "A": "b" } } });
    assert_eq!(server.ask_as(&tokens[3].1, "POST", "/v1/sessions", Some(&body)).status, 201);
}

/// Missing scopes are missing on every wire.
#[test]
fn a_scope_holds_on_every_wire() {
    let server = Server::start();
    let tokens = tokens(&server);
    let session = server.session("/write a.txt x");
    let request = server.until(&session, "requestRaised").pop().expect("it")["requestId"].clone();
    let acts = [
        ("prompt", json!({ "prompt": "/say x" }), "drive"),
        ("interrupt", json!({}), "drive"),
        ("configure", json!({ "model": "x" }), "drive"),
        ("query", json!({ "method": "supportedModels", "args": [] }), "drive"),
        ("stop", json!({}), "drive"),
        ("start", json!({ "agentType": "demo", "prompt": "/say x" }), "drive"),
        ("settle", json!({ "requestId": request, "behavior": "allow" }), "approve"),
    ];
    for (scope, token) in &tokens[..3] {
        let bearer = [("authorization", format!("Bearer {token}"))];
        let headers = [("authorization", bearer[0].1.as_str())];
        let path = format!("/v1/sessions/{session}/ws");
        let mut unified = server.socket_at(&server.http, &path, &headers).expect("it opens");
        let mut rpc = server.socket_at(&server.http, "/rpc", &headers).expect("it opens");
        for (command, fields, needs) in &acts {
            if allows(scope, needs) {
                continue;
            }
            let mut frame = fields.clone();
            frame["id"] = json!(command);
            frame["command"] = json!(command);
            unified.say(&frame);
            let reply =
                unified.until(|frame| frame["id"] == *command && frame.get("type").is_none());
            assert_eq!(reply["error"]["code"], "forbidden", "{scope} {command} {reply}");
            let method = match *command {
                "prompt" => "session/send",
                "interrupt" => "session/interrupt",
                "stop" => "session/kill",
                "start" => "session/create",
                "query" => "query",
                "settle" => "request/settle",
                _ => continue,
            };
            let mut params = fields.clone();
            params["sessionId"] = json!(session);
            if method == "session/create" {
                params = json!({ "agent": "demo", "prompt": "/say x" });
            }
            rpc.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }));
            let reply = rpc.until(|frame| frame["id"] == 1);
            assert_eq!(reply["error"]["data"]["code"], "forbidden", "{scope} {method} {reply}");
        }
    }
    assert_eq!(server.get("/v1/requests")["requests"].as_array().map(Vec::len), Some(1));
}

/// A revoked token is invalid, and its connections end.
#[test]
fn a_revoked_token_ends_what_it_opened() {
    let server = Server::start();
    let token = server.verb(&["token", "create", "--scope", "admin", "--name", "lost"]);
    let session = server.session("/hang");
    let bearer = format!("Bearer {token}");
    let headers = [("authorization", bearer.as_str())];
    let open = |path: &str| server.socket_at(&server.http, path, &headers).expect("it opens");
    let mut socket = open(&format!("/v1/sessions/{session}/ws"));
    let mut board = open(&format!("/ws/sessions/{session}"));
    let mut stream = server.stream();
    let head = format!(
        "GET /v1/sessions/{session}/events HTTP/1.1\r\nhost: {}\r\nauthorization: {bearer}\r\n\
         accept: text/event-stream\r\n\r\n",
        server.http
    );
    stream.write_all(head.as_bytes()).expect("it listens");
    let ticket = server.ask_as(&token, "POST", "/v1/tickets", Some(&json!({}))).json();
    let listed: Value =
        serde_json::from_str(&server.verb(&["token", "ls", "--json"])).expect("JSON");
    server.verb(&["token", "revoke", listed["tokens"][0]["id"].as_str().expect("an id")]);
    assert_eq!(server.ask_as(&token, "GET", "/v1/sessions", None).status, 401);
    let offered = format!("agentwire, ticket.{}", ticket["ticket"].as_str().expect("a ticket"));
    let headers = [("sec-websocket-protocol", offered.as_str())];
    assert_eq!(server.socket_at(&server.http, "/rpc", &headers).err(), Some(401));
    // A command is refused at once; streams end soon.
    socket.say(&json!({ "id": 1, "command": "stop" }));
    let refused = socket.until(|frame| frame["id"] == 1 && frame.get("type").is_none());
    assert_eq!(refused["error"]["code"], "unauthorized");
    assert_eq!(socket.closed(), (1008, "the token is no longer valid".to_owned()));
    assert_eq!(board.closed(), (1008, "the token is no longer valid".to_owned()));
    let mut rest = Vec::new();
    stream.read_to_end(&mut rest).expect("it ends");
    assert_eq!(server.get(&format!("/v1/sessions/{session}"))["state"], "working");
}

/// Others may see a ticket, so it is valid only for a WebSocket.
#[test]
fn a_ticket_opens_nothing_but_a_socket() {
    let server = Server::start();
    let ticket = server.post("/v1/tickets", &json!({}));
    let offered = format!("agentwire, ticket.{}", ticket["ticket"].as_str().expect("a ticket"));
    let headers = [("upgrade", "websocket"), ("sec-websocket-protocol", offered.as_str())];
    for path in ["/v1/sessions", "/v1/status", "/v1/requests", "/openapi.json", "/rpc/x"] {
        assert_eq!(server.raw("GET", path, &headers, b"").status, 401, "{path}");
    }
    let mut socket = server
        .socket_at(&server.http, "/rpc", &[("sec-websocket-protocol", &offered)])
        .expect("it is still valid");
    socket.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/list", "params": {} }));
    assert!(socket.until(|frame| frame["id"] == 1)["result"].is_object());
}

/// For a client with limited scope, an agent that cannot ask must be read-only, whichever part of that
/// comes from the client and whichever from the settings.
#[test]
fn an_agent_that_cannot_ask_only_reads_for_a_limited_client() {
    let exec = "[agents.codex]\ncommand = 'false'\ndriver = 'exec'\n";
    let plain = "[agents.codex]\ncommand = 'false'\n[agents.gemini]\ncommand = 'false'\n";
    let gemini = "[agents.gemini]\ncommand = 'false'\ndriver = 'stream-json'\n";
    let policy = |mode: &str| format!("[policy]\napproval = '{mode}'\n");
    let write = json!({ "sandboxMode": "workspaceWrite" });
    let read = json!({ "sandboxMode": "readOnly" });
    let ask = json!({ "approvalMode": "ask" });
    let stream = json!({ "driver": "stream-json" });
    for (settings, agent, table) in [
        (
            exec.to_owned(),
            "codex",
            vec![(write.clone(), false), (read.clone(), true), (json!({}), true)],
        ),
        (
            format!("{plain}{}", policy("askDangerous")),
            "codex",
            vec![
                (json!({ "driver": "exec" }), false),
                (json!({ "driver": "exec", "approvalMode": "ask" }), true),
                (json!({ "driver": "exec", "sandboxMode": "readOnly" }), true),
                (json!({ "driver": "exec", "sandboxMode": "workspaceWrite" }), false),
                (json!({ "driver": "app-server", "sandboxMode": "workspaceWrite" }), true),
                (write.clone(), true),
            ],
        ),
        (
            format!("{exec}{}", policy("autoAll")),
            "codex",
            vec![(json!({}), false), (write, false), (read, true), (ask.clone(), true)],
        ),
        (
            format!("{plain}{}", policy("autoEdit")),
            "gemini",
            vec![(stream.clone(), false), (json!({}), true)],
        ),
        (format!("{plain}{}", policy("askDangerous")), "gemini", vec![(stream, true)]),
        (format!("{gemini}{}", policy("autoAll")), "gemini", vec![(json!({}), false), (ask, true)]),
    ] {
        let server = Server::with_settings(&settings);
        let token = server.verb(&["token", "create", "--scope", "drive", "--name", "drive"]);
        for (config, may) in table {
            let mut config = config;
            config["workingDirectory"] = json!(server.work());
            let body = json!({ "agentType": agent, "prompt": "hi", "config": config });
            let answer = server.ask_as(&token, "POST", "/v1/sessions", Some(&body));
            let is_refused = answer.status == 403 && answer.code() == "forbidden";
            assert_eq!(is_refused, !may, "{settings} {config} {answer:?}");
            let answer = server.ask("POST", "/v1/sessions", Some(&body));
            assert_ne!(answer.status, 403, "admin: {settings} {config} {answer:?}");
        }
    }
}
