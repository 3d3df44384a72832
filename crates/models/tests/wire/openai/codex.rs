//! What Codex adds to its requests.

use serde_json::{Value, json};

use super::reader::response;
use super::{go_on, request, said, server};
use crate::client::post;

/// The start of a summary of Codex.
const SUMMARY: &str = "Another language model started to solve this problem";

/// A request whose next step is a failure.
fn midway() -> Value {
    let mut request = request("[[tool exec_command {}]] [[fail 500]]");
    let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1"});
    go_on(&mut request, &json!({"output": [call]}), &[json!("r")]);
    request
}

fn user(request: &mut Value, text: &str) {
    let content = json!([{"type": "input_text", "text": text}]);
    let message = json!({"type": "message", "role": "user", "content": content});
    request["input"].as_array_mut().expect("a list").push(message);
}

fn metadata(request: &mut Value, metadata: &Value) {
    request["client_metadata"] = json!({"x-codex-turn-metadata": metadata.to_string()});
}

#[test]
fn codexs_own_calls_play_no_script() {
    let server = server();
    let mut compaction = midway();
    metadata(&mut compaction, &json!({"request_kind": "compaction"}));
    user(&mut compaction, "Create a handoff summary");
    let summary = said(&post(&server, "/v1/responses", &compaction));
    assert!(summary.starts_with("The user and the model talked."), "{summary}");
    let mut guardian = midway();
    let outcome = json!({"type": "string", "enum": ["allow", "deny"]});
    let schema = json!({"type": "object", "properties": {"outcome": outcome}});
    guardian["text"] = json!({"format": {"type": "json_schema", "schema": schema}});
    let source = json!({"request_kind": "turn", "thread_source": "guardian_review"});
    metadata(&mut guardian, &source);
    assert_eq!(said(&post(&server, "/v1/responses", &guardian)), "{\"outcome\":\"allow\"}");
    assert!(server.requests().iter().all(|seen| seen.side));
    let mut turn = midway();
    metadata(&mut turn, &json!({"request_kind": "turn", "thread_source": "user"}));
    assert_eq!(post(&server, "/v1/responses", &turn).status, 500);
}

#[test]
fn an_encrypted_compaction_is_one_item() {
    let server = server();
    let mut request = midway();
    let input = request["input"].as_array_mut().expect("a list");
    input.push(json!({"type": "compaction_trigger"}));
    let compacted = response(&post(&server, "/v1/responses", &request));
    let [item] = compacted["output"].as_array().expect("a list").as_slice() else {
        panic!("{compacted}")
    };
    assert_eq!(item["type"], "compaction");
    assert!(item["encrypted_content"].is_string());
    assert!(server.requests()[0].side);
    // The prompts stay; the model's items are gone.
    let mut after = super::request("[[tool exec_command {}]] [[say more]]");
    go_on(&mut after, &compacted, &[]);
    assert_eq!(said(&post(&server, "/v1/responses", &after)), "more");
}

#[test]
fn a_script_continues_after_a_summary() {
    let server = server();
    let script = "[[say one]] [[tool exec_command {}]] [[say two]] [[stop]] [[say three]]";
    let mut compaction = request(script);
    let first = response(&post(&server, "/v1/responses", &compaction));
    go_on(&mut compaction, &first, &[json!("r")]);
    metadata(&mut compaction, &json!({"request_kind": "compaction"}));
    user(&mut compaction, "Create a handoff summary");
    let summary = said(&post(&server, "/v1/responses", &compaction));
    let mut after = request(script);
    user(&mut after, &format!("{SUMMARY} and produced a summary:\n{summary}"));
    let second = response(&post(&server, "/v1/responses", &after));
    assert_eq!(second["output"][0]["content"][0]["text"], "two");
    go_on(&mut after, &second, &[]);
    user(&mut after, "go on");
    assert_eq!(said(&post(&server, "/v1/responses", &after)), "three");
}

#[test]
fn an_aborted_or_summarised_turn_ends_its_script() {
    let server = server();
    for note in ["<turn_aborted>\nThe user interrupted the previous turn", SUMMARY] {
        let mut request = midway();
        user(&mut request, note);
        user(&mut request, "and now?");
        assert_eq!(said(&post(&server, "/v1/responses", &request)), "You said: and now?");
    }
    let mut request = request("[[say x]]");
    user(&mut request, "<subagent_notification>\n[[fail 500]]</subagent_notification>");
    assert_eq!(said(&post(&server, "/v1/responses", &request)), "x");
}

#[test]
fn a_prompt_sent_during_a_tool_call_is_read() {
    let server = server();
    let mut request = midway();
    user(&mut request, "[[say steered]]");
    assert_eq!(said(&post(&server, "/v1/responses", &request)), "steered");
}

#[test]
fn a_review_finds_nothing_unless_it_is_scripted() {
    let server = server();
    let review = |prompt: &str| {
        let mut request = request(prompt);
        metadata(&mut request, &json!({"request_kind": "turn", "subagent_kind": "review"}));
        said(&post(&server, "/v1/responses", &request))
    };
    let found: Value = serde_json::from_str(&review("Review the changes")).expect("JSON");
    assert_eq!(found["findings"], json!([]));
    assert_eq!(review("[[say all is well]]"), "all is well");
}

#[test]
fn an_agent_plays_its_own_task_not_its_parents() {
    let server = server();
    for (task, answer) in [("[[say child]]", "child"), ("look", "You said: look")] {
        let mut request = midway();
        request["input"].as_array_mut().expect("a list").extend([
            json!({"type": "agent_message", "author": "/root", "content": [
                {"type": "input_text", "text": "Message Type: NEW_TASK\nPayload:\n"},
                {"type": "encrypted_content", "encrypted_content": task},
            ]}),
            json!({"type": "agent_message", "author": "/other", "content": [
                {"type": "input_text", "text": "Message Type: FINAL_ANSWER\n[[fail 400]]"},
            ]}),
        ]);
        assert_eq!(said(&post(&server, "/v1/responses", &request)), answer);
    }
}

#[test]
fn tools_may_be_listed_in_the_input() {
    let server = server();
    let mut request = request("[[say {tools}]] [[tool exec \"text(1)\"]]");
    request["tools"] = Value::Null;
    let exec = json!({"type": "custom", "name": "exec"});
    let list = json!({"type": "function", "name": "list"});
    request["input"].as_array_mut().expect("a list").insert(
        0,
        json!({"type": "additional_tools", "role": "developer", "tools": [
            {"type": "namespace", "name": "functions", "tools": [exec]},
            {"type": "namespace", "name": "team", "tools": [list]},
        ]}),
    );
    let answer = response(&post(&server, "/v1/responses", &request));
    assert_eq!(answer["output"][0]["content"][0]["text"], "exec team.list");
    assert_eq!(answer["output"][1]["type"], "custom_tool_call");
    assert_eq!(answer["output"][1]["input"], "text(1)");
}
