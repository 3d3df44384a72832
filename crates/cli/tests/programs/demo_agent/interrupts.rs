//! The agent can be interrupted at any time, and continues with the next prompt.

use serde_json::{Value, json};

use crate::demo_agent::harness::{DemoHome, await_file, await_gone, result, text};
use crate::shared::ClaudeClient;

/// Interrupts and returns everything from there to the result.
fn interrupt(demo: &mut ClaudeClient) -> Vec<Value> {
    demo.request("int", json!({ "subtype": "interrupt" }));
    demo.finish_turn(|_| None)
}

fn order(lines: &[Value]) -> Vec<String> {
    let name = |line: &Value| match line["type"].as_str().unwrap() {
        "user" if line["message"]["content"][0]["type"] == "tool_result" => {
            "tool_result".to_owned()
        }
        "stream_event" => line["event"]["type"].as_str().unwrap().to_owned(),
        kind => kind.to_owned(),
    };
    lines.iter().filter(|line| line["event"]["type"] != "content_block_delta").map(name).collect()
}

fn is_well_cut(demo: &mut ClaudeClient, lines: &[Value], words: &str, reason: &str) {
    let end = result(lines);
    assert_eq!(end["subtype"], "error_during_execution");
    assert_eq!((&end["is_error"], &end["terminal_reason"]), (&json!(true), &json!(reason)));
    assert!(end["errors"].is_array() && end.get("result").is_none());
    assert!(text(lines).ends_with(words), "{}", text(lines));
    assert_eq!(text(&demo.turn("/say alive")), "alive");
}

const BY_USER: &str = "[Request interrupted by user]";
const IN_TOOL: &str = "[Request interrupted by user for tool use]";

#[test]
fn while_it_hangs_or_sleeps() {
    for directive in ["/hang", "/sleep 600000"] {
        let home = DemoHome::new();
        let mut demo = home.start(&["--include-partial-messages"]);
        demo.prompt(&format!("/say before\n{directive}\n/say never"));
        demo.until(|line| line["event"]["type"] == "content_block_stop");
        let lines = interrupt(&mut demo);
        assert_eq!(
            order(&lines),
            ["control_response", "user", "message_delta", "message_stop", "result"]
        );
        is_well_cut(&mut demo, &lines, BY_USER, "aborted_streaming");
    }
}

#[test]
fn while_it_speaks() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--include-partial-messages"]);
    demo.prompt("/repeat 1000000000 word\n/say never");
    demo.until(|line| line["event"]["delta"]["text"] == "word");
    demo.request("int", json!({ "subtype": "interrupt" }));
    demo.until(|line| line["type"] == "control_response");
    let lines = demo.finish_turn(|_| None);
    assert_eq!(
        order(&lines),
        ["assistant", "user", "content_block_stop", "message_delta", "message_stop", "result"]
    );
    assert_eq!(lines[0]["aborted"], true);
    is_well_cut(&mut demo, &lines, BY_USER, "aborted_streaming");
}

#[test]
fn while_it_waits_for_a_permission() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.prompt("/bash touch made");
    let request = demo.until_request("can_use_tool");
    let lines = interrupt(&mut demo);
    assert_eq!(
        order(&lines),
        ["control_cancel_request", "control_response", "tool_result", "user", "result"]
    );
    assert_eq!(lines[0]["request_id"], request["request_id"]);
    assert_eq!(lines[1]["response"]["response"]["still_queued"], json!([]));
    // This answer is too late.
    demo.answer(&request, json!({ "behavior": "allow" }));
    is_well_cut(&mut demo, &lines, IN_TOOL, "aborted_tools");
    assert!(!home.work().join("made").exists());
}

#[test]
fn while_it_waits_for_a_hook() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.initialize(json!({ "hooks": { "UserPromptSubmit": [{ "hookCallbackIds": ["h"] }] } }));
    demo.prompt("/say never");
    demo.until_request("hook_callback");
    let lines = interrupt(&mut demo);
    assert_eq!(
        order(&lines),
        ["control_cancel_request", "control_response", "system", "user", "result"]
    );
    assert_eq!(result(&lines)["subtype"], "error_during_execution");
}

#[test]
fn while_a_command_runs_which_ends_with_all_it_started() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--allowedTools=Bash"]);
    demo.prompt("/bash sleep 1000 & echo $! > inner; echo $$ > outer; wait");
    let inner = await_file(&home.work().join("inner"));
    let outer = await_file(&home.work().join("outer"));
    let lines = interrupt(&mut demo);
    let end = ["control_response", "tool_result", "user", "result"].map(str::to_owned);
    assert!(order(&lines).ends_with(&end), "{:?}", order(&lines));
    is_well_cut(&mut demo, &lines, IN_TOOL, "aborted_tools");
    await_gone(&inner);
    await_gone(&outer);
}

#[test]
fn while_a_subagent_waits() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--forward-subagent-text"]);
    demo.prompt("/task a\n/task b\n/bash touch made\n/end\n/end");
    demo.until_request("can_use_tool");
    let lines = interrupt(&mut demo);
    let results = order(&lines).iter().filter(|name| *name == "tool_result").count();
    assert_eq!(results, 3, "every open call has its result");
    is_well_cut(&mut demo, &lines, IN_TOOL, "aborted_tools");
}

#[test]
fn when_idle_nothing_happens() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    let answer = demo.control(json!({ "subtype": "interrupt" }));
    assert_eq!(answer["response"]["still_queued"], json!([]));
    assert_eq!(text(&demo.turn("/say alive")), "alive");
}

#[test]
fn queued_prompts_are_kept_or_cancelled() {
    const ONE: &str = "00000000-0000-4000-8000-000000000001";
    const TWO: &str = "00000000-0000-4000-8000-000000000002";
    let prompt = |text: &str, uuid: &str| json!({ "type": "user", "uuid": uuid, "message": { "role": "user", "content": text } });
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.send(&prompt("/hang", ONE));
    demo.send(&prompt("/say second {turns}", TWO));
    demo.until(|line| line["command_uuid"] == TWO && line["state"] == "queued");
    let lines = interrupt(&mut demo);
    assert_eq!(lines[0]["response"]["response"]["still_queued"], json!([TWO]));
    assert_eq!(result(&lines)["user_message_uuid"], ONE);
    demo.until(|line| line["command_uuid"] == ONE && line["state"] == "cancelled");
    let lines = demo.finish_turn(|_| None);
    assert_eq!(text(&lines), "second 2");
    let init = lines.iter().find(|line| line["subtype"] == "init").unwrap();
    assert_eq!(init["user_message_uuids"], json!([TWO]));
    demo.until(|line| line["command_uuid"] == TWO && line["state"] == "completed");

    demo.send(&prompt("/hang", ONE));
    demo.send(&prompt("/say never", TWO));
    demo.until(|line| line["command_uuid"] == TWO && line["state"] == "queued");
    demo.request("int", json!({ "subtype": "interrupt", "cancel_queued": true }));
    let answer = demo.until(|line| line["type"] == "control_response");
    assert_eq!(answer["response"]["response"]["cancelled"], json!([TWO]));
    demo.until_result();
    assert_eq!(text(&demo.turn("/say alive")), "alive");
}

#[test]
fn a_prompt_that_will_not_wait_cuts_the_turn() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.prompt("/say before\n/hang");
    demo.until(|line| line["type"] == "assistant");
    demo.send(&json!({
        "type": "user", "priority": "now", "message": { "role": "user", "content": "/say now" },
    }));
    let lines = demo.finish_turn(|_| None);
    assert_eq!(result(&lines)["subtype"], "success");
    assert_eq!(result(&lines)["terminal_reason"], "aborted_streaming");
    assert_eq!(text(&demo.finish_turn(|_| None)), "now");
}

#[test]
fn the_session_can_be_ended_in_a_turn() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--allowedTools=Bash"]);
    demo.prompt("/bash echo $$ > pid; sleep 1000");
    let pid = await_file(&home.work().join("pid"));
    demo.request("end", json!({ "subtype": "end_session", "reason": "done" }));
    let answer = demo.until(|line| line["type"] == "control_response");
    assert_eq!(answer["response"], json!({ "subtype": "success", "request_id": "end" }));
    assert_eq!(demo.until_result()["subtype"], "error_during_execution");
    assert_eq!(demo.next_line(), None, "it ends by itself");
    assert_eq!(demo.end().0, Some(1));
    await_gone(&pid);
}

#[test]
fn control_requests_are_answered_in_a_turn() {
    let home = DemoHome::new();
    let mut demo = home.start(&[]);
    demo.prompt("/bash true\n/say {model} {mode}");
    let request = demo.until_request("can_use_tool");
    assert_eq!(
        demo.control(json!({ "subtype": "set_model", "model": "other" }))["response"]["model"],
        "other"
    );
    demo.control(json!({ "subtype": "set_permission_mode", "mode": "acceptEdits" }));
    assert!(
        demo.control(json!({ "subtype": "get_context_usage" }))["response"]["totalTokens"].is_u64()
    );
    assert_eq!(
        demo.control(json!({ "subtype": "mcp_status" }))["response"]["mcpServers"],
        json!([])
    );
    assert_eq!(demo.control(json!({ "subtype": "no_such" }))["error_code"], "unsupported_request");
    demo.answer(&request, json!({ "behavior": "allow" }));
    assert_eq!(text(&demo.finish_turn(|_| None)), "other acceptEdits");
}
