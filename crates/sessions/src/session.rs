//! A session: one actor that owns one agent and appends events to one log.

mod actor;
mod agent;
mod answer_effects;
mod answer_scope;
mod breach;
mod callers;
mod calls;
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
mod phase;
pub mod policy;
mod prompts;
mod queued_prompt;
mod raised;
mod requests;
mod screening;
mod settling;
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
pub(crate) use state::Book;
pub(crate) use structured::Structured;

/// How many commands may wait for a session. It takes them at once, so that few ever do.
const COMMAND_QUEUE: usize = 64;

/// A running session, for whoever wants something of it.
#[derive(Clone, Debug)]
pub struct SessionHandle {
    id: SessionId,
    commands: mpsc::Sender<Message>,
    /// What must reach the session however much waits for it.
    brakes: mpsc::Sender<Message>,
    summary: watch::Receiver<SessionSummary>,
    /// Who sends by this handle.
    client: Client,
}

/// Who sends commands.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Client {
    /// Its name: what it answers is kept under it.
    pub name: Option<Arc<str>>,
    /// Its answers give what was asked for and shown, and nothing else.
    pub is_limited: bool,
}

/// Tells one run of a session from another.
pub(crate) struct Mark(mpsc::WeakSender<Message>);

/// The session's end of it.
#[derive(Debug)]
pub(crate) struct Inbox {
    commands: mpsc::Receiver<Message>,
    brakes: mpsc::Receiver<Message>,
    /// Nobody is left to send anything.
    is_abandoned: bool,
}

impl Inbox {
    /// The next command; what overtakes comes first. None, once, when nobody is left to send one.
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

    /// Takes no more, and gives what waits.
    pub(crate) fn close(&mut self) -> Vec<Message> {
        let mut waiting = Vec::new();
        for lane in [&mut self.brakes, &mut self.commands] {
            lane.close();
            waiting.extend(std::iter::from_fn(|| lane.try_recv().ok()));
        }
        waiting
    }
}

/// A command on its way.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) command: Command,
    pub(crate) client: Client,
    /// The key under which it counts once, and the answer that is kept for it.
    pub(crate) key: Option<(String, String)>,
    /// What the message that it came with takes of the budget, until what it did is durable and said to
    /// the agent. Nobody waits for an agent's answer with it.
    pub(crate) share: Option<Arc<Share>>,
    pub(crate) reply: oneshot::Sender<Answered>,
}

/// What came of a command.
#[derive(Debug)]
pub struct Answered {
    /// The reply.
    pub reply: Result<Json<'static>, GatewayError>,
    /// The last event before it: those of what the command did are not after it, and what came later is.
    /// But for some errors of the gateway's own, it is there before a later event can be seen.
    pub last_seq: u64,
}

impl SessionHandle {
    pub(crate) fn new(id: SessionId, summary: watch::Receiver<SessionSummary>) -> (Self, Inbox) {
        let (commands, inbox) = mpsc::channel(COMMAND_QUEUE);
        let (brakes, first) = mpsc::channel(COMMAND_QUEUE);
        let handle = Self { id, commands, brakes, summary, client: Client::default() };
        (handle, Inbox { commands: inbox, brakes: first, is_abandoned: false })
    }

    /// The same for that client.
    pub fn of_client(mut self, client: &Client) -> Self {
        self.client = client.clone();
        self
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.id
    }

    /// The session as it is, as far as that is durable.
    pub fn summary(&self) -> SessionSummary {
        self.summary.borrow().clone()
    }

    /// How many commands wait for the session to take them.
    pub fn waiting(&self) -> usize {
        let waiting = |lane: &mpsc::Sender<Message>| lane.max_capacity() - lane.capacity();
        waiting(&self.commands) + waiting(&self.brakes)
    }

    /// Sends a command. The reply comes once what it did is durable.
    pub async fn send(&self, command: Command) -> Result<Json<'static>, GatewayError> {
        self.send_once(command, None, None).await
    }

    /// Sends a command under a key that was not used before, if it has one. If the session takes the command,
    /// the key is durable with what it did. A large command has its share of the budget: the session holds it
    /// until what it did is durable and said to the agent.
    pub(crate) async fn send_once(
        &self,
        command: Command,
        key: Option<(String, String)>,
        share: Option<Arc<Share>>,
    ) -> Result<Json<'static>, GatewayError> {
        let (reply, result) = oneshot::channel();
        let over = |_| self.over();
        let message = Message { client: self.client.clone(), key, share, reply, command };
        self.lane(&message.command).send(message).await.map_err(over)?;
        result.await.map_err(|_| self.over())?.reply
    }

    /// Sends a command at once, in the order of the calls; the reply is waited for apart. Gives the
    /// command back if there is no room for it: [`Self::room`] waits for that. A large one has its share of
    /// the budget.
    pub fn post(
        &self,
        command: Command,
        share: Option<Arc<Share>>,
    ) -> Result<impl Future<Output = Answered> + use<>, Box<Command>> {
        let (reply, result) = oneshot::channel();
        let message = Message { client: self.client.clone(), key: None, share, reply, command };
        let sent = self.lane(&message.command).try_send(message);
        if let Err(mpsc::error::TrySendError::Full(message)) = sent {
            return Err(Box::new(message.command));
        }
        // Who sends to a session that is over hears it by the reply.
        let over = self.over();
        Ok(async move { result.await.unwrap_or(Answered { reply: Err(over), last_seq: 0 }) })
    }

    /// Waits until there is room for a command, or the session is over.
    pub async fn room(&self) {
        let _ = self.commands.reserve().await;
    }

    /// Commands keep their order. Only where there is no room, what overtakes does.
    fn lane(&self, command: &Command) -> &mpsc::Sender<Message> {
        match self.commands.capacity() == 0 && overtakes(command) {
            true => &self.brakes,
            false => &self.commands,
        }
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

    /// By what this session is known again, without being a way to it.
    pub(crate) fn mark(&self) -> Mark {
        Mark(self.commands.downgrade())
    }

    pub(crate) fn has(&self, mark: &Mark) -> bool {
        mark.0.upgrade().is_some_and(|commands| commands.same_channel(&self.commands))
    }

    fn over(&self) -> GatewayError {
        GatewayError::new(
            ErrorCode::Conflict,
            format!("session {} is over; it can be resumed", self.id),
        )
    }
}

/// Whether a command must not wait for those before it. The end of the work comes after all of it.
pub fn overtakes(command: &Command) -> bool {
    match command {
        Command::Interrupt { .. } | Command::Stop | Command::Settle(_) => true,
        Command::Start(_)
        | Command::Attach { .. }
        | Command::Prompt(_)
        | Command::Finish
        | Command::Configure(_)
        | Command::Query { .. }
        | Command::Rewind { .. } => false,
    }
}
