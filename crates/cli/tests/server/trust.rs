//! The question whether a project is trusted is a request like any other, on every wire.

use serde_json::{Value, json};

use crate::shared::{AGENTWIRE, Server, write_program};

/// A server whose agent `claude` logs its arguments, in a project with a hook.
fn server() -> Server {
    // The demo agent does not know this flag.
    let script = format!(
        "#!/bin/sh\necho \"$*\" >> ../argv.log\n\
         for word do shift; [ \"$word\" = --strict-mcp-config ] || set -- \"$@\" \"$word\"; done\n\
         exec {AGENTWIRE} demo-agent --state-dir=../demo \"$@\"\n"
    );
    let settings = "[agents.claude]\ncommand = \"WORK/../home/claude\"\n";
    let server = Server::set_up(&[], settings, |command, home| {
        write_program(&home.join("home/claude"), &script);
        // Pages do not say which agent they want.
        command.env("AGENTWIRE_AGENT", "claude");
    });
    change(&server, "true");
    server
}

/// Changes the project's hook, so that it is asked about again.
fn change(server: &Server, command: &str) {
    let hook = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
    let text = json!({ "hooks": { "SessionStart": hook } }).to_string();
    std::fs::create_dir_all(server.work().join(".claude")).expect("a directory");
    std::fs::write(server.work().join(".claude/settings.json"), text).expect("a file");
}

fn starts(server: &Server) -> Vec<String> {
    let log = server.work().join("../argv.log");
    let log = std::fs::read_to_string(log).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

/// Whether the last agent was started with the project's settings.
fn is_trusted(server: &Server) -> bool {
    !starts(server).last().expect("a start").contains("--setting-sources=user")
}

fn session(server: &Server) -> String {
    let body = json!({ "agentType": "claude", "prompt": "/say hi" });
    server.post("/v1/sessions", &body)["id"].as_str().expect("an id").to_owned()
}

#[test]
fn the_inbox_has_it_and_takes_the_answer() {
    let server = server();
    let id = session(&server);
    server.until_open(&id);
    let inbox = server.get("/v1/requests?state=open");
    let request = &inbox["requests"][0];
    assert_eq!(request["sessionId"], id, "{inbox}");
    assert_eq!(request["toolName"], "TrustDirectory", "{inbox}");
    assert_eq!(request["input"]["files"][0]["runs"][0], "hooks.SessionStart: true", "{inbox}");
    assert_eq!(server.get(&format!("/v1/sessions/{id}"))["state"], "waitingPermission");
    assert!(starts(&server).is_empty());
    let path =
        format!("/v1/sessions/{id}/requests/{}", request["requestId"].as_str().expect("an id"));
    server.post(&path, &json!({ "behavior": "allow" }));
    server.until(&id, "turnCompleted");
    assert!(is_trusted(&server));
    // The answer is stored, also for the next server.
    let server = server.again();
    let id = session(&server);
    let events = server.until(&id, "turnCompleted");
    assert!(!events.iter().any(|event| event["type"] == "requestRaised"), "{events:?}");
}

#[test]
fn every_wire_asks_and_answers() {
    let server = server();
    // The unified protocol.
    let id = session(&server);
    let mut unified = server.socket(&format!("/v1/sessions/{id}/ws"));
    let asked = unified.until(|frame| frame["type"] == "requestRaised");
    unified.say(&json!({ "id": 2, "command": "settle", "requestId": asked["requestId"],
        "behavior": "deny" }));
    unified.until(|frame| frame["type"] == "turnCompleted");
    assert!(!is_trusted(&server));
    // JSON-RPC.
    let mut rpc = server.socket("/rpc");
    let params = json!({ "agent": "claude", "prompt": "/say hi" });
    rpc.say(&json!({ "jsonrpc": "2.0", "id": 1, "method": "session/create", "params": params }));
    let asked = rpc.until(|frame| frame["method"] == "request")["params"].clone();
    assert_eq!(asked["request"]["toolName"], "TrustDirectory", "{asked}");
    let params = json!({ "sessionId": asked["sessionId"], "behavior": "allow",
        "requestId": asked["request"]["requestId"] });
    rpc.say(&json!({ "jsonrpc": "2.0", "id": 2, "method": "request/settle", "params": params }));
    rpc.until(|frame| frame["params"]["message"]["type"] == "result");
    assert!(is_trusted(&server));
    // The command line.
    change(&server, "false");
    let id = session(&server);
    server.until(&id, "requestRaised");
    let list = server.verb(&["permit", "ls"]);
    assert!(list.contains("TrustDirectory"), "{list}");
    let open = server.get("/v1/requests?state=open");
    let request = open["requests"][0]["requestId"].as_str().expect("an id").to_owned();
    server.verb(&["permit", "deny", &request]);
    let events = server.until(&id, "turnCompleted");
    assert!(!is_trusted(&server));
    let warned = |event: &Value| {
        let message = event["message"].as_str().unwrap_or_default();
        event["status"] == "warning" && message.contains("starts without the project's settings")
    };
    assert!(events.iter().any(warned), "{events:?}");
}

/// A page is asked like any other client, and before the agent starts.
#[test]
fn a_page_is_asked_and_answers() {
    for is_approved in [false, true] {
        let server = server();
        let bearer = format!("Bearer {}", server.token);
        let mut page = server
            .socket_at(&server.insights, "/", &[("authorization", &bearer)])
            .expect("the socket opens");
        let id = "6b1f2f0e-9d0c-4a6e-8a53-0d1c2b3a4f5e";
        page.say(
            &json!({ "type": "session.create", "id": id, "payload": { "prompt": "/say hi" } }),
        );
        let mut until = |kind: &str| {
            page.until(|frame| {
                crate::specified::insights(frame);
                assert_ne!(frame["type"], "error", "{frame}");
                frame["type"] == kind
            })
        };
        let asked = until("permission.request")["payload"].clone();
        assert_eq!(asked["tool_name"], "TrustDirectory", "{asked}");
        assert_eq!(asked["tool_input"]["files"][0]["runs"][0], "hooks.SessionStart: true");
        assert!(starts(&server).is_empty(), "it started before it was asked about");
        let answer = json!({ "session_id": asked["session_id"], "approved": is_approved,
            "permission_id": asked["permission_id"] });
        page.say(&json!({ "type": "permission.response", "id": id, "payload": answer }));
        page.until(|frame| frame["type"] == "session.completed");
        assert_eq!(is_trusted(&server), is_approved);
    }
}

/// Only the operator may declare a project trusted without a request; anyone may declare it untrusted.
#[test]
fn a_start_may_say_whether_it_is_trusted() {
    let server = server();
    let drive = server.verb(&["token", "create", "--scope", "drive"]);
    let body = |trust: bool| json!({ "agentType": "claude", "prompt": "/say hi", "config": { "trust": trust } });
    let refused = server.ask_as(&drive, "POST", "/v1/sessions", Some(&body(true)));
    assert_eq!((refused.status, &*refused.code()), (403, "forbidden"));
    let begun = server.ask_as(&drive, "POST", "/v1/sessions", Some(&body(false)));
    assert_eq!(begun.status, 201, "{begun:?}");
    server.until(begun.json()["id"].as_str().expect("an id"), "turnCompleted");
    assert!(!is_trusted(&server));
    let id = server.post("/v1/sessions", &body(true))["id"].as_str().expect("an id").to_owned();
    server.until(&id, "turnCompleted");
    assert!(is_trusted(&server));
}
