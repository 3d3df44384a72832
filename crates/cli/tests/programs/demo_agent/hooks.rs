//! Hooks are called, and their answers take effect.

use serde_json::{Value, json};

use crate::demo_agent::harness::{DemoHome, blocks, requests, result, text};
use crate::shared::ClaudeClient;

/// Registers a callback for each event. Its id is the event's name.
fn hook(demo: &mut ClaudeClient, events: &[&str]) {
    let entry = |event: &&str| json!([{ "matcher": null, "hookCallbackIds": [event] }]);
    let hooks: serde_json::Map<String, Value> =
        events.iter().map(|event| ((*event).to_owned(), entry(event))).collect();
    demo.initialize(json!({ "hooks": hooks }));
}

/// Answers one event's hook with `output`, and allows everything else.
fn when(event: &'static str, output: Value) -> impl Fn(&Value) -> Option<Value> {
    move |request| match request["subtype"].as_str() {
        Some("hook_callback") if request["input"]["hook_event_name"] == event => {
            Some(output.clone())
        }
        Some("hook_callback") => Some(json!({})),
        _ => Some(json!({ "behavior": "allow" })),
    }
}

fn names(lines: &[Value]) -> Vec<String> {
    let calls = requests(lines, "hook_callback").into_iter();
    calls.map(|line| line["request"]["callback_id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn every_event_is_raised_in_its_place() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    hook(
        &mut demo,
        &[
            "SessionStart",
            "UserPromptSubmit",
            "PreToolUse",
            "PostToolUse",
            "PostToolUseFailure",
            "PermissionRequest",
            "SubagentStart",
            "SubagentStop",
            "Stop",
            "SessionEnd",
        ],
    );
    let start = demo.until_request("hook_callback");
    assert_eq!(start["request"]["input"]["hook_event_name"], "SessionStart");
    assert_eq!(start["request"]["input"]["source"], "startup");
    demo.answer(&start, json!({}));
    let lines = demo.turn_with(
        "/bash echo hi\n/task sub\n/bash exit 1\n/end\n/say done",
        when("none", json!({})),
    );
    assert_eq!(
        names(&lines),
        [
            "UserPromptSubmit",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUse",
            "PreToolUse",
            "SubagentStart",
            "PreToolUse",
            "PermissionRequest",
            "PostToolUseFailure",
            "SubagentStop",
            "PostToolUse",
            "Stop",
        ]
    );
    let place_of = |fits: &dyn Fn(&Value) -> bool| lines.iter().position(fits).unwrap();
    let submitted = place_of(&|line| line["request"]["callback_id"] == "UserPromptSubmit");
    assert!(submitted < place_of(&|line| line["subtype"] == "init"));
    let stop = lines.iter().find(|line| line["request"]["callback_id"] == "Stop").unwrap();
    assert_eq!(stop["request"]["input"]["last_assistant_message"], "done");
    let failure = lines.iter().find(|line| line["request"]["callback_id"] == "PostToolUseFailure");
    let failure = &failure.unwrap()["request"]["input"];
    assert_eq!(failure["error"], "Exit code 1");
    assert!(failure["agent_id"].is_string(), "it is a subagent's");
    demo.end();
    let last = demo.written.iter().rev().find(|line| line.contains("hook_callback")).unwrap();
    assert!(last.contains("SessionEnd"), "{last}");
}

#[test]
fn what_there_is_nothing_to_choose_by_fits_every_matcher() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let entry = |id: &str| json!([{ "matcher": "Bash", "hookCallbackIds": [id] }]);
    let hooks =
        json!({ "UserPromptSubmit": entry("u"), "PreToolUse": entry("p"), "Stop": entry("s") });
    demo.initialize(json!({ "hooks": hooks }));
    let lines = demo.turn_with("/read nothing", when("none", json!({})));
    assert_eq!(names(&lines), ["u", "s"]);
}

#[test]
fn a_hook_denies_changes_or_allows_a_tool() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    hook(&mut demo, &["PreToolUse"]);
    let specific = |fields: Value| {
        let mut fields = fields;
        fields["hookEventName"] = json!("PreToolUse");
        json!({ "hookSpecificOutput": fields })
    };
    let denied = specific(json!({
        "permissionDecision": "deny", "permissionDecisionReason": "policy",
    }));
    let lines = demo.turn_with("/bash touch made\n/say {result}", when("PreToolUse", denied));
    assert_eq!(text(&lines), "PreToolUse:Bash hook error: policy");
    let old = json!({ "decision": "block", "reason": "old words" });
    let lines = demo.turn_with("/bash touch made\n/say {result}", when("PreToolUse", old));
    assert_eq!(text(&lines), "PreToolUse:Bash hook error: old words");
    assert!(requests(&lines, "can_use_tool").is_empty() && !home.work().join("made").exists());

    let allowed = specific(json!({
        "permissionDecision": "allow", "updatedInput": { "command": "echo by-hook" },
    }));
    let lines = demo.turn_with("/bash echo mine\n/say {result}", when("PreToolUse", allowed));
    assert_eq!(text(&lines), "by-hook");
    assert!(requests(&lines, "can_use_tool").is_empty());

    let ask = specific(json!({ "permissionDecision": "ask" }));
    let lines = demo.turn_with("/read nothing", when("PreToolUse", ask));
    assert_eq!(requests(&lines, "can_use_tool").len(), 1);
}

#[test]
fn a_hook_stops_the_turn() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    hook(&mut demo, &["PostToolUse"]);
    let stop = json!({ "continue": false, "stopReason": "enough" });
    let lines = demo.turn_with("/bash echo hi\n/say never", when("PostToolUse", stop));
    assert_eq!(text(&lines), "");
    assert_eq!(result(&lines)["terminal_reason"], "hook_stopped");
    assert_eq!(blocks(&lines, "tool_result")[0]["content"], "hi", "the completed call is reported");
}

#[test]
fn a_hook_keeps_a_prompt_out() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    hook(&mut demo, &["UserPromptSubmit"]);
    let block = json!({ "decision": "block", "reason": "not that" });
    let lines = demo.turn_with("/say secret", when("UserPromptSubmit", block));
    assert_eq!(text(&lines), "");
    assert_eq!(
        (&result(&lines)["result"], &result(&lines)["num_turns"]),
        (&json!("not that"), &json!(0))
    );
    assert_eq!(text(&demo.turn_with("/say fine", when("none", json!({})))), "fine");
}

#[test]
fn a_stop_hook_makes_it_go_on_once() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    hook(&mut demo, &["Stop"]);
    let block = json!({ "decision": "block", "reason": "say more" });
    let lines = demo.turn_with("/say first", when("Stop", block));
    let stops = requests(&lines, "hook_callback");
    let active: Vec<_> =
        stops.iter().map(|line| line["request"]["input"]["stop_hook_active"].clone()).collect();
    assert_eq!(active, [json!(false), json!(true)]);
    assert!(result(&lines)["result"].as_str().unwrap().contains("say more"));
}

#[test]
fn a_permission_hook_decides_or_leaves_it() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    hook(&mut demo, &["PermissionRequest"]);
    let decision = json!({ "hookSpecificOutput": {
        "hookEventName": "PermissionRequest", "decision": { "behavior": "deny", "message": "by hook" },
    } });
    // The client does not answer. The hook decides, and the permission request is cancelled.
    let lines = demo.turn_with("/bash touch made\n/say {result}", |request| {
        (request["subtype"] == "hook_callback").then(|| decision.clone())
    });
    assert_eq!(text(&lines), "by hook");
    assert!(lines.iter().any(|line| line["type"] == "control_cancel_request"));
    let lines = demo.turn_with("/bash echo yes\n/say {result}", when("none", json!({})));
    assert_eq!(text(&lines), "yes");
}

#[test]
fn matchers_choose() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--permission-mode=bypassPermissions"]);
    let entry = |id: &str, matcher: &str| json!({ "matcher": matcher, "hookCallbackIds": [id] });
    demo.initialize(json!({ "hooks": { "PreToolUse": [
        entry("all", "*"), entry("none", "Ba"), entry("names", "Write|Bash"), entry("pattern", "^B.*h$"),
        entry("broken", "("),
    ] } }));
    let lines = demo.turn_with("/bash true", when("none", json!({})));
    assert_eq!(names(&lines), ["all", "names", "pattern"]);
}

#[test]
fn a_failing_hook_is_told_and_counts_as_nothing_unless_strict() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--permission-mode=bypassPermissions"]);
    for (strict, said) in
        [(false, "ran"), (true, "PreToolUse:Bash hook error: hook callback h failed")]
    {
        let on_failure = if strict { json!("block") } else { Value::Null };
        demo.initialize(json!({ "hooks": { "PreToolUse": [
            { "hookCallbackIds": ["h"], "onFailure": on_failure },
        ] } }));
        demo.prompt("/bash echo ran\n/say {result}");
        let request = demo.until_request("hook_callback");
        demo.send(&json!({ "type": "control_response", "response": {
            "subtype": "error", "request_id": request["request_id"], "error": "crashed",
        } }));
        let lines = demo.finish_turn(|_| None);
        assert_eq!(text(&lines), said);
        assert!(lines.iter().any(|line| line["subtype"] == "informational"));
    }
}

#[test]
fn a_hook_may_have_a_time_limit() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--permission-mode=bypassPermissions"]);
    demo.initialize(json!({ "hooks": { "PreToolUse": [
        { "hookCallbackIds": ["slow"], "timeout": 0.02 },
    ] } }));
    let lines = demo.turn_with("/bash echo ran\n/say {result}", |_| None);
    assert_eq!(text(&lines), "ran");
    assert!(lines.iter().any(|line| line["type"] == "control_cancel_request"));
}
