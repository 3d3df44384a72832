//! A session: one actor that owns one agent and appends events to one log.

mod actor;
mod agent;
mod book;
mod calls;
mod commands;
mod commit;
mod core;
mod deadlines;
mod hooks;
mod hosted;
mod journal;
mod limits;
mod living;
pub mod policy;
mod requests;
mod stderr;
mod taken;

use agentwire_protocol::{
    Command, ErrorCode, GatewayError, Json, SessionId, SessionState, SessionSummary,
};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use actor::{Actor, Parts};
pub(crate) use agent::{Origin, Plan};
pub(crate) use book::Book;
pub(crate) use commands::check_prompt;
pub(crate) use commit::storage;
pub(crate) use core::Core;
pub(crate) use hooks::Hooks;
pub(crate) use journal::Journal;

/// How many commands may wait for a session. It takes them at once, so that few ever do.
pub(crate) const COMMAND_QUEUE: usize = 64;

/// A running session, for whoever wants something of it.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    id: SessionId,
    commands: mpsc::Sender<Message>,
    summary: watch::Receiver<SessionSummary>,
}

/// A command on its way.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) command: Command,
    pub(crate) reply: oneshot::Sender<Answered>,
}

/// What came of a command.
#[derive(Debug)]
pub struct Answered {
    /// The reply.
    pub reply: Result<Json<'static>, GatewayError>,
    /// The last event that was durable then: those of what the command did are not after it.
    pub last_seq: u64,
}

impl SessionHandle {
    pub(crate) fn new(
        id: SessionId,
        commands: mpsc::Sender<Message>,
        summary: watch::Receiver<SessionSummary>,
    ) -> Self {
        Self { id, commands, summary }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session as it is, as far as that is durable.
    pub fn summary(&self) -> SessionSummary {
        self.summary.borrow().clone()
    }

    /// Sends a command. The reply comes once what it did is durable.
    pub async fn send(&self, command: Command) -> Result<Json<'static>, GatewayError> {
        let (reply, result) = oneshot::channel();
        let over = |_| self.over();
        self.commands.send(Message { command, reply }).await.map_err(over)?;
        result.await.map_err(|_| self.over())?.reply
    }

    /// Sends a command at once, in the order of the calls; the reply is waited for apart. Refused if
    /// too many wait already.
    pub fn post(
        &self,
        command: Command,
    ) -> Result<impl Future<Output = Answered> + use<>, GatewayError> {
        let (reply, result) = oneshot::channel();
        self.commands.try_send(Message { command, reply }).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => {
                GatewayError::new(ErrorCode::Overloaded, "too many commands wait for the session")
            }
            mpsc::error::TrySendError::Closed(_) => self.over(),
        })?;
        let over = self.over();
        Ok(async move { result.await.unwrap_or(Answered { reply: Err(over), last_seq: 0 }) })
    }

    /// Waits until the session is in a state that fits, and gives it. A session that is over fits.
    pub async fn until(&self, fits: impl Fn(&SessionSummary) -> bool) -> SessionSummary {
        let mut summary = self.summary.clone();
        let over = |summary: &SessionSummary| summary.state == SessionState::Ended;
        match summary.wait_for(|summary| fits(summary) || over(summary)).await {
            Ok(summary) => summary.clone(),
            Err(_) => self.summary(),
        }
    }

    /// Waits until the session is over.
    pub async fn ended(&self) -> SessionSummary {
        self.until(|_| false).await
    }

    pub(crate) fn is_same(&self, other: &Self) -> bool {
        self.commands.same_channel(&other.commands)
    }

    fn over(&self) -> GatewayError {
        GatewayError::new(
            ErrorCode::Conflict,
            format!("session {} is over; it can be resumed", self.id),
        )
    }
}
