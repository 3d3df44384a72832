//! What whoever sits there has to do with the session: watch it, answer it, or run it.

use std::pin::Pin;

use agentwire_client::Session;
use agentwire_protocol::{Command, EventKind, GatewayError, Json, SessionId, SessionState};
use agentwire_sessions::SessionHandle;

use crate::failure::Failure;

/// What whoever sits there has to do with the session.
pub(super) enum Part {
    /// To watch it.
    Watch,
    /// To answer what it asks; it is a server's.
    Answer(Box<Answering>),
    /// To run it, to the end of its turn.
    Run(SessionHandle),
}

/// A session that is answered.
pub(super) struct Answering {
    session: Session,
    goal: Goal,
}

/// How far a session is followed.
enum Goal {
    /// To its end.
    End,
    /// To the end of the turn that works on that prompt; if it has no name, of the next turn.
    Turn { message: Option<String>, number: Option<u64>, is_over: bool },
}

/// A command on its way.
pub(super) type Sent = Pin<Box<dyn Future<Output = Result<Json<'static>, GatewayError>> + Send>>;

impl Part {
    pub(super) fn answer(session: Session) -> Self {
        Self::Answer(Box::new(Answering { session, goal: Goal::End }))
    }

    /// Follows it only to the end of the turn that works on that prompt.
    pub(super) fn for_turn_of(&mut self, message: Option<String>) {
        if let Self::Answer(answering) = self {
            answering.goal = Goal::Turn { message, number: None, is_over: false };
        }
    }

    /// Sends a command; who only watches sends none.
    pub(super) fn send(&self, command: Command) -> Option<Sent> {
        match self {
            Self::Watch => None,
            Self::Run(session) => {
                let session = session.clone();
                Some(Box::pin(async move { session.send(command).await }))
            }
            Self::Answer(answering) => {
                let session = answering.session.clone();
                Some(Box::pin(async move { Ok(session.send(command).await?) }))
            }
        }
    }

    /// Notes how it stands with the turn that is waited for.
    pub(super) fn note(&mut self, kind: &EventKind<'_>) {
        let Self::Answer(answering) = self else { return };
        let Goal::Turn { message, number, is_over } = &mut answering.goal else { return };
        let mut ended = |turn: u64| *is_over |= *number == Some(turn);
        if let EventKind::TurnCompleted(turn) = kind {
            ended(turn.turn_number);
        } else if let EventKind::TurnFailed(turn) = kind {
            ended(turn.turn_number);
        } else if let EventKind::TurnStarted(turn) = kind {
            let is_ours = message.as_ref().is_none_or(|message| {
                turn.message_ids.iter().any(|id| id.decode() == message.as_str())
            });
            if is_ours {
                number.get_or_insert(turn.turn_number);
            }
        }
    }

    /// Whether all that is wanted has been seen.
    pub(super) fn has_reached_goal(&self) -> bool {
        match self {
            Self::Answer(answering) => match answering.goal {
                Goal::End => false,
                Goal::Turn { is_over, .. } => is_over,
            },
            Self::Watch | Self::Run(_) => false,
        }
    }
}

impl Answering {
    pub(super) fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// Whether one turn of it is wanted, and not all of it.
    pub(super) fn has_goal(&self) -> bool {
        matches!(self.goal, Goal::Turn { .. })
    }

    /// Whether a prompt that joined another's turn, and so has none of its own, is worked off.
    pub(super) async fn is_done(&self, shown: u64) -> Result<bool, Failure> {
        if !matches!(self.goal, Goal::Turn { number: None, .. }) {
            return Ok(false);
        }
        let summary = self.session.summary().await?;
        Ok(summary.last_seq <= shown && summary.state == SessionState::Idle)
    }
}
