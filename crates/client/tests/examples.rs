//! Every example runs, prints its result, and leaves no files behind.
#![expect(clippy::expect_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// An example that `cargo test` has built.
fn example(name: &str) -> PathBuf {
    let own = std::env::current_exe().expect("a program");
    let built = own.ancestors().nth(2).expect("a directory").join("examples").join(name);
    assert!(built.exists(), "{} is not built: `cargo test -p agentwire-client`", built.display());
    built
}

/// Runs an example with its own home and temporary directory, which must be empty in the end.
fn run(name: &str) -> String {
    let (output, printed) = start(name, &[]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {printed}\n{said}");
    printed
}

fn start(name: &str, args: &[&str]) -> (Output, String) {
    let place = tempfile::tempdir().expect("a directory");
    // An agent cannot work in a directory that contains agentwire's own files.
    let own = ["tmp", "work"].map(|name| place.path().join(name));
    own.iter().for_each(|path| std::fs::create_dir(path).expect("a directory"));
    let output = Command::new(example(name))
        .args(args)
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .env("HOME", place.path().join("home"))
        .env("TMPDIR", &own[0])
        .current_dir(&own[1])
        .stdin(Stdio::null())
        .output()
        .expect("it runs");
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    let left = own.iter().flat_map(|path| path.read_dir().expect("a directory").flatten());
    let left: Vec<_> = left.collect();
    assert!(left.is_empty(), "{name} leaves {left:?}");
    assert!(!place.path().join("home").exists(), "{name} leaves a home");
    (output, printed)
}

#[test]
fn every_example_has_its_test() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = examples.read_dir().expect("examples").flatten().map(|file| file.path());
    let programs = files.filter(|file| file.extension().is_some_and(|end| end == "rs"));
    let mut names: Vec<_> = programs
        .filter_map(|file| Some(file.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["dashboard", "permissions", "quickstart", "scripted"], "run it below, too");
}

#[test]
fn quickstart() {
    let printed = run("quickstart");
    for expected in ["I write a file.", "Tool: Write", "success: true", "tokens so far", "turn 2."]
    {
        assert!(printed.contains(expected), "{printed}");
    }
}

/// Without a terminal, questions are denied at once; wrong arguments are errors.
#[test]
fn quickstart_reads_its_arguments() {
    let script = "/ask Which colour? | red | green\n/say Done.";
    let (output, printed) = start("quickstart", &["demo", script]);
    assert!(output.status.success(), "{printed}");
    for expected in ["Which colour? (no terminal to ask)", "Done."] {
        assert!(printed.contains(expected), "no {expected:?} in {printed}");
    }
    for (args, why) in [
        (["codec", "Fix the test"].as_slice(), "unknown agent codec"),
        (&["codex"], "say what codex should do"),
    ] {
        let (output, _) = start("quickstart", args);
        assert!(!output.status.success());
        assert!(String::from_utf8_lossy(&output.stderr).contains(why), "{output:?}");
    }
}

#[test]
fn permissions() {
    let printed = run("permissions");
    for expected in ["allowed: Write", "denied: Bash rm -rf build", "another input: echo", "colour"]
    {
        assert!(printed.contains(expected), "{printed}");
    }
}

#[test]
fn dashboard() {
    let printed = run("dashboard");
    // Each session writes 10 tokens and reads 0 to 11.
    assert!(printed.contains("12 sessions, 186 tokens"), "{printed}");
}

#[test]
fn scripted() {
    assert!(run("scripted").contains("answered: I may not, so I leave it."));
}
