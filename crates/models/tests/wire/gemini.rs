//! The Gemini API.

mod gemini_cli;

use agentwire_models::{ModelServer, Options, Usage};
use serde_json::{Value, json};

use crate::client::{Exchange, HttpResponse, eventually, post};

const STREAM: &str = "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse";
const WHOLE: &str = "/v1beta/models/gemini-2.5-pro:generateContent";

fn server() -> ModelServer {
    ModelServer::start(Options::default()).expect("a server")
}

/// A request as Gemini CLI sends it.
fn request(prompt: &str) -> Value {
    json!({
        "contents": [{"role": "user", "parts": [
            {"text": "<session_context>\n[[nothing here]]\n</session_context>"},
            {"text": prompt},
        ]}],
        "systemInstruction": {"role": "user", "parts": [{"text": "be brief"}]},
        "tools": [{"functionDeclarations": [{"name": "read_file"}, {"name": "glob"}]}],
        "generationConfig": {"temperature": 1},
    })
}

fn say(request: &mut Value, role: &str, parts: &Value) {
    let contents = request["contents"].as_array_mut().expect("a list");
    contents.push(json!({"role": role, "parts": parts}));
}

fn ask(server: &ModelServer, prompt: &str) -> HttpResponse {
    post(server, STREAM, &request(prompt))
}

fn ask_whole(server: &ModelServer, prompt: &str) -> HttpResponse {
    post(server, WHOLE, &request(prompt))
}

fn chunks(answer: &HttpResponse) -> Vec<Value> {
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let events = answer.events().into_iter();
    events.map(|(_, data)| serde_json::from_str(&data).expect("JSON")).collect()
}

fn parts(chunk: &Value) -> &Vec<Value> {
    assert_eq!(chunk["candidates"][0]["content"]["role"], "model");
    chunk["candidates"][0]["content"]["parts"].as_array().expect("a list")
}

/// The response that a client builds from the chunks.
fn response(answer: &HttpResponse) -> Value {
    let chunks = chunks(answer);
    let (last, rest) = chunks.split_last().expect("a chunk");
    assert!(rest.iter().all(|chunk| chunk["candidates"][0].get("finishReason").is_none()));
    assert!(rest.iter().all(|chunk| chunk.get("usageMetadata").is_none()));
    assert!(chunks.iter().all(|chunk| chunk["responseId"] == last["responseId"]));
    let mut together: Vec<Value> = Vec::new();
    for part in chunks.iter().flat_map(parts) {
        match (together.last_mut(), part["text"].as_str()) {
            (Some(before), Some(text))
                if before["text"].is_string() && before.get("thought") == part.get("thought") =>
            {
                before["text"] =
                    format!("{}{text}", before["text"].as_str().expect("it is")).into();
            }
            (_, Some("")) if part.get("thoughtSignature").is_none() => {}
            _ => together.push(part.clone()),
        }
    }
    let mut response = last.clone();
    response["candidates"][0]["content"]["parts"] = together.into();
    response
}

fn text(response: &Value) -> String {
    let texts = parts(response).iter().filter(|part| part.get("thought").is_none());
    texts.filter_map(|part| part["text"].as_str()).collect()
}

#[test]
fn text_thinking_and_tools_are_the_same_streamed_and_whole() {
    let server = server();
    let prompt = "[[think **ResponsePlan** it]] [[say Hello {model} {system} {tools}]] \
                  [[tools read_file {\"file_path\":\"ü]] \\\" x\"} ;; glob {}]]";
    let mut streamed = response(&ask(&server, prompt));
    let mut whole = ask_whole(&server, prompt).json();
    assert_eq!(streamed["modelVersion"], "gemini-2.5-pro");
    assert_eq!(streamed["candidates"][0]["finishReason"], "STOP");
    assert_eq!(parts(&streamed)[0], json!({"text": "**ResponsePlan** it", "thought": true}));
    assert_eq!(text(&streamed), "Hello gemini-2.5-pro be brief read_file glob");
    let call = json!({"name": "read_file", "args": {"file_path": "ü]] \" x"}});
    assert_eq!(parts(&streamed)[2]["functionCall"], call);
    assert_eq!(parts(&streamed)[3], json!({"functionCall": {"name": "glob", "args": {}}}));
    assert!(parts(&streamed)[1]["thoughtSignature"].is_string());
    for response in [&mut streamed, &mut whole] {
        response["usageMetadata"] = Value::Null;
        response["responseId"] = Value::Null;
    }
    assert_eq!(streamed, whole);
}

#[test]
fn a_thought_is_one_piece_and_text_is_streamed_word_by_word() {
    let server = server();
    let chunks = chunks(&ask(&server, "[[think **A** b c]] [[think d e]] [[say f g]]"));
    let texts: Vec<&Value> = chunks.iter().map(|chunk| &parts(chunk)[0]["text"]).collect();
    assert_eq!(texts, ["**A** b c", "d e", "f ", "g", ""]);
    let signed = chunks.iter().map(|chunk| parts(chunk)[0].get("thoughtSignature").is_some());
    assert_eq!(signed.collect::<Vec<_>>(), [false, false, true, false, false]);
}

#[test]
fn calls_have_ids_where_the_model_gives_them() {
    let server = server();
    let body = request("[[tools glob {} ;; glob {}]]");
    let new = "/v1beta/models/gemini-3-pro-preview:streamGenerateContent?alt=sse";
    let calls = response(&post(&server, new, &body));
    let ids: Vec<&str> =
        parts(&calls).iter().filter_map(|part| part["functionCall"]["id"].as_str()).collect();
    assert!(matches!(ids[..], [first, second] if first != second), "{ids:?}");
}

#[test]
fn the_script_continues_with_the_results() {
    let server = server();
    let mut request =
        request("[[tool glob {}]] [[say it is {result}]] [[tool glob {}]] [[say end]]");
    let call = || json!([{"functionCall": {"name": "glob", "args": {}, "id": "glob_1"}}]);
    let result = |response: Value| json!([{"functionResponse": {"name": "glob", "id": "glob_1", "response": response}}]);
    assert_eq!(parts(&response(&post(&server, STREAM, &request))).len(), 1);
    say(&mut request, "model", &call());
    say(&mut request, "user", &result(json!({"output": "four"})));
    let second = response(&post(&server, STREAM, &request));
    assert_eq!(text(&second), "it is four");
    say(&mut request, "model", &json!([{"text": "it is four"}, call()[0]]));
    say(&mut request, "user", &result(json!({"error": "not found"})));
    assert_eq!(text(&response(&post(&server, STREAM, &request))), "end");
}

#[test]
fn results_are_texts() {
    let server = server();
    for (response_of_tool, expected) in [
        (json!({"output": "four"}), "four"),
        (json!({"error": "no such file"}), "no such file"),
        (json!({"rows": 4}), "{\"rows\":4}"),
        (json!({"output": [4]}), "{\"output\":[4]}"),
    ] {
        let mut request = request("[[tool glob {}]] [[say {result}]]");
        say(&mut request, "model", &json!([{"functionCall": {"name": "glob"}}]));
        let result = json!({"name": "glob", "response": response_of_tool});
        say(&mut request, "user", &json!([{"functionResponse": result}]));
        assert_eq!(text(&response(&post(&server, STREAM, &request))), expected);
    }
}

#[test]
fn usage_is_scripted_and_summed() {
    let server = server();
    let expected = json!({
        "promptTokenCount": 80, "candidatesTokenCount": 20, "cachedContentTokenCount": 30,
        "totalTokenCount": 100,
    });
    let streamed = response(&ask(&server, "[[usage 10 20 30 40]] [[say x]]"));
    assert_eq!(streamed["usageMetadata"], expected);
    let whole = ask_whole(&server, "[[say x]] [[usage 10 20 30 40]]").json();
    assert_eq!(whole["usageMetadata"], expected);
    // Cache writes are reported as input.
    let reported = Usage { input: 100, output: 40, cache_read: 60, cache_create: 0 };
    assert_eq!(server.reported(), reported);
    let thought = response(&ask(&server, "[[usage 10 20]] [[think a b c]] [[say x]]"));
    assert_eq!(thought["usageMetadata"]["candidatesTokenCount"], 20);
    assert_eq!(thought["usageMetadata"]["thoughtsTokenCount"], 3);
    assert_eq!(thought["usageMetadata"]["totalTokenCount"], 33);
    assert!(thought["usageMetadata"].get("cachedContentTokenCount").is_none());
    let before = server.reported();
    assert!(!ask(&server, "[[usage 1 1 1 1]] [[say x]] [[cut]]").whole);
    assert_eq!(server.reported(), before, "a response that breaks off reports no usage");
}

#[test]
fn finish_reasons() {
    let server = server();
    for (step, reason) in [
        ("[[stop]]", "STOP"),
        ("[[tool glob]]", "STOP"),
        ("[[stop max_tokens]]", "MAX_TOKENS"),
        ("[[stop refusal]]", "SAFETY"),
        ("[[stop MALFORMED_FUNCTION_CALL]]", "MALFORMED_FUNCTION_CALL"),
    ] {
        for answer in [response(&ask(&server, step)), ask_whole(&server, step).json()] {
            assert_eq!(answer["candidates"][0]["finishReason"], reason);
        }
    }
}

#[test]
fn failures_end_after_their_attempts() {
    let server = server();
    let prompt = "[[fail 503 TIMES 1]] [[ratelimit TIMES 1 RETRY-AFTER 3]] [[say ok]]";
    let failed = ask(&server, prompt);
    assert_eq!(failed.status, 503);
    let error = json!({"code": 503, "message": "scripted failure", "status": "UNAVAILABLE"});
    assert_eq!(failed.json(), json!({"error": error}));
    let limited = ask(&server, prompt);
    let error = &limited.json()["error"];
    assert_eq!((limited.status, &error["status"]), (429, &json!("RESOURCE_EXHAUSTED")));
    let detail = |name: &str| {
        let details = error["details"].as_array().expect("a list");
        let kind = format!("type.googleapis.com/google.rpc.{name}");
        details.iter().find(|detail| detail["@type"] == kind.as_str()).expect(name).clone()
    };
    assert_eq!(detail("RetryInfo")["retryDelay"], "3s");
    let quota = detail("QuotaFailure")["violations"][0]["quotaId"].clone();
    assert!(quota.as_str().expect("a text").contains("PerMinute"), "{quota}");
    assert_eq!(text(&response(&ask(&server, prompt))), "ok");
}

#[test]
fn a_long_wait_means_the_daily_quota() {
    let server = server();
    let error = ask(&server, "[[ratelimit RETRY-AFTER 86400]]").json();
    assert!(error.to_string().contains("PerDay"), "{error}");
    let error = ask(&server, "[[ratelimit RETRY-AFTER 0]]").json();
    assert!(error["error"].get("details").is_none(), "{error}");
}

#[test]
fn a_failure_has_the_status_and_message_of_the_script() {
    let server = server();
    let error = ask_whole(&server, "[[say a]] [[fail 400 FAILED_PRECONDITION not here]]").json();
    let expected = json!({"code": 400, "message": "not here", "status": "FAILED_PRECONDITION"});
    assert_eq!(error, json!({"error": expected}));
    for (status, name) in [
        (400, "INVALID_ARGUMENT"),
        (401, "UNAUTHENTICATED"),
        (403, "PERMISSION_DENIED"),
        (404, "NOT_FOUND"),
        (418, "INVALID_ARGUMENT"),
        (429, "RESOURCE_EXHAUSTED"),
        (500, "INTERNAL"),
        (504, "DEADLINE_EXCEEDED"),
        (529, "INTERNAL"),
    ] {
        let answer = ask(&server, &format!("[[fail {status}]]"));
        assert_eq!(
            (answer.status, answer.json()["error"]["status"].as_str()),
            (status, Some(name))
        );
    }
}

#[test]
fn a_failure_after_text_ends_the_stream() {
    let server = server();
    let answer = ask(&server, "[[say half a]] [[fail 500]] [[say never]]");
    assert!(answer.whole && !answer.text().contains("never"));
    // Not as an event: Google's library would read it as an empty chunk.
    let body = answer.text();
    let (_, error) = body.rsplit_once("\n\n").expect("events before it");
    let error: Value = serde_json::from_str(error).expect("JSON");
    assert_eq!(error["error"]["code"], 500);
}

#[test]
fn a_cut_ends_the_stream_in_the_middle() {
    let server = server();
    let prompt = "[[say Hello you]] [[cut TIMES 1]] [[say there]]";
    let cut = ask(&server, prompt);
    assert!(!cut.whole && cut.text().contains("you") && !cut.text().contains("finishReason"));
    assert_eq!(text(&response(&ask(&server, prompt))), "Hello youthere");
}

#[test]
fn a_hang_lasts_until_the_client_disconnects() {
    let server = server();
    let body = request("[[say Hello]] [[hang]]").to_string();
    let mut exchange = Exchange::start(&server, "POST", STREAM, &[], body.as_bytes());
    exchange.read_until("Hello");
    assert_eq!(text(&response(&ask(&server, "[[say x]]"))), "x");
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
    assert!(answer.text().contains("finishReason"));
}

#[test]
fn an_event_is_one_line_in_javascript_too() {
    let server = server();
    let answer = ask(&server, "[[say a\u{2028}b\u{2029}c]]");
    assert!(!answer.text().contains(['\u{2028}', '\u{2029}']));
    assert_eq!(text(&response(&answer)), "a\u{2028}b\u{2029}c");
}

#[test]
fn an_answer_matches_the_requested_schema() {
    let server = server();
    let mut request = request("hello");
    request["generationConfig"]["responseSchema"] =
        json!({"type": "OBJECT", "properties": {"n": {"type": "INTEGER"}}});
    let answer = text(&response(&post(&server, STREAM, &request)));
    assert_eq!(serde_json::from_str::<Value>(&answer).expect("JSON"), json!({"n": 1}));
}

#[test]
fn tokens_are_counted_and_models_listed() {
    let server = server();
    let count = post(&server, "/v1beta/models/m:countTokens", &request("[[fail 500]]"));
    assert!(count.json()["totalTokens"].as_u64() > Some(0));
    let get = |path: &str| Exchange::start(&server, "GET", path, &[], b"").finish().json();
    assert_eq!(get("/v1beta/models")["models"][0]["name"], "models/gemini-scripted");
    assert_eq!(get("/v1beta/models/gemini-x")["name"], "models/gemini-x");
    assert!(server.unknown().is_empty());
}

#[test]
fn any_path_prefix_is_accepted() {
    let server = server();
    let body = request("[[say {model}]]").to_string();
    for path in [
        "/prefix/v1beta/models/m-1:streamGenerateContent?alt=sse",
        "/v1/projects/p/locations/l/publishers/google/models/m-1:streamGenerateContent?alt=sse",
    ] {
        let key = [("x-goog-api-key", "fake")];
        let answer = Exchange::start(&server, "POST", path, &key, body.as_bytes()).finish();
        assert_eq!(text(&response(&answer)), "m-1");
    }
}

#[test]
fn a_key_in_the_address_is_not_recorded() {
    let server = server();
    let path = format!("{STREAM}&key=very-secret");
    assert_eq!(post(&server, &path, &request("[[say x]]")).status, 200);
    assert_eq!(server.requests()[0].path, format!("{STREAM}&key=(set)"));
}

#[test]
fn bad_requests_are_refused_in_the_apis_format() {
    let server = server();
    let bad = |path: &str, status: u16, name: &str, body: &[u8]| {
        let answer = Exchange::start(&server, "POST", path, &[], body).finish();
        assert_eq!(answer.status, status, "{}", String::from_utf8_lossy(body));
        let error = answer.json()["error"].clone();
        assert_eq!((&error["code"], &error["status"]), (&json!(status), &json!(name)));
        error["message"].as_str().expect("a message").to_owned()
    };
    let refused = |body: &[u8]| bad(STREAM, 400, "INVALID_ARGUMENT", body);
    assert!(refused(b"").contains("failed to read the body"));
    assert!(refused(b"[1]").contains("not a JSON object"));
    assert!(refused(b"{}").contains("contents"));
    assert!(refused(br#"{"contents":[]}"#).contains("contents"));
    assert!(refused(br#"{"contents":[1]}"#).contains("contents[0].parts"));
    assert!(refused(br#"{"contents":[{"role":"user","parts":[]}]}"#).contains("contents[0].parts"));
    let role = br#"{"contents":[{"role":"assistant","parts":[{"text":"x"}]}]}"#;
    assert!(refused(role).contains("contents[0].role"));
    let marker = refused(request("please [[sya Hello]]").to_string().as_bytes());
    assert!(marker.contains("unknown step `sya`"), "{marker}");
    let body = request("[[say x]]").to_string();
    let plain = "/v1beta/models/m:streamGenerateContent";
    assert!(bad(plain, 400, "INVALID_ARGUMENT", body.as_bytes()).contains("alt=sse"));
    assert!(server.unknown().is_empty());
    for path in ["/v1beta/models/m:predict", "/v1beta/files", "/v1beta/models/"] {
        bad(path, 404, "NOT_FOUND", body.as_bytes());
    }
    assert_eq!(server.unknown().len(), 3);
}
