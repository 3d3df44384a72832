//! Writes a plan as the events of a streamed response.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::write;
use crate::json::with;
use crate::response_plan::{Block, Deltas, End, ResponsePlan, Stop, ToolCall, pieces};
use crate::stream_body::Frame;

pub(super) fn stream(plan: &ResponsePlan) -> Vec<Frame> {
    let mut events = Events::new(plan);
    for (index, block) in plan.blocks.iter().enumerate() {
        let Some(item) = write::item(plan, index, block) else {
            events.garbage();
            continue;
        };
        match block {
            Block::Text(deltas) => events.text(deltas, item),
            Block::Thinking(deltas) => events.thinking(deltas, item),
            Block::Tool(call) => events.tool(call, item),
            Block::Garbage => {}
        }
    }
    match &plan.end {
        End::Stop(stop) => events.end(stop),
        End::Fail(failure) => {
            let response = with(events.response("failed"), "error", write::failed(failure));
            events.push("response.failed", json!({"response": response}));
        }
        End::Hang | End::Cut => {}
    }
    events.frames
}

/// The events that answer a request for compaction with this summary.
pub(super) fn compaction(model: &str, summary: &str) -> Vec<Frame> {
    let plan = ResponsePlan::empty(&format!("{:x}", Timestamp::now().as_nanosecond()), model);
    let mut events = Events::new(&plan);
    let item = write::compaction(&plan.id, summary);
    events.add(&item);
    events.done(item);
    events.end(&Stop::End);
    events.frames
}

struct Events<'plan> {
    plan: &'plan ResponsePlan,
    frames: Vec<Frame>,
    /// The number of the next event.
    number: u64,
    /// The completed items; an open item comes after them.
    output: Vec<Value>,
}

impl<'plan> Events<'plan> {
    fn new(plan: &'plan ResponsePlan) -> Self {
        let mut events = Self { plan, frames: Vec::new(), number: 0, output: Vec::new() };
        for kind in ["response.created", "response.in_progress"] {
            let response = events.response("in_progress");
            events.push(kind, json!({"response": response}));
        }
        events
    }

    fn response(&self, status: &str) -> Value {
        write::response(self.plan, status, &self.output)
    }

    fn text(&mut self, deltas: &Deltas, item: Value) {
        let begun = with(item.clone(), "status", "in_progress");
        self.add(&with(begun, "content", json!([])));
        let at = self.position(&item, json!({"content_index": 0}));
        let at = || at.clone();
        self.push("response.content_part.added", with(at(), "part", write::text_part("")));
        for piece in &deltas.pieces {
            let delta = with(with(at(), "delta", piece.as_str()), "logprobs", json!([]));
            self.push_after(deltas.pause, "response.output_text.delta", delta);
        }
        if deltas.open {
            return;
        }
        let text = deltas.text();
        let done = with(with(at(), "text", text.as_str()), "logprobs", json!([]));
        self.push("response.output_text.done", done);
        self.push("response.content_part.done", with(at(), "part", write::text_part(&text)));
        self.done(item);
    }

    fn thinking(&mut self, deltas: &Deltas, item: Value) {
        self.add(&with(item.clone(), "summary", json!([])));
        let at = self.position(&item, json!({"summary_index": 0}));
        let at = || at.clone();
        let kind = |word: &str| format!("response.reasoning_summary_{word}");
        self.push(&kind("part.added"), with(at(), "part", write::summary_part("")));
        for piece in &deltas.pieces {
            self.push_after(deltas.pause, &kind("text.delta"), with(at(), "delta", piece.as_str()));
        }
        if deltas.open {
            return;
        }
        let text = deltas.text();
        self.push(&kind("text.done"), with(at(), "text", text.as_str()));
        self.push(&kind("part.done"), with(at(), "part", write::summary_part(&text)));
        self.done(item);
    }

    fn tool(&mut self, call: &ToolCall, item: Value) {
        let begun = with(item.clone(), "status", "in_progress");
        let at = self.position(&item, json!({}));
        let kind = item.get("type").and_then(Value::as_str).unwrap_or_default().to_owned();
        if let Some((field, input)) = write::input(call) {
            self.add(&with(begun, field, ""));
            for piece in pieces(&input) {
                let delta = with(at.clone(), "delta", piece);
                self.push_after(call.pause, &format!("response.{kind}_{field}.delta"), delta);
            }
            self.push(&format!("response.{kind}_{field}.done"), with(at, field, input));
        } else {
            self.add(&begun);
            self.push(&format!("response.{kind}.in_progress"), at.clone());
            self.push(&format!("response.{kind}.completed"), at);
        }
        self.done(item);
    }

    fn garbage(&mut self) {
        let broken = "event: response.output_text.delta\ndata: {\"type\": \"resp\n\n";
        self.frames.push(Frame::new(broken));
    }

    fn add(&mut self, item: &Value) {
        let index = self.output.len();
        self.push("response.output_item.added", json!({"output_index": index, "item": item}));
    }

    fn done(&mut self, item: Value) {
        let index = self.output.len();
        self.push("response.output_item.done", json!({"output_index": index, "item": item}));
        self.output.push(item);
    }

    fn end(&mut self, stop: &Stop) {
        let reason = write::incomplete(stop);
        let response = write::over(self.plan, reason, &self.output);
        let kind = if reason.is_some() { "response.incomplete" } else { "response.completed" };
        self.push(kind, json!({"response": response}));
        if let Some(last) = self.frames.pop() {
            self.frames.push(last.reporting_usage());
        }
    }

    /// The position of the open item; `part` adds the position inside it.
    fn position(&self, item: &Value, part: Value) -> Value {
        let position = with(part, "item_id", item.get("id").cloned());
        with(position, "output_index", self.output.len())
    }

    fn push(&mut self, kind: &str, event: Value) {
        self.push_after(Duration::ZERO, kind, event);
    }

    fn push_after(&mut self, pause: Duration, kind: &str, event: Value) {
        let event = with(with(event, "type", kind), "sequence_number", self.number);
        self.number += 1;
        self.frames.push(Frame::event(Some(kind), &event).after(pause));
    }
}
