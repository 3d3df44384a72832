//! Traces, as an OTLP receiver on this machine gets them.

mod receiver;

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Instant;

use serde_json::{Value, json};

use self::receiver::{Receiver, Span};
use crate::operations::Figures;
use crate::shared::{PATIENCE, Server};

fn traced(endpoint: &str, variables: &[(&str, &str)]) -> Server {
    Server::set_up(&["--log-level", "info"], "", |command: &mut Command, _| {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint);
        command.env("OTEL_BSP_SCHEDULE_DELAY", "20");
        command.envs(variables.iter().copied());
    })
}

fn prompt(server: &Server, session: &str, prompt: &str) {
    server.post(&format!("/v1/sessions/{session}/prompt"), &json!({ "prompt": prompt }));
}

/// The event's time in nanoseconds.
fn time(event: &Value) -> u64 {
    let time: jiff::Timestamp = event["timestamp"].as_str().expect("a time").parse().expect("one");
    u64::try_from(time.as_nanosecond()).expect("after 1970")
}

#[test]
fn a_turn_is_a_trace_of_its_tools_subagents_and_requests() {
    let receiver = Receiver::answering(200);
    let server = traced(
        &receiver.endpoint,
        &[
            ("OTEL_SERVICE_NAME", "wires"),
            ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
            ("OTEL_EXPORTER_OTLP_HEADERS", "x-key=geheim"),
        ],
    );
    let said = "words that nobody else should read";
    let session = server.session(&format!(
        "/usage 100 20 3 4\n/bash exit 7\n/task explore\n/read nothing\n/end\n/say {said}"
    ));
    let raised = server.until(&session, "requestRaised").pop().expect("a request");
    let id = raised["requestId"].as_str().expect("an id");
    server.post(&format!("/v1/sessions/{session}/requests/{id}"), &json!({ "behavior": "allow" }));
    let events = server.until(&session, "turnCompleted");
    prompt(&server, &session, "/fail went wrong");
    let failed = server.until(&session, "turnFailed");
    let spans =
        receiver.until(|spans| spans.iter().filter(|span| span.parent.is_none()).count() == 2);
    let exported = receiver.requests();
    assert!(exported.iter().all(|request| {
        request.path == "/v1/traces"
            && request.headers["content-type"] == "application/x-protobuf"
            && request.headers["x-key"] == "geheim"
            && [said, "went wrong"]
                .iter()
                .all(|said| !String::from_utf8_lossy(&request.body).contains(said))
    }));
    let resource = &exported[0].resource();
    assert_eq!(resource["service.name"], json!("wires"));
    assert_eq!(resource["deployment.environment.name"], json!("test"));
    assert_eq!(resource["service.version"], json!(env!("CARGO_PKG_VERSION")));
    let roots: Vec<&Span> = spans.iter().filter(|span| span.parent.is_none()).collect();
    assert_ne!(roots[0].trace, roots[1].trace);
    let root = roots.iter().find(|span| span.error.is_none()).expect("the first turn");
    let of = |kind: &str| events.iter().find(|event| event["type"] == kind).expect("an event");
    assert_eq!(root.name, "invoke_agent demo");
    assert_eq!((root.start, root.end), (time(of("turnStarted")), time(of("turnCompleted"))));
    for (key, value) in [
        ("gen_ai.operation.name", json!("invoke_agent")),
        ("gen_ai.agent.name", json!("demo")),
        ("gen_ai.conversation.id", json!(session)),
        ("gen_ai.usage.input_tokens", json!(107)),
        ("gen_ai.usage.output_tokens", json!(20)),
        ("gen_ai.usage.cache_read.input_tokens", json!(3)),
        ("gen_ai.usage.cache_creation.input_tokens", json!(4)),
        ("gen_ai.response.model", of("turnCompleted")["models"][0]["model"].clone()),
        ("agentwire.cost.usd", of("turnCompleted")["costUsd"].clone()),
        ("agentwire.turn.number", json!(1)),
    ] {
        assert_eq!(root.attributes[key], value, "{key}: {root:#?}");
    }
    let all: BTreeMap<&str, &Span> = spans.iter().map(|span| (span.name.as_str(), span)).collect();
    assert!(spans.iter().all(|span| roots.iter().any(|root| root.trace == span.trace)));
    let bash = all["execute_tool Bash"];
    assert_eq!((bash.parent.as_ref(), bash.error.is_some()), (Some(&root.id), true), "{bash:#?}");
    assert_eq!(bash.attributes["gen_ai.tool.name"], json!("Bash"));
    let tool = of("toolStarted");
    assert_eq!(bash.attributes["gen_ai.tool.call.id"], tool["toolId"]);
    let request = all["request permission"];
    assert_eq!(request.parent.as_ref(), Some(&bash.id), "{spans:#?}");
    assert_eq!(request.attributes["agentwire.request.outcome"], json!("allowed"));
    assert_eq!(request.attributes["agentwire.request.by"], json!("client"));
    let task = all["execute_tool Task"];
    assert_eq!(task.parent.as_ref(), Some(&root.id));
    let spawned = of("agentSpawned");
    let name = spawned["name"].as_str().expect("a name");
    let agent = all[format!("invoke_agent {name}").as_str()];
    assert_eq!(agent.parent.as_ref(), Some(&task.id));
    assert_eq!(agent.attributes["gen_ai.agent.id"], spawned["agentId"]);
    assert_eq!(all["execute_tool Read"].parent.as_ref(), Some(&agent.id), "{spans:#?}");
    let broken = roots.iter().find(|span| span.error.is_some()).expect("the second turn");
    let last = failed.last().expect("its end");
    assert_eq!(broken.attributes["error.type"], json!("error"));
    assert_eq!((broken.end, broken.error.as_deref()), (time(last), Some("error")));
    let begun = Instant::now();
    while Figures::of(&server).get("agentwire_spans_exported_total") < spans.len() as f64 {
        assert!(begun.elapsed() < PATIENCE);
    }
    assert_eq!(Figures::of(&server).get("agentwire_spans_dropped_total"), 0.0);
    let (code, told) = server.stop_and_hear();
    assert_eq!(code, Some(0));
    assert!(!told.contains("geheim"), "{told}");
}

#[test]
fn what_is_said_is_sent_if_that_is_wanted_and_in_json_too() {
    let receiver = Receiver::answering(200);
    let server = traced(
        &receiver.endpoint,
        &[
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "http/json"),
            ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
        ],
    );
    let session = server.session("/say one two");
    server.until(&session, "turnCompleted");
    // Spans that are open at the end are sent, too, before the server exits.
    prompt(&server, &session, "/fail went wrong");
    server.until(&session, "turnFailed");
    prompt(&server, &session, "/hang");
    let begun = Instant::now();
    while server.get(&format!("/v1/sessions/{session}"))["turns"] != 3 {
        assert!(begun.elapsed() < PATIENCE);
    }
    assert_eq!(server.stop(), Some(0));
    let spans = receiver.until(|spans| spans.len() >= 3);
    let requests = receiver.requests();
    assert!(requests.iter().all(|it| it.headers["content-type"] == "application/json"));
    let said = spans.iter().find(|span| span.error.is_none()).expect("the first turn");
    let text = |key: &str| said.attributes[key].as_str().expect("text").to_owned();
    let messages: Value = serde_json::from_str(&text("gen_ai.output.messages")).expect("JSON");
    assert_eq!(
        messages,
        json!([{ "role": "assistant", "parts": [{ "type": "text", "content": "one two" }] }])
    );
    assert!(text("gen_ai.input.messages").contains("/say one two"));
    let errors: Vec<&str> = spans.iter().filter_map(|span| span.error.as_deref()).collect();
    assert!(errors.len() == 2 && errors.contains(&"went wrong"), "{spans:#?}");
}

/// A receiver that hangs, refuses or does not exist costs the session nothing, and one log line.
#[test]
fn a_receiver_that_fails_is_in_nobodys_way() {
    let hanging = Receiver::hanging();
    let refusing = Receiver::answering(503);
    for endpoint in [hanging.endpoint.as_str(), &refusing.endpoint, "http://127.0.0.1:1"] {
        let server = traced(
            endpoint,
            &[("OTEL_EXPORTER_OTLP_TIMEOUT", "100"), ("OTEL_BSP_MAX_QUEUE_SIZE", "4")],
        );
        let session = server.session("/read a\n/read b\n/read c\n/read d\n/read e");
        for _ in 0..3 {
            prompt(&server, &session, "/read a\n/read b\n/read c");
        }
        let begun = Instant::now();
        while Figures::of(&server)
            .get("agentwire_turns_total{agent=\"demo\",outcome=\"completed\"}")
            < 4.0
            || Figures::of(&server).get("agentwire_spans_dropped_total") < 1.0
            || !server.said().contains("failed to send traces")
        {
            assert!(begun.elapsed() < PATIENCE, "{}", server.said());
        }
        assert_eq!(Figures::of(&server).get("agentwire_spans_exported_total"), 0.0);
        let (code, said) = server.stop_and_hear();
        assert_eq!(code, Some(0));
        assert_eq!(said.matches("failed to send traces").count(), 1, "{said}");
    }
}

#[test]
fn a_mistake_in_the_variables_stops_no_server() {
    for (name, value) in [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://user:geheim@receiver.example"),
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
    ] {
        let server = traced("http://127.0.0.1:1", &[(name, value)]);
        let session = server.session("/say x");
        server.until(&session, "turnCompleted");
        let (code, said) = server.stop_and_hear();
        assert_eq!(code, Some(0));
        assert!(said.contains("tracing is off") && !said.contains("geheim"), "{said}");
    }
}
