//! Calls that Gemini CLI makes on its own behalf, and what it adds to conversations.

use agentwire_models::ModelServer;
use serde_json::{Value, json};

use super::{STREAM, WHOLE, ask_whole, request, response, say, server, text};
use crate::client::{Exchange, post};

const CLI: (&str, &str) =
    ("user-agent", "GeminiCLI-acp/0.61.0/gemini-2.5-pro (linux; x64; terminal)");

fn ask_aside(server: &ModelServer, request: &Value) -> String {
    let body = request.to_string();
    let answer = Exchange::start(server, "POST", WHOLE, &[CLI], body.as_bytes()).finish();
    assert_eq!(answer.status, 200, "{}", answer.text());
    text(&answer.json())
}

/// A conversation with a call and its result.
fn after_a_result() -> Value {
    let mut request = request("[[tool glob {}]] [[say next]]");
    say(&mut request, "model", &json!([{"functionCall": {"name": "glob", "args": {}}}]));
    let result = json!({"name": "glob", "response": {"output": "four"}});
    say(&mut request, "user", &json!([{"functionResponse": result}]));
    request
}

#[test]
fn inserted_texts_are_neither_responses_nor_prompts() {
    let server = server();
    for filler in
        ["[Tool execution completed.]", "Binary content received. Proceeding with analysis."]
    {
        let mut request = after_a_result();
        say(&mut request, "model", &json!([{"text": filler}]));
        say(
            &mut request,
            "user",
            &json!([
                {"text": "[System: You previously returned an empty response]"},
                {"text": "<hook_context>[[say hooked]]</hook_context>"},
                {"text": "Please continue."},
            ]),
        );
        assert_eq!(text(&response(&post(&server, STREAM, &request))), "next");
    }
}

#[test]
fn an_interrupted_turn_ends_its_script() {
    let server = server();
    let mut request = after_a_result();
    let interrupted = "[The previous response was interrupted before it completed.]";
    say(&mut request, "model", &json!([{"text": interrupted}]));
    say(&mut request, "user", &json!([{"text": "And now?"}]));
    assert_eq!(text(&response(&post(&server, STREAM, &request))), "You said: And now?");
}

#[test]
fn an_ended_run_ends_its_script() {
    let server = server();
    let mut request = request("[[say never]] [[hang]]");
    let parts = request["contents"][0]["parts"].as_array_mut().expect("a list");
    parts.push(json!({"text": "And now?"}));
    let body = request.to_string();
    let ask = |agent: &str| {
        let agent = [("user-agent", agent)];
        Exchange::start(&server, "POST", STREAM, &agent, body.as_bytes())
    };
    let answer = ask("GeminiCLI-tui/0.61.0/gemini-2.5-pro (linux; x64; terminal)").finish();
    assert_eq!(text(&response(&answer)), "You said: And now?");
    // Over ACP a prompt may have several texts.
    ask(CLI.1).read_until("never");
}

#[test]
fn a_cancelled_call_ends_the_script() {
    let server = server();
    let mut request = request("[[tool glob {}]] [[say never]]");
    say(&mut request, "model", &json!([{"functionCall": {"name": "glob", "args": {}}}]));
    say(&mut request, "user", &json!([{"text": "And now?"}]));
    assert_eq!(text(&response(&post(&server, STREAM, &request))), "You said: And now?");
}

#[test]
fn files_in_a_prompt_are_not_prompts() {
    let server = server();
    let mut request = request("look at @notes [[say {prompt}]]");
    let parts = request["contents"][0]["parts"].as_array_mut().expect("a list");
    for text in [
        "\n--- Content from referenced files ---",
        "\nContent from @notes:\n",
        "[[not a step]]",
        "\n--- End of content ---",
    ] {
        parts.push(json!({"text": text}));
    }
    let answer = response(&post(&server, STREAM, &request));
    assert_eq!(text(&answer), "look at @notes [[say {prompt}]]");
}

#[test]
fn conversations_count_their_own_attempts() {
    let server = server();
    let status = |place: &str| {
        let mut request = request("[[fail 500 TIMES 1]] [[say ok]]");
        request["contents"][0]["parts"][0]["text"] =
            format!("<session_context>\n{place}\n</session_context>").into();
        post(&server, STREAM, &request).status
    };
    assert_eq!([status("a"), status("b"), status("a"), status("b")], [500, 500, 200, 200]);
}

#[test]
fn gemini_clis_own_calls_play_no_script() {
    let server = server();
    let judged = |properties: Value| {
        let mut request = request("[[fail 500]]");
        request["generationConfig"] = json!({
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "OBJECT", "properties": properties},
        });
        serde_json::from_str::<Value>(&ask_aside(&server, &request)).expect("JSON")
    };
    let text_field = || json!({"type": "STRING"});
    let router = judged(json!({
        "complexity_reasoning": text_field(), "complexity_score": {"type": "INTEGER"},
    }));
    assert!(router["complexity_reasoning"].is_string());
    assert!((1..=100).contains(&router["complexity_score"].as_u64().expect("a number")));
    let classifier =
        judged(json!({"reasoning": text_field(), "model_choice": {"enum": ["flash", "pro"]}}));
    assert_eq!(classifier["model_choice"], "flash");
    let speaker = judged(json!({
        "reasoning": text_field(), "next_speaker": {"type": "string", "enum": ["user", "model"]},
    }));
    assert_eq!(speaker["next_speaker"], "user");
    let looping = judged(json!({
        "unproductive_state_analysis": text_field(),
        "unproductive_state_confidence": {"type": "number"},
    }));
    assert_eq!(looping["unproductive_state_confidence"], 0);
    let edit = judged(json!({
        "search": text_field(), "replace": text_field(), "explanation": text_field(),
        "noChangesRequired": {"type": "BOOLEAN"},
    }));
    assert_eq!(edit["noChangesRequired"], false);
    let escaping = judged(json!({"corrected_string_escaping": text_field()}));
    assert_eq!(escaping["corrected_string_escaping"], "");
    let compress = "First, reason in your scratchpad. Then, generate the updated <state_snapshot>.";
    assert!(ask_aside(&server, &request(compress)).contains("</state_snapshot>"));
    let summary = "Summarize the user's primary intent:\n\nUser: [[fail 500]]";
    assert!(ask_aside(&server, &request(summary)).len() <= 80);
    assert!(!ask_aside(&server, &request("weather [[fail 500]]")).is_empty());
    assert!(server.requests().iter().all(|seen| seen.side));
    // Other programs play scripts without streaming, and Gemini CLI does with streaming.
    assert_eq!(text(&ask_whole(&server, "[[say x]]").json()), "x");
    let body = request("[[say y]]").to_string();
    let turn = Exchange::start(&server, "POST", STREAM, &[CLI], body.as_bytes()).finish();
    assert_eq!(text(&response(&turn)), "y");
}
