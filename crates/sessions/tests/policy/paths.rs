//! Files: where an edit leads, links included.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use agentwire_protocol::{AgentType, ApprovalMode, SessionConfig};
use agentwire_sessions::session::policy::{Disk, Kind, OnDisk};
use serde_json::json;

use super::{Judge, MODES, Question, is_allowed, policy};

fn edit(path: &str) -> Question {
    Question::new("Write", None, &json!({ "file_path": path, "content": "x" }))
}

fn read(path: &str) -> Question {
    Question::new("Read", None, &json!({ "file_path": path }))
}

#[test]
fn edits_stay_in_the_directories() {
    let inside = [
        "a",
        "./a",
        "src/a.rs",
        "src/../a",
        "/srv/project/a",
        "/srv/project//a/",
        "/srv/other/a",
        "../other/a",
        "../project/a",
        "/srv/project/.gitignore",
        "a/.hidden",
        "é",
        "a b",
    ];
    let outside = [
        "",
        "/",
        "/work",
        "/srv/project2/a",
        "/srv/projec",
        "../a",
        "src/../../a",
        "/etc/passwd",
        "~",
        "~/a",
        "~root/a",
        "/srv/project/../../etc/passwd",
        "a\u{0}",
        "a\nb",
        "a\u{200b}",
        "/srv/other/../x",
    ];
    let protected = [
        ".git/config",
        ".git",
        "sub/.git/hooks/pre-commit",
        ".GIT/config",
        "x/../.git/config",
        ".claude/settings.json",
        ".codex/config.toml",
        ".gemini/settings.json",
        ".vscode/tasks.json",
        ".idea/x",
        ".env",
        ".env.local",
        ".envrc",
        ".mcp.json",
        ".github/workflows/ci.yml",
        ".bashrc",
        ".zshenv",
        ".profile",
        ".ssh/config",
        ".npmrc",
        "HEAD",
        ".cargo/config.toml",
        "a/.husky/pre-commit",
    ];
    for mode in [ApprovalMode::AutoEdit, ApprovalMode::AskDangerous] {
        let policy = policy(AgentType::Claude, mode, &[], &[]);
        for path in inside {
            assert!(is_allowed(&edit(path).ask(&policy)), "{mode:?} {path:?}");
        }
        for path in outside.iter().chain(&protected) {
            assert!(!is_allowed(&edit(path).ask(&policy)), "{mode:?} {path:?}");
        }
    }
    let dangerous = policy(AgentType::Claude, ApprovalMode::AskDangerous, &[], &[]);
    for path in inside.iter().chain(&protected) {
        assert!(is_allowed(&read(path).ask(&dangerous)), "{path:?}");
    }
    for path in outside {
        assert!(!is_allowed(&read(path).ask(&dangerous)), "{path:?}");
    }
}

#[test]
fn links_are_followed() {
    let disk = tempfile::tempdir().expect("a directory");
    let at = |name: &str| disk.path().join(name);
    for directory in ["work/src", "work/.git", "outside/deep"] {
        std::fs::create_dir_all(at(directory)).expect("a directory");
    }
    symlink(at("outside"), at("work/out")).expect("a link");
    symlink(at("outside/deep"), at("work/deep")).expect("a link");
    symlink(at("outside/not-yet"), at("work/dangling")).expect("a link");
    symlink("dangling", at("work/twice")).expect("a link");
    symlink("loop", at("work/loop")).expect("a link");
    symlink(".git", at("work/innocent")).expect("a link");
    symlink("src", at("work/inner")).expect("a link");
    symlink(at("work"), at("alias")).expect("a link");

    let decide = |directory: &str, allowed: &[&str], mode, question: &Question| {
        let config = SessionConfig {
            working_directory: at(directory).to_str().map(str::to_owned),
            approval_mode: Some(mode),
            allowed_tools: Some(allowed.iter().map(|&rule| rule.to_owned()).collect()),
            ..SessionConfig::default()
        };
        let policy = Judge::new(AgentType::Claude, &config, None).expect("a policy");
        is_allowed(&policy.decide(&question.asked(), &OnDisk))
    };
    for directory in ["work", "alias"] {
        for path in ["a", "src/a", "inner/a", "not/yet/there", "src/../a", "innocent2"] {
            assert!(decide(directory, &[], ApprovalMode::AutoEdit, &edit(path)), "{path}");
        }
        for path in [
            "out/a",
            "out",
            "deep/../a",
            "deep/../not/yet",
            "dangling",
            "twice",
            "loop",
            "innocent/config",
            "src/../out/a",
        ] {
            assert!(!decide(directory, &[], ApprovalMode::AutoEdit, &edit(path)), "{path}");
        }
        for path in ["out/a", "deep/../a", "dangling"] {
            assert!(!decide(directory, &["Edit(**)"], ApprovalMode::Ask, &edit(path)), "{path}");
            let read = Question::new("Bash", None, &json!({ "command": format!("cat {path}") }));
            assert!(!decide(directory, &[], ApprovalMode::AskDangerous, &read), "{path}");
        }
        let whole = at("work/src/a");
        let whole = whole.to_str().expect("a path");
        assert!(decide(directory, &[], ApprovalMode::AutoEdit, &edit(whole)), "{whole}");
        assert!(decide(directory, &["Edit(src/*)"], ApprovalMode::Ask, &edit(whole)), "{whole}");
    }
    let outside = OnDisk.resolve(&at("outside")).expect("a disk that answers");
    assert_eq!(OnDisk.resolve(&at("work/twice")), Some(outside.join("not-yet")));
}

#[test]
fn a_link_does_not_lead_around_a_denial() {
    let disk = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(disk.path().join("secrets")).expect("a directory");
    symlink("secrets", disk.path().join("open")).expect("a link");
    let config = SessionConfig {
        working_directory: disk.path().to_str().map(str::to_owned),
        approval_mode: Some(ApprovalMode::AutoAll),
        blocked_tools: Some(vec!["Edit(secrets/**)".to_owned(), "Read(secrets)".to_owned()]),
        ..SessionConfig::default()
    };
    let policy = Judge::new(AgentType::Claude, &config, None).expect("a policy");
    for question in [edit("open/a"), edit("secrets/a"), read("open/a"), edit("open/../secrets/a")] {
        assert_eq!(super::word(&policy.decide(&question.asked(), &OnDisk)), "deny");
    }
    assert!(is_allowed(&policy.decide(&edit("other").asked(), &OnDisk)));
}

#[test]
fn without_a_directory_nothing_is_inside() {
    let config = SessionConfig {
        approval_mode: Some(ApprovalMode::AskDangerous),
        ..SessionConfig::default()
    };
    let policy =
        Judge::new(AgentType::Claude, &config, Some(Path::new("/home/user"))).expect("a policy");
    for question in [edit("a"), edit("/a"), read("/a")] {
        assert!(!is_allowed(&question.ask(&policy)));
    }
    let list = Question::new("Bash", None, &json!({ "command": "ls" }));
    assert!(!is_allowed(&list.ask(&policy)));
}

struct Silent;

impl Disk for Silent {
    fn resolve(&self, _: &Path) -> Option<PathBuf> {
        None
    }

    fn kind(&self, _: &Path) -> Option<Kind> {
        None
    }

    fn read(&self, _: &Path, _: usize) -> Option<Vec<u8>> {
        None
    }
}

#[test]
fn a_disk_that_does_not_answer_allows_nothing() {
    for mode in MODES {
        let rules = ["Edit", "Read(**)", "Bash(cat:*)"];
        let policy = policy(AgentType::Claude, mode, &rules, &["Edit(secret)"]);
        for question in [edit("a"), read("a")] {
            let verdict = policy.decide(&question.asked(), &Silent);
            assert!(!is_allowed(&verdict), "{mode:?} {verdict:?}");
        }
        let secret = policy.decide(&edit("secret").asked(), &Silent);
        assert_eq!(super::word(&secret), "deny");
    }
}
