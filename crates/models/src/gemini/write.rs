//! Writes a plan as a response with content.

use std::time::Duration;

use serde_json::{Value, json};

use crate::json::add;
use crate::response_plan::{Block, End, Failure, ResponsePlan, Stop, ToolCall};
use crate::stream_body::Frame;

/// The first part after thinking needs a signature. Only the real API would check it.
const SIGNATURE: &str = "c2NyaXB0ZWQgdGhpbmtpbmcsIHNpZ25lZCBieSBub2JvZHk=";
/// Google's library sees an error in a stream only if it arrives in a separate read.
const APART: Duration = Duration::from_millis(30);
/// A wait of at least this many seconds means that the daily quota is used up.
const DAILY: u64 = 3600;

pub(super) fn stream(plan: &ResponsePlan) -> Vec<Frame> {
    let mut frames = Vec::new();
    let mut unsigned = false;
    for block in &plan.blocks {
        match block {
            Block::Text(deltas) => {
                for piece in &deltas.pieces {
                    let part = signed(json!({"text": piece}), &mut unsigned);
                    frames.push(event(&chunk(plan, &[part], None)).after(deltas.pause));
                }
            }
            // A thought is sent whole: Gemini CLI trims each piece and looks for its subject in it.
            Block::Thinking(deltas) => {
                unsigned = true;
                let part = json!({"text": deltas.text(), "thought": true});
                frames.push(event(&chunk(plan, &[part], None)).after(deltas.pause));
            }
            Block::Tool(call) => {
                let part = signed(function_call(plan, call), &mut unsigned);
                frames.push(event(&chunk(plan, &[part], None)).after(call.pause));
            }
            Block::Garbage => frames.push(Frame::new("data: {\"candidates\": [{\"con\n\n")),
        }
    }
    match &plan.end {
        End::Stop(stop) => {
            let part = signed(json!({"text": ""}), &mut unsigned);
            frames.push(event(&chunk(plan, &[part], Some(stop))).reporting_usage());
        }
        End::Fail(error) => frames.push(Frame::new(failure(error).to_string()).after(APART)),
        End::Hang | End::Cut => {}
    }
    frames
}

/// A response that is not streamed.
pub(super) fn whole(plan: &ResponsePlan) -> Value {
    let mut unsigned = false;
    let mut parts = Vec::new();
    for block in &plan.blocks {
        match block {
            Block::Text(deltas) => {
                parts.push(signed(json!({"text": deltas.text()}), &mut unsigned));
            }
            Block::Thinking(deltas) => {
                unsigned = true;
                parts.push(json!({"text": deltas.text(), "thought": true}));
            }
            Block::Tool(call) => parts.push(signed(function_call(plan, call), &mut unsigned)),
            Block::Garbage => {}
        }
    }
    let stop = match &plan.end {
        End::Stop(stop) => stop,
        End::Hang | End::Cut | End::Fail(_) => &Stop::End,
    };
    chunk(plan, &parts, Some(stop))
}

/// The body of an error; a stream contains the same.
pub(super) fn failure(failure: &Failure) -> Value {
    let status = failure.kind.as_deref().unwrap_or(match failure.status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        409 => "ABORTED",
        429 => "RESOURCE_EXHAUSTED",
        499 => "CANCELLED",
        501 => "UNIMPLEMENTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        400..=499 => "INVALID_ARGUMENT",
        _ => "INTERNAL",
    });
    let mut error = json!({"code": failure.status, "message": failure.message, "status": status});
    // A quota failure without a delay makes Gemini CLI wait for a minute, so both are sent or none.
    if let Some(seconds) = failure.retry_after.filter(|seconds| *seconds > 0) {
        let period = if seconds < DAILY { "Minute" } else { "Day" };
        let details = json!([
            {
                "@type": "type.googleapis.com/google.rpc.QuotaFailure",
                "violations": [{
                    "quotaMetric":
                        "generativelanguage.googleapis.com/generate_content_free_tier_requests",
                    "quotaId": format!("GenerateRequestsPer{period}PerProjectPerModel-FreeTier"),
                }],
            },
            {
                "@type": "type.googleapis.com/google.rpc.RetryInfo",
                "retryDelay": format!("{seconds}s"),
            },
        ]);
        add(&mut error, "details", details);
    }
    json!({"error": error})
}

/// JavaScript treats U+2028 and U+2029 as line ends, and Google's library reads lines.
fn event(value: &Value) -> Frame {
    let data = value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    Frame::new(format!("data: {data}\n\n"))
}

/// One chunk of a response. The last one has the stop reason and the usage.
fn chunk(plan: &ResponsePlan, parts: &[Value], stop: Option<&Stop>) -> Value {
    let mut candidate = json!({"content": {"role": "model", "parts": parts}, "index": 0});
    let mut chunk = json!({"modelVersion": plan.model, "responseId": plan.id});
    if let Some(stop) = stop {
        add(&mut candidate, "finishReason", finish_reason(stop));
        add(&mut chunk, "usageMetadata", usage(plan));
    }
    add(&mut chunk, "candidates", vec![candidate]);
    chunk
}

fn function_call(plan: &ResponsePlan, call: &ToolCall) -> Value {
    let mut function_call = json!({"name": call.name, "args": call.value()});
    // Models before generation 3 send no call ids.
    if !["gemini-1", "gemini-2"].iter().any(|old| plan.model.starts_with(old)) {
        add(&mut function_call, "id", call.id.as_str());
    }
    json!({"functionCall": function_call})
}

/// Adds the signature to the first part after thinking.
fn signed(mut part: Value, unsigned: &mut bool) -> Value {
    if std::mem::take(unsigned) {
        add(&mut part, "thoughtSignature", SIGNATURE);
    }
    part
}

fn finish_reason(stop: &Stop) -> &str {
    match stop {
        Stop::End | Stop::Tools => "STOP",
        Stop::MaxTokens => "MAX_TOKENS",
        Stop::Refusal => "SAFETY",
        Stop::Other(reason) => reason,
    }
}

/// Thoughts are counted in addition to the output that the script sets.
fn usage(plan: &ResponsePlan) -> Value {
    let used = plan.usage;
    let thoughts = plan.thinking_pieces();
    let prompt = used.input.saturating_add(used.cache_read).saturating_add(used.cache_create);
    let total = prompt.saturating_add(used.output).saturating_add(thoughts);
    let mut counts = json!({
        "promptTokenCount": prompt,
        "candidatesTokenCount": used.output,
        "totalTokenCount": total,
    });
    for (name, count) in
        [("cachedContentTokenCount", used.cache_read), ("thoughtsTokenCount", thoughts)]
    {
        if count > 0 {
            add(&mut counts, name, count);
        }
    }
    counts
}
