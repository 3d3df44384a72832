//! A hold on a session that lets go of nothing quietly: cancelled or dropped, it tells the agent.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use super::Session;
use crate::error::AgentError;
use crate::stream::EventStream;

/// What happens to a session whose hold is cancelled or dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnDrop {
    /// Its turn is stopped; the session stays.
    Interrupt,
    /// It is ended.
    Stop,
}

impl OnDrop {
    async fn tell(self, session: &Session) -> Result<(), AgentError> {
        match self {
            Self::Interrupt => session.interrupt().await,
            Self::Stop => session.stop().await,
        }
    }
}

/// A session, and a token by which all that goes on with it here is cancelled, its agent's work too.
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
#[must_use = "dropped, it tells the agent at once"]
pub struct CancellableSession {
    session: Session,
    token: CancellationToken,
    on_drop: OnDrop,
    /// The agent was told, or nobody is to tell it any more.
    is_over: Arc<AtomicBool>,
    /// Tells it, once the token is cancelled.
    teller: Option<AbortHandle>,
}

impl CancellableSession {
    pub(super) fn new(session: Session, token: CancellationToken, on_drop: OnDrop) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let teller = Handle::try_current().ok().map(|runtime| {
            let (session, token, is_over) = (session.clone(), token.clone(), Arc::clone(&is_over));
            let teller = runtime.spawn(async move {
                token.cancelled().await;
                if !is_over.swap(true, Ordering::Relaxed) {
                    let _ = on_drop.tell(&session).await;
                }
            });
            teller.abort_handle()
        });
        Self { session, token, on_drop, is_over, teller }
    }

    /// The token, for whatever else should end with it. To cancel it is to cancel the session here: the
    /// agent is told, and nobody waits for it.
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }

    /// What the session does, until it is cancelled.
    pub fn events(&self) -> EventStream {
        self.session.events().cancelled_by(self.token.clone())
    }

    /// What [`Session::events_after`] has, until it is cancelled.
    pub fn events_after(&self, seq: u64) -> EventStream {
        self.session.events_after(seq).cancelled_by(self.token.clone())
    }

    /// Cancels what goes on here, tells the agent, and waits until it knows.
    pub async fn cancel(self) -> Result<(), AgentError> {
        // Given up in the middle, it is said all the same.
        if self.is_over.swap(true, Ordering::Relaxed) {
            return Ok(());
        }
        self.token.cancel();
        let (session, on_drop) = (self.session.clone(), self.on_drop);
        let told = tokio::spawn(async move { on_drop.tell(&session).await });
        told.await.unwrap_or_else(|error| Err(AgentError::broken("the session", error)))
    }

    /// Lets the session go on by itself.
    pub fn release(self) -> Session {
        if !self.is_over.swap(true, Ordering::Relaxed) {
            self.teller.iter().for_each(AbortHandle::abort);
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

/// The agent is told; nobody waits for it.
impl Drop for CancellableSession {
    fn drop(&mut self) {
        if !self.is_over.load(Ordering::Relaxed) {
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
