//! A session: one actor that owns one agent and appends events to one log.

mod accept_commands;
mod actor;
mod agent;
mod answer_effects;
mod answer_scope;
mod breach;
mod callers;
mod client_mcp;
mod commands;
mod commit;
mod core;
mod deadlines;
mod escalation;
mod hooks;
mod journal;
mod lifecycle;
mod limits;
mod long_line;
mod outbox;
mod pending_prompt;
mod pending_request;
mod phase;
pub mod policy;
mod prompts;
mod queue;
mod requests;
mod screening;
mod settle_requests;
mod state;
mod stderr;
mod structured;
mod supervisor;
mod trust_gate;
#[cfg(test)]
mod wires;

use std::sync::Arc;

use agentwire_protocol::{
    Command, ErrorCode, GatewayError, Json, SessionId, SessionState, SessionSummary,
};
use tokio::sync::{mpsc, oneshot, watch};

use crate::budget::Share;

pub(crate) use actor::{Actor, Parts, Refusal};
pub(crate) use agent::{Origin, Plan};
pub(crate) use commands::{check_prompt, prompt_key};
pub(crate) use commit::storage;
pub(crate) use core::{Advisor, Core};
pub(crate) use hooks::Hooks;
pub(crate) use journal::Journal;
pub(crate) use long_line::LongLine;
pub(crate) use state::DerivedState;
pub(crate) use structured::Structured;

/// How many commands may wait for a session. The session accepts commands immediately, so few ever wait.
const COMMAND_QUEUE: usize = 64;

#[derive(Clone, Debug)]
pub struct SessionHandle {
    id: SessionId,
    commands: mpsc::Sender<Message>,
    /// A second lane for commands that must get through when `commands` is full.
    brakes: mpsc::Sender<Message>,
    summary: watch::Receiver<SessionSummary>,
    client: Client,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Recorded with the answers that this client gives.
    pub name: Option<Arc<str>>,
    /// Its answers grant what was requested and shown, and nothing else.
    pub is_limited: bool,
}

/// Distinguishes one run of a session from another.
pub(crate) struct Mark(mpsc::WeakSender<Message>);

/// The session's end of the channels of a [`SessionHandle`].
#[derive(Debug)]
pub(crate) struct Inbox {
    commands: mpsc::Receiver<Message>,
    brakes: mpsc::Receiver<Message>,
    /// No senders are left.
    is_abandoned: bool,
}

impl Inbox {
    /// The next command; those that overtake come first. Returns `None` once, when no senders are left, and
    /// then waits forever.
    pub(crate) async fn recv(&mut self) -> Option<Message> {
        if self.is_abandoned {
            return std::future::pending().await;
        }
        let message = tokio::select! {
            biased;
            Some(message) = self.brakes.recv() => Some(message),
            message = self.commands.recv() => message,
        };
        self.is_abandoned = message.is_none();
        message
    }

    /// Stops accepting messages and returns those that wait.
    pub(crate) fn close(&mut self) -> Vec<Message> {
        let mut waiting = Vec::new();
        for lane in [&mut self.brakes, &mut self.commands] {
            lane.close();
            waiting.extend(std::iter::from_fn(|| lane.try_recv().ok()));
        }
        waiting
    }
}

#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) command: Command,
    pub(crate) client: Client,
    /// The key that makes the command count once, and the answer to store for that key.
    pub(crate) key: Option<(String, String)>,
    /// The command's share of the memory budget. It is held until the effects of the command are durable
    /// and sent to the agent, but not while waiting for the agent's answer.
    pub(crate) share: Option<Arc<Share>>,
    pub(crate) reply: oneshot::Sender<CommandReply>,
}

#[derive(Debug)]
pub struct CommandReply {
    pub reply: Result<Json<'static>, GatewayError>,
    /// The sequence number of the last event before the reply. The events that the command caused are at or
    /// before it; later events are after it. Except for some errors from the gateway itself, the reply is
    /// sent before any later event is visible.
    pub last_seq: u64,
}

impl SessionHandle {
    pub(crate) fn new(id: SessionId, summary: watch::Receiver<SessionSummary>) -> (Self, Inbox) {
        let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
        let (brakes, first) = mpsc::channel(COMMAND_QUEUE);
        let handle = Self { id, commands, brakes, summary, client: Client::default() };
        (handle, Inbox { commands: inbox, brakes: first, is_abandoned: false })
    }

    /// The same handle, sending on behalf of `client`.
    pub fn of_client(mut self, client: &Client) -> Self {
        self.client = client.clone();
        self
    }

    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The durable state of the session.
    pub fn summary(&self) -> SessionSummary {
        self.summary.borrow().clone()
    }

    /// How many commands wait for the session to accept them.
    pub fn waiting(&self) -> usize {
        let waiting = |lane: &mpsc::Sender<Message>| lane.max_capacity() - lane.capacity();
        waiting(&self.commands) + waiting(&self.brakes)
    }

    /// Sends a command. The reply arrives once the command's effects are durable.
    pub async fn send(&self, command: Command) -> Result<Json<'static>, GatewayError> {
        self.send_once(command, None, None).await
    }

    /// Sends a command, optionally under a key that was not used before. If the session accepts the
    /// command, the key becomes durable together with its effects. A large command has a share of the
    /// budget, which the session holds until the effects are durable and sent to the agent.
    pub(crate) async fn send_once(
        &self,
        command: Command,
        key: Option<(String, String)>,
        share: Option<Arc<Share>>,
    ) -> Result<Json<'static>, GatewayError> {
        let (reply, result) = oneshot::channel();
        let ended = |_| self.ended_error();
        let message = Message { client: self.client.clone(), key, share, reply, command };
        self.lane(&message.command).send(message).await.map_err(ended)?;
        result.await.map_err(|_| self.ended_error())?.reply
    }

    /// Sends a command immediately, in call order; await the returned future for the reply. Returns the
    /// command if there is no room for it: [`Self::room`] waits for room. A large command has a share of
    /// the budget.
    pub fn post(
        &self,
        command: Command,
        share: Option<Arc<Share>>,
    ) -> Result<impl Future<Output = CommandReply> + use<>, Box<Command>> {
        let (reply, result) = oneshot::channel();
        let message = Message { client: self.client.clone(), key: None, share, reply, command };
        let sent = self.lane(&message.command).try_send(message);
        if let Err(mpsc::error::TrySendError::Full(message)) = sent {
            return Err(Box::new(message.command));
        }
        // If the session has ended, the sender learns it from the reply.
        let ended = self.ended_error();
        Ok(async move { result.await.unwrap_or(CommandReply { reply: Err(ended), last_seq: 0 }) })
    }

    /// Waits until there is room for a command, or the session has ended.
    pub async fn room(&self) {
        let _ = self.commands.reserve().await;
    }

    /// Commands keep their order, except that overtaking commands use the second lane when the first is
    /// full.
    fn lane(&self, command: &Command) -> &mpsc::Sender<Message> {
        match self.commands.capacity() == 0 && overtakes(command) {
            true => &self.brakes,
            false => &self.commands,
        }
    }

    /// Waits until the session's state fits, and returns it. An ended session always fits.
    pub async fn until(&self, fits: impl Fn(&SessionSummary) -> bool) -> SessionSummary {
        let mut summary = self.summary.clone();
        let ended = |summary: &SessionSummary| summary.state == SessionState::Ended;
        match summary.wait_for(|summary| fits(summary) || ended(summary)).await {
            Ok(summary) => summary.clone(),
            Err(_) => self.summary(),
        }
    }

    pub async fn ended(&self) -> SessionSummary {
        self.until(|_| false).await
    }

    /// Identifies this run of the session without keeping a way to send to it.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.commands.downgrade())
    }

    pub(crate) fn has(&self, mark: &Mark) -> bool {
        mark.0.upgrade().is_some_and(|commands| commands.same_channel(&self.commands))
    }

    fn ended_error(&self) -> GatewayError {
        GatewayError::new(
            ErrorCode::Conflict,
            format!("session {} has ended; it can be resumed", self.id),
        )
    }
}

/// Whether a command must not wait for those before it. `Finish` waits, because it comes after all work.
pub fn overtakes(command: &Command) -> bool {
    matches!(command, Command::Interrupt { .. } | Command::Stop | Command::Settle(_))
}
