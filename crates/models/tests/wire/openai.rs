//! The Responses API.

mod codex;
mod reader;

use agentwire_models::{ModelServer, Options, Usage};
use serde_json::{Value, json};

use crate::client::{Exchange, HttpResponse, eventually, post};
use reader::{events, response};

fn server() -> ModelServer {
    ModelServer::start(Options::default()).expect("a server")
}

fn request(prompt: &str) -> Value {
    json!({
        "model": "gpt-test",
        "stream": true,
        "store": false,
        "prompt_cache_key": "thread-1",
        "tools": [
            {"type": "function", "name": "exec_command"},
            {"type": "custom", "name": "apply_patch"},
            {"type": "namespace", "name": "team", "tools": [{"type": "function", "name": "spawn"}]},
            {"type": "tool_search", "execution": "client"},
            {"type": "web_search"},
        ],
        "input": [
            {"type": "message", "role": "developer", "content": [
                {"type": "input_text", "text": "be brief"},
            ]},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": "<environment_context>[[x]]</environment_context>"},
                {"type": "input_text", "text": "# AGENTS.md instructions for /x\n[[say no]]"},
            ]},
            {"type": "message", "role": "user", "content": [
                {"type": "input_text", "text": prompt},
                {"type": "input_image", "image_url": "data:,"},
            ]},
        ],
    })
}

fn ask(server: &ModelServer, prompt: &str) -> HttpResponse {
    post(server, "/v1/responses", &request(prompt))
}

fn ask_whole(server: &ModelServer, prompt: &str) -> HttpResponse {
    let mut request = request(prompt);
    request["stream"] = json!(false);
    post(server, "/v1/responses", &request)
}

/// The request after a response, with the results of its calls.
fn go_on(request: &mut Value, response: &Value, results: &[Value]) {
    let input = request["input"].as_array_mut().expect("a list");
    input.extend(response["output"].as_array().expect("a list").iter().cloned());
    let calls = response["output"].as_array().expect("a list").iter();
    for (call, result) in calls.filter(|item| item.get("call_id").is_some()).zip(results) {
        let kind = format!("{}_output", call["type"].as_str().expect("a type"));
        input.push(json!({"type": kind, "call_id": call["call_id"], "output": result}));
    }
}

fn said(answer: &HttpResponse) -> String {
    response(answer)["output"][0]["content"][0]["text"].as_str().expect("a text").to_owned()
}

#[test]
fn text_reasoning_and_calls_are_the_same_streamed_and_whole() {
    let server = server();
    let prompt = "[[think about it]] [[say Hello {model} {system}]] \
                  [[tools exec_command {\"cmd\":\"echo \\\"ü]]\\\" && a long command line\"} ;; \
                  apply_patch \"*** Begin Patch\\n*** End Patch\\n\" ;; team.spawn]]";
    let streamed = ask(&server, prompt);
    assert!(streamed.whole && streamed.headers["x-request-id"].starts_with("req_"));
    let mut streamed = response(&streamed);
    let mut whole = ask_whole(&server, prompt).json();
    assert_eq!(streamed["model"], "gpt-test");
    assert_eq!(streamed["status"], "completed");
    let [thought, message, function, custom, spawn] =
        streamed["output"].as_array().expect("a list").as_slice()
    else {
        panic!("{streamed}")
    };
    assert_eq!(thought["summary"], json!([{"type": "summary_text", "text": "about it"}]));
    assert!(thought["encrypted_content"].is_string());
    assert_eq!(message["content"][0]["text"], "Hello gpt-test be brief");
    let arguments = function["arguments"].as_str().expect("a text");
    let arguments: Value = serde_json::from_str(arguments).expect("JSON");
    assert_eq!(arguments["cmd"], "echo \"ü]]\" && a long command line");
    assert_eq!(
        (&custom["type"], &custom["name"]),
        (&json!("custom_tool_call"), &json!("apply_patch"))
    );
    assert_eq!(custom["input"], "*** Begin Patch\n*** End Patch\n");
    assert_eq!((&spawn["namespace"], &spawn["name"]), (&json!("team"), &json!("spawn")));
    assert_eq!(spawn["arguments"], "{}");
    assert_ne!(function["call_id"], spawn["call_id"]);
    for response in [&mut streamed, &mut whole] {
        for name in ["id", "created_at", "usage"] {
            assert!(!response[name].is_null());
            response[name] = Value::Null;
        }
        for item in response["output"].as_array_mut().expect("a list") {
            item["id"] = Value::Null;
            item["call_id"] = Value::Null;
        }
    }
    assert_eq!(streamed, whole);
}

#[test]
fn a_script_continues_with_the_tool_results() {
    let server = server();
    let mut request = request(
        "[[think a]] [[tools exec_command {} ;; apply_patch \"x\"]] [[say it is {result}]] \
         [[tool apply_patch {\"input\":\"y\"}]]",
    );
    let first = response(&post(&server, "/v1/responses", &request));
    let parts = json!([{"type": "input_text", "text": "two"}, {"type": "input_image"}]);
    go_on(&mut request, &first, &[json!("one"), parts]);
    let second = response(&post(&server, "/v1/responses", &request));
    assert_eq!(second["output"][0]["content"][0]["text"], "it is one\ntwo");
    assert_eq!(second["output"][1]["input"], "y");
    go_on(&mut request, &second, &[json!("three")]);
    assert_eq!(said(&post(&server, "/v1/responses", &request)), "Done.");
}

#[test]
fn a_tool_that_the_api_runs_does_not_end_the_response() {
    let server = server();
    let script = "[[tool web_search {\"action\":{\"type\":\"search\",\"query\":\"q\"}}]] \
                  [[say found]] [[tool tool_search {\"arguments\":{\"query\":\"z\"}}]] [[say end]]";
    let mut request = request(script);
    let first = response(&post(&server, "/v1/responses", &request));
    let [search, message, tools] = first["output"].as_array().expect("a list").as_slice() else {
        panic!("{first}")
    };
    assert_eq!(search["type"], "web_search_call");
    assert!(search["id"].as_str().expect("an id").starts_with("ws_"));
    assert_eq!(search["action"], json!({"type": "search", "query": "q"}));
    assert_eq!(message["content"][0]["text"], "found");
    assert_eq!(tools["type"], "tool_search_call");
    assert_eq!(tools["arguments"], json!({"query": "z"}));
    go_on(&mut request, &first, &[Value::Null]);
    assert_eq!(said(&post(&server, "/v1/responses", &request)), "end");
}

#[test]
fn usage_is_scripted_and_summed() {
    let server = server();
    let script = "[[think a b]] [[usage 10 20 30 40]] [[say x]]";
    for response in [response(&ask(&server, script)), ask_whole(&server, script).json()] {
        let expected = json!({
            "input_tokens": 80,
            "input_tokens_details": {"cached_tokens": 30, "cache_write_tokens": 40},
            "output_tokens": 20,
            "output_tokens_details": {"reasoning_tokens": 2},
            "total_tokens": 100,
        });
        assert_eq!(response["usage"], expected);
    }
    let expected = Usage { input: 20, output: 40, cache_read: 60, cache_create: 80 };
    assert_eq!(server.reported(), expected);
    assert!(!ask(&server, "[[usage 1 1 1 1]] [[say x]] [[cut]]").whole);
    assert_eq!(server.reported(), expected);
}

#[test]
fn a_response_may_be_incomplete() {
    let server = server();
    for (step, reason) in [
        ("[[stop max_tokens]]", "max_output_tokens"),
        ("[[stop refusal]]", "content_filter"),
        ("[[stop tired]]", "tired"),
    ] {
        for response in [response(&ask(&server, step)), ask_whole(&server, step).json()] {
            assert_eq!(response["status"], "incomplete");
            assert_eq!(response["incomplete_details"]["reason"], reason);
        }
    }
    assert_eq!(response(&ask(&server, "[[stop]]"))["incomplete_details"], Value::Null);
}

#[test]
fn failures_have_the_apis_formats() {
    let server = server();
    for (step, status, kind, code) in [
        ("fail 400", 400, "invalid_request_error", None),
        (
            "fail 400 context_length_exceeded",
            400,
            "invalid_request_error",
            Some("context_length_exceeded"),
        ),
        ("fail 401", 401, "invalid_request_error", Some("invalid_api_key")),
        ("ratelimit", 429, "requests", Some("rate_limit_exceeded")),
        ("fail 429 insufficient_quota", 429, "insufficient_quota", Some("insufficient_quota")),
        ("fail 429 usage_limit_reached", 429, "usage_limit_reached", Some("usage_limit_reached")),
        ("fail 500", 500, "server_error", None),
        ("fail 503 server_is_overloaded", 503, "server_error", Some("server_is_overloaded")),
        ("fail 500 odd_error", 500, "odd_error", None),
    ] {
        let answer = ask(&server, &format!("[[{step}]]"));
        let error = &answer.json()["error"];
        assert_eq!(answer.status, status, "{step}");
        assert_eq!(error["type"], kind, "{step}");
        assert_eq!(error["code"].as_str(), code, "{step}");
        assert_eq!(error.get("resets_at").is_some(), kind == "usage_limit_reached", "{step}");
        let remaining = if status == 429 { "0" } else { "9999" };
        assert_eq!(answer.headers["x-ratelimit-remaining-requests"], remaining, "{step}");
    }
    let limited = ask(&server, "[[ratelimit RETRY-AFTER 3]]");
    assert_eq!(limited.headers["retry-after"], "3");
    assert_eq!(limited.headers["x-ratelimit-reset-requests"], "3s");
}

#[test]
fn failures_are_counted_per_thread() {
    let server = server();
    let body = request("[[fail 500 TIMES 1]] [[say ok]]").to_string();
    let status = |thread| {
        let headers = [("thread-id", thread)];
        Exchange::start(&server, "POST", "/v1/responses", &headers, body.as_bytes()).finish().status
    };
    assert_eq!([status("a"), status("b"), status("a"), status("b")], [500, 500, 200, 200]);
}

#[test]
fn a_failure_after_text_is_an_event_in_the_stream() {
    let server = server();
    for (step, code, message) in [
        ("fail 500", "server_error", "scripted failure"),
        ("fail 400 context_length_exceeded too long", "context_length_exceeded", "too long"),
        (
            "ratelimit RETRY-AFTER 7",
            "rate_limit_exceeded",
            "scripted rate limit. Please try again in 7s.",
        ),
    ] {
        let events = events(&ask(&server, &format!("[[say half a]] [[{step}]] [[say never]]")));
        let last = events.last().expect("an event");
        assert_eq!(last["type"], "response.failed");
        assert_eq!(last["response"]["status"], "failed");
        assert_eq!(last["response"]["error"], json!({"code": code, "message": message}));
        assert!(!events.iter().any(|event| event["type"] == "response.output_item.done"));
    }
}

#[test]
fn completed_items_of_a_broken_response_do_not_count_as_a_response() {
    let server = server();
    let mut request =
        request("[[think x]] [[say half]] [[cut TIMES 1]] [[tool exec_command]] [[say end]]");
    let cut = post(&server, "/v1/responses", &request);
    assert!(!cut.whole);
    let done: Vec<Value> = events(&cut)
        .iter()
        .filter(|event| event["type"] == "response.output_item.done")
        .map(|event| event["item"].clone())
        .collect();
    assert_eq!(done.len(), 1);
    // Codex keeps the item and sends the request again.
    go_on(&mut request, &json!({"output": done}), &[]);
    let again = response(&post(&server, "/v1/responses", &request));
    let kinds: Vec<&Value> =
        again["output"].as_array().expect("a list").iter().map(|item| &item["type"]).collect();
    assert_eq!(kinds, ["reasoning", "message", "function_call"]);
    go_on(&mut request, &again, &[json!("r")]);
    assert_eq!(said(&post(&server, "/v1/responses", &request)), "end");
}

#[test]
fn a_hang_lasts_until_the_client_disconnects() {
    let server = server();
    let body = request("[[say Hello]] [[hang]]").to_string();
    let mut exchange = Exchange::start(&server, "POST", "/v1/responses", &[], body.as_bytes());
    exchange.read_until("Hello");
    drop(exchange);
    eventually("the request is noted", || server.requests().len() == 1);
    assert_eq!(said(&ask(&server, "[[say x]]")), "x");
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
    assert!(answer.text().contains("response.completed"));
}

#[test]
fn an_answer_matches_the_requested_schema() {
    let server = server();
    let mut plain = json!({"model": "m", "stream": true, "instructions": "short", "input": "hi"});
    assert_eq!(said(&post(&server, "/v1/responses", &plain)), "You said: hi");
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    plain["text"] = json!({"format": {"type": "json_schema", "name": "n", "schema": schema}});
    assert_eq!(said(&post(&server, "/v1/responses", &plain)), "{\"a\":\"text\"}");
}

#[test]
fn models_are_listed_and_unknown_paths_refused() {
    let server = server();
    let get = |path: &str, headers: &[(&str, &str)]| {
        Exchange::start(&server, "GET", path, headers, b"").finish()
    };
    assert_eq!(get("/v1/models?client_version=1", &[]).json()["data"][0]["object"], "model");
    let upgrade = [("connection", "upgrade"), ("upgrade", "websocket")];
    assert_eq!(get("/v1/responses", &upgrade).status, 426);
    assert!(server.unknown().is_empty());
    let unknown = get("/v1/elsewhere", &[("originator", "codex_exec")]);
    assert_eq!((unknown.status, &unknown.json()["error"]["param"]), (404, &Value::Null));
    assert_eq!(get("/v1/responses/resp_1", &[]).status, 404);
    let unknown: Vec<_> = server.unknown().into_iter().map(|seen| (seen.api, seen.path)).collect();
    let expected = ["/v1/elsewhere", "/v1/responses/resp_1"];
    assert_eq!(unknown, expected.map(|path| (Some("openai"), path.to_owned())));
}

#[test]
fn bad_requests_are_refused_in_the_apis_format() {
    let server = server();
    let bad = |body: &[u8]| {
        let answer = Exchange::start(&server, "POST", "/v1/responses", &[], body).finish();
        assert_eq!(answer.status, 400, "{}", String::from_utf8_lossy(body));
        let error = answer.json()["error"].clone();
        assert_eq!(error["type"], "invalid_request_error");
        error["message"].as_str().expect("a message").to_owned()
    };
    assert!(bad(b"").contains("failed to read the body"));
    assert!(bad(b"[1]").contains("not a JSON object"));
    assert!(bad(b"{}").contains("'model'"));
    assert!(bad(br#"{"model":"m"}"#).contains("'input'"));
    assert!(bad(br#"{"model":"m","input":1}"#).contains("'input'"));
    assert!(bad(br#"{"model":"m","input":[{},1]}"#).contains("'input[1]'"));
    let kept = br#"{"model":"m","input":"x","previous_response_id":"resp_1"}"#;
    assert!(bad(kept).contains("send the whole conversation"));
    let marker = bad(request("please [[sya Hello]]").to_string().as_bytes());
    assert!(marker.contains("`[[sya Hello]]`: unknown step `sya`"), "{marker}");
}
