//! Messages that no event causes.

use super::frames::Informational;
use super::output::MessageWriter;
use super::turn::{Ending, Turn};
use super::{Renderer, system};

impl Renderer {
    /// Renders a prompt that never became a turn as one that failed at once.
    pub fn refused(&mut self, session: &str, why: &str, say: &mut dyn FnMut(&str)) {
        self.asides += 1;
        let id = format!("aside-{}", self.asides);
        let session_id = self.claude_id.take();
        let named = session_id.as_deref().unwrap_or(session);
        let writer = &mut MessageWriter::new(named, &id, self.options.partial, say);
        // For a session that never started, Claude writes nothing but the result.
        if self.session.agent.is_some() && !self.turn.is_begun {
            self.session.init(writer);
        }
        let turn = (&Turn::default(), "");
        let is_error = self.totals.end(turn, &Ending::refused(why), 0, &self.session, writer);
        self.last_is_error = Some(is_error);
        self.claude_id = session_id;
    }

    /// Whether a turn is running that has no result yet.
    pub fn is_in_turn(&self) -> bool {
        self.turn.is_begun
    }

    /// Renders a warning that no event reports, as Claude would.
    pub fn warn(&mut self, session: &str, why: &str, say: &mut dyn FnMut(&str)) {
        self.asides += 1;
        let id = format!("aside-{}", self.asides);
        let session_id = self.claude_id.as_deref().unwrap_or(session);
        let writer = &mut MessageWriter::new(session_id, &id, self.options.partial, say);
        system("informational", Informational { content: why, level: "warning" }, writer);
    }
}
