//! What this program does with the session: watch it, answer its requests, or run it.

use std::pin::Pin;

use agentwire_client::Session;
use agentwire_protocol::{Command, EventKind, GatewayError, Json, SessionId, SessionState};
use agentwire_sessions::SessionHandle;

use crate::failure::Failure;

pub(super) enum Mode {
    Watch,
    /// A server runs it; requests are answered from here.
    Answer(Box<AnsweredSession>),
    /// It runs in this process, to the end of its turn.
    Run(SessionHandle),
}

/// A session whose requests are answered from here.
pub(super) struct AnsweredSession {
    session: Session,
    goal: Goal,
}

/// When to stop following the session.
enum Goal {
    End,
    /// At the end of the turn that works on that prompt, or of the next turn if the prompt has no
    /// id.
    Turn {
        message: Option<String>,
        number: Option<u64>,
        is_ended: bool,
    },
}

/// The reply to a command.
pub(super) type ReplyFuture =
    Pin<Box<dyn Future<Output = Result<Json<'static>, GatewayError>> + Send>>;

impl Mode {
    pub(super) fn answer(session: Session) -> Self {
        Self::Answer(Box::new(AnsweredSession { session, goal: Goal::End }))
    }

    /// Stops at the end of the turn that works on that prompt.
    pub(super) fn for_turn_of(&mut self, message: Option<String>) {
        if let Self::Answer(answering) = self {
            answering.goal = Goal::Turn { message, number: None, is_ended: false };
        }
    }

    /// Sends a command, unless the session is only watched.
    pub(super) fn send(&self, command: Command) -> Option<ReplyFuture> {
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

    /// Tracks the turn that is followed.
    pub(super) fn note(&mut self, kind: &EventKind<'_>) {
        let Self::Answer(answering) = self else { return };
        let Goal::Turn { message, number, is_ended } = &mut answering.goal else { return };
        let mut ended = |turn: u64| *is_ended |= *number == Some(turn);
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

    /// Whether the goal is reached.
    pub(super) fn has_reached_goal(&self) -> bool {
        match self {
            Self::Answer(answering) => match answering.goal {
                Goal::End => false,
                Goal::Turn { is_ended, .. } => is_ended,
            },
            Self::Watch | Self::Run(_) => false,
        }
    }
}

impl AnsweredSession {
    pub(super) fn id(&self) -> &SessionId {
        self.session.id()
    }

    /// Whether only one turn is followed.
    pub(super) fn has_goal(&self) -> bool {
        matches!(self.goal, Goal::Turn { .. })
    }

    /// Whether a prompt that joined another prompt's turn, and so has no turn of its own, is done.
    pub(super) async fn is_done(&self, shown: u64) -> Result<bool, Failure> {
        if !matches!(self.goal, Goal::Turn { number: None, .. }) {
            return Ok(false);
        }
        let summary = self.session.summary().await?;
        Ok(summary.last_seq <= shown && summary.state == SessionState::Idle)
    }
}
