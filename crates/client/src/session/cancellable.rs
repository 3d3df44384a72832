//! A hold on a session that lets go of nothing quietly: cancelled or dropped, it tells the agent.

use std::fmt;
use std::ops::Deref;

use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::error::AgentError;
use crate::stream::EventStream;

/// What happens to a session whose hold is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrop {
    /// Its turn is stopped; the session stays.
    Interrupt,
    /// It is ended.
    Stop,
}

/// A session, and a token by which all that goes on with it here is cancelled.
///
/// ```rust,standalone_crate
/// # use agentwire_client::{AgentType, EventKind, OnDrop, SessionRequest};
/// # fn main() -> std::process::ExitCode { agentwire::trial::run(async |trial| {
/// # let gateway = agentwire_client::InProcessTransport::with_settings(trial.settings()).await?;
/// # let client = agentwire_client::AgentClient::over(gateway);
/// let session = client.create(SessionRequest::new(AgentType::Demo, "/hang")).await?;
/// let held = session.cancellable(OnDrop::Interrupt);
/// let mut events = session.events();
/// while let Some(event) = events.try_next().await? {
///     match &event.kind {
///         // Whoever held it gave up.
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
pub struct CancellableSession {
    session: Session,
    token: CancellationToken,
    /// Nothing, once it was cancelled or released.
    on_drop: Option<OnDrop>,
}

impl CancellableSession {
    pub(super) fn new(session: Session, on_drop: OnDrop) -> Self {
        Self { session, token: CancellationToken::new(), on_drop: Some(on_drop) }
    }

    /// The token: cancelled with the session, and for whatever else should end with it. To cancel it
    /// ends the streams of [`Self::events`]; to tell the agent takes [`Self::cancel`].
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// What the session does, until it is cancelled.
    pub fn events(&self) -> EventStream {
        self.session.events().cancelled_by(self.token.clone())
    }

    /// Cancels what goes on here, and tells the agent.
    pub async fn cancel(mut self) -> Result<(), AgentError> {
        self.token.cancel();
        match self.on_drop.take() {
            Some(OnDrop::Interrupt) => self.session.interrupt().await,
            Some(OnDrop::Stop) => self.session.stop().await,
            None => Ok(()),
        }
    }

    /// Lets the session go on by itself.
    pub fn release(mut self) -> Session {
        self.on_drop = None;
        self.session.clone()
    }
}

impl Deref for CancellableSession {
    type Target = Session;

    fn deref(&self) -> &Session {
        &self.session
    }
}

/// Where a runtime is there to do so, the agent is told; nobody waits for it.
impl Drop for CancellableSession {
    fn drop(&mut self) {
        let Some(on_drop) = self.on_drop.take() else { return };
        self.token.cancel();
        let session = self.session.clone();
        if let Ok(runtime) = Handle::try_current() {
            runtime.spawn(async move {
                match on_drop {
                    OnDrop::Interrupt => session.interrupt().await,
                    OnDrop::Stop => session.stop().await,
                }
            });
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
