//! Writes messages: one line of JSON each, with ids that are the same whenever the event is rendered.

use agentwire_protocol::json::write_value;
use serde::Serialize;

use crate::digest::{digest, uuid};

/// Writes the messages of the event that is being rendered.
pub(super) struct MessageWriter<'v> {
    say: &'v mut dyn FnMut(&str),
    /// Whether `stream_event` lines are wanted.
    pub(super) partial: bool,
    /// The session's id in every message.
    pub(super) session_id: &'v str,
    event_id: &'v str,
    /// How many ids were given. Pieces are counted separately, so that the id of a message does not depend
    /// on whether its pieces are shown.
    messages: u64,
    pieces: u64,
}

impl<'v> MessageWriter<'v> {
    pub(super) fn new(
        session_id: &'v str,
        event_id: &'v str,
        partial: bool,
        say: &'v mut dyn FnMut(&str),
    ) -> Self {
        Self { say, partial, session_id, event_id, messages: 0, pieces: 0 }
    }

    /// Writes one message. The writer escapes characters at which a reader might split a line.
    pub(super) fn frame(&mut self, frame: &impl Serialize) {
        let mut line = Vec::with_capacity(512);
        if write_value(frame, &mut line).is_ok()
            && let Ok(line) = std::str::from_utf8(&line)
        {
            (self.say)(line);
        }
    }

    /// The UUID of the next message.
    pub(super) fn uuid(&mut self) -> String {
        self.messages += 1;
        uuid(self.digest("message", self.messages))
    }

    /// The UUID of the next `stream_event`.
    pub(super) fn piece_uuid(&mut self) -> String {
        self.pieces += 1;
        uuid(self.digest("piece", self.pieces))
    }

    /// Another id with this prefix, such as `msg_`.
    pub(super) fn id(&mut self, prefix: &str) -> String {
        self.messages += 1;
        let mut hex = self.digest("message", self.messages);
        hex.truncate(24);
        format!("{prefix}{hex}")
    }

    fn digest(&self, of: &str, number: u64) -> String {
        digest(&format!("{}\n{}\n{of}\n{number}", self.session_id, self.event_id))
    }
}
