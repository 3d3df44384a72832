//! Writes a plan as a Messages response.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use crate::response_plan::{Block, Deltas, End, Failure, ResponsePlan, Stop, ToolCall};
use crate::stream_body::Frame;
use crate::usage::Usage;

/// Thinking needs a signature. Only the real API would check it.
const SIGNATURE: &str = "c2NyaXB0ZWQgdGhpbmtpbmcsIHNpZ25lZCBieSBub2JvZHk=";

pub(super) fn stream(plan: &ResponsePlan) -> Vec<Frame> {
    let mut events = Events { frames: Vec::new(), index: 0 };
    let begun = Usage { output: plan.usage.output.min(1), ..plan.usage };
    let message = message(plan, &json!([]), None, begun);
    events.push(&json!({"type": "message_start", "message": message}));
    events.push(&json!({"type": "ping"}));
    for block in &plan.blocks {
        match block {
            Block::Text(deltas) => events.text(deltas),
            Block::Thinking(deltas) => events.thinking(deltas),
            Block::Tool(call) => events.tool(call),
            Block::Garbage => {
                events
                    .frames
                    .push(Frame::new("event: content_block_delta\ndata: {\"type\": \"con\n\n"));
            }
        }
    }
    match &plan.end {
        End::Stop(stop) => {
            let delta = json!({"stop_reason": stop_reason(stop), "stop_sequence": null});
            let event = json!({
                "type": "message_delta", "delta": delta, "usage": usage(plan.usage),
            });
            events.frames.push(Frame::event(Some("message_delta"), &event).reporting_usage());
            events.push(&json!({"type": "message_stop"}));
        }
        End::Fail(error) => events.push(&failure(error)),
        End::Hang | End::Cut => {}
    }
    events.frames
}

/// A response that is not streamed.
pub(super) fn whole(plan: &ResponsePlan) -> Value {
    let content = plan.blocks.iter().filter_map(|block| match block {
        Block::Text(deltas) => Some(json!({"type": "text", "text": deltas.text()})),
        Block::Thinking(deltas) => Some(json!({
            "type": "thinking", "thinking": deltas.text(), "signature": SIGNATURE,
        })),
        Block::Tool(call) => Some(json!({
            "type": "tool_use", "id": call_id(call), "name": call.name, "input": call.value(),
        })),
        Block::Garbage => None,
    });
    let stop = match &plan.end {
        End::Stop(stop) => stop_reason(stop),
        End::Hang | End::Cut | End::Fail(_) => "end_turn",
    };
    message(plan, &content.collect(), Some(stop), plan.usage)
}

/// The body of an error, and the data of an `error` event.
pub(super) fn failure(failure: &Failure) -> Value {
    let kind = failure.kind.as_deref().unwrap_or(match failure.status {
        400 => "invalid_request_error",
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        405..500 => "invalid_request_error",
        _ => "api_error",
    });
    json!({"type": "error", "error": {"type": kind, "message": failure.message}})
}

pub(super) fn headers(id: &str, failure: Option<&Failure>) -> Vec<(String, String)> {
    let mut headers = vec![("request-id".to_owned(), format!("req_{id}"))];
    let limited = failure.is_some_and(|failure| failure.status == 429);
    let seconds = failure.and_then(|failure| failure.retry_after).unwrap_or(60);
    let reset =
        Timestamp::now().checked_add(Duration::from_secs(seconds)).unwrap_or(Timestamp::MAX);
    for (what, limit) in
        [("requests", 4000), ("input-tokens", 2_000_000), ("output-tokens", 400_000)]
    {
        let remaining = if limited { 0 } else { limit - 1 };
        let name = |word: &str| format!("anthropic-ratelimit-{what}-{word}");
        headers.push((name("limit"), limit.to_string()));
        headers.push((name("remaining"), remaining.to_string()));
        headers.push((name("reset"), format!("{reset:.0}")));
    }
    headers
}

fn message(plan: &ResponsePlan, content: &Value, stop: Option<&str>, used: Usage) -> Value {
    json!({
        "id": format!("msg_{}", plan.id),
        "type": "message",
        "role": "assistant",
        "model": plan.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": null,
        "usage": usage(used),
    })
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": usage.cache_create,
        "cache_read_input_tokens": usage.cache_read,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_create,
            "ephemeral_1h_input_tokens": 0,
        },
        "output_tokens": usage.output,
        "service_tier": "standard",
    })
}

fn stop_reason(stop: &Stop) -> &str {
    match stop {
        Stop::End => "end_turn",
        Stop::Tools => "tool_use",
        Stop::MaxTokens => "max_tokens",
        Stop::Refusal => "refusal",
        Stop::Other(reason) => reason,
    }
}

fn call_id(call: &ToolCall) -> String {
    format!("toolu_{}", call.id)
}

struct Events {
    frames: Vec<Frame>,
    /// The index of the next block.
    index: usize,
}

impl Events {
    /// An event is named after its type.
    fn push(&mut self, event: &Value) {
        let name = event.get("type").and_then(Value::as_str);
        self.frames.push(Frame::event(name, event));
    }

    fn text(&mut self, deltas: &Deltas) {
        self.start(&json!({"type": "text", "text": ""}));
        for piece in &deltas.pieces {
            self.delta(deltas.pause, &json!({"type": "text_delta", "text": piece}));
        }
        if !deltas.open {
            self.stop();
        }
    }

    fn thinking(&mut self, deltas: &Deltas) {
        self.start(&json!({"type": "thinking", "thinking": "", "signature": ""}));
        for piece in &deltas.pieces {
            self.delta(deltas.pause, &json!({"type": "thinking_delta", "thinking": piece}));
        }
        if !deltas.open {
            let signature = json!({"type": "signature_delta", "signature": SIGNATURE});
            self.delta(Duration::ZERO, &signature);
            self.stop();
        }
    }

    fn tool(&mut self, call: &ToolCall) {
        let id = call_id(call);
        self.start(&json!({"type": "tool_use", "id": id, "name": call.name, "input": {}}));
        for piece in std::iter::once(String::new()).chain(call.pieces()) {
            let delta = json!({"type": "input_json_delta", "partial_json": piece});
            self.delta(call.pause, &delta);
        }
        self.stop();
    }

    fn start(&mut self, block: &Value) {
        let index = self.index;
        self.push(&json!({"type": "content_block_start", "index": index, "content_block": block}));
    }

    fn delta(&mut self, pause: Duration, delta: &Value) {
        let event = json!({"type": "content_block_delta", "index": self.index, "delta": delta});
        self.frames.push(Frame::event(Some("content_block_delta"), &event).after(pause));
    }

    fn stop(&mut self) {
        self.push(&json!({"type": "content_block_stop", "index": self.index}));
        self.index += 1;
    }
}
