//! What is remembered from answers, what a warning and a moved directory change, and what rules say about
//! calls that the agent does not ask about.

use std::path::{Path, PathBuf};

use agentwire_dialects::describe::CallFacts;
use agentwire_protocol::event::ToolKind;
use agentwire_protocol::{AgentType, ApprovalMode, SessionConfig};
use agentwire_sessions::session::policy::{OnDisk, Screening, Verdict};
use serde_json::{Value, json};

use super::{Judge, Question, is_allowed, no_links, policy, word};

#[expect(clippy::needless_pass_by_value, reason = "a table of calls reads better so")]
fn call(tool: &str, input: Value) -> Question {
    Question::new(tool, None, &input)
}

fn bash(command: &str) -> Question {
    call("Bash", json!({ "command": command }))
}

/// An answer about listing a directory does not cover reading it, and one about a file covers no other
/// file.
#[test]
fn always_is_the_same_tool_and_the_same_file() {
    let list = |path: &str| call("LS", json!({ "path": path }));
    let read = |path: &str| call("Read", json!({ "file_path": path }));
    let grep = |path: &str| call("Grep", json!({ "path": path, "pattern": "x" }));
    let write = |path: &str| call("Write", json!({ "file_path": path }));
    for (kept, same, others) in [
        (list("/"), vec![list("/")], vec![list("/etc"), read("/etc/passwd"), grep("/"), read("/")]),
        (grep("/srv"), vec![grep("/srv")], vec![grep("/srv/x"), list("/srv"), grep("/")]),
        (read("/etc/x"), vec![read("/etc/x")], vec![read("/etc/x/y"), write("/etc/x")]),
        (
            write("/etc/x"),
            vec![write("/etc/x"), call("Edit", json!({ "file_path": "/etc/x" }))],
            vec![write("/etc/y"), write("/etc/x/y"), read("/etc/x")],
        ),
        (
            call("Task", json!({ "prompt": "x" })),
            vec![call("Task", json!({ "prompt": "x" }))],
            vec![call("Task", json!({ "prompt": "y" })), call("Agent", json!({ "prompt": "x" }))],
        ),
        (
            call("ExitPlanMode", json!({ "plan": "x" })),
            vec![call("ExitPlanMode", json!({ "plan": "x" }))],
            vec![call("ExitPlanMode", json!({ "plan": "y" })), call("ExitPlanMode", json!({}))],
        ),
        (
            call("TodoWrite", json!({ "todos": [] })),
            vec![call("TodoWrite", json!({ "todos": [{ "content": "x" }] }))],
            vec![call("TaskStop", json!({ "todos": [] }))],
        ),
        (
            call("mcp__s__a", json!({})),
            vec![call("mcp__s__a", json!({ "n": 1 }))],
            vec![call("mcp__s__b", json!({})), call("mcp__s2__a", json!({}))],
        ),
    ] {
        let mut policy = policy(AgentType::Claude, ApprovalMode::Ask, &[], &[]);
        let words = policy.remember(&kept.asked(), true, &no_links);
        assert!(words.starts_with("allowed for this session: "), "{words}");
        for same in same {
            assert!(is_allowed(&same.ask(&policy)), "{words}");
        }
        for other in others {
            assert_eq!(other.ask(&policy), Verdict::Ask, "{words} {:?}", other.input);
        }
    }
}

/// A file that became a link to another is another file.
#[test]
fn a_link_that_changes_is_asked_about() {
    let mut policy = policy(AgentType::Claude, ApprovalMode::Ask, &[], &[]);
    let write = call("Write", json!({ "file_path": "/srv/project/a" }));
    policy.remember(&write.asked(), true, &no_links);
    assert!(is_allowed(&write.ask(&policy)));
    let linked = |path: &Path| match path == Path::new("/srv/project/a") {
        true => PathBuf::from("/etc/passwd"),
        false => path.to_path_buf(),
    };
    assert_eq!(policy.decide(&write.asked(), &linked), Verdict::Ask);
}

#[test]
fn suggestions_are_what_is_kept() {
    let policy = policy(AgentType::Claude, ApprovalMode::Ask, &[], &[]);
    for (asked, content) in [
        (bash("npm  test 'a b'"), Some(json!("npm test 'a b'"))),
        (call("Write", json!({ "file_path": "src/a" })), Some(json!("//srv/project/src/a"))),
        (call("LS", json!({ "path": "/" })), Some(json!("//"))),
        (call("WebFetch", json!({ "url": "https://a.org/x" })), Some(json!("domain:a.org"))),
        (call("mcp__s__a", json!({ "n": 1 })), None),
    ] {
        let always = policy.always(&asked.asked(), &no_links);
        assert!(always.is_kept);
        let shown = always.suggestion.expect("a suggestion");
        let shown: Value = shown.read().expect("JSON");
        let rule = &shown[0]["rules"][0];
        assert_eq!(rule.get("ruleContent"), content.as_ref(), "{shown}");
        assert_eq!(rule["toolName"], asked.tool.as_deref().expect("a name"));
        assert_eq!(
            (&shown[0]["destination"], shown.as_array().map(Vec::len)),
            (&json!("session"), Some(1))
        );
    }
    for asked in [bash("touch a && ls"), call("Skill", json!({ "n": 1 }))] {
        assert!(policy.always(&asked.asked(), &no_links).suggestion.is_none());
    }
}

/// What a request says in advance is what becomes of the answer.
#[test]
fn always_is_offered_where_it_is_kept() {
    for agent in [AgentType::Claude, AgentType::Codex, AgentType::Gemini, AgentType::Acp] {
        for (question, warns, is_kept) in [
            (bash("npm test"), false, true),
            (bash("npm test"), true, false),
            (bash("touch a && ls"), false, false),
            (bash("echo $(id)"), false, false),
            (call("mcp__s__a", json!({ "n": 1 })), true, true),
            (call("Write", json!({ "file_path": "/srv/project/a" })), false, true),
            (call("WebFetch", json!({ "url": "https://a.org/x" })), false, true),
        ] {
            let mut policy = policy(agent, ApprovalMode::Ask, &[], &[]);
            let asked = CallFacts { warns, ..question.asked() };
            let always = policy.always(&asked, &no_links);
            let words = policy.remember(&asked, true, &no_links);
            assert_eq!(always.is_kept, words.starts_with("allowed"), "{words}");
            if agent == AgentType::Claude {
                assert_eq!(always.is_kept, is_kept, "{words}");
            }
        }
    }
}

#[test]
fn a_warning_leaves_only_the_rule_that_names_the_call() {
    let ls = bash("ls -l");
    let warned = CallFacts { warns: true, ..ls.asked() };
    for (mode, rule, verdict) in [
        (ApprovalMode::AskDangerous, None, "ask"),
        (ApprovalMode::AutoAll, None, "allow"),
        (ApprovalMode::Ask, Some("Bash"), "ask"),
        (ApprovalMode::Ask, Some("Bash(ls:*)"), "ask"),
        (ApprovalMode::Ask, Some("Bash(ls -l)"), "allow"),
    ] {
        let policy = policy(AgentType::Claude, mode, rule.as_slice(), &[]);
        assert_eq!(word(&policy.decide(&warned, &no_links)), verdict, "{mode:?} {rule:?}");
    }
    let mut policy = policy(AgentType::Claude, ApprovalMode::Ask, &[], &[]);
    assert!(policy.remember(&warned, true, &no_links).starts_with("not remembered: "));
    policy.remember(&ls.asked(), true, &no_links);
    assert!(is_allowed(&ls.ask(&policy)));
    assert_eq!(policy.decide(&warned, &no_links), Verdict::Ask);
}

#[test]
fn a_relative_path_is_not_certain_where_the_agent_may_have_moved() {
    let moved = |question: &Question, policy: &super::Judge| {
        word(&policy.decide(&CallFacts { moved: true, ..question.asked() }, &no_links)).to_owned()
    };
    let relative = call("Write", json!({ "file_path": "src/a" }));
    let absolute = call("Write", json!({ "file_path": "/srv/project/src/a" }));
    for mode in [ApprovalMode::AutoEdit, ApprovalMode::AskDangerous] {
        let edits = policy(AgentType::Claude, mode, &[], &[]);
        assert_eq!(moved(&relative, &edits), "ask");
        assert_eq!(moved(&absolute, &edits), "allow");
    }
    let allowed = policy(AgentType::Claude, ApprovalMode::Ask, &["Edit(src/**)"], &[]);
    assert_eq!(moved(&relative, &allowed), "ask");
    assert_eq!(moved(&absolute, &allowed), "allow");
    let blocked = policy(AgentType::Claude, ApprovalMode::AutoAll, &[], &["Edit(secrets/**)"]);
    assert_eq!(moved(&relative, &blocked), "ask");
    assert_eq!(moved(&absolute, &blocked), "allow");
    let hidden = call("Read", json!({ "file_path": ".env" }));
    let blocked = policy(AgentType::Claude, ApprovalMode::AutoAll, &[], &["Read(.env)"]);
    assert_eq!(moved(&hidden, &blocked), "deny");
    let careful = policy(AgentType::Claude, ApprovalMode::AskDangerous, &["Bash(npm test)"], &[]);
    assert_eq!(moved(&bash("git status"), &careful), "ask");
    assert_eq!(moved(&bash("npm test"), &careful), "allow");
}

#[test]
fn rules_screen_calls_and_modes_do_not() {
    let policy = policy(AgentType::Claude, ApprovalMode::AutoAll, &["Bash(ls)"], &["Bash(rm:*)"]);
    let screen = |question: &Question| policy.screen(&question.asked(), &no_links);
    assert!(matches!(screen(&bash("rm x")), Screening::Deny(rule) if rule.contains("Bash(rm:*)")));
    assert_eq!(screen(&bash("$(echo r)m x")), Screening::Ask);
    assert!(matches!(screen(&bash("ls")), Screening::Allow(_)));
    assert_eq!(screen(&bash("touch x")), Screening::Pass);
    // The agent may warn about the call, so a rule for a kind of call does not allow it outright.
    for (rule, outright) in
        [("Bash(git:*)", false), ("Bash(git status)", true), ("Bash", true), ("Bash(*)", true)]
    {
        let policy = super::policy(AgentType::Claude, ApprovalMode::Ask, &[rule], &[]);
        let screening = policy.screen(&bash("git status").asked(), &no_links);
        assert_eq!(matches!(screening, Screening::Allow(_)), outright, "{rule}");
    }
    assert_eq!(screen(&call("AskUserQuestion", json!({}))), Screening::Pass);
}

/// Claude runs commands that it considers read-only without asking. Those that may read elsewhere are asked
/// about anyway.
#[test]
fn what_only_looks_harmless_is_asked_about() {
    for (mode, expected) in [
        (ApprovalMode::Ask, Screening::Ask),
        (ApprovalMode::AskDangerous, Screening::Ask),
        (ApprovalMode::AutoEdit, Screening::Ask),
        (ApprovalMode::AutoAll, Screening::Pass),
    ] {
        let careful = policy(AgentType::Claude, mode, &["Bash(grep:*)"], &[]);
        let screen = |text: &str| careful.screen(&bash(text).asked(), &no_links);
        for text in ["diff -r links empty", "find . -fls x", "cat /etc/passwd", "git -C .. status"]
        {
            assert_eq!(screen(text), expected, "{mode:?}: {text}");
        }
        // Those that only read here, that a rule covers, and that are on no list.
        for text in ["cat notes.txt", "ls", "grep -R x links", "make"] {
            assert_eq!(screen(text), Screening::Pass, "{mode:?}: {text}");
        }
    }
}

/// git reads the settings of the repository where the shell is, not where the session started.
#[test]
fn git_is_asked_about_where_the_shell_is() {
    let place = tempfile::tempdir().expect("a directory");
    let at = |name: &str| place.path().join(name);
    for (name, config) in
        [("work", "[core]\nbare = false\n"), ("work/a b/nested", "[core]\nfsmonitor = x\n")]
    {
        std::fs::create_dir_all(at(name).join(".git/objects")).expect("a directory");
        std::fs::write(at(name).join(".git/config"), config).expect("a file");
        std::fs::write(at(name).join(".git/HEAD"), "ref: refs/heads/main\n").expect("a file");
    }
    std::fs::create_dir_all(at("work/sub")).expect("a directory");
    std::os::unix::fs::symlink("a b", at("work/link")).expect("a link");
    let config = SessionConfig {
        working_directory: at("work").to_str().map(str::to_owned),
        approval_mode: Some(ApprovalMode::Ask),
        ..SessionConfig::default()
    };
    let home = at("home");
    let policy = Judge::new(AgentType::Claude, &config, Some(&home)).expect("a policy");
    let (work, sub) = (at("work"), at("work/sub"));
    let nested = at("work/a b/nested");
    let (work, sub, nested) = (work.to_str(), sub.to_str(), nested.to_str());
    for (directory, moved, text, expected) in [
        (None, false, "git status", Screening::Pass),
        (work, true, "git status", Screening::Pass),
        (sub, true, "git status", Screening::Pass),
        (sub, true, "git log --oneline -- x.rs", Screening::Pass),
        (sub, true, "git add x && git commit -m 'fix cd'", Screening::Pass),
        (sub, true, "cat ../notes.txt", Screening::Pass),
        (sub, true, "ls", Screening::Pass),
        (None, true, "make", Screening::Pass),
        (None, true, "ls", Screening::Pass),
        (None, false, "cd sub && git status", Screening::Pass),
        (None, false, "git add x && git commit -m 'cost: $5'", Screening::Pass),
        (sub, true, "cd .. && git status", Screening::Pass),
        (None, true, "git status", Screening::Ask),
        (None, true, "true && git status", Screening::Ask),
        (nested, true, "git status", Screening::Ask),
        (nested, false, "git status", Screening::Ask),
        (nested, true, "git commit -m x", Screening::Ask),
        (nested, true, "true && git status", Screening::Ask),
        (None, false, "cd 'a b/nested' && git status", Screening::Ask),
        (None, false, "cd link/nested && git status", Screening::Ask),
        (None, false, "cd link && cd nested && git status", Screening::Ask),
        (None, false, "true && git -C link/nested status", Screening::Ask),
        (None, false, "true && git --git-dir=link/nested/.git status", Screening::Ask),
        (sub, true, "cd ../link/nested && git status", Screening::Ask),
        (None, false, "sh -c 'cd link/nested && git status'", Screening::Ask),
        (None, false, "cd sub && git commit -m 'cost: $5'", Screening::Pass),
        (None, false, "cd $X && git status", Screening::Ask),
        (None, false, "cd l*/nested && git status", Screening::Ask),
        (None, false, "cd - && git status", Screening::Ask),
        (sub, true, "cat ../../secret", Screening::Ask),
        (Some("/"), true, "ls", Screening::Ask),
    ] {
        let question = bash(text);
        let asked = CallFacts { moved, directory, ..question.asked() };
        let screening = policy.screen(&asked, &OnDisk);
        assert_eq!(screening, expected, "{text} in {directory:?} {moved}");
    }
}

/// A rule that a client writes is stored as rules are written, or refused.
#[test]
fn a_written_rule_is_kept_or_refused() {
    let mut policy = policy(AgentType::Claude, ApprovalMode::Ask, &[], &[]);
    policy.policy.add("Bash(npm run test:*)", true).expect("a rule");
    assert!(is_allowed(&bash("npm run test -- x").ask(&policy)));
    policy.policy.add("Bash(npm run test bad)", false).expect("a rule");
    assert_eq!(word(&bash("npm run test bad").ask(&policy)), "deny");
    assert!(policy.policy.add("Bash(a; b)", true).expect_err("refused").contains("Bash(a; b)"));
}

/// An ACP agent may name its tool in the call (claude-agent-acp does): its command is remembered like any
/// other.
#[test]
fn a_call_that_names_its_tool_is_kept() {
    let call = |id: &str, command: &str| {
        json!({ "toolCallId": id, "name": "Bash", "kind": "execute", "status": "pending", "title": command,
            "locations": [{ "path": "/srv/project/kept.txt" }], "rawInput": { "command": command } })
    };
    let ask = |id: &str, command: &str| {
        Question::new("Bash", Some(ToolKind::Execute), &call(id, command))
    };
    let mut policy = policy(AgentType::Acp, ApprovalMode::Ask, &[], &[]);
    let words = policy.remember(&ask("t1", "touch kept.txt").asked(), true, &no_links);
    assert_eq!(words, "allowed for this session: Bash(touch kept.txt)");
    assert!(is_allowed(&ask("t2", "touch kept.txt").ask(&policy)));
    assert_eq!(ask("t3", "touch other.txt").ask(&policy), Verdict::Ask);
}
