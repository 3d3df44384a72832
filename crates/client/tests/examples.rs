//! Every example runs, prints what it is about, and leaves nothing behind.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A program that `cargo test` has built beside this one.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program");
    let built = own.ancestors().nth(2).expect("a directory").join("examples").join(name);
    assert!(built.exists(), "{} is not built: `cargo test -p agentwire-client`", built.display());
    built
}

/// What it prints; its home and its temporary directory are its own, and empty in the end.
fn run(name: &str) -> String {
    let place = tempfile::tempdir().expect("a directory");
    let output = Command::new(example(name))
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", place.path().join("home"))
        .env("TMPDIR", place.path())
        .current_dir(place.path())
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {printed}\n{said}");
    let left: Vec<_> = place.path().read_dir().expect("a directory").flatten().collect();
    assert!(left.is_empty(), "{name} leaves {left:?}");
    printed
}

#[test]
fn quickstart() {
    let printed = run("quickstart");
    for told in ["I write a file.", "Tool: Write", "success: true", "tokens so far", "turn 2."] {
        assert!(printed.contains(told), "{printed}");
    }
}

#[test]
fn permissions() {
    let printed = run("permissions");
    for told in ["allowed: Write", "denied: Bash rm -rf build", "another input: echo", "colour"] {
        assert!(printed.contains(told), "{printed}");
    }
}

#[test]
fn dashboard() {
    let printed = run("dashboard");
    // 10 written by each, and 0 to 11 read.
    assert!(printed.contains("12 sessions, 186 tokens"), "{printed}");
}

#[test]
fn scripted() {
    assert!(run("scripted").contains("answered: I may not, so I leave it."));
}
