//! The insights front: each message is one of the specification's, and the texts are the agent's.

use std::collections::BTreeMap;

use agentwire_dialects::insights::Insights;
use agentwire_protocol::AgentType;
use serde_json::Value;

use crate::{Watched, common, events};

const CREATE: &str = r#"{"type":"session.create","payload":{"prompt":"go","cwd":"/w"}}"#;

/// Each message is one of the specification's and complete; every agent is announced before its status, and
/// the texts are the agent's.
#[test]
fn every_agent_is_shown_by_insights() {
    let mut kinds: BTreeMap<String, usize> = BTreeMap::new();
    for case in common::cases() {
        let front = Insights::new(AgentType::Demo, BTreeMap::new());
        let mut page = Watched::new(Box::new(front), AgentType::Demo, CREATE);
        let (mut text, mut shown) = (String::new(), String::new());
        let mut agents = vec!["main".to_owned()];
        for line in events(&case) {
            let event: Value = serde_json::from_str(&line).expect("JSON");
            if event["type"] == "textChunk" {
                text += event["content"].as_str().expect("content");
            }
            for said in page.event(&line) {
                let frame: Value = serde_json::from_str(&said).expect("JSON");
                common::insights::check(&frame);
                let payload = &frame["payload"];
                let kind = frame["type"].as_str().expect("a type");
                *kinds.entry(kind.to_owned()).or_default() += 1;
                let agent = payload["agent_id"].as_str().unwrap_or("main").to_owned();
                match kind {
                    "agent.spawned" => {
                        let parent = payload["parent_id"].as_str().expect("a parent");
                        assert!(agents.iter().any(|it| it == parent), "{}: {frame}", case.name);
                        agents.push(agent);
                    }
                    "agent.status" => assert!(agents.contains(&agent), "{}: {frame}", case.name),
                    "agent.output" if payload["content_type"] == "text" => {
                        shown += payload["content"].as_str().expect("content");
                    }
                    _ => {}
                }
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
