//! Raw inputs of agents that are known by their kinds: every field counts, at any depth.

use agentwire_protocol::event::ToolKind;
use agentwire_protocol::{AgentType, ApprovalMode};
use serde_json::{Value, json};

use super::{Question, is_allowed, policy, word};

const IN: &str = "/srv/project/a";

/// The input alone, and the whole call with this input.
fn ways(raw: &Value) -> [Value; 2] {
    [raw.clone(), json!({ "toolCallId": "t", "title": "x", "rawInput": raw })]
}

fn verdicts(mode: ApprovalMode, blocked: &[&str], kind: ToolKind, raw: &Value) -> Vec<String> {
    let mut verdicts = Vec::new();
    for agent in [AgentType::Acp, AgentType::Gemini] {
        let policy = policy(agent, mode, &[], blocked);
        for input in ways(raw) {
            verdicts.push(word(&Question::new("x", Some(kind), &input).ask(&policy)).to_owned());
        }
    }
    verdicts.dedup();
    verdicts
}

#[test]
fn a_field_that_leads_outside_asks() {
    let deep = |value: Value| json!({ "path": IN, "a": [{ "b": { "c": [value] } }] });
    for raw in [
        json!({ "path": IN, "edits": [{ "file_path": "/etc/x" }] }),
        json!({ "path": IN, "output": "/etc/x" }),
        json!({ "path": IN, "folder": "/etc" }),
        json!({ "path": IN, "edits": [{ "x": "/etc/x" }] }),
        json!({ "path": IN, "x": "~/x" }),
        json!({ "path": IN, "x": "~root" }),
        json!({ "path": IN, "x": "a/../../../etc/x" }),
        json!({ "path": IN, "x": "..\\..\\etc\\x" }),
        json!({ "path": IN, "x": "{..,a}/../etc/x" }),
        json!({ "path": IN, "x": "file:///etc/x" }),
        json!({ "path": IN, "x": "FILE:/etc/x" }),
        json!({ "path": IN, "x": " /etc/x" }),
        json!({ "path": " /etc/x" }),
        json!({ "path": IN, "x": "\"/etc/x\"" }),
        json!({ "path": IN, "x": "--out=/etc/x" }),
        json!({ "path": IN, "x": "-o/etc/x" }),
        json!({ "path": IN, "x": "a\n/etc/x" }),
        json!({ "path": IN, "x": "https://evil.net/x" }),
        json!({ "path": IN, "description": "/etc/x" }),
        json!({ "path": IN, "changes": { "/etc/x": "text" } }),
        json!({ "path": IN, "/etc/x": "new text" }),
        json!({ "path": IN, "~/x": 1 }),
        json!({ "path": IN, "a ../../x": null }),
        json!({ "path": IN, "https://evil.net/x": "" }),
        json!({ "path": IN, "files": { "b": { "content": "/etc/x" } } }),
        json!({ "path": { "text": IN } }),
        json!({ "path": [IN, "/etc/x"] }),
        json!({ "path": IN, "patch": "*** Begin Patch\n*** Update File: b\n" }),
        json!({ "path": IN, "diff": "--- a\n+++ b\n" }),
        json!({ "path": "x", "root": "b" }),
        json!({ "path": IN, "dir": 1 }),
        deep(json!("/etc/x")),
        deep(json!({ "filePath": "../x" })),
        deep(json!({ "~/x": 1 })),
    ] {
        for kind in [ToolKind::Read, ToolKind::Search, ToolKind::Edit] {
            let asks = verdicts(ApprovalMode::AskDangerous, &[], kind, &raw);
            assert_eq!(asks, ["ask"], "{kind:?} {raw}");
        }
        let asks = verdicts(ApprovalMode::AutoEdit, &[], ToolKind::Edit, &raw);
        assert_eq!(asks, ["ask"], "{raw}");
    }
    let raw = json!({ "path": IN, "pattern": "../../../etc/*" });
    assert_eq!(verdicts(ApprovalMode::AskDangerous, &[], ToolKind::Search, &raw), ["ask"]);
}

/// The meaning of an input without fields is unknown: it asks, and rules see all its text.
#[test]
fn an_input_without_fields_asks() {
    let diff = json!({ "type": "diff", "path": IN, "oldText": "x", "newText": "y" });
    for raw in [
        json!("/etc/passwd"),
        json!([{ "path": "/etc/passwd" }]),
        json!([["/etc/passwd"]]),
        json!("rm -rf /etc"),
        json!(["rm", "-rf", "/etc"]),
        json!(IN),
        json!([{ "path": IN }]),
        json!(5),
        json!(true),
    ] {
        for (kind, class) in [
            (ToolKind::Read, "read"),
            (ToolKind::Search, "search"),
            (ToolKind::Edit, "edit"),
            (ToolKind::Think, "think"),
            (ToolKind::Execute, "execute"),
        ] {
            for mode in [ApprovalMode::AskDangerous, ApprovalMode::AutoEdit] {
                assert_eq!(verdicts(mode, &[], kind, &raw), ["ask"], "{kind:?} {raw}");
                let call = json!({ "toolCallId": "t", "kind": class, "content": [diff],
                    "locations": [{ "path": IN }], "rawInput": raw });
                let verdict = Question::new("x", Some(kind), &call).ask(&policy(
                    AgentType::Acp,
                    mode,
                    &[],
                    &[],
                ));
                assert_eq!(word(&verdict), "ask", "{call}");
            }
        }
    }
    for (rule, kind, raw, expected) in [
        ("Edit(//etc/**)", ToolKind::Edit, json!("/etc/passwd"), "deny"),
        ("Edit(//etc/**)", ToolKind::Edit, json!([{ "x": "/etc/passwd" }]), "deny"),
        ("Edit(//etc/**)", ToolKind::Edit, json!([{ "/etc/passwd": "x" }]), "deny"),
        ("Read(.env)", ToolKind::Read, json!(".env"), "deny"),
        ("Read(.env)", ToolKind::Search, json!(["x", ".env"]), "deny"),
        ("Read(.env)", ToolKind::Read, json!("a"), "ask"),
        ("Bash(rm:*)", ToolKind::Execute, json!("rm -rf x"), "deny"),
        ("Bash(rm:*)", ToolKind::Execute, json!(["rm", "x"]), "deny"),
        ("Bash(rm:*)", ToolKind::Execute, json!("ls"), "ask"),
        ("Bash(rm:*)", ToolKind::Think, json!("rm -rf x"), "deny"),
        ("Bash(rm:*)", ToolKind::Edit, json!(["rm", "x"]), "ask"),
        ("Bash(rm:*)", ToolKind::Read, json!("a"), "allow"),
    ] {
        let verdicts = verdicts(ApprovalMode::AutoAll, &[rule], kind, &raw);
        assert_eq!(verdicts, [expected], "{rule} {kind:?} {raw}");
    }
}

/// What a call shows and what its input says must match its kind.
#[test]
fn an_input_that_speaks_of_another_kind_asks() {
    for more in [
        json!({ "delete": true }),
        json!({ "Delete_File": 1 }),
        json!({ "operation": "delete" }),
        json!({ "changes": [{ "action": "Remove" }] }),
        json!({ "rename_to": "b" }),
        json!({ "op": "move" }),
        json!({ "args": ["rm", "x"] }),
        json!({ "exec": "id" }),
        json!({ "run": "id" }),
        json!({ "shell": "id" }),
        json!({ "steps": [{ "command": "id" }] }),
        json!({ "type": "execute" }),
    ] {
        let mut raw = json!({ "path": IN });
        for (name, value) in more.as_object().expect("fields") {
            raw[name] = value.clone();
        }
        for kind in [ToolKind::Read, ToolKind::Search, ToolKind::Edit] {
            let asks = verdicts(ApprovalMode::AskDangerous, &[], kind, &raw);
            assert_eq!(asks, ["ask"], "{kind:?} {raw}");
        }
        assert_eq!(verdicts(ApprovalMode::AskDangerous, &[], ToolKind::Think, &more), ["ask"]);
    }
    let raw = json!({ "path": IN, "delete": false, "exec": null, "rename_to": null });
    assert_eq!(verdicts(ApprovalMode::AutoEdit, &[], ToolKind::Edit, &raw), ["allow"]);
    let diff = |new: Value| json!({ "type": "diff", "path": IN, "oldText": "x", "newText": new });
    let edit = |pieces: Value| json!({ "toolCallId": "t", "kind": "edit", "content": pieces });
    for (call, allowed) in [
        (edit(json!([diff(json!("y"))])), true),
        (edit(json!([diff(Value::Null)])), false),
        (edit(json!([{ "type": "diff", "path": IN }])), false),
        (edit(json!([diff(json!("y")), { "type": "terminal", "terminalId": "t" }])), false),
        (edit(json!([diff(json!("y")), { "type": "exec", "cmd": "x" }])), false),
        (edit(json!([diff(json!("y")), 1])), false),
    ] {
        for agent in [AgentType::Acp, AgentType::Gemini] {
            let edits = policy(agent, ApprovalMode::AutoEdit, &[], &[]);
            let verdict = Question::new("x", Some(ToolKind::Edit), &call).ask(&edits);
            assert_eq!(is_allowed(&verdict), allowed, "{call}");
        }
    }
    for kind in [ToolKind::Think, ToolKind::Read] {
        let call = json!({ "toolCallId": "t", "locations": [{ "path": IN }],
            "content": [{ "type": "terminal", "terminalId": "t" }] });
        let reads = policy(AgentType::Acp, ApprovalMode::AskDangerous, &[], &[]);
        assert_eq!(word(&Question::new("x", Some(kind), &call).ask(&reads)), "ask", "{kind:?}");
    }
}

#[test]
fn rules_see_every_field() {
    let env = "/srv/project/b/.env";
    for (rule, kind, raw, expected) in [
        ("Edit(//etc/**)", ToolKind::Edit, json!({ "edits": [{ "file_path": "/etc/x" }] }), "deny"),
        ("Edit(//etc/**)", ToolKind::Edit, json!({ "x": [["/etc/x"]] }), "deny"),
        ("Edit(//etc/**)", ToolKind::Edit, json!({ "changes": { "/etc/x": "" } }), "deny"),
        ("Edit(//etc/**)", ToolKind::Edit, json!({ "/etc/x": "new text" }), "deny"),
        ("Edit(//etc/**)", ToolKind::Edit, json!({ "x": "file:///etc/x" }), "deny"),
        ("Edit(//etc/**)", ToolKind::Delete, json!({ "x": "/etc/x" }), "deny"),
        ("Edit(//etc/**)", ToolKind::Move, json!({ "to": "/etc/x" }), "deny"),
        ("Read(.env)", ToolKind::Read, json!({ "items": [{ "path": env }] }), "deny"),
        ("Read(.env)", ToolKind::Read, json!({ "items": [{ "x": "b/.env" }] }), "deny"),
        ("Read(.env)", ToolKind::Read, json!({ "x": ".env" }), "deny"),
        ("Read(.env)", ToolKind::Search, json!({ "x": { "path": env } }), "deny"),
        // Uncertain fields do not hide certain ones.
        ("Read(.env)", ToolKind::Read, json!({ "path": env, "x": "a /etc/x" }), "deny"),
        ("Read(.env)", ToolKind::Read, json!({ "path": env, "dir": 1 }), "deny"),
        ("Read(.env)", ToolKind::Read, json!({ "x": "a /etc/x" }), "ask"),
        ("Read(.env)", ToolKind::Read, json!({ "x": "/srv/project/.en?" }), "ask"),
        ("Edit(b/c)", ToolKind::Edit, json!({ "path": "c", "dir": "b" }), "ask"),
        ("Read(.env)", ToolKind::Read, json!({ "x": "b" }), "allow"),
        ("Edit(//etc/**)", ToolKind::Edit, json!({ "content": "/etc/x" }), "allow"),
    ] {
        let mut raw = raw;
        if raw.get("path").is_none() {
            raw["path"] = json!(IN);
        }
        let verdicts = verdicts(ApprovalMode::AutoAll, &[rule], kind, &raw);
        assert_eq!(verdicts, [expected], "{rule} {kind:?} {raw}");
    }
}

/// The inputs that agents send for ordinary calls, and text that only looks like a path.
#[test]
fn ordinary_calls_are_allowed() {
    let diff = json!({ "type": "diff", "path": IN, "oldText": "/etc/x", "newText": "../x" });
    let edits = [
        json!({ "file_path": IN, "content": "x" }),
        json!({ "file_path": IN, "content": "see /etc/passwd\n/target\n../x\n" }),
        json!({ "file_path": IN, "content": "/target" }),
        json!({ "file_path": IN, "old_string": "../a", "new_string": "~/b", "replace_all": false }),
        json!({ "file_path": IN, "edits": [{ "old_string": "/a", "new_string": "/b" }] }),
        json!({ "notebook_path": IN, "new_source": "open('/etc/x')", "cell_type": "code",
            "cell_id": "c1", "edit_mode": "replace" }),
        json!({ "filePath": IN, "oldString": "/a", "newString": "../b" }),
        json!({ "path": IN, "file_text": "/usr/bin/env" }),
        json!({ "target_file": "src/a.ts", "instructions": "Use /etc/hosts now.", "code_edit": "/x" }),
        json!({ "path": IN, "edits": [{ "oldText": "/a", "newText": "/b" }], "dryRun": false }),
        json!({ "path": "app/[id]/$x.tsx", "content": "" }),
        json!({ "path": IN, "edits": [{ "file_path": "/srv/project/b", "newText": "x" }] }),
    ];
    for raw in &edits {
        for mode in [ApprovalMode::AutoEdit, ApprovalMode::AskDangerous, ApprovalMode::AutoAll] {
            assert_eq!(verdicts(mode, &[], ToolKind::Edit, raw), ["allow"], "{raw}");
        }
    }
    let reads = [
        (ToolKind::Read, json!({ "file_path": IN, "offset": 1, "limit": 20 })),
        (ToolKind::Read, json!({ "path": "src", "description": "Look in /etc for x" })),
        (
            ToolKind::Search,
            json!({ "pattern": "fn \\w+\\(.*\\)", "path": IN, "glob": "**/*.rs",
            "output_mode": "content", "-n": true, "-A": 2, "type": "rust" }),
        ),
        (ToolKind::Search, json!({ "pattern": "**/*.{ts,tsx}", "path": "src" })),
        (ToolKind::Think, json!({ "thought": "See /etc/x.", "thoughtNumber": 1 })),
        (ToolKind::Think, json!({ "todos": [{ "content": "a", "status": "pending", "id": "1" }] })),
        (ToolKind::Think, json!({})),
    ];
    for (kind, raw) in &reads {
        let allowed = verdicts(ApprovalMode::AskDangerous, &[], *kind, raw);
        assert_eq!(allowed, ["allow"], "{kind:?} {raw}");
    }
    // As claude-agent-acp asks for a write, and as Gemini does for a replacement.
    for call in [
        json!({ "toolCallId": "t", "title": "Write a", "kind": "edit", "status": "pending",
            "rawInput": { "file_path": IN, "content": "/x" }, "content": [diff],
            "locations": [{ "path": IN }] }),
        json!({ "toolCallId": "t", "title": "a: /x => ../y", "kind": "edit", "status": "pending",
            "content": [diff] }),
    ] {
        let edits = policy(AgentType::Acp, ApprovalMode::AutoEdit, &[], &[]);
        assert!(is_allowed(&Question::new("x", Some(ToolKind::Edit), &call).ask(&edits)), "{call}");
    }
}

#[test]
fn only_text_is_thought() {
    for raw in [
        json!({ "code": "x", "url": "y" }),
        json!({ "code": "print(1)" }),
        json!({ "thought": "x", "url": "a.org" }),
        json!({ "subagent_type": "general", "prompt": "x", "description": "y" }),
        json!({ "thought": { "run": "x" } }),
        json!({ "text": "/etc/x" }),
        json!({ "path": IN }),
    ] {
        let asks = verdicts(ApprovalMode::AskDangerous, &[], ToolKind::Think, &raw);
        assert_eq!(asks, ["ask"], "{raw}");
    }
}

/// What was said first, what the call shows now, and whether it may be allowed as an edit.
#[test]
fn kinds_that_contradict_each_other_ask() {
    for (first, later, allowed) in [
        (ToolKind::Edit, "edit", true),
        (ToolKind::Read, "edit", true),
        (ToolKind::Search, "edit", true),
        (ToolKind::Think, "edit", true),
        (ToolKind::Edit, "read", true),
        (ToolKind::Fetch, "edit", false),
        (ToolKind::SwitchMode, "edit", false),
        (ToolKind::Other, "edit", false),
        (ToolKind::Agent, "edit", false),
        (ToolKind::Edit, "fetch", false),
        (ToolKind::Edit, "switch_mode", false),
        (ToolKind::Edit, "delete", false),
        (ToolKind::Edit, "execute", false),
        (ToolKind::Delete, "edit", false),
    ] {
        let call = json!({ "toolCallId": "t", "kind": later, "rawInput": { "path": IN } });
        for mode in [ApprovalMode::AutoEdit, ApprovalMode::AskDangerous] {
            let acp = policy(AgentType::Acp, mode, &[], &[]);
            let verdict = Question::new("x", Some(first), &call).ask(&acp);
            assert_eq!(is_allowed(&verdict), allowed, "{first:?} {later} {mode:?}");
        }
    }
    for kinds in [json!(["fetch", "edit"]), json!(["other", "edit"]), json!(["edit", 1])] {
        let call = json!({ "toolCallId": "t", "kind": "edit", "kinds": kinds,
            "rawInput": { "path": IN } });
        let edits = policy(AgentType::Acp, ApprovalMode::AutoEdit, &[], &[]);
        let question = Question::new("x", Some(ToolKind::Edit), &call);
        assert_eq!(word(&question.ask(&edits)), "ask", "{kinds}");
        let denied = policy(AgentType::Acp, ApprovalMode::AutoAll, &[], &["WebFetch"]);
        let expected = if kinds[0] == "fetch" { "deny" } else { "allow" };
        assert_eq!(word(&question.ask(&denied)), expected, "{kinds}");
    }
}

/// A denial of a call that is not fully known covers exactly this call.
#[test]
fn an_unknown_file_is_not_remembered_as_a_path() {
    let mut acp = policy(AgentType::Acp, ApprovalMode::AutoAll, &[], &[]);
    let ask = |raw: &Value| Question::new("edit", Some(ToolKind::Edit), raw);
    let odd = ask(&json!({ "path": IN, "x": "a /etc/x" }));
    acp.remember(&odd.asked(), false, &super::no_links);
    assert_eq!(word(&odd.ask(&acp)), "deny");
    assert_eq!(word(&ask(&json!({ "path": "/srv/project/b" })).ask(&acp)), "allow");
}
