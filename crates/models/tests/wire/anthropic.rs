//! The Messages API.

use agentwire_models::{ModelServer, Options, Usage};
use serde_json::{Value, json};

use crate::client::{Exchange, HttpResponse, eventually, post};

fn server() -> ModelServer {
    ModelServer::start(Options::default()).expect("a server")
}

fn request(prompt: &str) -> Value {
    json!({
        "model": "claude-test",
        "max_tokens": 1000,
        "stream": true,
        "system": [{"type": "text", "text": "be brief"}],
        "tools": [{"name": "Bash"}, {"name": "Read"}],
        "messages": [{"role": "user", "content": [
            {"type": "text", "text": "<system-reminder>[[nothing here]]</system-reminder>"},
            {"type": "text", "text": prompt},
        ]}],
    })
}

fn ask(server: &ModelServer, prompt: &str) -> HttpResponse {
    post(server, "/v1/messages?beta=true", &request(prompt))
}

fn ask_whole(server: &ModelServer, prompt: &str) -> HttpResponse {
    let mut request = request(prompt);
    request["stream"] = json!(false);
    post(server, "/v1/messages", &request)
}

/// The events as values; each is named after its type.
fn events(answer: &HttpResponse) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let events = answer.events();
    let values = events.into_iter().map(|(name, data)| {
        let value: Value = serde_json::from_str(&data).expect("JSON");
        assert_eq!(value["type"], name.as_str());
        value
    });
    values.collect()
}

/// The message that a client builds from the events.
fn message(answer: &HttpResponse) -> Value {
    let events = events(answer);
    let mut message = events[0]["message"].clone();
    assert_eq!(events[0]["type"], "message_start");
    let mut open: Option<(Value, String)> = None;
    for event in &events[1..] {
        match event["type"].as_str().expect("a type") {
            "ping" => {}
            "content_block_start" => {
                assert!(open.is_none());
                assert_eq!(event["index"], message["content"].as_array().expect("a list").len());
                open = Some((event["content_block"].clone(), String::new()));
            }
            "content_block_delta" => {
                let (block, input) = open.as_mut().expect("an open block");
                let delta = &event["delta"];
                let (field, piece) = match delta["type"].as_str().expect("a type") {
                    "text_delta" => ("text", &delta["text"]),
                    "thinking_delta" => ("thinking", &delta["thinking"]),
                    "signature_delta" => ("signature", &delta["signature"]),
                    "input_json_delta" => {
                        input.push_str(delta["partial_json"].as_str().expect("a text"));
                        continue;
                    }
                    other => panic!("{other}"),
                };
                let whole = format!(
                    "{}{}",
                    block[field].as_str().expect("a text"),
                    piece.as_str().expect("a text")
                );
                block[field] = whole.into();
            }
            "content_block_stop" => {
                let (mut block, input) = open.take().expect("an open block");
                if block["type"] == "tool_use" {
                    block["input"] = serde_json::from_str(&input).expect("JSON");
                }
                message["content"].as_array_mut().expect("a list").push(block);
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            "message_stop" => assert!(open.is_none()),
            other => panic!("{other}"),
        }
    }
    assert_eq!(events.last().expect("an event")["type"], "message_stop");
    message
}

#[test]
fn text_thinking_and_tools_are_the_same_streamed_and_whole() {
    let server = server();
    let prompt = "[[think about it]] [[say Hello {model} {system}]] \
                  [[tools Bash {\"command\":\"echo \\\"ü]]\\\" && a long command line\"} ;; Read {}]]";
    let streamed = ask(&server, prompt);
    assert!(streamed.whole && streamed.headers["request-id"].starts_with("req_"));
    let mut streamed = message(&streamed);
    let mut whole = ask_whole(&server, prompt).json();
    assert_eq!(streamed["role"], "assistant");
    assert_eq!(streamed["model"], "claude-test");
    assert_eq!(streamed["stop_reason"], "tool_use");
    assert_eq!(streamed["content"][0]["thinking"], "about it");
    assert_ne!(streamed["content"][0]["signature"], "");
    assert_eq!(streamed["content"][1]["text"], "Hello claude-test be brief");
    assert_eq!(streamed["content"][2]["input"]["command"], "echo \"ü]]\" && a long command line");
    assert_eq!(streamed["content"][3]["name"], "Read");
    for message in [&mut streamed, &mut whole] {
        assert!(message["id"].as_str().expect("an id").starts_with("msg_"));
        message["id"] = Value::Null;
        message["usage"] = Value::Null;
        for block in message["content"].as_array_mut().expect("a list") {
            if block["type"] == "tool_use" {
                assert!(block["id"].as_str().expect("an id").starts_with("toolu_"));
                block["id"] = Value::Null;
            }
        }
    }
    assert_eq!(streamed, whole);
}

#[test]
fn text_is_streamed_word_by_word() {
    let server = server();
    let answer = ask(&server, "[[say one two three]] [[repeat 3 ab]] [[pad 20000]]");
    let events = events(&answer);
    let deltas: Vec<&str> = events
        .iter()
        .filter(|event| event["delta"]["type"] == "text_delta")
        .map(|event| event["delta"]["text"].as_str().expect("a text"))
        .collect();
    assert_eq!(deltas[..6], ["one ", "two ", "three", "ab", "ab", "ab"]);
    assert_eq!(deltas[6..].concat(), "B".repeat(20000));
    assert!(deltas[6..].len() > 1);
}

#[test]
fn a_script_continues_with_the_tool_results() {
    let server = server();
    let prompt = "[[tool Bash {\"command\":\"a\"}]] [[say it is {result}]] [[tool Read]]";
    let mut request = request(prompt);
    let call = message(&post(&server, "/v1/messages", &request))["content"].clone();
    let id = call[0]["id"].clone();
    let messages = request["messages"].as_array_mut().expect("a list");
    messages.push(json!({"role": "assistant", "content": call}));
    messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": id, "content": [
            {"type": "text", "text": "four"}, {"type": "image"}, {"type": "text", "text": "five"},
        ]},
        {"type": "text", "text": "<system-reminder>[[x]]</system-reminder>"},
    ]}));
    messages.push(json!({"role": "system", "content": "[[say a note of the program]]"}));
    let second = message(&post(&server, "/v1/messages", &request));
    assert_eq!(second["content"][0]["text"], "it is four\nfive");
    assert_eq!(second["content"][1]["name"], "Read");
    assert_ne!(second["content"][1]["id"], id);
    let messages = request["messages"].as_array_mut().expect("a list");
    messages.push(json!({"role": "assistant", "content": second["content"]}));
    messages.push(json!({"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": second["content"][1]["id"], "content": "x"},
        {"type": "text", "text": "[Request interrupted by user for tool use]"},
        {"type": "text", "text": "And now?"},
    ]}));
    let third = message(&post(&server, "/v1/messages", &request));
    assert_eq!(third["content"][0]["text"], "You said: And now?");
    assert_eq!(third["stop_reason"], "end_turn");
}

#[test]
fn usage_is_scripted_and_summed() {
    let server = server();
    let streamed = ask(&server, "[[usage 10 20 30 40]] [[say x]]");
    let start = &events(&streamed)[0]["message"]["usage"];
    assert_eq!((&start["input_tokens"], &start["output_tokens"]), (&json!(10), &json!(1)));
    for usage in [&message(&streamed)["usage"], &{
        ask_whole(&server, "[[say x]] [[usage 10 20 30 40]]").json()["usage"].clone()
    }] {
        assert_eq!(usage["input_tokens"], 10);
        assert_eq!(usage["output_tokens"], 20);
        assert_eq!(usage["cache_read_input_tokens"], 30);
        assert_eq!(usage["cache_creation_input_tokens"], 40);
    }
    let expected = Usage { input: 20, output: 40, cache_read: 60, cache_create: 80 };
    assert_eq!(server.reported(), expected);
    // A response that breaks off reports no usage.
    assert!(!ask(&server, "[[usage 1 1 1 1]] [[say x]] [[cut]]").whole);
    assert_eq!(server.reported(), expected);
    let usages: Vec<u64> = server.requests().iter().map(|seen| seen.usage.input).collect();
    assert_eq!(usages, [10, 10, 0]);
}

#[test]
fn stop_reasons() {
    let server = server();
    for (step, reason) in [
        ("[[stop]]", "end_turn"),
        ("[[stop max_tokens]]", "max_tokens"),
        ("[[stop refusal]]", "refusal"),
        ("[[stop pause_turn]]", "pause_turn"),
    ] {
        assert_eq!(message(&ask(&server, step))["stop_reason"], reason);
        assert_eq!(ask_whole(&server, step).json()["stop_reason"], reason);
    }
}

#[test]
fn failures_end_after_their_attempts_and_repeat_for_a_new_request() {
    let server = server();
    let prompt = "[[fail 529 TIMES 2]] [[ratelimit TIMES 1 RETRY-AFTER 3]] [[say ok]]";
    for _ in 0..2 {
        for _ in 0..2 {
            let answer = ask(&server, prompt);
            assert_eq!(answer.status, 529);
            let body = answer.json();
            assert_eq!(body["type"], "error");
            assert_eq!(body["error"]["type"], "overloaded_error");
            assert_eq!(body["request_id"], answer.headers["request-id"].as_str());
            assert!(!answer.headers.contains_key("retry-after"));
        }
        let limited = ask(&server, prompt);
        assert_eq!(limited.status, 429);
        assert_eq!(limited.headers["retry-after"], "3");
        assert_eq!(limited.headers["anthropic-ratelimit-requests-remaining"], "0");
        assert_eq!(limited.json()["error"]["type"], "rate_limit_error");
        assert_eq!(message(&ask(&server, prompt))["content"][0]["text"], "ok");
    }
}

#[test]
fn sessions_count_their_own_attempts() {
    let server = server();
    let body = request("[[fail 500 TIMES 1]] [[say ok]]").to_string();
    let status = |session| {
        let headers = [("x-claude-code-session-id", session)];
        Exchange::start(&server, "POST", "/v1/messages", &headers, body.as_bytes()).finish().status
    };
    assert_eq!([status("a"), status("b"), status("a"), status("b")], [500, 500, 200, 200]);
}

#[test]
fn a_failure_has_the_type_and_message_of_the_script() {
    let server = server();
    let answer = ask_whole(&server, "[[say a]] [[fail 400 billing_error no more money]]");
    assert_eq!(answer.status, 400);
    assert_eq!(
        answer.json()["error"],
        json!({"type": "billing_error", "message": "no more money"})
    );
    for (status, kind) in [
        (401, "authentication_error"),
        (403, "permission_error"),
        (404, "not_found_error"),
        (413, "request_too_large"),
        (422, "invalid_request_error"),
        (500, "api_error"),
        (503, "api_error"),
    ] {
        let answer = ask(&server, &format!("[[fail {status}]]"));
        assert_eq!((answer.status, answer.json()["error"]["type"].as_str()), (status, Some(kind)));
    }
}

#[test]
fn a_failure_after_text_is_an_event_in_the_stream() {
    let server = server();
    let answer = ask(&server, "[[say half a]] [[fail 529]] [[say never]]");
    let events = events(&answer);
    let types: Vec<&str> =
        events.iter().map(|event| event["type"].as_str().expect("a type")).collect();
    assert!(answer.whole);
    assert_eq!(types.last(), Some(&"error"));
    assert!(!types.contains(&"content_block_stop"));
    assert_eq!(events.last().expect("an event")["error"]["type"], "overloaded_error");
}

#[test]
fn a_cut_ends_the_stream_in_the_middle() {
    let server = server();
    let prompt = "[[say Hello you]] [[cut TIMES 1]] [[say there]]";
    let cut = ask(&server, prompt);
    assert!(!cut.whole);
    assert!(cut.text().contains("you") && !cut.text().contains("content_block_stop"));
    assert_eq!(message(&ask(&server, prompt))["content"][1]["text"], "there");
    let half = ask_whole(&server, "[[say Hello]] [[cut]]");
    assert!(!half.whole && serde_json::from_slice::<Value>(&half.body).is_err());
}

#[test]
fn a_hang_lasts_until_the_client_disconnects() {
    let server = server();
    let body = request("[[say Hello]] [[hang]]").to_string();
    let mut exchange = Exchange::start(&server, "POST", "/v1/messages", &[], body.as_bytes());
    exchange.read_until("Hello");
    // Other requests are answered in the meantime.
    assert_eq!(message(&ask(&server, "[[say x]]"))["content"][0]["text"], "x");
    drop(exchange);
    eventually("both requests are noted", || server.requests().len() == 2);
}

#[test]
fn garbage_is_one_event_that_is_not_json() {
    let server = server();
    let answer = ask(&server, "[[say a]] [[garbage]] [[say b]]");
    let broken = answer
        .events()
        .iter()
        .filter(|(_, data)| serde_json::from_str::<Value>(data).is_err())
        .count();
    assert_eq!(broken, 1);
    assert!(answer.text().contains("message_stop"));
    assert!(serde_json::from_slice::<Value>(&ask_whole(&server, "[[garbage]]").body).is_err());
}

#[test]
fn slow_text_still_arrives() {
    let server = server();
    let answer = ask(&server, "[[slow 1]] [[say a b c]] [[slow 0]] [[tool Bash {\"a\":1}]]");
    assert_eq!(message(&answer)["content"][0]["text"], "a b c");
}

#[test]
fn a_prompt_without_markers_is_echoed() {
    let server = server();
    assert_eq!(message(&ask(&server, "Good day"))["content"][0]["text"], "You said: Good day");
    let mut plain = request("");
    plain["messages"] = json!([{"role": "user", "content": "as a text"}]);
    let answer = message(&post(&server, "/v1/messages", &plain));
    assert_eq!(answer["content"][0]["text"], "You said: as a text");
}

#[test]
fn claude_codes_own_calls_play_no_script() {
    let server = server();
    let side = |last: &str, change: Value| {
        let mut request = request("[[tool Bash {}]] [[fail 500]]");
        let messages = request["messages"].as_array_mut().expect("a list");
        messages.push(json!({"role": "assistant", "content": [{"type": "tool_use"}]}));
        messages.push(json!({"role": "user", "content": [{"type": "tool_result"}]}));
        messages.push(json!({"role": "user", "content": last}));
        request
            .as_object_mut()
            .expect("an object")
            .extend(change.as_object().cloned().expect("an object"));
        message(&post(&server, "/v1/messages", &request))["content"][0]["text"]
            .as_str()
            .expect("a text")
            .to_owned()
    };
    assert_eq!(side("quota", json!({"max_tokens": 1})), "Yes");
    let summary = "CRITICAL: text only.\n\nYour task is to create a detailed summary of this";
    assert!(side(summary, json!({})).contains("<summary>"));
    assert_eq!(side("[SUGGESTION MODE: Suggest]", json!({})), "run the tests");
    assert_eq!(side("Describe your most recent action in", json!({})), "Playing the script");
    let schema = json!({"type": "object", "properties": {"title": {"type": "string"}}});
    let format = json!({"output_config": {"format": {"type": "json_schema", "schema": schema}}});
    let title = side("<session>\n[[say x]]\n</session>", format);
    assert_eq!(serde_json::from_str::<Value>(&title).expect("JSON"), json!({"title": "text"}));
    assert!(server.requests().iter().all(|seen| seen.side));
    let aside = "<system-reminder>This is a side question from the user.</system-reminder>\n\n";
    assert_eq!(side(&format!("{aside}how?"), json!({})), "You said: how?");
    assert_eq!(side(&format!("{aside}[[say so]]"), json!({})), "so");
}

#[test]
fn a_prompt_sent_during_a_tool_call_is_read() {
    let server = server();
    let mut request = request("[[tool Bash {}]] [[say first]]");
    let messages = request["messages"].as_array_mut().expect("a list");
    messages.push(json!({"role": "assistant", "content": [{"type": "tool_use"}]}));
    messages.push(json!({"role": "user", "content": [{"type": "tool_result", "content": "r"}]}));
    let note = "The user sent a new message while you were working:\n[[say second]]\n\nAnswer it.";
    messages.push(json!({"role": "system", "content": note}));
    let answer = message(&post(&server, "/v1/messages", &request));
    assert_eq!(answer["content"][0]["text"], "second");
}

#[test]
fn tokens_are_counted_and_models_listed() {
    let server = server();
    let answer = post(&server, "/v1/messages/count_tokens?beta=true", &request("[[fail 500]]"));
    assert!(answer.json()["input_tokens"].as_u64() > Some(0));
    let headers = [("anthropic-version", "2023-06-01")];
    let models = Exchange::start(&server, "GET", "/v1/models", &headers, b"").finish().json();
    assert_eq!(models["data"][0]["type"], "model");
    assert!(server.unknown().is_empty());
}

#[test]
fn bad_requests_are_refused_in_the_apis_format() {
    let server = server();
    let bad = |body: &[u8]| {
        let answer = Exchange::start(&server, "POST", "/v1/messages", &[], body).finish();
        assert_eq!(answer.status, 400, "{}", String::from_utf8_lossy(body));
        let body = answer.json();
        assert_eq!(body["type"], "error");
        assert_eq!(body["error"]["type"], "invalid_request_error");
        body["error"]["message"].as_str().expect("a message").to_owned()
    };
    assert!(bad(b"").contains("failed to read the body"));
    assert!(bad(b"{\"model\":").contains("failed to read the body"));
    assert!(bad(b"[1]").contains("not a JSON object"));
    assert!(bad(b"\xff\xfe").contains("failed to read the body"));
    assert!(bad(b"{}").contains("model"));
    assert!(bad(br#"{"model":"m","max_tokens":1}"#).contains("messages"));
    assert!(bad(br#"{"model":"m","max_tokens":1,"messages":[]}"#).contains("messages"));
    assert!(bad(br#"{"model":"m","max_tokens":1,"messages":[1]}"#).contains("messages.0.role"));
    let content = br#"{"model":"m","max_tokens":1,"messages":[{"role":"user"}]}"#;
    assert!(bad(content).contains("messages.0.content"));
    let tokens = br#"{"model":"m","messages":[{"role":"user","content":"x"}]}"#;
    assert!(bad(tokens).contains("max_tokens"));
    let marker = bad(request("please [[sya Hello]]").to_string().as_bytes());
    assert!(marker.contains("`[[sya Hello]]`: unknown step `sya`"), "{marker}");
    assert!(marker.contains("tool NAME JSON"), "{marker}");
    assert_eq!(message(&ask(&server, "[[say still here]]"))["content"][0]["text"], "still here");
}
