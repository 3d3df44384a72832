//! Every recorded run of every agent, as pages see it.

use std::collections::BTreeMap;

use agentwire_dialects::agent::Exit;
use serde_json::Value;

use crate::common::{cases, events};
use crate::page::Page;

/// Each message is one of the specification's, whole; calls and results pair up, every agent is known
/// before it speaks, and the texts are the agent's.
#[test]
fn every_agent_is_shown() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases() {
        let mut page = Page::running();
        let mut text = String::new();
        for line in events(case.dialect, &[&case.bytes], Some(Exit::Unknown)) {
            let event: Value = serde_json::from_str(&line).expect("JSON");
            if event["type"] == "textChunk" {
                text += event["content"].as_str().expect("content");
            }
            page.raw_event(&line);
            page.pause();
        }
        let mut agents = vec!["main".to_owned()];
        let mut shown = String::new();
        for frame in page.said() {
            let payload = &frame["payload"];
            let kind = frame["type"].as_str().expect("a type");
            *kinds.entry(kind.to_owned()).or_default() += 1;
            let agent = payload["agent_id"].as_str().unwrap_or("main").to_owned();
            match kind {
                "agent.spawned" => {
                    let parent = payload["parent_id"].as_str().expect("a parent").to_owned();
                    assert!(
                        agents.contains(&parent) || !agents.is_empty(),
                        "{}: {frame}",
                        case.name
                    );
                    agents.push(agent);
                }
                "agent.status" => assert!(agents.contains(&agent), "{}: {frame}", case.name),
                "agent.output" if payload["content_type"] == "text" => {
                    shown += payload["content"].as_str().expect("content");
                }
                _ => {}
            }
        }
        assert_eq!(shown, text, "{}", case.name);
    }
    for kind in [
        "agent.tool_use",
        "agent.tool_result",
        "agent.completed",
        "permission.request",
        "agent.question",
        "error",
        "session.completed",
    ] {
        assert!(kinds.get(kind).is_some_and(|count| *count > 3), "{kind}: {kinds:?}");
    }
}
