//! Numbers events and gathers them until the log accepts them.
//!
//! Chunks of one text that gather together become one event, which carries the lines of all of them. Under
//! load, events grow larger, not more numerous.

mod buffers;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use agentwire_dialects::tape::{Draft, Stamp};
use agentwire_protocol::event::{TextChunk, ThinkingChunk};
use agentwire_protocol::json::write_value;
use agentwire_protocol::{Event, EventKind, Native, SessionId, Text};

use self::buffers::Buffers;
use crate::clock;
use crate::store::Batch;

/// A gathered text chunk grows no further than this.
const DELTA_LIMIT: usize = 64 << 10;

/// How much memory an idle session keeps for its next events.
const SPARE: usize = 4 << 10;

/// Events that the log does not have yet.
#[derive(Debug)]
pub(crate) struct Journal {
    session: SessionId,
    last: u64,
    lines: Vec<u8>,
    buffers: Arc<Buffers>,
    count: u64,
    timestamp: String,
    delta: Option<Delta>,
    /// Memory for the next [`Delta`].
    spare: (Vec<u8>, Vec<u8>),
}

/// The gathered chunks of one text. It already has its number.
#[derive(Debug)]
struct Delta {
    timestamp: String,
    is_thinking: bool,
    agent: String,
    parent: Option<String>,
    block: Option<String>,
    /// A JSON string without its closing quote.
    content: Vec<u8>,
    /// The elements of a JSON array.
    native: Vec<u8>,
}

impl Journal {
    /// Continues after the event with number `last`.
    pub(crate) fn new(session: SessionId, last: u64) -> Self {
        Self {
            session,
            last,
            lines: Vec::new(),
            buffers: Arc::default(),
            count: 0,
            timestamp: clock::now(),
            delta: None,
            spare: Default::default(),
        }
    }

    /// Later events get the current time.
    pub(crate) fn tick(&mut self) {
        self.timestamp = clock::now();
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn timestamp(&self) -> &str {
        &self.timestamp
    }

    pub(crate) fn bytes(&self) -> usize {
        let delta = self.delta.as_ref().map_or(0, |delta| delta.content.len() + delta.native.len());
        self.lines.len() + delta
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn write(&mut self, draft: Draft<'_>) {
        let piece = match &draft.kind {
            EventKind::TextChunk(chunk) if !chunk.is_complete => {
                Some((false, &chunk.content, &chunk.block_id))
            }
            EventKind::ThinkingChunk(chunk) if !chunk.is_complete && chunk.signature.is_none() => {
                Some((true, &chunk.content, &chunk.block_id))
            }
            _ => None,
        };
        let Some((is_thinking, content, block)) = piece else {
            self.close_delta();
            self.last += 1;
            self.count += 1;
            return self.stamp(draft);
        };
        let native = draft.native.as_ref();
        match &mut self.delta {
            Some(delta) if delta.takes(is_thinking, &draft, block.as_ref()) => {
                delta.push(content, native);
            }
            _ => {
                self.close_delta();
                self.last += 1;
                self.count += 1;
                let (mut text, lines) = std::mem::take(&mut self.spare);
                text.push(b'"');
                let mut delta = Delta {
                    timestamp: self.timestamp.clone(),
                    is_thinking,
                    agent: draft.agent.id.to_string(),
                    parent: draft.agent.parent.as_ref().map(Text::to_string),
                    block: block.as_ref().map(Text::to_string),
                    content: text,
                    native: lines,
                };
                delta.push(content, native);
                self.delta = Some(delta);
            }
        }
    }

    /// Takes what has gathered, for the log.
    pub(crate) fn take(&mut self) -> Option<Batch> {
        self.close_delta();
        if self.count == 0 {
            return None;
        }
        let count = std::mem::take(&mut self.count);
        let lines = self.buffers.contents(&mut self.lines);
        Some(Batch { first: self.last + 1 - count, count, lines })
    }

    /// The session is idle: what was taken is the last for now.
    pub(crate) fn release(&mut self) {
        self.buffers.release();
        for spare in [&mut self.lines, &mut self.spare.0, &mut self.spare.1] {
            spare.shrink_to(SPARE);
        }
    }

    fn stamp(&mut self, draft: Draft<'_>) {
        let id = format!("{}-{}", self.session, self.last);
        let stamp = Stamp {
            id: &id,
            session_id: self.session.as_str(),
            seq: self.last,
            timestamp: &self.timestamp,
        };
        let lines = &mut self.lines;
        draft.stamp(stamp, |event| write(&event, lines));
    }

    fn close_delta(&mut self) {
        let Some(mut delta) = self.delta.take() else { return };
        delta.content.push(b'"');
        let content = String::from_utf8_lossy(&delta.content);
        let content = Text::quoted(&content);
        let block_id = delta.block.as_deref().map(Text::from);
        let kind: EventKind<'_> = if delta.is_thinking {
            ThinkingChunk { content, is_complete: false, block_id, signature: None }.into()
        } else {
            TextChunk { content, is_complete: false, block_id }.into()
        };
        let event = Event {
            id: format!("{}-{}", self.session, self.last).into(),
            session_id: self.session.as_str().into(),
            seq: self.last,
            timestamp: delta.timestamp.as_str().into(),
            kind,
            agent_id: Text::from(delta.agent.as_str()),
            parent_agent_id: delta.parent.as_deref().map(Text::from),
            native: Default::default(),
        };
        write(&event, &mut self.lines);
        if !delta.native.is_empty() {
            // The line ends in `}\n`; the agent's lines become its last field.
            self.lines.truncate(self.lines.len().saturating_sub(2));
            self.lines.extend_from_slice(b",\"native\":[");
            self.lines.extend_from_slice(&delta.native);
            self.lines.extend_from_slice(b"]}\n");
        }
        if delta.content.capacity().max(delta.native.capacity()) <= 4 * DELTA_LIMIT {
            delta.content.clear();
            delta.native.clear();
            self.spare = (delta.content, delta.native);
        }
    }
}

impl Delta {
    fn takes(&self, is_thinking: bool, draft: &Draft<'_>, block: Option<&Text<'_>>) -> bool {
        let same = |ours: Option<&str>, theirs: Option<&Text<'_>>| match (ours, theirs) {
            (None, None) => true,
            (Some(ours), Some(theirs)) => *theirs == *ours,
            (Some(_), None) | (None, Some(_)) => false,
        };
        self.is_thinking == is_thinking
            && self.content.len() + self.native.len() < DELTA_LIMIT
            && draft.agent.id == *self.agent.as_str()
            && same(self.parent.as_deref(), draft.agent.parent.as_ref())
            && same(self.block.as_deref(), block)
    }

    fn push(&mut self, content: &Text<'_>, native: Option<&Native<'_>>) {
        // Write the text with its quotes, then remove the quotes.
        let start = self.content.len();
        if write_value(content, &mut self.content).is_ok() {
            self.content.remove(start);
            self.content.pop();
        } else {
            self.content.truncate(start);
        }
        if let Some(native) = native {
            let start = self.native.len();
            if start > 0 {
                self.native.push(b',');
            }
            if write_value(native, &mut self.native).is_err() {
                self.native.truncate(start);
            }
        }
    }
}

/// Writing into memory cannot fail, and an event is always valid JSON. If it did fail, the line would still
/// say that there was an event with that number.
fn write(event: &Event<'_>, lines: &mut Vec<u8>) {
    if event.write_line(lines).is_ok() {
        return;
    }
    let error = agentwire_protocol::event::ErrorEvent::new("failed to write an event");
    let fallback = Event { kind: error.into(), native: Default::default(), ..event.clone() };
    let _ = fallback.write_line(lines);
}
