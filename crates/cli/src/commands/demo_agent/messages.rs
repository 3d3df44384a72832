//! The agent's messages: blocks, first as deltas, then complete.

use std::io;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use uuid::fmt::Hyphenated;

use super::agent::{Agent, Halt};
use super::json::JsonFields as _;
use super::output::Frame;
use super::usage::{Usage, tokens};

/// How long a word takes if a person watches.
const WORD: Duration = Duration::from_millis(22);

/// Maximum size of a `/repeat` block, so that no line becomes too long to read.
const BLOCK: usize = 1 << 20;

/// How many deltas are written between two looks at the input.
const GLANCE: u64 = 256;

/// The open message of the model.
pub(super) struct Message {
    id: String,
    blocks: u64,
    open: Option<Block>,
    usage: Usage,
}

struct Block {
    kind: BlockKind,
    text: String,
    frame: Frame,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Thinking,
}

impl BlockKind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Thinking => "thinking",
        }
    }

    fn block(self, text: &str, signature: &str) -> Value {
        match self {
            Self::Text => json!({ "type": "text", "text": text }),
            Self::Thinking => {
                json!({ "type": "thinking", "thinking": text, "signature": signature })
            }
        }
    }
}

/// The demo's thinking has no signature.
const SIGNATURE: &str = "ZGVtbw==";

impl Agent {
    /// Writes text or thinking.
    pub(super) fn speak(&mut self, kind: BlockKind, text: &str) -> Result<(), Halt> {
        if text.is_empty() {
            return Ok(());
        }
        self.begin_block(kind)?;
        if self.streams() {
            let paced = self.turn.as_ref().is_some_and(|turn| turn.paced);
            for word in words(text) {
                self.piece(word)?;
                if paced {
                    self.pause(WORD)?;
                }
            }
            self.look()?;
        } else {
            self.add(text);
        }
        self.end_block()
    }

    /// Writes a block without deltas.
    pub(super) fn pad(&mut self, bytes: usize) -> Result<(), Halt> {
        if bytes == 0 {
            return Ok(());
        }
        self.begin_block(BlockKind::Text)?;
        self.add(&"B".repeat(bytes));
        self.end_block()
    }

    /// Writes the same piece `count` times.
    pub(super) fn repeat(&mut self, count: u64, piece: &str) -> Result<(), Halt> {
        if count == 0 || piece.is_empty() {
            return Ok(());
        }
        let streams = self.streams();
        self.begin_block(BlockKind::Text)?;
        let mut length = 0;
        for number in 0..count {
            if length > 0 && length + piece.len() > BLOCK {
                self.end_block()?;
                self.begin_block(BlockKind::Text)?;
                length = 0;
            }
            length += piece.len();
            if streams {
                self.piece(piece)?;
            } else {
                self.add(piece);
            }
            if number % GLANCE == GLANCE - 1 {
                self.look()?;
            }
        }
        self.end_block()
    }

    /// Subagents' text is forwarded on request only.
    fn is_heard(&self) -> bool {
        self.flags.forward_subagent_text || self.active.subagent().is_none()
    }

    /// Subagents have no deltas.
    fn streams(&self) -> bool {
        self.flags.partial_messages && self.active.subagent().is_none()
    }

    fn begin_message(&mut self) -> Result<(), Halt> {
        if self.active.current().message.is_some() {
            return Ok(());
        }
        self.may_call()?;
        let usage = self.message_usage();
        let id = self.session.ids.short("msg_demo_");
        if self.streams() {
            self.emit(json!({ "type": "system", "subtype": "status", "status": "requesting" }))?;
            let message = self.message(&id, &json!([]), usage);
            self.stream_event(&id, &json!({ "type": "message_start", "message": message }))?;
        }
        let agent = self.active.current();
        agent.message = Some(Message { id, blocks: 0, open: None, usage });
        agent.owes_call = false;
        Ok(())
    }

    /// Usage at the start of a message: the output is not known yet.
    fn message_usage(&mut self) -> Usage {
        let counted =
            Usage { input: tokens(self.active.current().context).max(1), ..Usage::default() };
        match self.turn.as_mut().and_then(|turn| turn.scripted.as_mut()) {
            // The first message carries all of it, the others nothing.
            Some(scripted) => std::mem::take(scripted),
            None => counted,
        }
    }

    fn message(&self, id: &str, content: &Value, usage: Usage) -> Value {
        let at_start =
            Usage { output: usage.output.min(1).max(u64::from(usage.input > 0)), ..usage };
        json!({
            "id": id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            "stop_reason": null,
            "stop_sequence": null,
            "usage": at_start.to_json(),
        })
    }

    fn stream_event(&mut self, message: &str, event: &Value) -> Result<(), Halt> {
        self.emit(json!({
            "type": "stream_event",
            "event": event,
            "parent_tool_use_id": null,
            "api_message_id": message,
        }))
    }

    fn begin_block(&mut self, kind: BlockKind) -> Result<(), Halt> {
        self.begin_message()?;
        let Some((id, index, _)) = self.open_message() else { return Ok(()) };
        if self.streams() {
            let block = kind.block("", "");
            self.stream_event(
                &id,
                &json!({ "type": "content_block_start", "index": index, "content_block": block }),
            )?;
        }
        let name = kind.name();
        let (session, message) = (json!(self.session.id), json!(id));
        let frame = Frame {
            head: format!(
                "{{\"type\":\"stream_event\",\"event\":{{\"type\":\"content_block_delta\",\
                 \"index\":{index},\"delta\":{{\"type\":\"{name}_delta\",\"{name}\":"
            ),
            middle: format!(
                "}}}},\"session_id\":{session},\"parent_tool_use_id\":null,\
                 \"api_message_id\":{message},\"uuid\":\""
            ),
        };
        if let Some(message) = &mut self.active.current().message {
            message.open = Some(Block { kind, text: String::new(), frame });
        }
        Ok(())
    }

    /// The open message: its id, how many blocks it has, and its usage.
    fn open_message(&mut self) -> Option<(String, u64, Usage)> {
        let message = self.active.current().message.as_ref()?;
        Some((message.id.clone(), message.blocks, message.usage))
    }

    fn add(&mut self, text: &str) {
        if let Some(block) = self.open_block() {
            block.text.push_str(text);
        }
    }

    fn open_block(&mut self) -> Option<&mut Block> {
        self.active.current().message.as_mut()?.open.as_mut()
    }

    fn piece(&mut self, text: &str) -> io::Result<()> {
        let id = self.session.ids.uuid();
        let message = self.active.current().message.as_mut();
        let Some(block) = message.and_then(|message| message.open.as_mut()) else { return Ok(()) };
        block.text.push_str(text);
        let mut buffer = [0; Hyphenated::LENGTH];
        self.out.framed(&block.frame, text, id.hyphenated().encode_lower(&mut buffer))
    }

    fn end_block(&mut self) -> Result<(), Halt> {
        let agent = self.active.current();
        let Some(message) = &mut agent.message else { return Ok(()) };
        let Some(block) = message.open.take() else { return Ok(()) };
        let (id, index, usage) = (message.id.clone(), message.blocks, message.usage);
        message.blocks += 1;
        agent.context += block.text.len();
        let content = block.kind.block(&block.text, SIGNATURE);
        self.count_output(block.text.len());
        if self.streams() && block.kind == BlockKind::Thinking {
            let delta = json!({ "type": "signature_delta", "signature": SIGNATURE });
            let event = json!({ "type": "content_block_delta", "index": index, "delta": delta });
            self.stream_event(&id, &event)?;
        }
        if self.is_heard() {
            let message = self.message(&id, &json!([content]), usage);
            self.emit_said(json!({ "type": "assistant", "message": message }))?;
        }
        if self.streams() {
            self.stream_event(&id, &json!({ "type": "content_block_stop", "index": index }))?;
        }
        if block.kind == BlockKind::Text {
            self.active.current().last_text = block.text;
        }
        Ok(())
    }

    fn count_output(&mut self, bytes: usize) {
        let scripted = self.turn.as_ref().is_some_and(|turn| turn.scripted.is_some());
        if let Some(message) = self.active.current().message.as_mut().filter(|_| !scripted) {
            message.usage.output += tokens(bytes);
        }
    }

    /// Calls a tool; returns the id of the call.
    pub(super) fn use_tool(&mut self, name: &str, input: &Value) -> Result<String, Halt> {
        self.begin_message()?;
        let id = self.session.ids.short("toolu_demo_");
        let Some((message_id, index, usage)) = self.open_message() else { return Ok(id) };
        let streams = self.streams();
        if streams {
            let block = json!({ "type": "tool_use", "id": id, "name": name, "input": {} });
            self.stream_event(
                &message_id,
                &json!({ "type": "content_block_start", "index": index, "content_block": block }),
            )?;
            let delta = json!({ "type": "input_json_delta", "partial_json": input.to_string() });
            self.stream_event(
                &message_id,
                &json!({ "type": "content_block_delta", "index": index, "delta": delta }),
            )?;
        }
        let block = json!({ "type": "tool_use", "id": id, "name": name, "input": input });
        let message = self.message(&message_id, &json!([block]), usage);
        self.emit_said(json!({ "type": "assistant", "message": message }))?;
        if streams {
            self.stream_event(
                &message_id,
                &json!({ "type": "content_block_stop", "index": index }),
            )?;
        }
        self.count_output(input.to_string().len());
        self.active.current().tools += 1;
        self.end_message("tool_use")?;
        Ok(id)
    }

    /// Ends the message.
    pub(super) fn end_message(&mut self, stop_reason: &str) -> Result<(), Halt> {
        let Some(message) = self.active.current().message.take() else { return Ok(()) };
        if self.streams() {
            self.stream_end(&message, Some(stop_reason))?;
        }
        let agent = self.active.current();
        agent.calls += 1;
        agent.spent.add(message.usage);
        self.spend(message.usage, stop_reason)
    }

    /// The message was cut off: its last block keeps what was written.
    pub(super) fn cut_block(&mut self) -> Result<(), Halt> {
        let Some(block) = self.open_block() else { return Ok(()) };
        let (kind, text) = (block.kind, std::mem::take(&mut block.text));
        let open = self.open_message().filter(|_| !text.is_empty());
        let Some((id, _, usage)) = open else { return Ok(()) };
        let content = kind.block(&text, SIGNATURE);
        let message = self.message(&id, &json!([content]), usage);
        self.emit_said(json!({ "type": "assistant", "message": message, "aborted": true }))?;
        if kind == BlockKind::Text {
            self.active.current().last_text = text;
        }
        Ok(())
    }

    /// The message was cut off here.
    pub(super) fn cut_message(&mut self) -> Result<(), Halt> {
        let Some(message) = self.active.current().message.take() else { return Ok(()) };
        if !self.streams() {
            return Ok(());
        }
        if message.open.is_some() {
            let event = json!({ "type": "content_block_stop", "index": message.blocks });
            self.stream_event(&message.id, &event)?;
        }
        self.stream_end(&message, None)
    }

    fn stream_end(&mut self, message: &Message, stop_reason: Option<&str>) -> Result<(), Halt> {
        self.stream_event(
            &message.id,
            &json!({
                "type": "message_delta",
                "delta": { "stop_reason": stop_reason, "stop_sequence": null },
                "usage": { "output_tokens": message.usage.output },
            }),
        )?;
        self.stream_event(&message.id, &json!({ "type": "message_stop" }))
    }

    /// Writes a line of the conversation for the current agent.
    pub(super) fn emit_said(&mut self, mut line: Value) -> Result<(), Halt> {
        line.set("timestamp", format!("{:.3}", Timestamp::now()));
        line.set("parent_tool_use_id", Value::Null);
        if let Some(spawned) = self.active.subagent() {
            line.set("parent_tool_use_id", spawned.tool_use_id.as_str());
            line.set("agent_id", spawned.agent_id.as_str());
            line.set("subagent_type", spawned.kind.as_str());
            line.set("task_description", spawned.description.as_str());
        } else if line.at("type") == "assistant" {
            self.mark_first(&mut line);
        }
        self.emit(line)
    }
}

/// Splits text into words with their trailing spaces.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split_inclusive([' ', '\n'])
}
