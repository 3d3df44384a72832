//! The page, and how a browser is signed in to it.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Instant;

use serde_json::json;

use crate::shared::{PATIENCE, Server};

/// A browser that records what it should open.
fn browser(place: &Path, code: u8) {
    let folder = place.join("bin");
    std::fs::create_dir_all(&folder).expect("a directory");
    let script = format!(
        "#!/bin/sh\nprintf '%s\\n' \"$@\" > {0}/asked.new\ncp \"$1\" {0}/page.html\n\
         mv {0}/asked.new {0}/asked\nexit {code}\n",
        place.display()
    );
    let mut file = std::fs::File::create(folder.join("xdg-open")).expect("a file");
    file.write_all(script.as_bytes()).expect("it is written");
    file.set_permissions(std::fs::Permissions::from_mode(0o755)).expect("it is a program");
}

fn opening(code: u8, args: &[&str]) -> Server {
    let args: Vec<&str> = ["--open"].iter().chain(args).copied().collect();
    Server::set_up(&args, "", |command, place| {
        browser(place, code);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", place.join("bin").display()));
    })
}

fn wait_for(path: &Path) -> String {
    let begun = Instant::now();
    loop {
        if let Ok(text) = std::fs::read_to_string(path) {
            return text;
        }
        assert!(begun.elapsed() < PATIENCE, "{} never came", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn a_browser_is_signed_in_once_and_no_secret_is_an_argument() {
    let server = opening(0, &[]);
    let place = server.data().parent().expect("a place").to_owned();
    let asked = wait_for(&place.join("asked"));
    let token = server.ready["tokenFile"].as_str().expect("a file");
    let file = std::path::Path::new(token).with_file_name("open.html");
    assert_eq!(asked.trim(), file.to_string_lossy());
    assert_eq!(std::fs::metadata(&file).expect("it is there").mode() & 0o777, 0o600);
    let page = std::fs::read_to_string(place.join("page.html")).expect("a page");
    assert!(!page.contains(&server.token), "{page}");
    let start = format!("http://{}/#ticket=", server.http);
    let ticket =
        page.split(&start).nth(1).expect("the address").split('"').next().expect("its end");
    let headers = [("content-type", "application/json")];
    let sign_in = |ticket: &str| {
        server.raw(
            "POST",
            "/v1/sign-in",
            &headers,
            json!({ "ticket": ticket }).to_string().as_bytes(),
        )
    };
    // A ticket for WebSockets does not sign in, and a sign-in ticket opens no WebSocket.
    let other = server.post("/v1/tickets", &json!({}));
    assert_eq!(sign_in(other["ticket"].as_str().expect("a ticket")).code(), "unauthorized");
    let named = format!("agentwire, ticket.{ticket}");
    let socket = [("sec-websocket-protocol", named.as_str())];
    assert_eq!(server.socket_at(&server.http, "/rpc", &socket).err(), Some(401));
    let answer = sign_in(ticket);
    assert_eq!((answer.status, &answer.json()["token"]), (200, &json!(server.token)));
    assert_eq!(answer.headers["cache-control"], "no-store");
    assert_eq!(sign_in(ticket).code(), "unauthorized");
    for body in ["", "{", "{}", "[]", "{\"ticket\":1}"] {
        let answer = server.raw("POST", "/v1/sign-in", &headers, body.as_bytes());
        assert_eq!((answer.status, answer.code().as_str()), (401, "unauthorized"), "{body}");
    }
    let body = json!({ "ticket": ticket }).to_string();
    for kind in ["text/plain", "application/x-www-form-urlencoded"] {
        let answer = server.raw("POST", "/v1/sign-in", &[("content-type", kind)], body.as_bytes());
        assert_eq!(answer.status, 415, "{kind}");
    }
    let foreign = [("content-type", "application/json"), ("origin", "http://evil.example")];
    assert_eq!(server.raw("POST", "/v1/sign-in", &foreign, b"{}").status, 403);
    assert_eq!(server.stop(), Some(0));
    assert!(!file.exists());
}

#[test]
fn where_no_browser_opens_the_user_is_told_where_to_go() {
    let server = opening(3, &[]);
    let begun = Instant::now();
    let hint = format!("open http://{}/ and sign in with `agentwire token show`", server.http);
    while !server.said().contains(&hint) {
        assert!(begun.elapsed() < PATIENCE, "{}", server.said());
        std::thread::yield_now();
    }
    assert!(!server.said().contains("ticket="));
    let open = opening(3, &["--auth", "off"]);
    let begun = Instant::now();
    while !open.said().contains(&format!("open http://{}/\n", open.http)) {
        assert!(begun.elapsed() < PATIENCE, "{}", open.said());
        std::thread::yield_now();
    }
}

#[test]
fn the_page_is_open_to_all_and_runs_nothing_of_others() {
    let server = Server::start();
    for (path, kind) in
        [("/", "text/html"), ("/page.js", "text/javascript"), ("/page.css", "text/css")]
    {
        let answer = server.raw("GET", path, &[], b"");
        assert_eq!(answer.status, 200);
        assert!(answer.headers["content-type"].starts_with(kind));
        let policy = &answer.headers["content-security-policy"];
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(answer.headers["x-frame-options"], "DENY");
        assert!(!answer.text.contains("http://") && !answer.text.contains("innerHTML"));
        let foreign = [("sec-fetch-site", "cross-site")];
        let linked = server.raw("GET", path, &foreign, b"").status;
        assert_eq!(linked, if path == "/" { 200 } else { 403 }, "{path}");
    }
    let html = server.raw("GET", "/", &[], b"").text;
    assert!(!html.contains("<style") && !html.contains("style=") && !html.contains("<script>"));
}
