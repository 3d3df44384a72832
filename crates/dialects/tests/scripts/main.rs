//! Scripts: what an agent and a client send, and what must come out. `scripts/README.md` has the format.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "a test reads fixtures and fails by panicking"
)]

#[path = "../common/mod.rs"]
mod common;

#[path = "../render/check.rs"]
mod check;

mod agent;
mod bounds;
mod front;
mod itself;
mod launch;
mod messages;
mod script;

use std::fs;
use std::path::Path;

#[test]
fn claude() {
    play("claude");
}

#[test]
fn codex() {
    play("codex");
}

#[test]
fn acp() {
    play("acp");
}

#[test]
fn gemini() {
    play("gemini");
}

#[test]
fn backend() {
    play("backend");
}

#[test]
fn board() {
    play("board");
}

#[test]
fn insights() {
    play("insights");
}

#[test]
fn messages() {
    play("messages");
}

#[test]
fn jsonrpc() {
    play("jsonrpc");
}

#[test]
fn claude_front() {
    play("claude-front");
}

/// A script that no test plays would always pass.
#[test]
fn every_folder_is_played() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let entries = fs::read_dir(root).expect("the scripts");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let mut names: Vec<String> = names.map(|name| name.into_string().expect("UTF-8")).collect();
    names.sort();
    let folders = [
        "README.md",
        "acp",
        "backend",
        "board",
        "claude",
        "claude-front",
        "codex",
        "gemini",
        "insights",
        "jsonrpc",
        "messages",
    ];
    assert_eq!(names, folders);
}

/// Plays every script in a folder. With `AGENTWIRE_UPDATE` the output of each line is rewritten.
fn play(folder: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts").join(folder);
    let entries = fs::read_dir(&folder).expect("a folder of scripts");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    let mut differences = String::new();
    for path in &paths {
        let text = fs::read_to_string(path).expect("a script is text");
        let name = path.file_name().expect("a name").to_string_lossy();
        let Err(wrong) = script::check(&name, &text) else { continue };
        if std::env::var_os("AGENTWIRE_UPDATE").is_some() {
            fs::write(path, wrong.played).expect("the script is written");
        } else {
            differences.push_str(&wrong.difference);
        }
    }
    assert!(!paths.is_empty(), "{} has no scripts", folder.display());
    assert!(differences.is_empty(), "\n{differences}AGENTWIRE_UPDATE=1 writes what is now.");
}
