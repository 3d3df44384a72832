//! One session of a script: its events, and what happens to its connections.

use std::collections::BTreeMap;
use std::ops::Bound;

use agentwire_protocol::{
    AgentType, Event, EventKind, OpenRequest, SessionId, SessionState, SessionSummary, TokenUsage,
};

use crate::error::AgentError;
use crate::session::{Snapshot, settled_request};

#[derive(Debug)]
pub(super) struct ScriptedSession {
    id: SessionId,
    events: BTreeMap<u64, String>,
    faults: ConnectionFaults,
}

/// What happens to the connections of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct ConnectionFaults {
    /// Wait for a command after these events.
    holds: Vec<u64>,
    /// Break the connection after these events.
    cuts: Vec<u64>,
    /// The log does not have these events.
    without: Vec<u64>,
}

/// The session and the number of an event.
pub(super) fn session_and_seq(line: &str) -> Result<(SessionId, u64), AgentError> {
    let event = Event::from_json(line).map_err(|error| {
        AgentError::invalid(format!("failed to read an event of the script: {error}: {line}"))
    })?;
    Ok((SessionId::from(event.session_id.as_ref()), event.seq))
}

impl ConnectionFaults {
    pub(super) fn hold_after(&mut self, seq: u64) {
        self.holds.push(seq);
        self.holds.sort_unstable();
    }

    pub(super) fn cut_after(&mut self, seq: u64) {
        self.cuts.push(seq);
    }

    pub(super) fn leave_out(&mut self, seq: u64) {
        self.without.push(seq);
    }
}

impl ScriptedSession {
    pub(super) fn new(id: SessionId, faults: ConnectionFaults) -> Self {
        Self { id, events: BTreeMap::new(), faults }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn add(&mut self, seq: u64, line: &str) {
        self.events.insert(seq, line.trim().to_owned());
    }

    pub(super) fn faults(&mut self) -> &mut ConnectionFaults {
        &mut self.faults
    }

    /// A command has arrived.
    pub(super) fn release(&mut self) {
        if !self.faults.holds.is_empty() {
            self.faults.holds.remove(0);
        }
    }

    /// Whether the connection breaks here, before the next event; each break happens once.
    pub(super) fn cut(&mut self, after: u64) -> bool {
        let next = self.shown(after).next().map_or(after + 1, |(seq, _)| seq);
        let cut = self.faults.cuts.iter().position(|cut| (after..next).contains(cut));
        cut.map(|cut| self.faults.cuts.remove(cut)).is_some()
    }

    /// The next events to show: at most `most`, and none past a break.
    pub(super) fn after(&self, after: u64, most: usize) -> Vec<(u64, &str)> {
        let stop =
            self.faults.cuts.iter().copied().filter(|cut| *cut > after).min().unwrap_or(u64::MAX);
        self.shown(after).take_while(|(seq, _)| *seq <= stop).take(most).collect()
    }

    pub(super) fn is_over(&self, is_live: bool) -> bool {
        let ends = self.in_log(0).next_back().is_some_and(|(_, line)| is_end(line));
        self.faults.holds.is_empty() && (ends || !is_live)
    }

    /// The summary when the session starts, before its first event.
    pub(super) fn beginning(&self, agent_type: AgentType) -> SessionSummary {
        SessionSummary { agent_type, ..blank(&self.id) }
    }

    /// The summary when the session is resumed.
    pub(super) fn resumed(&self, is_live: bool) -> SessionSummary {
        let before = self.summary(is_live);
        SessionSummary { state: SessionState::Starting, reason: None, error: None, ..before }
    }

    /// The summary after the events that may be shown.
    pub(super) fn summary(&self, is_live: bool) -> SessionSummary {
        let mut snapshot = Snapshot::new(blank(&self.id));
        let mut last = 0;
        for (seq, line) in self.shown(0) {
            last = seq;
            if let Ok(event) = Event::from_json(line) {
                snapshot.apply(&event);
            }
        }
        let mut summary = snapshot.summary().clone();
        summary.last_seq = last;
        if self.is_over(is_live) {
            summary.state = SessionState::Ended;
        }
        summary
    }

    /// The open requests, as a gateway lists them.
    pub(super) fn requests(&self) -> Vec<OpenRequest> {
        let mut open = Vec::<OpenRequest>::new();
        for (_, line) in self.shown(0) {
            let Ok(event) = Event::from_json(line) else { continue };
            if let Some(settled) = settled_request(&event) {
                open.retain(|asked| *asked.request.request_id.decode() != *settled);
            }
            if let Some(asked) = OpenRequest::of(&event) {
                open.push(asked);
            }
        }
        open
    }

    /// The events after this number, up to the next hold.
    fn shown(&self, after: u64) -> impl Iterator<Item = (u64, &str)> {
        let held = self.faults.holds.first().copied().unwrap_or(u64::MAX);
        self.in_log(after).take_while(move |(seq, _)| *seq <= held)
    }

    /// All events after this number.
    fn in_log(&self, after: u64) -> impl DoubleEndedIterator<Item = (u64, &str)> {
        let next = (Bound::Excluded(after), Bound::Unbounded);
        let events = self.events.range(next).map(|(seq, line)| (*seq, line.as_str()));
        events.filter(|(seq, _)| !self.faults.without.contains(seq))
    }
}

fn is_end(line: &str) -> bool {
    Event::from_json(line).is_ok_and(|event| matches!(event.kind, EventKind::SessionEnded(_)))
}

fn blank(id: &SessionId) -> SessionSummary {
    SessionSummary {
        id: id.clone(),
        agent_type: AgentType::ANY,
        state: SessionState::Starting,
        reason: None,
        error: None,
        title: None,
        working_directory: None,
        model: None,
        approval_mode: None,
        driver: None,
        native_session_id: None,
        agent_version: None,
        gateway_version: None,
        created_at: String::new(),
        updated_at: String::new(),
        last_seq: 0,
        turns: 0,
        last_turn: None,
        usage: TokenUsage::default(),
        cost_usd: None,
        open_requests: 0,
        pinned: false,
        tags: Vec::new(),
    }
}
