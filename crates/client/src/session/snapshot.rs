//! The known state of a session: the last summary, updated by the events since.

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;

use std::collections::BTreeMap;

use agentwire_protocol::event::{RequestKind, Status, StatusChanged};
use agentwire_protocol::{
    Event, EventKind, OpenRequest, SessionState, SessionSummary, TokenUsage, TurnEnd,
};
use serde::Deserialize;

#[derive(Debug)]
pub(crate) struct Snapshot {
    summary: SessionSummary,
    /// Requests that were seen raised and not seen settled.
    open_kinds: BTreeMap<String, RequestKind>,
    has_turn: bool,
    is_ready: bool,
}

impl Snapshot {
    pub(crate) fn new(summary: SessionSummary) -> Self {
        let mut snapshot =
            Self { summary, open_kinds: BTreeMap::new(), has_turn: false, is_ready: false };
        snapshot.derive_fields();
        snapshot
    }

    pub(crate) fn summary(&self) -> &SessionSummary {
        &self.summary
    }

    /// Replaces the summary, unless later events were read already.
    pub(crate) fn replace_summary(&mut self, summary: &SessionSummary) {
        if summary.last_seq >= self.summary.last_seq {
            self.summary = summary.clone();
            self.derive_fields();
        }
    }

    /// The log ends before event `from`. The summary stays as it is until the gateway is asked.
    pub(crate) fn forget(&mut self, from: u64) {
        self.summary.last_seq = self.summary.last_seq.min(from.saturating_sub(1));
    }

    /// Derives the other fields from the summary.
    fn derive_fields(&mut self) {
        if self.summary.open_requests == 0 {
            self.open_kinds.clear();
        }
        (self.is_ready, self.has_turn) = match self.summary.state {
            SessionState::Starting | SessionState::Ended => (false, false),
            SessionState::Idle => (true, false),
            SessionState::Working
            | SessionState::WaitingPermission
            | SessionState::WaitingQuestion
            | SessionState::Stalled => (true, true),
        };
    }

    /// Applies an event. An event that the summary already includes is not counted twice.
    pub(crate) fn apply(&mut self, event: &Event<'static>) {
        let is_new = event.seq > self.summary.last_seq;
        self.apply_request(event, is_new);
        if !is_new {
            return;
        }
        self.summary.last_seq = event.seq;
        self.summary.updated_at = event.timestamp.clone().into_owned();
        match &event.kind {
            EventKind::SessionStarted(started) => {
                self.summary.agent_type = started.agent_type;
                self.start();
            }
            EventKind::TurnStarted(turn) => {
                self.summary.turns = self.summary.turns.max(turn.turn_number);
                if let Some(prompt) = &turn.prompt {
                    self.summary.entitle(&prompt.decode());
                }
                (self.is_ready, self.has_turn) = (true, true);
            }
            EventKind::TurnCompleted(turn) => {
                self.end_turn(TurnEnd::Completed, Some(turn.usage), turn.cost_usd);
            }
            EventKind::TurnFailed(turn) => {
                self.end_turn(turn.reason.into(), turn.usage, turn.cost_usd);
            }
            EventKind::StatusChanged(status) => self.apply_status(status),
            EventKind::SessionEnded(ended) => {
                self.summary.reason = Some(ended.reason);
                self.summary.error = ended.error.as_ref().map(ToString::to_string);
                self.end();
            }
            // A known event with a value that this version does not know.
            EventKind::Unknown(unknown) => match &*unknown.name {
                "sessionStarted" => self.start(),
                "turnStarted" => (self.is_ready, self.has_turn) = (true, true),
                "turnCompleted" => self.end_turn(TurnEnd::Completed, None, None),
                "turnFailed" => self.end_turn(TurnEnd::Failed, None, None),
                "sessionEnded" => self.end(),
                _ => {}
            },
            _ => {}
        }
        self.derive_state();
    }

    /// Requests are tracked from old events too: the summary says how many are open, but not of which kind.
    fn apply_request(&mut self, event: &Event<'static>, is_new: bool) {
        let open = &mut self.summary.open_requests;
        if let Some(asked) = OpenRequest::of(event) {
            if is_new {
                *open += 1;
            }
            if *open > 0 {
                self.open_kinds.insert(asked.request.request_id.to_string(), asked.request.kind);
            }
        } else if let Some(settled) = settled_request(event) {
            self.open_kinds.remove(&settled);
            if is_new {
                *open = open.saturating_sub(1);
            }
            // A request from the past whose settlement was not read yet is not open.
            if *open == 0 {
                self.open_kinds.clear();
            }
        }
    }

    fn apply_status(&mut self, status: &StatusChanged<'static>) {
        let message = status.message.as_ref().map(ToString::to_string);
        let summary = &mut self.summary;
        if let Some(info) = &status.info {
            summary.inform(info);
            if let Some(id) = &info.native_session_id {
                summary.native_session_id = Some(id.to_string());
            }
        }
        match (status.status, message) {
            (Status::Ready, _) => self.is_ready = true,
            (Status::Model, Some(model)) => summary.model = Some(model),
            (Status::Session, Some(id)) => summary.native_session_id = Some(id),
            (Status::Title, Some(title)) => summary.title = Some(title),
            _ => {}
        }
    }

    fn start(&mut self) {
        self.summary.state = SessionState::Starting;
        (self.summary.reason, self.summary.error) = (None, None);
        (self.is_ready, self.has_turn) = (false, false);
    }

    fn end_turn(&mut self, end: TurnEnd, usage: Option<TokenUsage>, cost: Option<f64>) {
        self.summary.turn_over(end, usage, cost);
        self.has_turn = false;
    }

    fn end(&mut self) {
        self.summary.state = SessionState::Ended;
        self.summary.open_requests = 0;
        (self.is_ready, self.has_turn) = (false, false);
        self.open_kinds.clear();
    }

    /// Derives the state as the gateway does, except that a prompt without a turn is not visible here.
    fn derive_state(&mut self) {
        let asks = |kind: RequestKind| self.open_kinds.values().any(|asked| *asked == kind);
        let waits = matches!(
            self.summary.state,
            SessionState::WaitingPermission | SessionState::WaitingQuestion
        );
        let is_unseen = self.summary.open_requests > self.open_kinds.len() as u64;
        self.summary.state = match self.summary.state {
            SessionState::Ended => SessionState::Ended,
            _ if asks(RequestKind::Permission) => SessionState::WaitingPermission,
            _ if asks(RequestKind::Question) => SessionState::WaitingQuestion,
            state if waits && is_unseen => state,
            _ if self.has_turn => SessionState::Working,
            _ if self.is_ready => SessionState::Idle,
            _ => SessionState::Starting,
        };
    }
}

/// The id of the request that an event settles, even with an unknown outcome.
pub(crate) fn settled_request(event: &Event<'static>) -> Option<String> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Settled {
        request_id: String,
    }
    match &event.kind {
        EventKind::RequestSettled(settled) => Some(settled.request_id.to_string()),
        EventKind::Unknown(unknown) if unknown.name == "requestSettled" => {
            Some(unknown.raw.read::<Settled>().ok()?.request_id)
        }
        _ => None,
    }
}
