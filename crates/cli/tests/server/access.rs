//! Who may connect, and what they need.

mod answers;
mod audit;
mod bad_input;
mod chromium;
mod descriptors;
mod host_and_origin;
mod many_clients;
mod own_files;
mod page_text;
mod scopes;
mod secrets;
mod shutdown;
mod size_limits;
mod tls;

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use crate::shared::Server;

/// Without a token, only `/healthz` and the page's files are served, whatever the route, method or path.
#[test]
fn nothing_is_open() {
    let server = Server::start();
    let document = server.get("/openapi.json");
    let paths = document["paths"].as_object().expect("paths");
    assert!(paths.len() > 20, "{paths:?}");
    let id = "00000000-0000-4000-8000-000000000000";
    let mut tried = 0;
    for path in paths.keys().map(String::as_str).chain(["/", "/nothing", "/v1", "//", "/healthz/"])
    {
        let place = path.replace("{id}", id).replace("{request}", "r");
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "X"] {
            for headers in [
                vec![],
                vec![("authorization", "Bearer x")],
                vec![("authorization", "Basic eDp5")],
                vec![("cookie", "token=x")],
            ] {
                let headers: Vec<_> =
                    headers.into_iter().chain([("content-type", "application/json")]).collect();
                if method == "HEAD" {
                    continue;
                }
                let answer = server.raw(method, &place, &headers, b"{}");
                tried += 1;
                match path {
                    "/healthz" | "/" | "/page.js" | "/page.css" => {
                        assert!(answer.status == 200 || answer.status == 405, "{answer:?}");
                    }
                    _ => assert_eq!(
                        (answer.status, answer.code().as_str()),
                        (401, "unauthorized"),
                        "{method} {place}"
                    ),
                }
                assert!(!answer.headers.keys().any(|name| name.starts_with("access-control")));
                assert!(!answer.headers.contains_key("set-cookie"));
            }
        }
    }
    assert!(tried > 500);
    for path in ["/insights", "/rpc", &format!("/v1/sessions/{id}/ws")] {
        assert_eq!(server.socket_at(&server.http, path, &[]).err(), Some(401));
    }
    assert_eq!(server.socket_at(&server.insights, "/", &[]).err(), Some(401));
}

#[test]
fn pages_of_others_are_refused_though_they_have_the_token() {
    let server = Server::start();
    let bearer = format!("Bearer {}", server.token);
    let port = server.http.rsplit(':').next().expect("a port");
    let get = |more: &[(&str, &str)]| {
        let headers: Vec<_> = [("authorization", &*bearer)].iter().chain(more).copied().collect();
        server.raw("GET", "/v1/sessions", &headers, b"").status
    };
    assert_eq!(get(&[]), 200);
    assert_eq!(get(&[("origin", &format!("http://{}", server.http))]), 200);
    assert_eq!(get(&[("host", &format!("localhost:{port}"))]), 200);
    for refused in [
        ("origin", "http://evil.example"),
        ("origin", "null"),
        ("sec-fetch-site", "cross-site"),
        ("sec-fetch-site", "same-site"),
        ("host", "evil.example"),
        ("host", "127.0.0.1"),
    ] {
        assert_eq!(get(&[refused]), 403, "{refused:?}");
    }
    let text = [("authorization", &*bearer), ("content-type", "text/plain")];
    let body = json!({ "agentType": "demo", "prompt": "x" }).to_string();
    assert_eq!(server.raw("POST", "/v1/sessions", &text, body.as_bytes()).status, 415);
    let origin = [("authorization", &*bearer), ("origin", "http://evil.example")];
    assert_eq!(server.socket_at(&server.http, "/rpc", &origin).err(), Some(403));
    assert_eq!(server.get("/v1/sessions")["sessions"], json!([]));
}

#[test]
fn a_ticket_opens_one_socket() {
    let server = Server::start();
    let ticket = server.post("/v1/tickets", &json!({}))["ticket"].as_str().expect("one").to_owned();
    let offered = format!("agentwire, ticket.{ticket}");
    let headers = [("sec-websocket-protocol", &*offered)];
    assert!(server.socket_at(&server.http, "/rpc", &headers).is_ok());
    assert_eq!(server.socket_at(&server.http, "/rpc", &headers).err(), Some(401));
}

#[test]
fn without_tokens_only_loopback_and_only_our_own_pages() {
    let server = Server::with(&["--auth", "off"]);
    assert_eq!(server.raw("GET", "/v1/sessions", &[], b"").status, 200);
    assert_eq!(server.raw("GET", "/v1/sessions", &[("host", "evil.example")], b"").status, 403);
    let origin = [("origin", "http://evil.example")];
    assert_eq!(server.raw("GET", "/v1/sessions", &origin, b"").status, 403);
    let refused = std::process::Command::new(env!("CARGO_BIN_EXE_agentwire"))
        .args(["serve", "--auth", "off", "--http", "0.0.0.0:0"])
        .env("AGENTWIRE_DATA_DIR", server.data())
        .output()
        .expect("it runs");
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("loopback"));
}

#[test]
fn what_it_writes_is_its_owners_alone() {
    let server = Server::start();
    let token = std::path::PathBuf::from(server.ready["tokenFile"].as_str().expect("a file"));
    let place = token.parent().expect("a directory").to_owned();
    for (path, expected) in [
        (server.data().join("operator.json"), 0o600),
        (server.data().join("server.json"), 0o600),
        (token, 0o600),
        (place, 0o700),
    ] {
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, expected, "{path:?}");
    }
    let found = std::fs::read_to_string(server.data().join("server.json")).expect("a file");
    assert!(!found.contains(&server.token));
}
