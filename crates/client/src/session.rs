//! One session: what it is, what is wanted of it, and what it does.

mod cancellable;
mod snapshot;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentwire_protocol::reply::{PromptResult, SessionDetails};
use agentwire_protocol::{
    AgentType, Command, Configure, Json, Prompt, SessionId, SessionState, SessionSummary,
    Settlement, TokenUsage,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::cancellable::{CancellableSession, OnDrop};
pub(crate) use self::snapshot::{Known, settled};
use crate::client::AgentClient;
use crate::error::AgentError;
use crate::event::Event;
use crate::request::Request;
use crate::stream::{EventStream, Updates};

/// One session of a gateway. Clones are the same.
///
/// To drop it changes nothing: the agent works on. [`Self::cancellable`] is for when it should not.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    client: AgentClient,
    id: SessionId,
    agent: AgentType,
    /// Where its story begins for whoever holds it.
    begins_after: u64,
    known: Mutex<Known>,
}

impl Session {
    pub(crate) fn new(client: AgentClient, summary: SessionSummary, begins_after: u64) -> Self {
        let (id, agent) = (summary.id.clone(), summary.agent_type);
        let known = Mutex::new(Known::new(summary));
        Self { shared: Arc::new(Shared { client, id, agent, begins_after, known }) }
    }

    /// Its id.
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// Whose it is.
    pub fn client(&self) -> &AgentClient {
        &self.shared.client
    }

    /// Which agent.
    pub fn agent_type(&self) -> AgentType {
        self.shared.agent
    }

    /// What it does, as far as is known: from what was last asked, and from the events that were read
    /// since.
    pub fn state(&self) -> SessionState {
        self.known().summary().state
    }

    /// What all its turns used, as far as is known.
    pub fn usage(&self) -> TokenUsage {
        self.known().summary().usage
    }

    /// What all its turns cost, as far as is known and the agent says so.
    pub fn cost_usd(&self) -> Option<f64> {
        self.known().summary().cost_usd
    }

    /// The session, as far as is known, without asking.
    pub fn snapshot(&self) -> SessionSummary {
        self.known().summary().clone()
    }

    /// Asks how it stands.
    pub async fn summary(&self) -> Result<SessionSummary, AgentError> {
        Ok(self.details().await?.summary)
    }

    /// Asks how it stands, and what it runs with.
    pub async fn details(&self) -> Result<SessionDetails, AgentError> {
        let details = self.client().details(self.id()).await.map_err(|error| self.named(error))?;
        self.known().learn(&details.summary);
        Ok(details)
    }

    /// What it does: of a session that was begun or attached to, all of it; of one that was resumed, from
    /// there on. To its end.
    pub fn events(&self) -> EventStream {
        self.events_after(self.shared.begins_after)
    }

    /// What happened after that event and what happens from now on, to its end.
    pub fn events_after(&self, seq: u64) -> EventStream {
        EventStream::new(self.updates_after(seq), self.clone())
    }

    /// What [`Self::events`] has, in the gateway's own bytes, and what becomes of the connection. Nobody looks
    /// into them: [`Self::state`] and its like stay as they were.
    pub fn updates(&self) -> Updates {
        self.updates_after(self.shared.begins_after)
    }

    /// What [`Self::events_after`] has, in the gateway's own bytes, and what becomes of the connection.
    pub fn updates_after(&self, seq: u64) -> Updates {
        self.client().follow(self.id(), seq)
    }

    /// Gives it a prompt, and gives the id under which it was taken. Lost answers are asked for again; the
    /// prompt counts once. To say it again after an error, give it a [`message_id`](Prompt::message_id):
    /// under a new one it is a new prompt.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<String, AgentError> {
        let mut prompt = prompt.into();
        prompt.message_id.get_or_insert_with(|| Uuid::new_v4().to_string());
        let reply = self.send(Command::Prompt(prompt)).await?;
        let taken: PromptResult = self.client().read(&reply)?;
        Ok(taken.message_id)
    }

    /// Stops its turn; the session stays, and the prompts that wait.
    pub async fn interrupt(&self) -> Result<(), AgentError> {
        self.send(Command::Interrupt { cancel_queued: false }).await.map(drop)
    }

    /// Ends it; one that is over is. [`Self::ended`] waits until it is over.
    pub async fn stop(&self) -> Result<(), AgentError> {
        self.send(Command::Stop).await.map(drop)
    }

    /// Ends it once its work is done: no more prompts come, and nobody is left to ask.
    pub async fn finish(&self) -> Result<(), AgentError> {
        self.send(Command::Finish).await.map(drop)
    }

    /// Answers what it asks. [`Event::request`] and [`Self::requests`] have it with the means to answer.
    pub async fn settle(&self, settlement: Settlement) -> Result<(), AgentError> {
        self.send(Command::Settle(settlement)).await.map(drop)
    }

    /// Changes its model or its mode.
    pub async fn configure(&self, change: Configure) -> Result<(), AgentError> {
        self.send(Command::Configure(change)).await.map(drop)
    }

    /// Asks its agent for something, such as `supportedModels`.
    pub async fn query(
        &self,
        method: impl Into<String>,
        args: Vec<Json<'static>>,
    ) -> Result<Json<'static>, AgentError> {
        self.send(Command::Query { method: method.into(), args }).await
    }

    /// Puts files back to what they were at a message, or only tells what would change.
    pub async fn rewind(
        &self,
        message_id: impl Into<String>,
        dry_run: bool,
    ) -> Result<Json<'static>, AgentError> {
        self.send(Command::Rewind { message_id: message_id.into(), dry_run }).await
    }

    /// Sends any command, and gives what is answered.
    pub async fn send(&self, command: Command) -> Result<Json<'static>, AgentError> {
        self.client().send(self.id(), command).await.map_err(|error| self.named(error))
    }

    /// What it asks and waits for, oldest first.
    pub async fn requests(&self) -> Result<Vec<Request>, AgentError> {
        let asked = self.client().requests_of(Some(self.id()), Some(self.agent_type()));
        asked.await.map_err(|error| self.named(error))
    }

    /// Waits until it is over, and tells how it stands then.
    pub async fn ended(&self) -> Result<SessionSummary, AgentError> {
        let mut updates = self.updates_after(self.summary().await?.last_seq);
        while updates.try_next().await.map_err(|error| self.named(error))?.is_some() {}
        self.summary().await
    }

    /// A hold on it that interrupts or ends it when it is cancelled or dropped.
    pub fn cancellable(&self, on_drop: OnDrop) -> CancellableSession {
        CancellableSession::new(self.clone(), CancellationToken::new(), on_drop)
    }

    /// The same, also when that token is cancelled.
    pub fn cancellable_by(&self, token: &CancellationToken, on_drop: OnDrop) -> CancellableSession {
        CancellableSession::new(self.clone(), token.child_token(), on_drop)
    }

    /// Keeps what an event tells.
    pub(crate) fn note(&self, event: &Event) {
        self.known().note(event);
    }

    /// The log ends before that event.
    pub(crate) fn forget(&self, from: u64) {
        self.known().forget(from);
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn named(&self, error: AgentError) -> AgentError {
        error.with_agent(self.agent_type())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", self.id()).field("state", &self.state()).finish()
    }
}
