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

/// git accepts a link as HEAD, wherever it leads.
#[test]
fn a_directory_that_git_takes_for_a_repository_runs_no_program() {
    let place = tempfile::tempdir().expect("a directory");
    let evil = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\tworktree = .\n\tfsmonitor = \"touch ran\"\n";
    // What is a link, and what is in the file `commondir`, if there is one.
    for (at, (links, common)) in [
        (&[("HEAD", "refs/heads/main")][..], None),
        (&[("HEAD", "refs/heads/main"), ("objects", "k"), ("refs", "k")], None),
        (&[("HEAD", "refs/heads/main"), ("config", "k/config")], None),
        (&[("HEAD", "refs/heads/main")], Some("k \n")),
        (&[], None),
    ]
    .iter()
    .enumerate()
    {
        let sub = place.path().join(format!("sub{at}"));
        let is_link = |name: &str| links.iter().any(|(link, _)| *link == name);
        for directory in ["k", "k ", "k /objects", "k /refs"] {
            std::fs::create_dir_all(sub.join(directory)).expect("a directory");
        }
        for directory in ["objects", "refs"].into_iter().filter(|name| !is_link(name)) {
            std::fs::create_dir_all(sub.join(directory)).expect("a directory");
        }
        for (link, target) in *links {
            symlink(target, sub.join(link)).expect("a link");
        }
        if !is_link("HEAD") {
            std::fs::write(sub.join("HEAD"), "ref: refs/heads/main\n").expect("a file");
        }
        match common {
            Some(common) => {
                std::fs::write(sub.join("commondir"), common).expect("a file");
                std::fs::write(sub.join("k /config"), evil).expect("a file");
            }
            None if is_link("config") => {
                std::fs::write(sub.join("k/config"), evil).expect("a file");
            }
            None => std::fs::write(sub.join("config"), evil).expect("a file"),
        }
        for command in ["git status", "git diff", "git ls-files -m"] {
            assert!(!runs(&sub, command), "{command} with {links:?} {common:?}");
        }
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
    symlink("nothing", at("work/dangling")).expect("a link");
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
        "tail -f dangling",
    ] {
        assert!(!runs(&work, command), "{command}");
    }
}
