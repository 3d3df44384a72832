//! The backend: each message is the rendered one, and a client sees everything that a request asks for.

use agentwire_dialects::backend::Backend;
use agentwire_dialects::claude::render::{Options, Renderer};
use agentwire_protocol::event::{RequestKind, RequestRaised};
use agentwire_protocol::{AgentType, Event, EventKind};
use serde_json::Value;

use crate::{SESSION, Watched, common, events};

/// Each message is the rendered one, byte for byte, and each request that a client can answer is sent once,
/// in place.
#[test]
fn every_agent_speaks_through_the_backend() {
    let mut asked = 0;
    for case in common::cases() {
        for partial in [false, true] {
            let create = format!(
                r#"{{"type":"session.create","id":"c","payload":{{"prompt":"hi","options":{{"include_partial_messages":{partial}}}}}}}"#
            );
            let mut client =
                Watched::new(Box::new(Backend::new(AgentType::Demo)), AgentType::Demo, &create);
            let mut renderer = Renderer::new(Options { partial }).only_named();
            for line in events(&case) {
                let event = Event::from_json(&line).expect("an event");
                let mut expected = Vec::new();
                renderer.event(&event, &mut |message| {
                    expected.push(format!(
                        r#"{{"type":"sdk.message","session_id":"{SESSION}","payload":{message}}}"#
                    ));
                });
                let mut said = client.event(&line);
                let rest = said.split_off(expected.len().min(said.len()));
                assert_eq!(said, expected, "{}: {line}", case.name);
                let asks = std::mem::take(&mut client.asks);
                asked += check(&event, &rest, asks, &case.name);
            }
        }
    }
    assert!(asked > 40, "only {asked} requests were asked");
}

/// What comes after the messages of an event: `rest` is sent to the client, and `asks` calls go to the
/// gateway.
fn check(event: &Event<'_>, rest: &[String], asks: usize, name: &str) -> usize {
    let frames: Vec<Value> =
        rest.iter().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let kinds: Vec<&str> = frames.iter().filter_map(|frame| frame["type"].as_str()).collect();
    match &event.kind {
        EventKind::RequestRaised(request) => {
            let can_be_asked = match request.kind {
                RequestKind::Permission | RequestKind::Hook => true,
                RequestKind::Question => {
                    request.tool_name.is_some() || !request.questions.is_empty()
                }
                RequestKind::Mcp | RequestKind::Other => false,
            };
            // A request that no client can answer is refused instead.
            assert_eq!(asks, usize::from(!can_be_asked), "{name}");
            if !can_be_asked {
                assert!(kinds.is_empty(), "{name}: {rest:?}");
                return 0;
            }
            assert_eq!(kinds, ["callback.request"], "{name}");
            let payload = &frames[0]["payload"];
            let (text, object) = match request.kind {
                RequestKind::Hook => ("hook_event", "hook_input"),
                _ => ("tool_name", "tool_input"),
            };
            assert!(payload[text].is_string() && payload[object].is_object(), "{name}: {payload}");
            if request.kind == RequestKind::Permission {
                check_shown(request, &payload["tool_input"], name);
            }
            return 1;
        }
        EventKind::SessionEnded(_) => {
            assert!(kinds.iter().all(|kind| *kind == "error"), "{name}: {rest:?}");
        }
        _ => assert!(kinds.is_empty(), "{name}: {rest:?}"),
    }
    assert_eq!(asks, 0, "{name}");
    0
}

/// The client sees everything that the request asks for.
fn check_shown(request: &RequestRaised<'_>, shown: &Value, name: &str) {
    let asked: Option<Value> = request.input.as_ref().map(|input| input.read().expect("JSON"));
    for (field, value) in asked.iter().filter_map(Value::as_object).flatten() {
        let is_shown = shown[field] == *value || value.is_null();
        // A command in words is shown as one line.
        assert!(is_shown || (field == "command" && value.is_array()), "{name}: {field} of {shown}");
    }
    match name {
        "edge-permission-for-other-input" => assert_eq!(shown["command"], "rm -rf ~"),
        "real-write-nofs-allow" => {
            assert_eq!(shown["file_path"], "/workspace/project/new.txt");
            assert_eq!(shown["content"], "alpha\nbeta\n");
        }
        _ => {}
    }
}
