//! One session of a script: its events, and what happens to its connections.

use std::collections::BTreeMap;
use std::ops::Bound;

use agentwire_protocol::{
    AgentType, Event, EventKind, OpenRequest, SessionId, SessionState, SessionSummary, TokenUsage,
};

use crate::error::AgentError;
use crate::session::{Known, settled};

#[derive(Debug)]
pub(super) struct Story {
    id: SessionId,
    events: BTreeMap<u64, String>,
    plot: Plot,
}

/// What happens to the connections of a session.
#[derive(Clone, Debug, Default)]
pub(super) struct Plot {
    /// Wait for a command after these events.
    holds: Vec<u64>,
    /// Break the connection after these events.
    cuts: Vec<u64>,
    /// The log does not have these events.
    without: Vec<u64>,
}

/// The session and the number of an event.
pub(super) fn place(line: &str) -> Result<(SessionId, u64), AgentError> {
    let event = Event::from_json(line).map_err(|error| {
        AgentError::invalid(format!("failed to read an event of the script: {error}: {line}"))
    })?;
    Ok((SessionId::from(event.session_id.as_ref()), event.seq))
}

impl Plot {
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

impl Story {
    pub(super) fn new(id: SessionId, plot: Plot) -> Self {
        Self { id, events: BTreeMap::new(), plot }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.id
    }

    pub(super) fn add(&mut self, seq: u64, line: &str) {
        self.events.insert(seq, line.trim().to_owned());
    }

    pub(super) fn plot(&mut self) -> &mut Plot {
        &mut self.plot
    }

    /// A command has arrived.
    pub(super) fn release(&mut self) {
        if !self.plot.holds.is_empty() {
            self.plot.holds.remove(0);
        }
    }

    /// Whether the connection breaks here, before the next event; each break happens once.
    pub(super) fn cut(&mut self, after: u64) -> bool {
        let next = self.shown(after).next().map_or(after + 1, |(seq, _)| seq);
        let cut = self.plot.cuts.iter().position(|cut| (after..next).contains(cut));
        cut.map(|cut| self.plot.cuts.remove(cut)).is_some()
    }

    /// The next events to show: at most `most`, and none past a break.
    pub(super) fn after(&self, after: u64, most: usize) -> Vec<(u64, &str)> {
        let stop =
            self.plot.cuts.iter().copied().filter(|cut| *cut > after).min().unwrap_or(u64::MAX);
        self.shown(after).take_while(|(seq, _)| *seq <= stop).take(most).collect()
    }

    pub(super) fn is_over(&self, is_live: bool) -> bool {
        let ends = self.there(0).next_back().is_some_and(|(_, line)| is_end(line));
        self.plot.holds.is_empty() && (ends || !is_live)
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
        let mut known = Known::new(blank(&self.id));
        let mut last = 0;
        for (seq, line) in self.shown(0) {
            last = seq;
            if let Ok(event) = Event::from_json(line) {
                known.note(&event);
            }
        }
        let mut summary = known.summary().clone();
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
            if let Some(settled) = settled(&event) {
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
        let held = self.plot.holds.first().copied().unwrap_or(u64::MAX);
        self.there(after).take_while(move |(seq, _)| *seq <= held)
    }

    /// All events after this number.
    fn there(&self, after: u64) -> impl DoubleEndedIterator<Item = (u64, &str)> {
        let next = (Bound::Excluded(after), Bound::Unbounded);
        let events = self.events.range(next).map(|(seq, line)| (*seq, line.as_str()));
        events.filter(|(seq, _)| !self.plot.without.contains(seq))
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
    }
}
