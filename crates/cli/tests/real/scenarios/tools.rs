//! Tools that run without a request.

use std::fs;

use serde_json::{Value, json};

use crate::harness::Place;
use crate::mcp;

/// Allows everything.
fn free() -> Value {
    json!({ "approvalMode": "autoAll", "sandboxMode": "fullAccess" })
}

pub(crate) fn shell(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.shell)("echo made-42 > out.txt && cat out.txt");
    let mut talk =
        place.session(&work, &format!("{} [[say it said: {{result}}]]", call.step()), free());
    talk.completed();
    let made = fs::read_to_string(work.join("out.txt")).unwrap_or_default();
    assert_eq!(made.trim(), "made-42", "{}", talk.digest());
    assert!(talk.text().contains("made-42"), "{}", talk.digest());
    let started = talk.of("toolStarted");
    assert_eq!(started.len(), 1, "{}", talk.digest());
    let id = &started[0]["toolId"];
    assert!(
        talk.of("toolCompleted").iter().any(|event| event["toolId"] == *id),
        "{}",
        talk.digest()
    );
}

pub(crate) fn write(place: &mut Place) {
    let work = place.workspace();
    let path = work.join("new.txt");
    let call = (place.agent.words.write)(&path, "first\nsecond\n");
    let mut talk = place.session(&work, &format!("{} [[say written]]", call.step()), free());
    talk.completed();
    assert_eq!(fs::read_to_string(&path).expect("a file").trim_end(), "first\nsecond");
    let changed = talk.of("fileChanged");
    let named =
        |event: &&Value| event["filePath"].as_str().is_some_and(|path| path.ends_with("new.txt"));
    assert!(changed.iter().any(named), "{}", talk.digest());
}

pub(crate) fn edit(place: &mut Place) {
    let work = place.workspace();
    let path = work.join("old.txt");
    fs::write(&path, "one\ntwo\n").expect("a file");
    let (read, edit) =
        ((place.agent.words.read)(&path), (place.agent.words.edit)(&path, "two", "three"));
    let script = format!("{} {} [[say edited]]", read.step(), edit.step());
    let mut talk = place.session(&work, &script, free());
    talk.completed();
    assert_eq!(fs::read_to_string(&path).expect("a file"), "one\nthree\n", "{}", talk.digest());
    assert!(!talk.of("fileChanged").is_empty(), "{}", talk.digest());
}

pub(crate) fn parallel(place: &mut Place) {
    let work = place.workspace();
    let calls = ["echo a > a.txt", "echo b > b.txt"].map(place.agent.words.shell);
    let script = format!(
        "[[tools {} {} ;; {} {}]] [[say both]]",
        calls[0].0, calls[0].1, calls[1].0, calls[1].1
    );
    let mut talk = place.session(&work, &script, free());
    talk.completed();
    assert!(work.join("a.txt").exists() && work.join("b.txt").exists(), "{}", talk.digest());
    assert_eq!(talk.of("toolStarted").len(), 2, "{}", talk.digest());
    assert_eq!(talk.of("toolCompleted").len(), 2, "{}", talk.digest());
}

pub(crate) fn server(place: &mut Place) {
    let work = place.workspace();
    let own = std::env::current_exe().expect("this program");
    let mut config = free();
    config["mcpServers"] = json!({ "tiny": { "command": own, "args": [mcp::VERB] } });
    let call = (place.agent.words.server_tool)("tiny", "say_back", json!({ "word": "plum" }));
    let mut talk = place.session(&work, &format!("{} [[say {{result}}]]", call.step()), config);
    talk.completed();
    assert!(talk.text().contains("back: plum"), "{}", talk.digest());
    talk.stop();
    place.assert_none_left(&work);
}

/// An MCP server that the client hosts: the agent's messages to it are requests of the session.
pub(crate) fn hosted(place: &mut Place) {
    let work = place.workspace();
    // If the agent asks, a rule allows the tool by the name that clients use.
    let mut config = match place.agent.cannot("allow") {
        Some(_) => free(),
        None => json!({ "approvalMode": "ask", "allowedTools": ["mcp__tiny__say_back"] }),
    };
    config["mcpServers"] = json!({ "tiny": { "type": "sdk" } });
    // As with the Agent SDKs, which load no project settings. Otherwise Gemini would start no server.
    if place.agent.kind == "gemini" {
        config["trust"] = json!(false);
    }
    let call = (place.agent.words.server_tool)("tiny", "say_back", json!({ "word": "plum" }));
    let mut talk = place.session(&work, &format!("{} [[say {{result}}]]", call.step()), config);
    loop {
        let event = talk.until("message or the end of the turn", |event| {
            let kind = event["type"].as_str().unwrap_or_default();
            ["requestRaised", "turnCompleted", "turnFailed"].contains(&kind)
        });
        if event["type"] != "requestRaised" {
            assert_eq!(event["type"], "turnCompleted", "{event}; there was {}", talk.digest());
            break;
        }
        if event["kind"] != "mcp" {
            continue;
        }
        assert_eq!(event["name"], "tiny", "{event}");
        let reply = mcp::reply(&event["input"]).unwrap_or_else(|| json!({}));
        let id = event["requestId"].as_str().expect("an id");
        talk.settle(id, &json!({ "behavior": "allow", "hookOutput": { "mcp_response": reply } }));
    }
    assert!(talk.text().contains("back: plum"), "{}", talk.digest());
    talk.stop();
    place.assert_none_left(&work);
}

pub(crate) fn subagent(place: &mut Place) {
    let work = place.workspace();
    let call = (place.agent.words.subagent)("[[say from the subagent]]");
    let mut talk = place.session(&work, &format!("{} [[say the end]]", call.step()), free());
    talk.completed();
    let spawned = talk.of("agentSpawned");
    assert_eq!(spawned.len(), 1, "{}", talk.digest());
    // Codex may call the model once more when the subagent is done.
    assert!(talk.text().starts_with("the end"), "{}", talk.digest());
    if talk.of("agentFinished").is_empty() {
        talk.next("agentFinished");
    }
}

pub(crate) fn plan(place: &mut Place) {
    let work = place.workspace();
    let step = (place.agent.words.plan)("look at it", "mend it");
    let mut talk = place.session(&work, &format!("{step} [[say planned]]"), free());
    talk.completed();
    let plans = talk.of("planUpdated");
    let plan = plans.last().unwrap_or_else(|| panic!("no plan: {}", talk.digest()));
    let text = plan.to_string();
    assert!(text.contains("look at it") && text.contains("mend it"), "{text}");
}
