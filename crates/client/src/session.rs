//! [`Session`]: state, events and commands of one session.

mod cancellable;
mod snapshot;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use agentwire_protocol::reply::{PromptQueue, PromptResult, QueuedPrompt, SessionDetails};
use agentwire_protocol::{
    AgentType, Command, Configure, Json, Prompt, SessionId, SessionState, SessionSummary,
    Settlement, TokenUsage,
};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub use self::cancellable::{CancellableSession, OnDrop};
pub(crate) use self::snapshot::{Snapshot, settled_request};
use crate::client::AgentClient;
use crate::error::AgentError;
use crate::event::Event;
use crate::request::Request;
use crate::stream::{EventStream, Updates};

/// One session of a gateway. Clones share the same state.
///
/// Dropping it changes nothing: the agent keeps working. Use [`Self::cancellable`] if it should stop.
#[derive(Clone)]
pub struct Session {
    shared: Arc<Shared>,
}

struct Shared {
    client: AgentClient,
    id: SessionId,
    agent: AgentType,
    /// [`Self::events`] starts after this event.
    begins_after: u64,
    known: Mutex<Snapshot>,
}

impl Session {
    pub(crate) fn new(client: AgentClient, summary: SessionSummary, begins_after: u64) -> Self {
        let (id, agent) = (summary.id.clone(), summary.agent_type);
        let known = Mutex::new(Snapshot::new(summary));
        Self { shared: Arc::new(Shared { client, id, agent, begins_after, known }) }
    }

    /// The session's id.
    pub fn id(&self) -> &SessionId {
        &self.shared.id
    }

    /// The client that this session belongs to.
    pub fn client(&self) -> &AgentClient {
        &self.shared.client
    }

    /// The agent that runs in this session.
    pub fn agent_type(&self) -> AgentType {
        self.shared.agent
    }

    /// The last known state: from the last summary, and from the events read by [`Self::events`] since.
    pub fn state(&self) -> SessionState {
        self.known().summary().state
    }

    /// The last known token usage of all turns.
    pub fn usage(&self) -> TokenUsage {
        self.known().summary().usage
    }

    /// The last known cost of all turns, if the agent reports costs.
    pub fn cost_usd(&self) -> Option<f64> {
        self.known().summary().cost_usd
    }

    /// The last known summary, without a call to the gateway.
    pub fn snapshot(&self) -> SessionSummary {
        self.known().summary().clone()
    }

    /// Asks the gateway for the current summary.
    pub async fn summary(&self) -> Result<SessionSummary, AgentError> {
        Ok(self.details().await?.summary)
    }

    /// Asks the gateway for the current summary and the session's configuration.
    pub async fn details(&self) -> Result<SessionDetails, AgentError> {
        let details =
            self.client().details(self.id()).await.map_err(|error| self.with_agent(error))?;
        self.known().replace_summary(&details.summary);
        Ok(details)
    }

    /// All events to the end of the session. For a session that was created or attached to, they start with
    /// the first; for one that was resumed, with the first after the resume.
    pub fn events(&self) -> EventStream {
        self.events_after(self.shared.begins_after)
    }

    /// All events after number `seq`, past and future, to the end of the session.
    pub fn events_after(&self, seq: u64) -> EventStream {
        EventStream::new(self.updates_after(seq), self.clone())
    }

    /// The same events as [`Self::events`] in the gateway's exact bytes, and changes of the connection.
    /// They are not parsed, so [`Self::state`] and the other known values do not change.
    pub fn updates(&self) -> Updates {
        self.updates_after(self.shared.begins_after)
    }

    /// The same events as [`Self::events_after`] in the gateway's exact bytes, and changes of the
    /// connection.
    pub fn updates_after(&self, seq: u64) -> Updates {
        self.client().follow(self.id(), seq)
    }

    /// Sends a prompt and returns its message id. If the reply is lost, the call is repeated; the prompt
    /// counts only once. To repeat it yourself after an error, set a [`message_id`](Prompt::message_id):
    /// with a new id it is a new prompt.
    pub async fn prompt(&self, prompt: impl Into<Prompt>) -> Result<String, AgentError> {
        let mut prompt = prompt.into();
        prompt.message_id.get_or_insert_with(|| Uuid::new_v4().to_string());
        let reply = self.send(Command::Prompt(prompt)).await?;
        let taken: PromptResult = self.client().parse(&reply)?;
        Ok(taken.message_id)
    }

    /// The prompts that wait for their turn, in the order in which they will be sent.
    pub async fn queue(&self) -> Result<Vec<QueuedPrompt>, AgentError> {
        let reply = self.send(Command::Queue).await?;
        let queue: PromptQueue = self.client().parse(&reply)?;
        Ok(queue.queued)
    }

    /// Cancels a prompt that waits for its turn.
    pub async fn cancel(&self, message_id: impl Into<String>) -> Result<(), AgentError> {
        self.send(Command::Cancel { message_id: message_id.into() }).await.map(drop)
    }

    /// Changes the text of a prompt that waits for its turn.
    pub async fn edit(
        &self,
        message_id: impl Into<String>,
        text: impl Into<String>,
    ) -> Result<(), AgentError> {
        let command = Command::Edit { message_id: message_id.into(), text: text.into() };
        self.send(command).await.map(drop)
    }

    /// Stops the current turn. The session and its queued prompts stay.
    pub async fn interrupt(&self) -> Result<(), AgentError> {
        self.send(Command::Interrupt { cancel_queued: false }).await.map(drop)
    }

    /// Ends the session; it succeeds if the session has already ended. [`Self::ended`] waits for the end.
    pub async fn stop(&self) -> Result<(), AgentError> {
        self.send(Command::Stop).await.map(drop)
    }

    /// Ends the session once its work is done: queued prompts become turns, no more are accepted, and
    /// requests that no rule answers are denied.
    pub async fn finish(&self) -> Result<(), AgentError> {
        self.send(Command::Finish).await.map(drop)
    }

    /// Answers a request. [`Event::request`] and [`Self::requests`] return requests with methods to answer
    /// them.
    pub async fn settle(&self, settlement: Settlement) -> Result<(), AgentError> {
        self.send(Command::Settle(settlement)).await.map(drop)
    }

    /// Changes the model or the approval mode.
    pub async fn configure(&self, change: Configure) -> Result<(), AgentError> {
        self.send(Command::Configure(change)).await.map(drop)
    }

    /// Asks the agent for information, such as `supportedModels`.
    pub async fn query(
        &self,
        method: impl Into<String>,
        args: Vec<Json<'static>>,
    ) -> Result<Json<'static>, AgentError> {
        self.send(Command::Query { method: method.into(), args }).await
    }

    /// Restores files to their state at a message. With `dry_run`, only reports what would change.
    pub async fn rewind(
        &self,
        message_id: impl Into<String>,
        dry_run: bool,
    ) -> Result<Json<'static>, AgentError> {
        self.send(Command::Rewind { message_id: message_id.into(), dry_run }).await
    }

    /// Sends any command and returns the reply.
    pub async fn send(&self, command: Command) -> Result<Json<'static>, AgentError> {
        self.client().send(self.id(), command).await.map_err(|error| self.with_agent(error))
    }

    /// Lists the session's open requests, oldest first.
    pub async fn requests(&self) -> Result<Vec<Request>, AgentError> {
        let asked = self.client().requests_of(Some(self.id()), Some(self.agent_type()));
        asked.await.map_err(|error| self.with_agent(error))
    }

    /// Waits until the session has ended, and returns its final summary.
    pub async fn ended(&self) -> Result<SessionSummary, AgentError> {
        let mut updates = self.updates_after(self.summary().await?.last_seq);
        while updates.try_next().await.map_err(|error| self.with_agent(error))?.is_some() {}
        self.summary().await
    }

    /// A guard that interrupts or ends the session when it is cancelled or dropped.
    pub fn cancellable(&self, on_drop: OnDrop) -> CancellableSession {
        CancellableSession::new(self.clone(), CancellationToken::new(), on_drop)
    }

    /// The same, and cancelling `token` cancels the guard.
    pub fn cancellable_by(&self, token: &CancellationToken, on_drop: OnDrop) -> CancellableSession {
        CancellableSession::new(self.clone(), token.child_token(), on_drop)
    }

    pub(crate) fn apply(&self, event: &Event) {
        self.known().apply(event);
    }

    /// The log ends before event `from`.
    pub(crate) fn forget(&self, from: u64) {
        self.known().forget(from);
    }

    fn known(&self) -> MutexGuard<'_, Snapshot> {
        self.shared.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn with_agent(&self, error: AgentError) -> AgentError {
        error.with_agent(self.agent_type())
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session").field("id", self.id()).field("state", &self.state()).finish()
    }
}
