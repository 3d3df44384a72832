//! What agents ask in their own terms, and what a session remembers.

use std::path::Path;

use agentwire_dialects::describe::CallFacts;
use agentwire_protocol::event::ToolKind;
use agentwire_protocol::{AgentType, ApprovalMode, ErrorCode, Json, SandboxMode, SessionConfig};
use agentwire_sessions::session::policy::{REMEMBERED_LIMIT, Verdict};
use serde_json::{Value, json};

use super::{
    HOME, Judge, MODES, Question, WORK, config, is_allowed, no_links, policy, shell_questions, word,
};

#[test]
fn rules_that_cannot_be_understood_are_refused_by_name() {
    for rule in [
        "",
        "(",
        "Bash(",
        "Bash(git status",
        "Bash()",
        "Bash(git && id)",
        "Bash(npm run test*)",
        "Bash(* x)",
        "Bash(:*)",
        "Bash($x)",
        "Bash(A=b c)",
        "Edit(/etc/x)",
        "Edit(a[b])",
        "Edit({a,b})",
        "Edit(!a)",
        "Edit(a**b)",
        "Edit(*/../x)",
        "Edit(~root/x)",
        "Edit(..)",
        "WebFetch(example.org)",
        "WebFetch(domain:)",
        "WebFetch(domain:a/b)",
        "mcp__",
        "mcp____x",
        "mcp__a__",
        "mcp__a__b(c)",
        "Skill(x)",
        "TodoWrite(x)",
        "two words",
        "*",
        "Bash(a\u{a0}b)",
    ] {
        for config in [
            config(ApprovalMode::Ask, &[rule], &[]),
            config(ApprovalMode::Ask, &[], &["Bash", rule]),
        ] {
            let refused = Judge::new(AgentType::Claude, &config, Some(Path::new(HOME)));
            let error = refused.err().unwrap_or_else(|| panic!("{rule:?} is understood"));
            assert_eq!(error.code, ErrorCode::InvalidMessage);
            assert!(error.message.contains(&format!("{rule:?}")), "{}", error.message);
        }
    }
    let home = config(ApprovalMode::Ask, &[], &["Read(~/.ssh/**)"]);
    assert!(Judge::new(AgentType::Claude, &home, None).is_err());
    let relative =
        SessionConfig { working_directory: Some("here".to_owned()), ..SessionConfig::default() };
    assert!(Judge::new(AgentType::Claude, &relative, None).is_err());
}

#[test]
fn the_agents_own_mode_asks() {
    let own = SessionConfig {
        permission_mode: Some("plan".to_owned()),
        ..config(ApprovalMode::AutoAll, &[], &[])
    };
    let mut policy = Judge::new(AgentType::Claude, &own, None).expect("a policy");
    assert_eq!(policy.policy.mode(), ApprovalMode::Ask);
    policy.policy.set_mode(ApprovalMode::AutoAll);
    assert_eq!(policy.policy.mode(), ApprovalMode::AutoAll);
}

#[test]
fn an_mcp_tool_is_one_whatever_its_name() {
    let input = json!({ "command": "ls", "file_path": "a" });
    for (agent, name, kind) in [
        (AgentType::Claude, "Read", ToolKind::Read),
        (AgentType::Codex, "command_execution", ToolKind::Mcp),
        (AgentType::Gemini, "read_file", ToolKind::Read),
        (AgentType::Acp, "ls", ToolKind::Execute),
    ] {
        let asks = policy(agent, ApprovalMode::AskDangerous, &["Read", "Bash"], &[]);
        let by_server =
            Question { server: Some("s".to_owned()), ..Question::new(name, Some(kind), &input) };
        let by_kind = Question::new(name, Some(ToolKind::Mcp), &input);
        for question in [&by_server, &by_kind] {
            assert_eq!(question.ask(&asks), Verdict::Ask, "{name}");
        }
        let rule = format!("mcp__s__{name}");
        assert!(is_allowed(&by_server.ask(&policy(agent, ApprovalMode::Ask, &[&rule], &[]))));
        assert!(is_allowed(&by_server.ask(&policy(agent, ApprovalMode::Ask, &["mcp__s"], &[]))));
        let denied = policy(agent, ApprovalMode::AutoAll, &[], &["mcp__s__*"]);
        assert_eq!(word(&by_server.ask(&denied)), "deny");
    }
    // Codex cannot say which call it asks about.
    let vague = Question::new("command_execution", None, &json!({ "command": "ls" }));
    let dangerous = policy(AgentType::Codex, ApprovalMode::AskDangerous, &["Bash"], &[]);
    assert_eq!(vague.ask(&dangerous), Verdict::Ask);
    let denied = policy(AgentType::Codex, ApprovalMode::AutoAll, &[], &["Bash(ls)"]);
    assert_eq!(word(&vague.ask(&denied)), "deny");
    // The server `a__b` is not the server `a`.
    let other = Question::new("mcp__a__b__c", None, &json!({}));
    let server = policy(AgentType::Claude, ApprovalMode::Ask, &["mcp__a"], &[]);
    assert_eq!(other.ask(&server), Verdict::Ask);
    // Agents write names in their own way: everything that a rule may mean is denied.
    for (rule, tool, is_denied) in [
        ("mcp__a", "mcp__a__b__c", true),
        ("mcp__a__b", "mcp__a__b", true),
        ("mcp__a__b", "mcp__a__b__c", true),
        ("mcp__a__b__*", "mcp__a__b__c", true),
        ("mcp__my.server", "mcp__my_server__x", true),
        ("mcp__my.server__do.it", "mcp__my_server__do_it", true),
        ("mcp__my_server", "mcp__my.server__x", true),
        ("mcp__a__b", "mcp__a__bc", false),
        ("mcp__a__b", "mcp__a__c", false),
        ("mcp__a", "mcp__ab__c", false),
        ("mcp__my-server", "mcp__my_server__x", false),
    ] {
        let denied = policy(AgentType::Claude, ApprovalMode::AutoAll, &[], &[rule]);
        let verdict = Question::new(tool, None, &json!({})).ask(&denied);
        assert_eq!(word(&verdict) == "deny", is_denied, "{rule} {tool}: {verdict:?}");
    }
}

#[test]
fn codex_changes_are_read_whole() {
    let update = |path: &str| json!({ "path": path, "kind": { "type": "update", "move_path": null }, "diff": "" });
    let change = |changes| {
        Question::new("file_change", Some(ToolKind::Edit), &json!({ "changes": changes }))
    };
    let edits = policy(AgentType::Codex, ApprovalMode::AutoEdit, &[], &[]);
    let inside = change(json!([update("/srv/project/a"), update("/srv/other/b")]));
    assert!(is_allowed(&inside.ask(&edits)));
    let moved =
        json!({ "path": "/srv/project/a", "kind": { "type": "update", "move_path": "/etc/x" } });
    let deleted = json!({ "path": "/srv/project/a", "kind": { "type": "delete" } });
    for changes in [
        json!([]),
        json!([update("/srv/project/a"), update("/etc/passwd")]),
        json!([update("/srv/project/a"), moved]),
        json!([{ "path": "/srv/project/a", "kind": { "type": "update", "move_path": "/srv/project/b" } }]),
        json!([update("/srv/project/.git/config")]),
        json!([update("/srv/project/.env.local")]),
        json!([update("/srv/project/a"), deleted]),
        json!([{ "path": "/srv/project/a" }]),
        json!([{ "path": "/srv/project/a", "kind": { "type": "chmod" } }]),
        json!("/srv/project/a"),
    ] {
        assert_eq!(change(changes.clone()).ask(&edits), Verdict::Ask, "{changes}");
    }
    // A granted path is granted with everything below it.
    let granted = CallFacts { blocked_path: Some(WORK), ..inside.asked() };
    assert_eq!(edits.decide(&granted, &no_links), Verdict::Ask);
    let denied = policy(AgentType::Codex, ApprovalMode::AutoAll, &[], &["Edit(secrets/**)"]);
    let secret = change(json!([update("/srv/project/a"), update("/srv/project/secrets/x")]));
    assert_eq!(word(&secret.ask(&denied)), "deny");
    assert_eq!(word(&change(json!([{ "path": 1 }])).ask(&denied)), "ask");
    // Fields next to the changes ask for more, or warn.
    for (name, value, verdict) in [
        ("reason", json!("outside"), "ask"),
        ("grantRoot", json!("/srv/project"), "ask"),
        ("later", json!(false), "ask"),
        ("reason", Value::Null, "allow"),
    ] {
        let mut input = json!({ "changes": [update("/srv/project/a")] });
        input[name] = value;
        let question = Question::new("file_change", Some(ToolKind::Edit), &input);
        assert_eq!(word(&question.ask(&edits)), verdict, "{input}");
    }
    // However little is known about a change, a rule against all of them denies it.
    let denied = policy(AgentType::Codex, ApprovalMode::AutoAll, &[], &["Edit"]);
    let deleted = json!({ "path": "/srv/project/a", "kind": { "type": "delete" } });
    for kind in [None, Some(ToolKind::Edit)] {
        for input in [json!({}), json!({ "changes": [{}] }), json!({ "changes": [deleted] })] {
            let question = Question::new("file_change", kind, &input);
            assert_eq!(word(&question.ask(&denied)), "deny", "{input}");
        }
    }
}

/// Codex asks in each of its modes; the gateway's mode decides the answer.
#[test]
fn a_mode_of_codex_is_one_of_ours() {
    let modes = [
        ("default", ApprovalMode::Ask),
        ("untrusted", ApprovalMode::Ask),
        ("plan", ApprovalMode::Ask),
        ("on-request", ApprovalMode::AskDangerous),
        ("never", ApprovalMode::AskDangerous),
        ("acceptEdits", ApprovalMode::AutoEdit),
        ("bypassPermissions", ApprovalMode::AutoAll),
    ];
    for (own, mode) in modes {
        let config =
            SessionConfig { permission_mode: Some(own.to_owned()), ..SessionConfig::default() };
        let mut policy = Judge::new(AgentType::Codex, &config, None).expect("a policy");
        assert_eq!(policy.policy.mode(), mode, "{own}");
        policy.policy.set_mode(ApprovalMode::Ask);
        policy.policy.set_own_mode(own);
        assert_eq!(policy.policy.mode(), mode, "{own}");
    }
}

/// Codex applies what is allowed outside its sandbox, so no mode lets it leave a sandbox that the session
/// names without asking.
#[test]
fn a_mode_lets_codex_leave_no_sandbox() {
    let change = |path: &str, kind: &str| {
        let input = json!({ "changes": [{ "path": path, "kind": { "type": kind } }] });
        Question::new("file_change", Some(ToolKind::Edit), &input)
    };
    let command = |command: &str| {
        let input = json!({ "command": command, "cwd": WORK });
        Question::new("command_execution", Some(ToolKind::Execute), &input)
    };
    let mut mcp = Question::new("say", Some(ToolKind::Mcp), &json!({}));
    mcp.server = Some("tiny".to_owned());
    let permissions = Question::new("request_permissions", None, &json!({ "permissions": {} }));
    let table = [
        (change("/srv/project/a", "add"), "ask", "allow"),
        (change("/srv/project/.git/config", "add"), "ask", "ask"),
        (change("/etc/a", "add"), "ask", "ask"),
        (change("/srv/project/a", "delete"), "ask", "ask"),
        (command("ls"), "allow", "allow"),
        (command("touch a"), "ask", "ask"),
        (mcp, "allow", "allow"),
        (permissions, "ask", "ask"),
    ];
    for sandbox_mode in
        [SandboxMode::ReadOnly, SandboxMode::WorkspaceWrite, SandboxMode::FullAccess]
    {
        let config = SessionConfig {
            sandbox_mode: Some(sandbox_mode),
            ..config(ApprovalMode::AutoAll, &[], &[])
        };
        let policy = Judge::new(AgentType::Codex, &config, None).expect("a policy");
        for (question, read_only, workspace) in &table {
            let expected = match sandbox_mode {
                SandboxMode::ReadOnly => *read_only,
                SandboxMode::WorkspaceWrite => *workspace,
                SandboxMode::FullAccess | SandboxMode::None => "allow",
            };
            let input = question.input.as_ref().map(Json::get);
            assert_eq!(word(&question.ask(&policy)), expected, "{sandbox_mode:?} {input:?}");
        }
    }
    let config = SessionConfig {
        sandbox_mode: Some(SandboxMode::ReadOnly),
        ..config(ApprovalMode::AutoEdit, &[], &[])
    };
    let policy = Judge::new(AgentType::Codex, &config, None).expect("a policy");
    assert_eq!(change("/srv/project/a", "add").ask(&policy), Verdict::Ask);
}

#[test]
fn a_command_that_is_more_than_its_text_asks() {
    let policy = |agent| policy(agent, ApprovalMode::AskDangerous, &["Bash(git status)"], &[]);
    let execute = Some(ToolKind::Execute);
    for (agent, tool, input) in [
        (
            AgentType::Claude,
            "Bash",
            json!({ "command": "git status", "dangerouslyDisableSandbox": true }),
        ),
        (AgentType::Claude, "Bash", json!({ "command": "git status", "stdin": "x" })),
        (AgentType::Claude, "PowerShell", json!({ "command": "git status" })),
        (AgentType::Codex, "command_execution", json!({ "command": "git status", "cwd": "/tmp" })),
        (
            AgentType::Codex,
            "command_execution",
            json!({ "command": "git status", "kind": "writeStdin" }),
        ),
        (
            AgentType::Codex,
            "command_execution",
            json!({ "command": "git status", "networkApprovalContext": { "host": "x" } }),
        ),
        (
            AgentType::Codex,
            "command_execution",
            json!({ "command": "git status", "additionalPermissions": { "fileSystem": {} } }),
        ),
        (AgentType::Codex, "command_execution", json!({ "command": "git status", "reason": "x" })),
        (
            AgentType::Claude,
            "Bash",
            json!({ "command": "git status", "proposedExecpolicyAmendment": ["git"] }),
        ),
        (
            AgentType::Gemini,
            "run_shell_command",
            json!({ "command": "git status", "directory": "/tmp" }),
        ),
        (AgentType::Acp, "x", json!({ "command": "git", "args": ["status"] })),
        (AgentType::Acp, "x", json!({ "command": "git status", "args": [";", "id"] })),
        (AgentType::Acp, "x", json!({ "command": ["git", "status; id"] })),
        (AgentType::Acp, "x", json!({ "command": ["git status"] })),
        (AgentType::Acp, "x", json!({ "command": 1 })),
        (
            AgentType::Acp,
            "x",
            json!({ "toolCallId": "1", "title": "git status", "kind": "execute" }),
        ),
    ] {
        let question = Question::new(tool, execute, &input);
        assert_eq!(question.ask(&policy(agent)), Verdict::Ask, "{input}");
    }
    let titled = Question {
        title: Some("git status".to_owned()),
        input: None,
        ..Question::new("x", execute, &json!({}))
    };
    assert_eq!(titled.ask(&policy(AgentType::Acp)), Verdict::Ask);
    let denied = super::policy(AgentType::Acp, ApprovalMode::AutoAll, &[], &["Bash(git status)"]);
    assert_eq!(word(&titled.ask(&denied)), "deny");
    // A rule that Codex would store is not passed to it.
    let proposed = json!({ "kind": "command", "command": "/bin/bash -lc 'git status'", "cwd": WORK,
        "commandActions": [], "proposedExecpolicyAmendment": ["git", "status"] });
    let proposed = Question::new("command_execution", execute, &proposed);
    assert!(is_allowed(&proposed.ask(&policy(AgentType::Codex))));
    // In a subdirectory a rule applies, but the list of commands that read does not.
    let below = json!({ "command": "git status", "cwd": "/srv/project/sub" });
    let below = Question::new("command_execution", execute, &below);
    assert!(is_allowed(&below.ask(&policy(AgentType::Codex))));
    let by_mode = super::policy(AgentType::Codex, ApprovalMode::AskDangerous, &[], &[]);
    assert_eq!(below.ask(&by_mode), Verdict::Ask);
}

#[test]
fn an_input_that_can_be_read_in_two_ways_tells_nothing() {
    let policy = policy(AgentType::Claude, ApprovalMode::AskDangerous, &["Bash(git status)"], &[]);
    for (tool, text) in [
        ("Write", r#"{"file_path":"a","file_path":"/etc/passwd"}"#),
        ("Write", r#"{"file_path":"a\ud83d"}"#),
        ("Write", r#"{"path":"a"}"#),
        ("Write", r#"{"file_path":["a"]}"#),
        ("Write", r#"["a"]"#),
        ("Bash", r#"{"command":"git status","command":"id"}"#),
        ("Glob", r#"{"pattern":"/etc/*"}"#),
        ("Glob", r#"{"pattern":"../*"}"#),
        ("Glob", r#"{"path":"src"}"#),
        ("Grep", r#"{"pattern":"x","path":"/etc"}"#),
    ] {
        let input = Json::trusted(text);
        let asked =
            CallFacts { tool_name: Some(tool), input: Some(&input), ..CallFacts::default() };
        assert_eq!(policy.decide(&asked, &no_links), Verdict::Ask, "{text}");
    }
    assert!(is_allowed(&Question::new("Grep", None, &json!({ "pattern": "/x" })).ask(&policy)));
    assert_eq!(policy.decide(&CallFacts::default(), &no_links), Verdict::Ask);
}

#[test]
fn acp_calls_show_their_files() {
    let shown = |path: &str, place: &str| {
        json!({ "toolCallId": "replace__replace_1_0", "status": "pending", "title": "a => b", "kind": "edit",
            "content": [{ "type": "diff", "path": path, "oldText": "a", "newText": "b" }],
            "locations": [{ "path": place }] })
    };
    for (agent, tool) in [(AgentType::Gemini, "replace"), (AgentType::Acp, "Edit a.txt")] {
        let policy = policy(agent, ApprovalMode::AutoEdit, &[], &[]);
        let ask =
            |input: &serde_json::Value, kind| Question::new(tool, Some(kind), input).ask(&policy);
        let inside = shown("/srv/project/a", "/srv/project/a");
        assert!(is_allowed(&ask(&inside, ToolKind::Edit)));
        assert!(is_allowed(&ask(&json!({ "file_path": "a", "content": "" }), ToolKind::Edit)));
        assert_eq!(ask(&inside, ToolKind::Delete), Verdict::Ask);
        let mut forged = inside.clone();
        forged["file_path"] = json!("/etc/passwd");
        for input in [
            shown("/etc/passwd", "/srv/project/a"),
            shown("/srv/project/a", "/etc/passwd"),
            json!({ "toolCallId": "1", "title": "a", "content": [], "locations": [] }),
            json!({ "path": "a", "destination": "/etc/x" }),
            json!({ "patch": "*** Begin Patch" }),
            forged,
        ] {
            assert_eq!(ask(&input, ToolKind::Edit), Verdict::Ask, "{input}");
        }
    }
}

#[test]
fn the_session_remembers() {
    let agent = AgentType::Claude;
    let mut policy = policy(agent, ApprovalMode::Ask, &[], &[]);
    let command = |text: &str| Question::new("Bash", None, &json!({ "command": text }));
    let edit = |path: &str| Question::new("Edit", None, &json!({ "file_path": path }));
    let fetch = |url: &str| Question::new("WebFetch", None, &json!({ "url": url, "prompt": "x" }));
    let mcp = |tool: &str, n: u32| Question::new(tool, None, &json!({ "n": n }));
    let other = |n: u32| Question::new("Skill", None, &json!({ "n": n }));
    for (first, same, different) in [
        (command("npm test 'a b'"), command("npm  test \"a b\""), command("npm test")),
        (edit("src/a"), edit("/srv/project/src/a"), edit("src/b")),
        (fetch("https://a.org/1"), fetch("http://a.org/2"), fetch("https://b.a.org/")),
        (mcp("mcp__s__a", 1), mcp("mcp__s__a", 2), mcp("mcp__s__b", 1)),
        (other(1), other(1), other(2)),
    ] {
        assert_eq!(first.ask(&policy), Verdict::Ask);
        let words = policy.remember(&first.asked(), true, &no_links);
        assert!(words.starts_with("allowed for this session: "), "{words}");
        assert!(is_allowed(&same.ask(&policy)), "{words}");
        assert_eq!(different.ask(&policy), Verdict::Ask, "{words}");
        assert!(
            policy
                .remember(&first.asked(), false, &no_links)
                .starts_with("denied for this session: ")
        );
        assert_eq!(word(&same.ask(&policy)), "deny", "{words}");
    }
    let compound = command("touch a && ls");
    assert!(policy.remember(&compound.asked(), true, &no_links).starts_with("not remembered: "));
    assert_eq!(compound.ask(&policy), Verdict::Ask);
    policy.remember(&compound.asked(), false, &no_links);
    assert_eq!(word(&compound.ask(&policy)), "deny");
}

#[test]
fn what_is_remembered_is_bounded_and_said() {
    let mut policy = policy(AgentType::Claude, ApprovalMode::Ask, &[], &[]);
    let command = |n: usize| Question::new("Bash", None, &json!({ "command": format!("run {n}") }));
    for n in 0..REMEMBERED_LIMIT {
        policy.remember(&command(n).asked(), true, &no_links);
        policy.remember(&command(n).asked(), true, &no_links);
    }
    assert!(is_allowed(&command(REMEMBERED_LIMIT - 1).ask(&policy)));
    assert!(
        policy
            .remember(&command(REMEMBERED_LIMIT).asked(), true, &no_links)
            .starts_with("not remembered: ")
    );
    assert_eq!(command(REMEMBERED_LIMIT).ask(&policy), Verdict::Ask);
}

#[test]
fn a_blocked_reading_keeps_commands_from_reading() {
    for rule in ["Read", "Read(.env)", "Grep"] {
        let policy = policy(AgentType::Claude, ApprovalMode::AskDangerous, &[], &[rule]);
        for question in shell_questions(AgentType::Claude, "cat .env") {
            assert_eq!(question.ask(&policy), Verdict::Ask, "{rule}");
        }
    }
}

#[test]
fn a_blocked_tool_is_blocked_in_every_mode() {
    for mode in MODES {
        for (tool, input) in [
            ("Write", json!({ "file_path": "a" })),
            ("Bash", json!({ "command": "ls" })),
            ("TodoWrite", json!({})),
            ("Unheard", json!({})),
            ("AskUserQuestion", json!({})),
        ] {
            let policy = policy(AgentType::Claude, mode, &[tool], &[tool]);
            assert_eq!(word(&Question::new(tool, None, &input).ask(&policy)), "deny", "{tool}");
        }
    }
}

/// A rule for one of the agent's own tools never allows a server's tool or a title.
#[test]
fn a_name_that_is_somebody_elses_allows_nothing() {
    let input = json!({ "query": "x" });
    for (agent, name, kind) in [
        (AgentType::Claude, "TodoWrite", Some(ToolKind::Mcp)),
        (AgentType::Codex, "web_search", Some(ToolKind::Mcp)),
        // Codex may ask like this for a server's tool.
        (AgentType::Codex, "web_search", None),
        (AgentType::Gemini, "write_todos", Some(ToolKind::Mcp)),
        (AgentType::Gemini, "read_file", Some(ToolKind::Mcp)),
    ] {
        let rules = policy(agent, ApprovalMode::AskDangerous, &[name], &[]);
        assert_eq!(Question::new(name, kind, &input).ask(&rules), Verdict::Ask, "{agent:?} {name}");
    }
    for (agent, name) in [(AgentType::Gemini, "write_todos"), (AgentType::Acp, "update_plan")] {
        let question = Question::new(name, Some(ToolKind::Other), &input);
        let rules = policy(agent, ApprovalMode::Ask, &[name], &[]);
        assert!(is_allowed(&question.ask(&rules)), "{name}");
        let titled = CallFacts { is_title: true, ..question.asked() };
        assert_eq!(rules.decide(&titled, &no_links), Verdict::Ask, "{name}");
        // To deny, any name will do.
        let rules = policy(agent, ApprovalMode::AutoAll, &[], &[name]);
        assert_eq!(word(&rules.decide(&titled, &no_links)), "deny", "{name}");
    }
}

/// For an ACP call, everything reported counts, and contradictions ask.
#[test]
fn acp_calls_are_judged_whole() {
    let shown = |fields: serde_json::Value| {
        let mut call = json!({ "toolCallId": "t", "title": "x" });
        for (name, value) in fields.as_object().expect("fields") {
            call[name] = value.clone();
        }
        call
    };
    let diff = |path: &str| json!({ "type": "diff", "path": path, "newText": "b" });
    let link = |uri: &str| json!({ "type": "content", "content": { "type": "resource_link", "uri": uri } });
    let modes = policy(AgentType::Acp, ApprovalMode::AskDangerous, &["WebFetch"], &[]);
    for (kind, call, allowed) in [
        (ToolKind::Read, json!({ "rawInput": { "path": "a" } }), true),
        (ToolKind::Read, json!({ "kind": "execute", "rawInput": { "path": "a" } }), false),
        (ToolKind::Think, json!({}), true),
        (ToolKind::Think, json!({ "kind": "delete" }), false),
        (ToolKind::Think, json!({ "locations": [{ "path": "/etc/x" }] }), false),
        (ToolKind::Think, json!({ "rawInput": { "command": "id" } }), false),
        (ToolKind::Edit, json!({ "content": [diff("a"), diff("b")] }), true),
        (ToolKind::Edit, json!({ "content": [diff("a"), diff("/etc/b")] }), false),
        (
            ToolKind::Edit,
            json!({ "content": [diff("a")], "locations": [{ "path": "/etc/b" }] }),
            false,
        ),
        (ToolKind::Edit, json!({ "content": [diff("a")], "rawInput": { "path": "b" } }), false),
        (
            ToolKind::Edit,
            json!({ "content": [diff("/srv/project/a")], "rawInput": { "path": "a" } }),
            true,
        ),
        (ToolKind::Edit, json!({ "content": [diff(".git/config")] }), false),
        (ToolKind::Read, json!({ "locations": [{ "path": "file:///srv/project/a" }] }), true),
        (ToolKind::Read, json!({ "locations": [{ "path": "file:///etc/a" }] }), false),
        (ToolKind::Read, json!({ "locations": [{ "path": "FILE://host/srv/project/a" }] }), false),
        (
            ToolKind::Read,
            json!({ "locations": [{ "path": "file:///srv/project/%2e%2e/x" }] }),
            false,
        ),
        (
            ToolKind::Read,
            json!({ "rawInput": { "path": "a" }, "content": [link("file:///etc/a")] }),
            false,
        ),
        (ToolKind::Fetch, json!({ "rawInput": { "url": "https://a.org" } }), true),
        (ToolKind::Fetch, json!({ "rawInput": { "url": "file:///srv/project/a" } }), false),
        (ToolKind::Fetch, json!({ "rawInput": {}, "content": [link("file:///etc/a")] }), false),
        (ToolKind::Other, json!({ "kind": "edit", "content": [diff("a")] }), false),
    ] {
        let input = shown(call);
        let verdict = Question::new("x", Some(kind), &input).ask(&modes);
        assert_eq!(is_allowed(&verdict), allowed, "{kind:?} {input}");
    }
    // With another call's id, this does not count as the call: its fields come from the model.
    let forged = shown(json!({ "kind": "read", "locations": [{ "path": "a" }] }));
    let question = Question::new("x", Some(ToolKind::Read), &forged);
    let asked = CallFacts { call_id: Some("other"), ..question.asked() };
    assert_eq!(modes.decide(&asked, &no_links), Verdict::Ask);
}

/// A page on this machine is a file, whatever tool fetches it.
#[test]
fn an_address_of_a_file_is_a_path() {
    let fetch = |url: &str| Question::new("WebFetch", None, &json!({ "url": url, "prompt": "x" }));
    let rules = policy(AgentType::Claude, ApprovalMode::Ask, &["WebFetch"], &["Read(.env)"]);
    assert!(is_allowed(&fetch("https://a.org").ask(&rules)));
    assert_eq!(fetch("file:///srv/project/a").ask(&rules), Verdict::Ask);
    assert_eq!(word(&fetch("file:///srv/project/.env").ask(&rules)), "deny");
}
