//! A guard that interrupts or ends its session when it is cancelled or dropped.

use std::fmt;
use std::ops::Deref;

use agentwire_protocol::{Command, SessionState};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::error::{AgentError, AgentErrorType};
use crate::stream::EventStream;
use crate::transport::Call;

/// What happens to a session when its guard is cancelled or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrop {
    /// The current turn stops; the session stays.
    Interrupt,
    /// The session ends.
    Stop,
}

impl OnDrop {
    /// Sends the command, and repeats it if it may not have arrived: no one else will. An ended session
    /// needs nothing more.
    async fn send(self, session: &Session) -> Result<(), AgentError> {
        let command = match self {
            Self::Interrupt => Command::Interrupt { cancel_queued: false },
            Self::Stop => Command::Stop,
        };
        let sent =
            session.client().call_with_retries(Call::Command(session.id().clone(), command)).await;
        let Err(error) = sent else { return Ok(()) };
        match session.summary().await {
            Ok(summary) if summary.state == SessionState::Ended => Ok(()),
            Ok(_) | Err(_) => Err(session.with_agent(error)),
        }
    }
}

/// A session with a token that cancels its streams here and its agent's work. Create it inside the tokio
/// runtime.
///
/// ```rust,standalone_crate
/// # use agentwire_client::{AgentType, EventKind, OnDrop, SessionRequest};
/// # fn main() -> std::process::ExitCode { agentwire::example::run(async |trial| {
/// # let gateway = agentwire_client::InProcessTransport::with_settings(trial.settings()).await?;
/// # let client = agentwire_client::AgentClient::over(gateway);
/// let session = client.create(SessionRequest::new(AgentType::Demo, "/hang")).await?;
/// let held = session.cancellable(OnDrop::Interrupt);
/// let mut events = session.events();
/// while let Some(event) = events.try_next().await? {
///     match &event.kind {
///         // The user gave up.
///         EventKind::TurnStarted(_) => break,
///         _ => {}
///     }
/// }
/// held.cancel().await?;
/// while let Some(event) = events.try_next().await? {
///     if let EventKind::TurnFailed(turn) = &event.kind {
///         assert_eq!(turn.turn_number, 1);
///         break;
///     }
/// }
/// # client.close().await;
/// # Ok::<_, agentwire_client::AgentError>(()) }) }
/// ```
#[must_use = "dropping it interrupts or ends the session at once"]
pub struct CancellableSession {
    session: Session,
    token: CancellationToken,
    on_drop: OnDrop,
    /// Sends the command when the token is cancelled.
    sender: Option<JoinHandle<Result<(), AgentError>>>,
    /// It was cancelled or released.
    is_over: bool,
}

impl CancellableSession {
    pub(super) fn new(session: Session, token: CancellationToken, on_drop: OnDrop) -> Self {
        let sender = Handle::try_current().ok().map(|runtime| {
            let (session, token) = (session.clone(), token.clone());
            runtime.spawn(async move {
                token.cancelled().await;
                on_drop.send(&session).await
            })
        });
        Self { session, token, on_drop, sender, is_over: false }
    }

    /// The token, for other work that should end with this guard. Cancelling it cancels the guard: the
    /// agent receives the command, and nothing waits for it.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// The same as [`Session::events`], until this guard is cancelled.
    pub fn events(&self) -> EventStream {
        self.session.events().cancelled_by(self.token.clone())
    }

    /// The same as [`Session::events_after`], until this guard is cancelled.
    pub fn events_after(&self, seq: u64) -> EventStream {
        self.session.events_after(seq).cancelled_by(self.token.clone())
    }

    /// Cancels the streams, sends the command to the agent, and waits for the reply. If this future is
    /// dropped, the command is still sent.
    pub async fn cancel(mut self) -> Result<(), AgentError> {
        self.is_over = true;
        self.token.cancel();
        match self.sender.take() {
            Some(sender) => sender.await.unwrap_or_else(|error| {
                Err(AgentError::new(AgentErrorType::Unknown, format!("failed to cancel: {error}")))
            }),
            None => self.on_drop.send(&self.session).await,
        }
    }

    /// Gives up the guard; the session continues.
    pub fn release(mut self) -> Session {
        self.is_over = true;
        if let Some(sender) = self.sender.take().filter(|_| !self.token.is_cancelled()) {
            sender.abort();
        }
        self.session.clone()
    }
}

impl Deref for CancellableSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

/// The command is sent in the background.
impl Drop for CancellableSession {
    fn drop(&mut self) {
        if !self.is_over {
            self.token.cancel();
        }
    }
}

impl fmt::Debug for CancellableSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CancellableSession")
            .field("session", &self.session)
            .field("on_drop", &self.on_drop)
            .finish_non_exhaustive()
    }
}
