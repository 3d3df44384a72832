//! What is allowed, and what is asked first.

use serde_json::{Value, json};

use crate::demo_agent::harness::{DemoHome, blocks, requests, result, text};

fn deny(_: &Value) -> Option<Value> {
    Some(json!({ "behavior": "deny", "message": "not today" }))
}

#[test]
fn a_denied_tool_does_not_run() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let lines = demo.turn_with("/bash touch made\n/say {result}", deny);
    assert_eq!(text(&lines), "not today");
    assert!(!home.work().join("made").exists());
    let end = result(&lines);
    assert_eq!(end["subtype"], "success");
    assert_eq!(end["permission_denials"][0]["tool_input"]["command"], "touch made");
}

#[test]
fn the_input_may_be_changed() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let change = |_: &Value| {
        Some(json!({ "behavior": "allow", "updatedInput": { "command": "echo changed" } }))
    };
    let lines = demo.turn_with("/bash echo original\n/say {result}", change);
    assert_eq!(text(&lines), "changed");
}

#[test]
fn a_wrong_answer_is_no_permission() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let answers = [
        json!({ "behavior": "maybe" }),
        json!({}),
        json!("allow"),
        json!({
            "behavior": "allow", "updatedInput": "rm",
        }),
    ];
    for answer in answers {
        let lines = demo.turn_with("/bash touch made", |_| Some(answer.clone()));
        assert_eq!(blocks(&lines, "tool_result")[0]["is_error"], true, "{answer}");
    }
    demo.prompt("/bash touch made");
    let request = demo.until_request("can_use_tool");
    demo.send(&json!({ "type": "control_response", "response": {
        "subtype": "error", "request_id": request["request_id"], "error": "nobody home",
    } }));
    let lines = demo.finish_turn(|_| None);
    assert!(blocks(&lines, "tool_result")[0]["content"].as_str().unwrap().contains("nobody home"));
    assert!(!home.work().join("made").exists());
}

#[test]
fn a_denial_may_end_the_turn() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let stop = |_: &Value| Some(json!({ "behavior": "deny", "message": "no", "interrupt": true }));
    let lines = demo.turn_with("/bash touch made\n/say never", stop);
    let end = result(&lines);
    assert_eq!(end["subtype"], "error_during_execution");
    assert_eq!(end["terminal_reason"], "aborted_tools");
    assert_eq!(end["permission_denials"][0]["tool_name"], "Bash");
    assert_eq!(text(&lines), "[Request interrupted by user for tool use]");
    assert_eq!(text(&demo.turn("/say alive")), "alive");
}

#[test]
fn rules_of_an_answer_hold_for_the_session() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let always = |request: &Value| {
        Some(json!({
            "behavior": "allow", "updatedPermissions": request["permission_suggestions"],
        }))
    };
    assert_eq!(requests(&demo.turn_with("/bash echo a", always), "can_use_tool").len(), 1);
    assert_eq!(requests(&demo.turn("/bash echo a"), "can_use_tool").len(), 0);
    assert_eq!(requests(&demo.turn("/bash echo a; echo b"), "can_use_tool").len(), 1);

    let lines = demo.turn_with("/write x.txt 1\n/say {mode}", always);
    assert_eq!(text(&lines), "acceptEdits");
    assert!(
        lines
            .iter()
            .any(|line| line["permissionMode"] == "acceptEdits" && line["subtype"] == "status")
    );
    assert_eq!(requests(&demo.turn("/write x.txt 2"), "can_use_tool").len(), 0);
}

#[test]
fn modes_decide_who_is_asked() {
    let rows = [
        ("default", true, true),
        ("acceptEdits", true, false),
        ("bypassPermissions", false, false),
        ("auto", true, true),
    ];
    for (mode, bash, write) in rows {
        let home = DemoHome::new();
        let mut demo = home.start(&[&format!("--permission-mode={mode}")]);
        let asked = |lines: Vec<Value>| !requests(&lines, "can_use_tool").is_empty();
        assert_eq!(asked(demo.turn("/bash touch a")), bash, "bash in {mode}");
        assert_eq!(asked(demo.turn("/write b 1")), write, "write in {mode}");
        assert!(home.work().join("a").exists() && home.work().join("b").exists(), "{mode}");
        let outside = format!("/write {} 1", home.state().join("outside").display());
        assert_eq!(asked(demo.turn(&outside)), mode != "bypassPermissions", "outside in {mode}");
        let climbing = demo.turn("/write ../climbed 1");
        assert_eq!(asked(climbing), mode != "bypassPermissions", "climbing in {mode}");
    }
    for mode in ["plan", "dontAsk"] {
        let home = DemoHome::new();
        let mut demo = home.start(&["--permission-mode", mode, "--allowedTools=Bash(echo ok)"]);
        let lines = demo.turn("/bash touch a\n/bash echo ok\n/read nothing");
        assert!(requests(&lines, "can_use_tool").is_empty(), "{mode}");
        assert!(!home.work().join("a").exists(), "{mode}");
        assert_eq!(blocks(&lines, "tool_result")[1]["content"], "ok", "{mode}");
        assert!(lines.iter().any(|line| line["subtype"] == "permission_denied"), "{mode}");
    }
}

#[test]
fn the_mode_can_change_on_the_way() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let set = |mode: &str| json!({ "subtype": "set_permission_mode", "mode": mode });
    assert_eq!(demo.control(set("acceptEdits"))["response"]["mode"], "acceptEdits");
    assert_eq!(demo.control(set("bogus"))["error_code"], "invalid_mode");
    assert_eq!(demo.control(set("bypassPermissions"))["error_code"], "bypass_not_launched");
    assert_eq!(text(&demo.turn("/say {mode}")), "acceptEdits");
    // An answer cannot enable it either.
    let sneaky = |_: &Value| {
        let update =
            json!({ "type": "setMode", "mode": "bypassPermissions", "destination": "session" });
        Some(json!({ "behavior": "allow", "updatedPermissions": [update] }))
    };
    assert_eq!(text(&demo.turn_with("/bash true\n/say {mode}", sneaky)), "acceptEdits");
}

#[test]
fn rules_cover_only_what_they_name() {
    let home = DemoHome::new();
    let mut demo = home
        .start(&["--allowedTools=Bash(echo:*),Write(notes/**)", "--disallowedTools=Bash(echo no)"]);
    let asked = |lines: Vec<Value>| requests(&lines, "can_use_tool").len();
    assert_eq!(asked(demo.turn("/bash echo yes")), 0);
    assert_eq!(asked(demo.turn("/write notes/a 1")), 0);
    assert_eq!(asked(demo.turn("/write notes/../a 1")), 1, "a path may not climb out");
    for command in ["echoes", "echo a; touch b", "echo $(touch b)", "echo a > b", "echo `id`"] {
        assert_eq!(asked(demo.turn_with(&format!("/bash {command}"), deny)), 1, "{command}");
    }
    let lines = demo.turn("/bash echo no");
    assert_eq!(blocks(&lines, "tool_result")[0]["is_error"], true);
    assert_eq!(asked(lines), 0);
}

#[test]
fn without_anyone_to_ask_nothing_runs() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--permission-prompt-tool=none"]);
    let lines = demo.turn("/bash touch made\n/ask Well? | Yes");
    assert!(requests(&lines, "can_use_tool").is_empty());
    assert!(!home.work().join("made").exists());
    assert_eq!(result(&lines)["permission_denials"].as_array().unwrap().len(), 2);
}

#[test]
fn reads_outside_the_directories_of_the_session_are_asked_for() {
    let home = DemoHome::new();
    let root = home.work().parent().unwrap().to_owned();
    for (name, text) in [("work/in.txt", "in"), ("added/in.txt", "in"), ("out.txt", "out")] {
        std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
        std::fs::write(root.join(name), text).unwrap();
    }
    let link =
        |to: &str, at: &str| std::os::unix::fs::symlink(root.join(to), root.join(at)).unwrap();
    link("out.txt", "work/out");
    link(".", "work/up");
    link("work", "to-work");
    let added = format!("--add-dir={}", root.join("added").display());
    let inside = [
        "in.txt",
        "./in.txt",
        "up/work/in.txt",
        "../added/in.txt",
        "../to-work/in.txt",
        "gone/gone",
    ];
    let outside =
        ["../out.txt", "out", "up/out.txt", "up/../etc/passwd", "/etc/passwd", "/", "../gone"];
    for mode in ["default", "acceptEdits", "plan"] {
        let mut demo = home.start(&["--anonymous", &added, "--permission-mode", mode]);
        let mut asked = |file: &str| {
            let lines = demo.turn_with(&format!("/read {file}"), deny);
            let result = blocks(&lines, "tool_result")[0].to_string();
            assert!(!result.contains("1\\tout"), "{mode} {file}: {result}");
            requests(&lines, "can_use_tool").len()
        };
        for file in inside {
            assert_eq!(asked(file), 0, "{mode} {file}");
        }
        for file in outside {
            assert_eq!(asked(file), 1, "{mode} {file}");
        }
    }
    let mut demo = home.start(&["--anonymous", "--permission-mode=dontAsk"]);
    let lines = demo.turn("/read ../out.txt");
    assert!(requests(&lines, "can_use_tool").is_empty());
    assert_eq!(blocks(&lines, "tool_result")[0]["is_error"], true);
    let mut demo = home.start(&["--anonymous"]);
    let lines = demo.turn("/read ../out.txt");
    assert_eq!(blocks(&lines, "tool_result")[0]["content"], "1\tout");
    // A hook that changes the path does not grant permission to read it.
    let mut demo = home.start(&["--anonymous"]);
    demo.control(json!({ "subtype": "initialize", "hooks": {
        "PreToolUse": [{ "matcher": "Read", "hookCallbackIds": ["hook_0"] }],
    } }));
    let away = json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "updatedInput": { "file_path": "../out.txt" },
    } });
    let lines = demo.turn_with("/read in.txt", |request: &Value| {
        Some(match request["subtype"].as_str() {
            Some("hook_callback") => away.clone(),
            _ => json!({ "behavior": "deny", "message": "no" }),
        })
    });
    assert_eq!(requests(&lines, "can_use_tool").len(), 1);
}
