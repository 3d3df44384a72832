//! Writes the values of the Responses API: items, responses, errors.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::json::with;
use crate::response_plan::{Block, End, Failure, ResponsePlan, Stop, ToolCall, ToolKind};

/// Only the real API could decrypt it.
const ENCRYPTED: &str = "c2NyaXB0ZWQsIHJlYWRhYmxlIGJ5IG5vYm9keQ==";
/// The duration of a usage limit, in seconds.
const LIMITED: u64 = 3600;
/// The suffix of item ids in a response that a client treats as incomplete and requests again. Codex keeps
/// the completed items and sends them back.
pub(super) const BROKEN: &str = "_broken";
/// Errors that the API names by type; it names the others by code.
const TYPES: [&str; 3] = ["insufficient_quota", "usage_limit_reached", "usage_not_included"];

/// A response that is not streamed.
pub(super) fn whole(plan: &ResponsePlan) -> Value {
    let reason = match &plan.end {
        End::Stop(stop) => incomplete(stop),
        End::Hang | End::Cut | End::Fail(_) => None,
    };
    let output: Vec<Value> = plan
        .blocks
        .iter()
        .enumerate()
        .filter_map(|(index, block)| item(plan, index, block))
        .collect();
    over(plan, reason, &output)
}

/// A finished response; `reason` says why it is incomplete.
pub(super) fn over(plan: &ResponsePlan, reason: Option<&str>, output: &[Value]) -> Value {
    let status = if reason.is_some() { "incomplete" } else { "completed" };
    let details = reason.map_or(Value::Null, |reason| json!({"reason": reason}));
    let response = with(response(plan, status, output), "incomplete_details", details);
    with(response, "usage", usage(plan))
}

/// A response without details and usage.
pub(super) fn response(plan: &ResponsePlan, status: &str, output: &[Value]) -> Value {
    json!({
        "id": format!("resp_{}", plan.id),
        "object": "response",
        "created_at": Timestamp::now().as_second(),
        "status": status,
        "error": null,
        "incomplete_details": null,
        "model": plan.model,
        "output": output,
        "usage": null,
    })
}

/// The reason that a response is incomplete.
pub(super) fn incomplete(stop: &Stop) -> Option<&str> {
    match stop {
        Stop::End | Stop::Tools => None,
        Stop::MaxTokens => Some("max_output_tokens"),
        Stop::Refusal => Some("content_filter"),
        Stop::Other(reason) => Some(reason),
    }
}

/// A block as a completed item.
pub(super) fn item(plan: &ResponsePlan, index: usize, block: &Block) -> Option<Value> {
    let end = if broken(&plan.end) { BROKEN } else { "" };
    let id = |kind: &str| format!("{kind}_{}{index:02}{end}", plan.id);
    match block {
        Block::Text(deltas) => Some(json!({
            "id": id("msg"), "type": "message", "status": "completed", "role": "assistant",
            "content": [text_part(&deltas.text())],
        })),
        Block::Thinking(deltas) => Some(json!({
            "id": id("rs"), "type": "reasoning", "summary": [summary_part(&deltas.text())],
            "encrypted_content": ENCRYPTED,
        })),
        Block::Tool(call) => {
            let (start, kind) = match call.kind {
                ToolKind::Function => ("fc".to_owned(), "function_call".to_owned()),
                ToolKind::Freeform => ("ctc".to_owned(), "custom_tool_call".to_owned()),
                ToolKind::Part | ToolKind::Hosted => {
                    let words = call.name.split('_').filter_map(|word| word.chars().next());
                    (words.collect(), format!("{}_call", call.name))
                }
            };
            let item = json!({"id": id(&start), "type": kind, "status": "completed"});
            Some(called(item, call))
        }
        Block::Garbage => None,
    }
}

/// Whether the client repeats the request. It does not if only the length was exceeded.
fn broken(end: &End) -> bool {
    match end {
        End::Stop(Stop::End | Stop::Tools | Stop::MaxTokens) => false,
        End::Stop(Stop::Refusal | Stop::Other(_)) | End::Hang | End::Cut | End::Fail(_) => true,
    }
}

/// Adds the call's id, name and input to its item.
fn called(mut item: Value, call: &ToolCall) -> Value {
    if call.kind != ToolKind::Hosted {
        item = with(item, "call_id", format!("call_{}", call.id));
    }
    let Some((field, input)) = input(call) else {
        let fields = call.value();
        let fields = fields.as_object().into_iter().flatten();
        return fields.fold(item, |item, (name, value)| with(item, name, value.clone()));
    };
    item = with(item, field, input);
    // Tool names contain no dots.
    match call.name.split_once('.') {
        Some((namespace, name)) => with(with(item, "namespace", namespace), "name", name),
        None => with(item, "name", call.name.as_str()),
    }
}

/// The name and the value of the input field: JSON in a string, or plain text.
pub(super) fn input(call: &ToolCall) -> Option<(&'static str, String)> {
    match call.kind {
        ToolKind::Function => Some(("arguments", call.input.get().to_owned())),
        ToolKind::Freeform => Some((
            "input",
            match call.value() {
                Value::String(text) => text,
                // The same tool as a function takes its text in `input`.
                value => match value.get("input") {
                    Some(Value::String(text)) => text.clone(),
                    _ => call.input.get().to_owned(),
                },
            },
        )),
        ToolKind::Part | ToolKind::Hosted => None,
    }
}

pub(super) fn text_part(text: &str) -> Value {
    json!({"type": "output_text", "text": text, "annotations": [], "logprobs": []})
}

pub(super) fn summary_part(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

/// The item that replaces a conversation. Only the API decrypts it, so any text works.
pub(super) fn compaction(id: &str, summary: &str) -> Value {
    json!({"id": format!("cmp_{id}"), "type": "compaction", "encrypted_content": summary})
}

/// The API's `input_tokens` and `output_tokens` are totals. Each piece of thinking counts as one token.
pub(super) fn usage(plan: &ResponsePlan) -> Value {
    let used = plan.usage;
    let input = used.input.saturating_add(used.cache_read).saturating_add(used.cache_create);
    json!({
        "input_tokens": input,
        "input_tokens_details": {
            "cached_tokens": used.cache_read, "cache_write_tokens": used.cache_create,
        },
        "output_tokens": used.output,
        "output_tokens_details": {"reasoning_tokens": used.output.min(plan.thinking_pieces())},
        "total_tokens": input.saturating_add(used.output),
    })
}

/// The body of an error.
pub(super) fn failure(failure: &Failure) -> Value {
    let usual = match failure.status {
        429 => "requests",
        400..500 => "invalid_request_error",
        _ => "server_error",
    };
    let (kind, code) = match failure.kind.as_deref() {
        Some(kind) if TYPES.contains(&kind) => (kind, Some(kind)),
        Some(kind) if kind.ends_with("_error") => (kind, None),
        Some(code) => (usual, Some(code)),
        None => (usual, usual_code(failure.status)),
    };
    let mut error = json!({
        "message": failure.message, "type": kind, "param": null, "code": code,
    });
    if kind == "usage_limit_reached" {
        let seconds = failure.retry_after.unwrap_or(LIMITED);
        error = with(error, "plan_type", "plus");
        error = with(error, "resets_at", later(seconds));
        error = with(error, "resets_in_seconds", seconds);
    }
    json!({"error": error})
}

/// The error of a response that failed in its stream.
pub(super) fn failed(failure: &Failure) -> Value {
    let code = failure.kind.as_deref().or(usual_code(failure.status)).unwrap_or("server_error");
    let mut message = failure.message.clone();
    // A stream has no headers any more, so Codex reads the delay from the text.
    if let Some(seconds) = failure.retry_after {
        message.push_str(&format!(". Please try again in {seconds}s."));
    }
    json!({"code": code, "message": message})
}

fn usual_code(status: u16) -> Option<&'static str> {
    match status {
        401 => Some("invalid_api_key"),
        429 => Some("rate_limit_exceeded"),
        _ => None,
    }
}

pub(super) fn headers(id: &str, failure: Option<&Failure>) -> Vec<(String, String)> {
    let mut headers = vec![("x-request-id".to_owned(), format!("req_{id}"))];
    let limited = failure.is_some_and(|failure| failure.status == 429);
    let seconds = failure.and_then(|failure| failure.retry_after).unwrap_or(60);
    for (what, limit) in [("requests", 10_000), ("tokens", 4_000_000)] {
        let remaining = if limited { 0 } else { limit - 1 };
        let name = |word: &str| format!("x-ratelimit-{word}-{what}");
        headers.push((name("limit"), limit.to_string()));
        headers.push((name("remaining"), remaining.to_string()));
        headers.push((name("reset"), format!("{seconds}s")));
    }
    headers
}

fn later(seconds: u64) -> i64 {
    let then = Timestamp::now().checked_add(Duration::from_secs(seconds));
    then.unwrap_or(Timestamp::MAX).as_second()
}
