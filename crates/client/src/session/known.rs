//! What is known of a session without asking: what was last told, and what events have changed since.

use std::collections::BTreeMap;

use agentwire_protocol::event::{RequestKind, Status, TurnFailure};
use agentwire_protocol::{Event, EventKind, SessionState, SessionSummary, TokenUsage, TurnEnd};

#[derive(Debug)]
pub(crate) struct Known {
    summary: SessionSummary,
    /// Requests that were seen to be raised, and not to be settled.
    asked: BTreeMap<String, RequestKind>,
}

impl Known {
    pub(crate) fn new(summary: SessionSummary) -> Self {
        Self { summary, asked: BTreeMap::new() }
    }

    pub(crate) fn summary(&self) -> &SessionSummary {
        &self.summary
    }

    /// Takes what the gateway says, unless later events were read already.
    pub(crate) fn learn(&mut self, summary: &SessionSummary) {
        if summary.last_seq >= self.summary.last_seq {
            self.summary = summary.clone();
        }
    }

    /// Takes what an event tells. What is known already is not counted again.
    pub(crate) fn note(&mut self, event: &Event<'static>) {
        if event.seq <= self.summary.last_seq {
            // What was asked before may be settled in what is known already.
            if let EventKind::RequestSettled(request) = &event.kind {
                self.asked.remove(&*request.request_id.decode());
            }
            return;
        }
        self.summary.last_seq = event.seq;
        self.summary.updated_at = event.timestamp.clone().into_owned();
        match &event.kind {
            EventKind::SessionStarted(started) => {
                self.summary.state = SessionState::Starting;
                self.summary.agent_type = started.agent_type;
                (self.summary.reason, self.summary.error) = (None, None);
            }
            EventKind::TurnStarted(turn) => {
                self.summary.turns = self.summary.turns.max(turn.turn_number);
                self.summary.state = SessionState::Working;
            }
            EventKind::TurnCompleted(turn) => {
                self.turn_over(TurnEnd::Completed, Some(turn.usage), turn.cost_usd);
            }
            EventKind::TurnFailed(turn) => {
                let end = match turn.reason {
                    TurnFailure::Interrupted => TurnEnd::Interrupted,
                    TurnFailure::Error
                    | TurnFailure::MaxTurns
                    | TurnFailure::Budget
                    | TurnFailure::Refused
                    | TurnFailure::Died => TurnEnd::Failed,
                };
                self.turn_over(end, turn.usage, turn.cost_usd);
            }
            EventKind::RequestRaised(request) => {
                self.asked.insert(request.request_id.to_string(), request.kind);
                self.summary.open_requests += 1;
                self.wait();
            }
            EventKind::RequestSettled(request) => {
                self.asked.remove(&*request.request_id.decode());
                self.summary.open_requests = self.summary.open_requests.saturating_sub(1);
                self.wait();
            }
            EventKind::StatusChanged(status) => {
                let message = status.message.as_ref().map(ToString::to_string);
                match (status.status, message) {
                    (Status::Ready, _) if self.summary.state == SessionState::Starting => {
                        self.summary.state = SessionState::Idle;
                    }
                    (Status::Model, Some(model)) => self.summary.model = Some(model),
                    (Status::Title, Some(title)) => self.summary.title = Some(title),
                    _ => {}
                }
            }
            EventKind::SessionEnded(ended) => {
                self.summary.state = SessionState::Ended;
                self.summary.reason = Some(ended.reason);
                self.summary.error = ended.error.as_ref().map(ToString::to_string);
                self.summary.open_requests = 0;
                self.asked.clear();
            }
            EventKind::TextChunk(_)
            | EventKind::ToolStarted(_)
            | EventKind::ToolProgress(_)
            | EventKind::ToolCompleted(_)
            | EventKind::ToolFailed(_)
            | EventKind::FileChanged(_)
            | EventKind::Error(_)
            | EventKind::ThinkingChunk(_)
            | EventKind::PlanUpdated(_)
            | EventKind::AgentSpawned(_)
            | EventKind::AgentFinished(_)
            | EventKind::UsageReported(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => {}
        }
    }

    fn turn_over(&mut self, end: TurnEnd, usage: Option<TokenUsage>, cost: Option<f64>) {
        let summary = &mut self.summary;
        summary.last_turn = Some(end);
        summary.usage = summary.usage.plus(&usage.unwrap_or_default());
        if let Some(cost) = cost {
            summary.cost_usd = Some(summary.cost_usd.unwrap_or(0.0) + cost);
        }
        summary.state = SessionState::Idle;
    }

    /// What it waits for, if it does. Of requests that were raised before anything was read, it is not
    /// known of which kind they are.
    fn wait(&mut self) {
        let asks = |kind: RequestKind| self.asked.values().any(|asked| *asked == kind);
        self.summary.state = match self.summary.state {
            SessionState::Ended => SessionState::Ended,
            _ if asks(RequestKind::Permission) => SessionState::WaitingPermission,
            _ if asks(RequestKind::Question) => SessionState::WaitingQuestion,
            SessionState::WaitingPermission | SessionState::WaitingQuestion
                if self.summary.open_requests == 0 =>
            {
                SessionState::Working
            }
            state @ (SessionState::Starting
            | SessionState::Idle
            | SessionState::Working
            | SessionState::WaitingPermission
            | SessionState::WaitingQuestion
            | SessionState::Stalled) => state,
        };
    }
}
