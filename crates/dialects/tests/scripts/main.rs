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
fn every_script_is_played() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts");
    let mut folders = 0;
    let mut differences = String::new();
    for entry in fs::read_dir(root).expect("the scripts") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            differences.push_str(&play(&path));
            folders += 1;
        } else {
            assert!(path.ends_with("README.md"), "{} is in no folder", path.display());
        }
    }
    assert!(differences.is_empty(), "\n{differences}AGENTWIRE_UPDATE=1 writes what is now.");
    assert!(folders >= 10, "only {folders} folders of scripts");
}

/// Plays every script in a folder; returns what differs. With `AGENTWIRE_UPDATE` the output of each line is
/// rewritten instead.
fn play(folder: &Path) -> String {
    let entries = fs::read_dir(folder).expect("a folder of scripts");
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
    differences
}
