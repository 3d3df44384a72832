//! How a session stands, in the board's four words.

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::{SessionState, SessionSummary, TurnEnd};
use serde::Serialize;

/// How a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    /// It works, or waits for an answer.
    Running,
    /// Its turn is over.
    Done,
    /// It ended in an error.
    Failed,
    /// It was stopped.
    Cancelled,
}

impl State {
    /// How that session stands. One that waits for a prompt or ended as it should stands as its last
    /// turn did.
    pub fn of(summary: &SessionSummary) -> Self {
        let by_turn = match summary.last_turn {
            Some(TurnEnd::Failed) => Self::Failed,
            Some(TurnEnd::Interrupted) => Self::Cancelled,
            Some(TurnEnd::Completed) | None => Self::Done,
        };
        match (summary.state, summary.reason) {
            (SessionState::Ended, Some(SessionEndReason::Failed | SessionEndReason::Timeout)) => {
                Self::Failed
            }
            (SessionState::Ended, Some(SessionEndReason::Cancelled)) => Self::Cancelled,
            (SessionState::Ended, Some(SessionEndReason::Completed) | None) => by_turn,
            // It has yet to be told what to do.
            (SessionState::Idle, _) if summary.turns == 0 => Self::Running,
            (SessionState::Idle, _) => by_turn,
            (
                SessionState::Starting
                | SessionState::Working
                | SessionState::WaitingPermission
                | SessionState::WaitingQuestion
                | SessionState::Stalled,
                _,
            ) => Self::Running,
        }
    }

    /// Whether nothing more comes.
    pub fn is_over(self) -> bool {
        self != Self::Running
    }
}
