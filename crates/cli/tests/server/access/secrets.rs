//! Tokens and tickets appear only where they belong.

use std::path::Path;

use serde_json::json;

use crate::shared::Server;

/// All files in a directory tree that contain one of these words.
fn files_with(dir: &Path, words: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files_with(&path, words));
        } else if let Ok(bytes) = std::fs::read(&path) {
            let text = String::from_utf8_lossy(&bytes);
            if words.iter().any(|word| text.contains(word.as_str())) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// A `/proc` file of a process and all its descendants, as others see it.
fn shown(pid: &str, of: &str) -> String {
    let mut text = std::fs::read(format!("/proc/{pid}/{of}"))
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .unwrap_or_default();
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    for task in tasks {
        let children = std::fs::read_to_string(task.path().join("children")).unwrap_or_default();
        for child in children.split_whitespace() {
            text += "\n";
            text += &shown(child, of);
        }
    }
    text
}

#[test]
fn no_token_and_no_ticket_is_ever_told() {
    let server = Server::with(&["--log-level", "trace"]);
    let made = server.verb(&["token", "create", "--scope", "admin", "--name", "other"]);
    let mut secrets = vec![server.token.clone(), made.clone()];
    let bearer = format!("Bearer {made}");
    let hanging =
        server.session("/bash env; cat /proc/self/environ; cat /proc/self/cmdline\n/hang");
    // Every wire, with a token and with a ticket.
    let session = server.session("/say hi");
    server.until(&session, "turnCompleted");
    let paths = [
        (&server.http, format!("/v1/sessions/{session}/ws")),
        (&server.http, format!("/ws/sessions/{session}")),
        (&server.http, "/rpc".to_owned()),
        (&server.http, "/insights".to_owned()),
        (&server.insights, "/".to_owned()),
    ];
    for (address, path) in &paths {
        assert!(server.socket_at(address, path, &[("authorization", &bearer)]).is_ok());
        let ticket = server.ask_as(&made, "POST", "/v1/tickets", Some(&json!({}))).json();
        let ticket = ticket["ticket"].as_str().expect("a ticket").to_owned();
        let offered = format!("agentwire, ticket.{ticket}");
        let headers = [("sec-websocket-protocol", &*offered)];
        assert!(server.socket_at(address, path, &headers).is_ok());
        // Valid once, and not as a token.
        assert_eq!(server.socket_at(address, path, &headers).err(), Some(401));
        assert_eq!(server.ask_as(&ticket, "GET", "/v1/sessions", None).status, 401);
        secrets.push(ticket);
    }
    // In a URL they are not accepted.
    for query in ["token", "access_token", "ticket", "authorization"] {
        let path = format!("/v1/sessions?{query}={made}");
        assert_eq!(server.raw("GET", &path, &[], b"").status, 401);
    }
    // Errors do not repeat them.
    for value in [format!("Basic {made}"), format!("bearer{made}"), format!("Bearer x{made}")] {
        let answer = server.raw("GET", "/v1/sessions", &[("authorization", &value)], b"");
        assert_eq!(answer.status, 401);
        assert!(!answer.text.contains(&made), "{answer:?}");
    }
    let answer = server.raw("BREW", "/v1/sessions", &[("authorization", &bearer)], b"");
    assert!(!answer.text.contains(&made), "{answer:?}");
    let request = server.until(&hanging, "requestRaised").pop().expect("it")["requestId"].clone();
    let place = format!("/v1/sessions/{hanging}/requests/{}", request.as_str().expect("an id"));
    server.post(&place, &json!({ "behavior": "allow" }));
    let printed = server.until(&hanging, "toolCompleted");
    let printed = serde_json::to_string(&printed).expect("JSON");
    assert!(printed.contains("PATH="), "{printed}");
    let pid = server.pid().to_string();
    let (words, variables) = (shown(&pid, "cmdline"), shown(&pid, "environ"));
    assert!(words.contains("demo-agent"), "{words}");
    assert!(variables.contains("PATH="), "{variables}");
    let said = server.said();
    assert!(said.contains("TRACE") || said.contains("DEBUG"), "{said}");
    for secret in &secrets {
        for (what, text) in
            [("log", &said), ("argv", &words), ("environment", &variables), ("agent", &printed)]
        {
            assert!(!text.contains(secret), "a secret is in the {what}");
        }
    }
    // Not even the operator's token.
    assert_eq!(files_with(&server.data(), &secrets), Vec::<String>::new());
    assert_eq!(files_with(&server.work(), &secrets), Vec::<String>::new());
    assert!(!server.ready.to_string().contains(&server.token));
}
