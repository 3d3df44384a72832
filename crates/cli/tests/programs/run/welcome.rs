//! What `agentwire serve` prints when it is ready: text for people, a JSON line for programs.

use std::io::{BufRead as _, BufReader};
use std::process::Command;

use rustix::process::Signal;
use serde_json::Value;

use crate::pty::Pty;
use crate::run::harness::signal;
use crate::shared::Home;

fn serve(home: &Home, more: &[&str]) -> Command {
    let args = ["serve", "--http", "127.0.0.1:0", "--insights", "127.0.0.1:0"];
    home.command(&[&args[..], more].concat())
}

fn assert_is_ready(line: &str) {
    let ready: Value = serde_json::from_str(line.trim()).expect(line);
    assert_eq!(ready["ready"], true, "{line}");
    assert!(
        ready["http"].as_str().is_some_and(|url| url.starts_with("http://127.0.0.1:")),
        "{line}"
    );
    assert!(ready["tokenFile"].is_string(), "{line}");
}

#[test]
fn people_read_where_the_page_is_and_how_to_sign_in_and_stop() {
    let home = Home::new();
    let mut pty = Pty::start(&mut serve(&home, &[]));
    pty.expect("is ready\r\n");
    for part in [
        "  Page      http://127.0.0.1:",
        "/docs (needs the token)",
        "  Token     /",
        "  Sign in   ",
        "  Stop      Ctrl-C",
    ] {
        pty.expect(part);
    }
    signal(pty.child(), Signal::INT);
    assert_eq!(pty.end(), Some(0), "{}", pty.shown);
    assert!(!pty.shown.contains("\"ready\""), "{}", pty.shown);
}

#[test]
fn programs_read_a_json_line_from_a_pipe() {
    let home = Home::new();
    let mut server = serve(&home, &[]).spawn().expect("it starts");
    let mut line = String::new();
    let stderr = server.stderr.take().expect("stderr");
    BufReader::new(stderr).read_line(&mut line).expect("a line");
    assert_is_ready(&line);
    signal(&server, Signal::TERM);
    assert!(server.wait().expect("it ends").success());
}

/// On a terminal too, and on one line however narrow it is.
#[test]
fn ready_json_prints_the_json_line_on_a_terminal() {
    let home = Home::new();
    let mut pty = Pty::start(&mut serve(&home, &["--ready-json"]));
    pty.expect("}\r\n");
    assert_is_ready(&pty.shown.clone());
    signal(pty.child(), Signal::INT);
    assert_eq!(pty.end(), Some(0));
    assert!(!pty.shown.contains("is ready"), "{}", pty.shown);
}
