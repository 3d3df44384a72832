//! Renders what agents write: messages of the model, block by block.

use std::collections::BTreeMap;

use agentwire_protocol::{Json, MAIN_AGENT, Text};

use super::frames::{Assistant, Block, Delta, Message, ModelEvent, Stop, StreamEvent, Usage};
use super::output::MessageWriter;

/// How many subagents may be in mid-message; beyond that, one is cut short.
const SPEAKER_LIMIT: usize = 256;

/// Longest block, in bytes; the rest of a longer one becomes further blocks.
const BLOCK_LIMIT: usize = 8 << 20;

/// How much of an answer is repeated in the `result`, in bytes.
const ANSWER_LIMIT: usize = 8 << 20;

#[derive(Debug, Default)]
pub(super) struct Speakers {
    pub(super) main: Speaker,
    subagents: BTreeMap<String, Speaker>,
}

impl Speakers {
    pub(super) fn of(&mut self, agent: &str, writer: &mut MessageWriter<'_>) -> &mut Speaker {
        if agent == MAIN_AGENT {
            return &mut self.main;
        }
        if self.subagents.len() >= SPEAKER_LIMIT
            && !self.subagents.contains_key(agent)
            && let Some((_, mut speaker)) = self.subagents.pop_first()
        {
            speaker.end_message(writer);
        }
        self.subagents
            .entry(agent.to_owned())
            .or_insert_with(|| Speaker { spawned_by: Some(agent.to_owned()), ..Speaker::default() })
    }

    /// The subagent finished.
    pub(super) fn leave(&mut self, agent: &str, writer: &mut MessageWriter<'_>) {
        if let Some(mut speaker) = self.subagents.remove(agent) {
            speaker.end_message(writer);
        }
    }
}

/// The tool call that spawned an agent, by the agent's id.
pub(super) fn spawned_by(agent: &str) -> Option<&str> {
    (agent != MAIN_AGENT).then_some(agent)
}

#[derive(Debug, Default)]
pub(super) struct Speaker {
    /// The tool call that spawned it.
    spawned_by: Option<String>,
    message: Option<OpenMessage>,
    /// How many messages it has started.
    pub(super) messages: u64,
    /// Its answer so far: the text of its last message that has any. A block with another id is another
    /// answer.
    pub(super) answer: String,
    answer_id: Option<String>,
    /// The answer belongs to an earlier message.
    is_answered: bool,
    /// Its message was ended by something that is not from its model: the next piece continues it.
    pub(super) is_continued: bool,
}

/// A message of the model that is not complete.
#[derive(Debug)]
struct OpenMessage {
    id: String,
    model: String,
    /// How many blocks it has had, without the open one.
    blocks: u64,
    block: Option<OpenBlock>,
    stop_reason: &'static str,
    usage: Usage,
}

#[derive(Debug)]
struct OpenBlock {
    kind: BlockKind,
    id: Option<String>,
    text: String,
    signature: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Thinking,
}

pub(super) struct TextPiece<'p> {
    pub(super) kind: BlockKind,
    pub(super) content: &'p Text<'p>,
    pub(super) is_complete: bool,
    pub(super) block_id: Option<&'p Text<'p>>,
    pub(super) signature: Option<&'p Text<'p>>,
}

impl Speaker {
    /// Everything it said before belongs to an earlier turn.
    pub(super) fn start_turn(&mut self) {
        self.messages = 0;
        self.is_continued = false;
        self.answer_id = None;
        self.answer.clear();
    }

    /// Whether the model is still writing its message, as far as is known.
    pub(super) fn is_in_message(&self) -> bool {
        self.message.is_some()
    }

    /// Adds a piece of text or reasoning. A message has one open block at a time, as Claude's do: a piece
    /// of another block closes the open one.
    pub(super) fn piece(
        &mut self,
        piece: &TextPiece<'_>,
        model: &str,
        writer: &mut MessageWriter<'_>,
    ) {
        let id = piece.block_id.map(|id| id.decode());
        let continues = self
            .open_block()
            .is_some_and(|block| block.kind == piece.kind && block.id.as_deref() == id.as_deref());
        let signature = piece.signature.filter(|signature| !signature.is_empty());
        if !continues {
            if piece.content.is_empty() && signature.is_none() {
                return;
            }
            self.start_block(piece.kind, id.map(String::from), model, writer);
        }
        self.add(piece.kind, piece.content, signature, writer);
        if self.open_block().is_some_and(|block| block.text.len() >= BLOCK_LIMIT) {
            self.end_block(writer);
        }
        if piece.is_complete {
            self.end_block(writer);
        }
    }

    pub(super) fn tool_use(
        &mut self,
        (id, name, input): (&str, &str, &Json<'_>),
        model: &str,
        writer: &mut MessageWriter<'_>,
    ) {
        self.end_block(writer);
        self.start_message(model, writer);
        let spawned_by = self.spawned_by.as_deref();
        let Some(open) = &mut self.message else { return };
        open.stop_reason = "tool_use";
        let index = open.blocks;
        let nothing = Json::EMPTY;
        stream(writer, spawned_by, || ModelEvent::ContentBlockStart {
            index,
            content_block: Block::ToolUse { id, name, input: &nothing },
        });
        stream(writer, spawned_by, || ModelEvent::ContentBlockDelta {
            index,
            delta: Delta::InputJson { partial_json: input.get() },
        });
        open.say(Block::ToolUse { id, name, input }, spawned_by, writer);
    }

    /// What the open message has used, as known now.
    pub(super) fn used(&mut self, usage: Usage) {
        if let Some(open) = &mut self.message {
            open.usage = usage;
        }
    }

    /// The model finished its message: something else follows, or nothing more.
    pub(super) fn end_message(&mut self, writer: &mut MessageWriter<'_>) {
        self.end_block(writer);
        let spawned_by = self.spawned_by.as_deref();
        let Some(open) = self.message.take() else { return };
        stream(writer, spawned_by, || ModelEvent::MessageDelta {
            delta: Stop { stop_reason: open.stop_reason, stop_sequence: None },
            usage: open.usage,
        });
        stream(writer, spawned_by, || ModelEvent::MessageStop {});
    }

    fn open_block(&self) -> Option<&OpenBlock> {
        self.message.as_ref()?.block.as_ref()
    }

    fn start_message(&mut self, model: &str, writer: &mut MessageWriter<'_>) {
        if self.message.is_some() {
            return;
        }
        if !std::mem::take(&mut self.is_continued) {
            self.messages += 1;
            self.is_answered = true;
        }
        let open = self.message.insert(OpenMessage {
            id: writer.id("msg_"),
            model: model.to_owned(),
            blocks: 0,
            block: None,
            stop_reason: "end_turn",
            usage: Usage::default(),
        });
        stream(writer, self.spawned_by.as_deref(), || ModelEvent::MessageStart {
            message: Message::new(&open.id, &open.model, &[]),
        });
    }

    fn start_block(
        &mut self,
        kind: BlockKind,
        id: Option<String>,
        model: &str,
        writer: &mut MessageWriter<'_>,
    ) {
        self.end_block(writer);
        self.start_message(model, writer);
        let Some(open) = &mut self.message else { return };
        if kind == BlockKind::Text
            && (std::mem::take(&mut self.is_answered) || self.answer_id != id)
        {
            self.answer.clear();
            self.answer_id.clone_from(&id);
        }
        open.block = Some(OpenBlock { kind, id, text: String::new(), signature: String::new() });
        let index = open.blocks;
        stream(writer, self.spawned_by.as_deref(), || ModelEvent::ContentBlockStart {
            index,
            content_block: match kind {
                BlockKind::Text => Block::Text { text: "" },
                BlockKind::Thinking => Block::Thinking { thinking: "", signature: "" },
            },
        });
    }

    fn add(
        &mut self,
        kind: BlockKind,
        content: &Text<'_>,
        signature: Option<&Text<'_>>,
        writer: &mut MessageWriter<'_>,
    ) {
        let spawned_by = self.spawned_by.as_deref();
        let Some(open) = &mut self.message else { return };
        let index = open.blocks;
        let Some(block) = &mut open.block else { return };
        if !content.is_empty() {
            block.text.push_str(&content.decode());
            stream(writer, spawned_by, || ModelEvent::ContentBlockDelta {
                index,
                delta: match kind {
                    BlockKind::Text => Delta::Text { text: content },
                    BlockKind::Thinking => Delta::Thinking { thinking: content },
                },
            });
        }
        if let Some(signature) = signature {
            block.signature = signature.to_string();
            stream(writer, spawned_by, || ModelEvent::ContentBlockDelta {
                index,
                delta: Delta::Signature { signature },
            });
        }
    }

    fn end_block(&mut self, writer: &mut MessageWriter<'_>) {
        let Some(open) = &mut self.message else { return };
        let Some(block) = open.block.take() else { return };
        let spawned_by = self.spawned_by.as_deref();
        open.stop_reason = "end_turn";
        match block.kind {
            BlockKind::Text => {
                open.say(Block::Text { text: &block.text }, spawned_by, writer);
                let room = ANSWER_LIMIT.saturating_sub(self.answer.len());
                let end = block.text.floor_char_boundary(room);
                self.answer.push_str(block.text.get(..end).unwrap_or_default());
            }
            BlockKind::Thinking => {
                let (thinking, signature) = (&*block.text, &*block.signature);
                open.say(Block::Thinking { thinking, signature }, spawned_by, writer);
            }
        }
    }
}

impl OpenMessage {
    /// Writes a whole block, then its end.
    fn say(&mut self, block: Block<'_>, spawned_by: Option<&str>, writer: &mut MessageWriter<'_>) {
        let uuid = writer.uuid();
        let session_id = writer.session_id;
        writer.frame(&Assistant {
            message: Message::new(&self.id, &self.model, &[block]),
            parent_tool_use_id: spawned_by,
            session_id,
            uuid,
            error: None,
            is_api_error_message: false,
        });
        let index = self.blocks;
        stream(writer, spawned_by, || ModelEvent::ContentBlockStop { index });
        self.blocks += 1;
    }
}

/// Writes a `stream_event`, if the client wants them. Claude streams nothing of subagents.
fn stream<'e>(
    writer: &mut MessageWriter<'_>,
    spawned_by: Option<&'e str>,
    event: impl FnOnce() -> ModelEvent<'e>,
) {
    if !writer.partial || spawned_by.is_some() {
        return;
    }
    let uuid = writer.piece_uuid();
    let session_id = writer.session_id;
    writer.frame(&StreamEvent { event: event(), session_id, parent_tool_use_id: spawned_by, uuid });
}
