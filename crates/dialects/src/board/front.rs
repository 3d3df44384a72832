//! Serves the board wire: follows a session from its first event to the end of the session or of its turn.

use std::collections::BTreeSet;

use agentwire_protocol::{
    Call, ErrorCode, Event, EventKind, GatewayError, SessionId, SessionState,
};

use super::{Board, BoardState};
use crate::front::{Front, GatewayCall, GatewayReply, GatewayResult, Outbox};

const OVER: &str = "the session has ended";
const FAILED: &str = "the turn failed; the session waits for a prompt";
const LOST: &str = "the events cannot be read";

/// How many working subagents are remembered.
const AGENT_LIMIT: usize = 4096;

#[derive(Debug)]
pub struct Watcher {
    session: SessionId,
    /// The board started the session: it ends with its turn, and its end is the last of its events. Any
    /// other session may wait for a prompt forever, and a failed turn need not be its end.
    ends: bool,
    board: Board,
    /// The number of the last event that was shown.
    shown: u64,
    /// Subagents that work, also in the background.
    agents: BTreeSet<String>,
    /// A pending call that asks whether the session rests.
    asked: Option<Call>,
    farewell: &'static str,
}

impl Watcher {
    /// `ends`: the session ends with its turn.
    pub fn new(session: SessionId, ends: bool) -> Self {
        Self {
            session,
            ends,
            board: Board::default(),
            shown: 0,
            agents: BTreeSet::new(),
            asked: None,
            farewell: "",
        }
    }

    /// Asks for the session's state if there may be nothing more to show.
    fn query_state(&mut self, out: &mut Outbox) {
        if !self.ends && self.board.rests() && self.agents.is_empty() && self.asked.is_none() {
            self.asked = Some(out.call(GatewayCall::Session(self.session.clone())));
        }
    }

    fn close(&mut self, code: u8, why: &'static str, out: &mut Outbox) {
        if self.farewell.is_empty() {
            self.farewell = why;
            out.close(code);
        }
    }
}

impl Front for Watcher {
    fn on_open(&mut self, out: &mut Outbox) {
        out.follow(&self.session, 0);
    }

    /// A watcher never sends anything.
    fn on_line(&mut self, _line: &[u8], _out: &mut Outbox) {}

    fn on_overlong(&mut self, _bytes: u64, _out: &mut Outbox) {}

    fn on_reply(&mut self, call: Call, reply: GatewayResult, out: &mut Outbox) {
        if self.asked.take_if(|asked| *asked == call).is_none() {
            return;
        }
        match reply {
            Ok(GatewayReply::Session(session)) if session.last_seq == self.shown => {
                let waits = session.state != SessionState::Ended;
                match BoardState::of(&session) {
                    BoardState::Running => {}
                    BoardState::Failed if waits => self.close(0, FAILED, out),
                    BoardState::Failed | BoardState::Done | BoardState::Cancelled => {
                        self.close(0, OVER, out);
                    }
                }
            }
            // Newer events were shown since: ask again. If events are still to come, they ask themselves.
            Ok(GatewayReply::Session(session)) if session.last_seq < self.shown => {
                self.query_state(out);
            }
            Ok(_) => {}
            // The server closes the connection of a revoked token.
            Err(error) if error.code == ErrorCode::Unauthorized => {}
            Err(_) => self.close(1, LOST, out),
        }
    }

    fn on_event(&mut self, _session: &SessionId, event: &str, out: &mut Outbox) {
        let Ok(event) = Event::from_json(event) else { return };
        self.shown = event.seq;
        if let EventKind::AgentFinished(_) = &event.kind {
            self.agents.remove(&*event.agent_id.decode());
        }
        if let EventKind::AgentSpawned(_) = &event.kind
            && self.agents.len() < AGENT_LIMIT
        {
            self.agents.insert(event.agent_id.to_string());
        }
        self.board.event(&event, &mut |told| out.send(told.get()));
    }

    fn on_pause(&mut self, _session: &SessionId, out: &mut Outbox) {
        self.query_state(out);
    }

    fn on_end(&mut self, _session: &SessionId, out: &mut Outbox) {
        self.close(0, OVER, out);
    }

    fn on_lost(&mut self, _session: &SessionId, _error: GatewayError, out: &mut Outbox) {
        self.close(1, LOST, out);
    }

    fn farewell(&self) -> &'static str {
        self.farewell
    }
}
