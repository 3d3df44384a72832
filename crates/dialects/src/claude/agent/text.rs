//! Text as the model writes it: deltas first, then the whole block, which adds only what they lacked.

use agentwire_protocol::event::{TextChunk, ThinkingChunk, UsageReported};
use agentwire_protocol::{MAIN_AGENT, Text, TokenUsage};

use super::turns::{context_used, merged, usage};
use super::{Translator, fail};
use crate::claude::wire::{self, Delta, Message, StreamEvent, StreamLine, Usage};
use crate::json::Value;
use crate::ledger::owned;
use crate::sent_text::SentText;
use crate::tape::{Agent, Out};

/// How many agents may write at once, and how many blocks a message may have; beyond that, the oldest are
/// forgotten.
const LIMIT: usize = 256;

/// The message that each agent is writing.
#[derive(Debug, Default)]
pub(super) struct Streams(Vec<Stream>);

#[derive(Debug)]
struct Stream {
    agent: Agent<'static>,
    message: String,
    model: Option<Text<'static>>,
    usage: TokenUsage,
    blocks: Vec<Block>,
}

#[derive(Debug)]
struct Block {
    index: u64,
    /// `None` if the message has no id.
    id: Option<String>,
    kind: BlockKind,
    sent: SentText,
    closed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Thinking,
}

impl Streams {
    fn of(&mut self, agent: &Agent<'_>) -> &mut Stream {
        let id = agent.id.decode();
        let at = self.0.iter().position(|stream| stream.agent.id == *id);
        let at = at.unwrap_or_else(|| {
            if self.0.len() >= LIMIT {
                self.0.remove(0);
            }
            self.0.push(Stream {
                agent: owned(agent),
                message: String::new(),
                model: None,
                usage: TokenUsage::default(),
                blocks: Vec::new(),
            });
            self.0.len() - 1
        });
        #[expect(clippy::indexing_slicing, reason = "the entry was found or added above")]
        &mut self.0[at]
    }

    pub(super) fn streamed(&self, message: &str) -> bool {
        self.0.iter().any(|stream| stream.message == message)
    }
}

impl Stream {
    fn close(&mut self, out: &mut Out<'_>) {
        for block in self.blocks.drain(..).filter(|block| !block.closed) {
            block.close(&self.agent, Text::fixed(""), None, out);
        }
        self.message.clear();
    }

    fn block(&mut self, index: u64, kind: BlockKind) -> Option<&mut Block> {
        let fits = |block: &&mut Block| block.index == index && block.kind == kind;
        if self.blocks.iter_mut().rfind(fits).is_none_or(|block| block.closed) {
            self.open(index, kind);
        }
        self.blocks.iter_mut().rfind(fits)
    }

    fn open(&mut self, index: u64, kind: BlockKind) {
        let id = Some(&self.message).filter(|message| !message.is_empty());
        let id = id.map(|message| format!("{message}/{index}"));
        if self.blocks.len() >= LIMIT {
            self.blocks.remove(0);
        }
        self.blocks.push(Block { index, id, kind, sent: SentText::default(), closed: false });
    }
}

impl Block {
    fn report_delta(&mut self, agent: &Agent<'_>, content: Text<'_>, out: &mut Out<'_>) {
        self.sent.add(&content.decode());
        let block_id = self.id.as_deref().map(Text::from);
        let chunk = ThinkingChunk { content, is_complete: false, block_id, signature: None };
        report_chunk(self.kind, agent, chunk, out);
    }

    fn close(
        &self,
        agent: &Agent<'_>,
        content: Text<'_>,
        signature: Option<Text<'_>>,
        out: &mut Out<'_>,
    ) {
        let block_id = self.id.as_deref().map(Text::from);
        let chunk = ThinkingChunk { content, is_complete: true, block_id, signature };
        report_chunk(self.kind, agent, chunk, out);
    }
}

/// Text is reported like thoughts, but without a signature.
fn report_chunk(kind: BlockKind, agent: &Agent<'_>, chunk: ThinkingChunk<'_>, out: &mut Out<'_>) {
    match kind {
        BlockKind::Text => {
            let ThinkingChunk { content, is_complete, block_id, .. } = chunk;
            out.emit_as(agent, TextChunk { content, is_complete, block_id });
        }
        BlockKind::Thinking => out.emit_as(agent, chunk),
    }
}

impl Translator {
    pub(super) fn stream(&mut self, line: StreamLine<'_>, out: &mut Out<'_>) {
        let Some(event) = line.event else { return };
        let agent = self.speaker(line.parent_tool_use_id.as_deref(), out);
        match event.kind.as_deref() {
            Some("content_block_delta") => self.delta(&agent, &event, out),
            Some("message_start") => {
                self.ensure_turn_of(&agent, out);
                let message = event.message.and_then(Value::to::<Message<'_>>).unwrap_or_default();
                let stream = self.streams.of(&agent);
                stream.close(out);
                stream.message.push_str(&message.id.unwrap_or_default());
                stream.model = message.model.map(Text::into_owned);
                stream.usage = usage(&message.usage.unwrap_or_default());
                out.keep("stream_event/message_start");
            }
            Some("content_block_start") => self.block_start(&agent, &event, out),
            Some("content_block_stop") => out.keep("stream_event/content_block_stop"),
            Some("message_delta") => {
                let stream = self.streams.of(&agent);
                let counted = event.usage.and_then(Value::to::<Usage<'_>>);
                stream.usage = merged(&stream.usage, &counted.unwrap_or_default());
                out.emit_as(
                    &agent,
                    UsageReported {
                        usage: Some(stream.usage),
                        model: stream.model.clone(),
                        context_used: Some(context_used(&stream.usage)),
                        message_id: Some(Text::from(stream.message.as_str()))
                            .filter(|id| !id.is_empty()),
                        ..UsageReported::default()
                    },
                );
            }
            Some("message_stop") => out.keep("stream_event/message_stop"),
            Some("error") => {
                event.error.and_then(Value::to).into_iter().for_each(|error| fail(error, out));
            }
            _ => {}
        }
    }

    /// A block that starts again is a new one: the model API was called again.
    fn block_start(&mut self, agent: &Agent<'_>, event: &StreamEvent<'_>, out: &mut Out<'_>) {
        let block = event.content_block.and_then(Value::to::<wire::Block<'_>>).unwrap_or_default();
        let (kind, text) = match block.kind.as_deref() {
            Some("text") => (BlockKind::Text, block.text),
            Some("thinking") => (BlockKind::Thinking, block.thinking),
            _ => return out.keep("stream_event/content_block_start"),
        };
        let index = event.index.unwrap_or(0);
        let stream = self.streams.of(agent);
        for block in stream.blocks.iter_mut().filter(|block| block.index == index) {
            if !std::mem::replace(&mut block.closed, true) {
                block.close(agent, Text::fixed(""), None, out);
            }
        }
        stream.open(index, kind);
        match text.filter(|text| !text.is_empty()) {
            Some(text) => self.report_delta(agent, index, kind, text, out),
            None => out.keep("stream_event/content_block_start"),
        }
    }

    fn delta(&mut self, agent: &Agent<'_>, event: &StreamEvent<'_>, out: &mut Out<'_>) {
        let delta = event.delta.and_then(Value::to::<Delta<'_>>).unwrap_or_default();
        let (kind, text) = match (delta.kind.as_deref(), delta.text, delta.thinking) {
            (Some("text_delta"), Some(text), _) => (BlockKind::Text, text),
            (Some("thinking_delta"), _, Some(text)) => (BlockKind::Thinking, text),
            // Input arrives whole with the tool call, the signature with the whole block.
            _ => return out.keep("stream_event/content_block_delta"),
        };
        self.ensure_turn_of(agent, out);
        self.report_delta(agent, event.index.unwrap_or(0), kind, text, out);
    }

    fn report_delta(
        &mut self,
        agent: &Agent<'_>,
        index: u64,
        kind: BlockKind,
        text: Text<'_>,
        out: &mut Out<'_>,
    ) {
        if let Some(block) = self.streams.of(agent).block(index, kind) {
            block.report_delta(agent, text, out);
        }
    }

    /// Reports what the deltas of a whole block lacked.
    pub(super) fn report_complete_block(
        &mut self,
        agent: &Agent<'_>,
        message: Option<&str>,
        kind: BlockKind,
        text: Text<'_>,
        signature: Option<Text<'_>>,
        out: &mut Out<'_>,
    ) {
        let stream = self.streams.of(agent);
        let same = message.is_none_or(|id| stream.message.is_empty() || stream.message == id);
        let mut blocks = stream.blocks.iter_mut();
        let open = blocks.find(|block| same && block.kind == kind && !block.closed);
        if let Some(block) = open {
            block.closed = true;
            if let Some(rest) = block.sent.rest_of(&text.decode()) {
                return block.close(agent, Text::from(rest), signature, out);
            }
            block.close(agent, Text::fixed(""), None, out);
        }
        let chunk = ThinkingChunk { content: text, is_complete: true, block_id: None, signature };
        report_chunk(kind, agent, chunk, out);
    }

    /// The agent stops writing for now.
    pub(super) fn close_stream(&mut self, agent: &str, out: &mut Out<'_>) {
        let mut streams = self.streams.0.iter_mut();
        if let Some(stream) = streams.find(|stream| stream.agent.id == *agent) {
            stream.close(out);
        }
        if agent != MAIN_AGENT {
            self.streams.0.retain(|stream| stream.agent.id != *agent);
        }
    }

    pub(super) fn close_streams(&mut self, out: &mut Out<'_>) {
        self.streams.0.drain(..).for_each(|mut stream| stream.close(out));
    }
}
