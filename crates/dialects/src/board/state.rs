//! A session's state, in the board's four words.

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::{SessionState, SessionSummary, TurnEnd};
use serde::Serialize;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum BoardState {
    /// It works, or waits for an answer.
    Running,
    /// Its turn has ended.
    Done,
    Failed,
    Cancelled,
}

impl BoardState {
    /// A session that waits for a prompt, or that ended normally, has the state of its last turn.
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
            // It has no prompt yet.
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
