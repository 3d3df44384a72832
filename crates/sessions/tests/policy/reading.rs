//! Commands that `askDangerous` runs without asking run nothing else and stay in the directories, on a real
//! disk.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use agentwire_protocol::{AgentType, ApprovalMode, SessionConfig};
use agentwire_sessions::session::policy::OnDisk;
use serde_json::json;

use super::{Judge, Question, is_allowed};

/// Whether a command runs without asking in this directory.
fn runs(directory: &Path, command: &str) -> bool {
    let config = SessionConfig {
        working_directory: directory.to_str().map(str::to_owned),
        approval_mode: Some(ApprovalMode::AskDangerous),
        ..SessionConfig::default()
    };
    let policy = Judge::new(AgentType::Claude, &config, None).expect("a policy");
    let question = Question::new("Bash", None, &json!({ "command": command }));
    is_allowed(&policy.decide(&question.asked(), &OnDisk))
}

#[test]
fn three_steps_do_not_run_a_program() {
    let place = tempfile::tempdir().expect("a directory");
    let work = place.path();
    for directory in [".git/objects", ".git/refs"] {
        std::fs::create_dir_all(work.join(directory)).expect("a directory");
    }
    let config = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n";
    std::fs::write(work.join(".git/config"), config).expect("a file");
    std::fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
    for command in ["git status", "git diff", "git log -p", "git show HEAD", "git branch -a"] {
        assert!(runs(work, command), "{command}");
    }
    // The first step writes what git runs.
    for command in [
        "find -- . -maxdepth 0 -fprintf .git/config '[core] fsmonitor=./x'",
        "find . -maxdepth 0 -fprintf .git/config '[core] fsmonitor=./x'",
        "find . -- -fprintf .git/config x",
    ] {
        assert!(!runs(work, command), "{command}");
    }
    // If it were written, git would not run without asking.
    for evil in ["[core] fsmonitor=./x\n", "[core]\nfsmonitor = ./x\n", "[diff]\nexternal = ./x\n"]
    {
        std::fs::write(work.join(".git/config"), evil).expect("a file");
        for command in ["git status", "git diff", "git log -p", "git show HEAD", "git ls-files"] {
            assert!(!runs(work, command), "{command} with {evil}");
        }
        assert!(runs(work, "ls"));
    }
}

#[test]
fn what_is_read_is_a_file_or_a_directory_inside() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    for directory in ["work/a", "work/b", "outside"] {
        std::fs::create_dir_all(at(directory)).expect("a directory");
    }
    for file in ["work/one", "work/two", "work/a/secret", "outside/secret"] {
        std::fs::write(at(file), file).expect("a file");
    }
    symlink(at("outside/secret"), at("work/b/secret")).expect("a link");
    let made = Command::new("mkfifo").arg(at("work/pipe")).status().expect("mkfifo");
    assert!(made.success());
    let work = at("work");
    for command in [
        "diff one two",
        "diff -u one missing",
        "cat one",
        "ls a b",
        "grep -r x a b",
        "cat a/secret",
    ] {
        assert!(runs(&work, command), "{command}");
    }
    for command in [
        // diff follows the links in a directory.
        "diff a b",
        "diff -q a b",
        "diff a/secret b",
        "diff b a/secret",
        "diff one b/secret",
        "cat b/secret",
        "cat pipe",
        "tail -f pipe",
        "head -n 1 pipe",
        "cat one pipe",
    ] {
        assert!(!runs(&work, command), "{command}");
    }
}
