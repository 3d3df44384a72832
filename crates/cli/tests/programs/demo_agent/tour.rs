//! The tour as the gateway sees it.

use std::collections::BTreeMap;

use agentwire_dialects::agent::Exit;
use agentwire_dialects::tape::{Draft, Stamp, Tape};
use agentwire_protocol::Event;
use serde_json::{Value, json};

use crate::demo_agent::harness::DemoHome;
use crate::shared::ClaudeClient;

/// The unified events of all its output.
fn events(written: &[String]) -> Vec<Value> {
    let bytes: String = written.iter().map(|line| format!("{line}\n")).collect();
    let mut lines = Vec::new();
    let mut tape = Tape::recording(agentwire_dialects::agent("claude").unwrap());
    let sink = &mut |draft: Draft<'_>| {
        let seq = lines.len() as u64 + 1;
        let stamp =
            Stamp { id: "id", session_id: "session", seq, timestamp: "2026-01-01T00:00:00Z" };
        draft.stamp(stamp, |event| {
            let mut line = Vec::new();
            event.write_line(&mut line).unwrap();
            lines.push(String::from_utf8(line).unwrap());
        });
    };
    tape.feed(bytes.as_bytes(), sink);
    tape.end(Exit::Code(0), sink);
    let mut tape_bytes = Vec::new();
    for line in &lines {
        let event = Event::from_json(line).unwrap();
        event.native.iter().for_each(|native| native.write_to(&mut tape_bytes));
    }
    assert_eq!(String::from_utf8(tape_bytes).unwrap(), bytes, "no byte is lost");
    lines.iter().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// Everything that starts also ends, and the translator knows every line.
fn are_lawful(events: &[Value]) {
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("sessionStarted"), &events[0]["type"]), (1, &json!("sessionStarted")));
    assert_eq!((count("sessionEnded"), count("error")), (1, 0));
    assert_eq!(count("turnStarted"), count("turnCompleted") + count("turnFailed"));
    assert_eq!(count("agentSpawned"), count("agentFinished"));
    assert_eq!(count("requestRaised"), count("requestSettled"));
    let mut tools = BTreeMap::new();
    for event in events {
        let id = event["toolId"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "toolStarted" => assert!(tools.insert(id, true).is_none(), "started twice: {event}"),
            "toolCompleted" | "toolFailed" => {
                assert_eq!(tools.insert(id, false), Some(true), "ended twice: {event}");
            }
            "other" => {
                let name = event["name"].as_str().unwrap();
                // The answer to an interrupt contains nothing that other events do not repeat.
                let known = name.starts_with("stream_event/") || name == "control_response";
                assert!(known, "not understood: {event}");
            }
            _ => {}
        }
    }
    assert!(tools.values().all(|open| !open), "{tools:?}");
}

/// Answers as a friendly user would.
fn friendly(request: &Value) -> Option<Value> {
    let mut input = request["input"].clone();
    if request["tool_name"] == "AskUserQuestion" {
        input["answers"] = json!({ "Who should the file greet?": "the team" });
    }
    Some(json!({ "behavior": "allow", "updatedInput": input }))
}

fn tour(home: &DemoHome, reply: impl Fn(&Value) -> Option<Value>) -> (ClaudeClient, Vec<Value>) {
    std::fs::write(home.work().join("README.md"), "# A project\n\nWords.\n").unwrap();
    let mut demo = home.start(&["--include-partial-messages"]);
    demo.initialize(json!({ "forwardSubagentText": true }));
    demo.turn_with("Hello!", reply);
    assert_eq!(demo.end(), (Some(0), String::new()));
    let events = events(&demo.written);
    (demo, events)
}

#[test]
fn the_tour_shows_an_event_of_each_kind() {
    let home = DemoHome::new();
    let (_, events) = tour(&home, friendly);
    are_lawful(&events);
    assert_eq!(
        home.file("agentwire-tour.txt"),
        "Hello, the team.\nThe agentwire tour wrote this line.\n"
    );
    insta::assert_snapshot!(golden(&events, &home.work().display().to_string()));
}

#[test]
fn a_tour_on_which_all_is_denied_comes_to_its_end() {
    let home = DemoHome::new();
    let (_, events) = tour(&home, |_| Some(json!({ "behavior": "deny", "message": "no" })));
    are_lawful(&events);
    assert!(!home.work().join("agentwire-tour.txt").exists());
    assert!(events.iter().any(|event| event["type"] == "turnCompleted"));
}

#[test]
fn whatever_is_scripted_is_understood() {
    let home = DemoHome::new();
    let mut demo = home.start(&["--include-partial-messages"]);
    demo.initialize(json!({
        "forwardSubagentText": true,
        "hooks": { "PreToolUse": [{ "hookCallbackIds": ["h"] }], "Stop": [{ "hookCallbackIds": ["s"] }] },
    }));
    let reply = |request: &Value| match request["subtype"].as_str() {
        Some("hook_callback") => Some(json!({})),
        _ => Some(json!({ "behavior": "allow" })),
    };
    demo.turn_with("/task a\n/task b\n/task c\n/bash echo deep\n/end\n/end\n/end", reply);
    demo.turn_with("/think x\n/say y\n/plan p | q\n/blob 10\n/pad 10\n/usage 1 2 3 4", reply);
    demo.turn_with("/tool NoSuch {}\n/bash false\n/read gone", reply);
    demo.prompt("/say a\n/task b\n/bash sleep 1000\n/end");
    let hook = demo.until_request("hook_callback");
    demo.answer(&hook, json!({}));
    demo.until(|line| line["subtype"] == "task_started");
    demo.request("int", json!({ "subtype": "interrupt" }));
    demo.until_result();
    demo.turn_with("/say b\n/say c", reply);
    demo.end();
    let events = events(&demo.written);
    are_lawful(&events);
    let asked = |event: &&Value| event["type"] == "requestRaised" && event["kind"] == "permission";
    let asked = events.iter().find(asked).unwrap();
    let spawned: Vec<_> = events.iter().filter(|event| event["type"] == "agentSpawned").collect();
    assert_eq!(asked["agentId"], spawned[2]["agentId"], "three deep");
    assert_eq!(spawned[2]["parentAgentId"], spawned[1]["agentId"]);
}

/// One line per event, without what changes from run to run. The chunks of a block are joined.
fn golden(events: &[Value], directory: &str) -> String {
    let mut lines: Vec<Value> = Vec::new();
    for event in events {
        let mut event = event.clone();
        let fields = event.as_object_mut().unwrap();
        for name in
            ["native", "id", "sessionId", "timestamp", "seq", "usage", "models", "inputDigest"]
        {
            fields.remove(name);
        }
        for name in ["durationMs", "costUsd", "contextUsed"] {
            if let Some(field) = fields.get_mut(name) {
                *field = json!("…");
            }
        }
        let whole = |event: &Value| event["isComplete"] == true || event["blockId"].is_null();
        match lines.last_mut() {
            Some(last) if !whole(last) && last["blockId"] == event["blockId"] => {
                let joined = last["content"].as_str().unwrap().to_owned();
                let joined = joined + event["content"].as_str().unwrap();
                *last = event;
                last["content"] = json!(joined);
            }
            _ => lines.push(event),
        }
    }
    lines.retain(|line| line["type"] != "other" && line["type"] != "usageReported");
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let text = text.replace(directory, "DIRECTORY");
    let redact = |text: &str, pattern: &str, with: &str| {
        regex_lite::Regex::new(pattern).unwrap().replace_all(text, with).into_owned()
    };
    let text = redact(
        &text,
        "\"(totalDurationMs|totalTokens|pid|(input|output)_tokens)\":[0-9]+",
        "\"$1\":0",
    );
    redact(&text, "\\$0\\.[0-9]{4}", "$$0.0000")
}
