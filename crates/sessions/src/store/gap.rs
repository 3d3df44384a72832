//! Events that were stored and cannot be read any more: each keeps its place in the log, where an event
//! reports the loss.

use agentwire_protocol::event::ErrorEvent;
use agentwire_protocol::{Event, Json, MAIN_AGENT, SessionId, Text};
use serde::Serialize;

use super::Batch;

/// How many replacement events a batch holds.
const AT_ONCE: u64 = 256;

/// A run of events that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gap {
    pub from: u64,
    /// The last event, inclusive.
    pub to: u64,
    pub why: GapReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum GapReason {
    /// The events are not what was written.
    Damaged,
    Missing,
}

impl GapReason {
    /// The code of the events that replace them.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Damaged => "damaged",
            Self::Missing => "missing",
        }
    }
}

#[derive(Serialize)]
struct Details {
    from: u64,
    to: u64,
}

impl Gap {
    /// Replacement events, from number `first` on. They are the same whenever they are read: `time` never
    /// changes for a session.
    pub(super) fn batch(&self, session: &SessionId, first: u64, time: &str) -> Batch {
        let last = self.to.min(first.saturating_add(AT_ONCE - 1));
        let mut lines = Vec::new();
        let (from, to) = (self.from, self.to);
        let what = match from == to {
            true => format!("event {from} of session {session} is"),
            false => format!("events {from} to {to} of session {session} are"),
        };
        let why = self.why.as_str();
        let message = format!("{what} {why} in the store; `agentwire doctor` lists all damage");
        for seq in first..=last {
            let error = ErrorEvent {
                code: Some(Text::from(why)),
                details: Some(Json::of(&Details { from, to })),
                ..ErrorEvent::new(message.as_str())
            };
            let event = Event {
                id: format!("{session}-{seq}").into(),
                session_id: session.as_str().into(),
                seq,
                timestamp: time.into(),
                kind: error.into(),
                agent_id: Text::from(MAIN_AGENT),
                parent_agent_id: None,
                native: Default::default(),
            };
            // Writing plain text into memory cannot fail.
            let _ = event.write_line(&mut lines);
        }
        Batch { first, count: last + 1 - first, lines: lines.into() }
    }
}
