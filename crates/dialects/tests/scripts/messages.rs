//! Claude's messages for the events of any agent, which several fronts share; not a front of its own.
//! Whatever a golden says, a message that is not Claude's own follows its readers' rules.

use agentwire_dialects::claude::render::{Options, Renderer};
use agentwire_dialects::front::{Front, GatewayReply, Outbox};
use agentwire_protocol::{Call, Event, EventKind, GatewayError, SessionId};

use crate::check::Checker;
use crate::front::SESSION;

pub(crate) struct Messages {
    renderer: Renderer,
    /// `None` after the first line of Claude's own, which the rules do not cover.
    checker: Option<Checker>,
    turns: usize,
}

impl Messages {
    pub(crate) fn new(partial: bool) -> Self {
        let renderer = Renderer::new(Options { partial });
        Self { renderer, checker: Some(Checker::default()), turns: 0 }
    }

    fn say(checker: &mut Option<Checker>, line: &str, out: &mut Outbox) {
        if let Some(checker) = checker {
            checker.line(line);
        }
        out.send(line);
    }
}

impl Front for Messages {
    fn on_line(&mut self, line: &[u8], _: &mut Outbox) {
        panic!("nobody hears {}", String::from_utf8_lossy(line));
    }

    fn on_overlong(&mut self, _: u64, _: &mut Outbox) {}

    /// A prompt was refused.
    fn on_reply(&mut self, _: Call, reply: Result<GatewayReply, GatewayError>, out: &mut Outbox) {
        let error = reply.expect_err("only a refusal is told");
        self.turns += 1;
        self.renderer.refused(SESSION, &error.message, &mut |line| {
            Self::say(&mut self.checker, line, out);
        });
    }

    fn on_event(&mut self, _: &SessionId, event: &str, out: &mut Outbox) {
        let event = Event::from_json(event).expect("an event");
        if !event.native.is_empty() {
            self.checker = None;
        }
        let is_end = matches!(event.kind, EventKind::TurnCompleted(_) | EventKind::TurnFailed(_));
        self.turns += usize::from(is_end);
        self.renderer.event(&event, &mut |line| Self::say(&mut self.checker, line, out));
    }

    /// The exit code of a program that has nothing more to send.
    fn on_close(&mut self, out: &mut Outbox) {
        if let Some(checker) = &self.checker {
            checker.end(self.turns, "at the close");
        }
        out.close(u8::from(self.renderer.last_is_error() == Some(true)));
    }
}
