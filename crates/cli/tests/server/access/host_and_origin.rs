//! Which names a client may use for the server, and which pages may connect.

use std::io::{Read as _, Write as _};

use serde_json::json;

use crate::shared::Server;

/// Sends these bytes. Returns the status of the answer; `None` if there is no answer.
fn say(server: &Server, head: &str) -> Option<u16> {
    let mut stream = server.stream();
    stream.write_all(head.as_bytes()).expect("it listens");
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer).into_owned();
    assert!(!answer.to_ascii_lowercase().contains("access-control"), "{answer}");
    assert!(!answer.to_ascii_lowercase().contains("set-cookie"), "{answer}");
    let status = answer.strip_prefix("HTTP/1.1 ").or(answer.strip_prefix("HTTP/1.0 "));
    status.and_then(|rest| rest.get(..3)?.parse().ok())
}

fn asking(server: &Server, target: &str, headers: &str) -> String {
    let token = &server.token;
    format!(
        "GET {target} HTTP/1.1\r\n{headers}authorization: Bearer {token}\r\nconnection: close\r\n\r\n"
    )
}

#[test]
fn only_our_own_names_are_answered() {
    let server = Server::start();
    let port = server.http.rsplit(':').next().expect("a port").to_owned();
    let other = if port == "8080" { "8081" } else { "8080" };
    for host in ["127.0.0.1:P", "localhost:P", "LocalHost:P", "[::1]:P"] {
        let host = host.replace('P', &port);
        let head = asking(&server, "/v1/sessions", &format!("host: {host}\r\n"));
        assert_eq!(say(&server, &head), Some(200), "{host}");
        let target = format!("http://{host}/v1/sessions");
        let head = asking(&server, &target, &format!("host: {host}\r\n"));
        assert_eq!(say(&server, &head), Some(200), "{target}");
    }
    let wrong = [
        "",
        "P",
        ":P",
        "127.0.0.1",
        "localhost",
        "[::1]",
        "localhost:",
        "localhost:80",
        "localhost:443",
        "localhost:O",
        "127.0.0.1:O",
        "[::1]:O",
        "localhost:0P",
        "localhost:+P",
        "localhost:P0",
        "localhost:-1",
        "localhost:99999999",
        "localhost:P:P",
        "localhost.:P",
        "localhost:P.",
        "127.0.0.1.:P",
        "127.0.0.1:0xP",
        "127.1:P",
        "127.0.1:P",
        "127.0.0.2:P",
        "127.0.0.1%00:P",
        "0127.0.0.1:P",
        "2130706433:P",
        "0x7f000001:P",
        "017700000001:P",
        "0.0.0.0:P",
        "0:P",
        "[::]:P",
        "::1:P",
        "[::1:P",
        "[0:0:0:0:0:0:0:1]:P",
        "[::1%25lo]:P",
        "[::ffff:127.0.0.1]:P",
        "[::ffff:7f00:1]:P",
        "[::127.0.0.1]:P",
        "evil.example",
        "evil.example:P",
        "localhost.evil.example:P",
        "evil.localhost:P",
        "127.0.0.1.nip.io:P",
        "localhost:P.evil.example",
        "localhost:P@evil.example",
        "evil.example@localhost:P",
        "user:pass@localhost:P",
        "localhost:P,evil.example",
        "localhost:P, localhost:P",
        "localhost:P evil.example",
        "evil.example localhost:P",
        "localhost:P/",
        "localhost:P/x",
        "localhost:P?",
        "localhost:P#",
        "localhost:P\\",
        "//localhost:P",
        "http://localhost:P",
        "http://127.0.0.1:P/",
        "\"localhost:P\"",
        "'localhost:P'",
        "localhost;P",
        "local host:P",
        "localhost\t:P",
        "ⅼocalhost:P",
        "localhost：P",
        "lоcalhost:P",
        "xn--localhost:P",
        "*",
        "*:P",
        "null",
        "undefined",
        "localhost:P\u{7f}",
        "agents.example",
    ];
    assert!(wrong.len() >= 60);
    for host in wrong {
        let host = host.replace('P', &port).replace('O', other);
        let head = asking(&server, "/v1/sessions", &format!("host: {host}\r\n"));
        let status = say(&server, &head);
        assert!(matches!(status, Some(400 | 403)), "{host:?} {status:?}");
    }
    let own = format!("host: localhost:{port}\r\n");
    for headers in [
        String::new(),
        own.repeat(2),
        format!("{own}host: evil.example\r\n"),
        format!("host: evil.example\r\n{own}"),
        format!("host: evil.example\r\nx-forwarded-host: localhost:{port}\r\n"),
        format!("host: evil.example\r\nforwarded: host=localhost:{port}\r\n"),
        format!(
            "host: evil.example\r\nx-host: localhost:{port}\r\n:authority: localhost:{port}\r\n"
        ),
        format!("host: localhost\r\n :{port}\r\n"),
        format!("host : localhost:{port}\r\n"),
    ] {
        let status = say(&server, &asking(&server, "/v1/sessions", &headers));
        assert!(matches!(status, Some(400 | 403)), "{headers:?} {status:?}");
    }
    for target in [
        "http://evil.example/v1/sessions".to_owned(),
        format!("http://evil.example:{port}/v1/sessions"),
        format!("http://user@localhost:{port}/v1/sessions"),
        format!("http://127.0.0.1:{port}/v1/sessions"),
        "//evil.example/v1/sessions".to_owned(),
    ] {
        let status = say(&server, &asking(&server, &target, &own));
        assert!(matches!(status, Some(400 | 403 | 404)), "{target} {status:?}");
    }
    // A request without a Host is refused in every version.
    let old =
        format!("GET /v1/sessions HTTP/1.0\r\nauthorization: Bearer {}\r\n\r\n", server.token);
    assert!(matches!(say(&server, &old), Some(400 | 403)));
}

#[test]
fn only_our_own_pages_are_answered() {
    for args in [&[][..], &["--auth", "off"]] {
        let server = Server::with(args);
        let port = server.http.rsplit(':').next().expect("a port").to_owned();
        let insights = server.insights.rsplit(':').next().expect("a port").to_owned();
        let bearer = format!("Bearer {}", server.token);
        let session = server.session("/say hi");
        server.until(&session, "turnCompleted");
        let paths = [
            (&server.http, "/rpc".to_owned()),
            (&server.http, "/insights".to_owned()),
            (&server.http, format!("/v1/sessions/{session}/ws")),
            (&server.http, format!("/ws/sessions/{session}")),
            (&server.insights, "/".to_owned()),
        ];
        for (address, path) in &paths {
            let open = |name: &'static str, value: &str| {
                let headers = [("authorization", &*bearer), (name, value)];
                server.socket_at(address, path, &headers).map(drop)
            };
            assert_eq!(open("origin", &format!("http://{address}")), Ok(()), "{path}");
            assert_eq!(open("sec-fetch-site", "same-origin"), Ok(()), "{path}");
            for origin in [
                "null",
                "http://127.0.0.1",
                "https://127.0.0.1:P",
                "ws://127.0.0.1:P",
                "http://localhost:P",
                "http://127.0.0.1:P/",
                "http://127.0.0.1:P.evil.example",
                "http://127.0.0.1:O",
                "http://evil.example",
                "http://evil.example:P",
                "http://user@127.0.0.1:P",
                "file://",
                "chrome-extension://abcdefghijklmnop",
                "about:blank",
                "*",
                "127.0.0.1:P",
                "http://127.0.0.1:P http://evil.example",
                "http://127.0.0.1:P, http://127.0.0.1:P",
            ] {
                let (own, other) = match **address == server.http {
                    true => (&port, &insights),
                    false => (&insights, &port),
                };
                let origin = origin.replace('P', own).replace('O', other);
                assert_eq!(open("origin", &origin), Err(403), "{path} {origin}");
            }
            for site in ["cross-site", "same-site", "none", "x"] {
                assert_eq!(open("sec-fetch-site", site), Err(403), "{path} {site}");
            }
        }
        let body = json!({ "agentType": "demo", "prompt": "/say hi" }).to_string();
        let post = |more: &[(&str, &str)]| {
            let mut headers = vec![("authorization", &*bearer)];
            headers.extend_from_slice(more);
            server.raw("POST", "/v1/sessions", &headers, body.as_bytes())
        };
        let json = ("content-type", "application/json");
        for kind in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data; boundary=x",
            "text/plain; application/json",
            "application/jsonx",
            "application/json, text/plain",
            "application/json; charset=utf-16",
            "",
        ] {
            assert_eq!(post(&[("content-type", kind)]).status, 415, "{kind}");
        }
        assert_eq!(post(&[]).status, 415);
        assert_eq!(post(&[json, json]).status, 400);
        for refused in [
            ("origin", "null"),
            ("origin", "http://evil.example"),
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
        ] {
            assert_eq!(post(&[json, refused]).status, 403, "{refused:?}");
        }
        // The preflight request of a browser.
        let asked = [
            ("origin", "http://evil.example"),
            ("access-control-request-method", "POST"),
            ("access-control-request-headers", "authorization, content-type"),
        ];
        let answer = server.raw("OPTIONS", "/v1/sessions", &asked, b"");
        assert_eq!(answer.status, 403);
        assert!(!answer.headers.keys().any(|name| name.starts_with("access-control")));
        // A cookie authenticates nobody.
        if !server.token.is_empty() {
            let cookie = format!("token={}", server.token);
            assert_eq!(server.raw("GET", "/v1/sessions", &[("cookie", &cookie)], b"").status, 401);
        }
        assert_eq!(server.get("/v1/sessions")["sessions"].as_array().map(Vec::len), Some(1));
    }
}
