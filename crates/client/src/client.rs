//! One gateway: its sessions, and what they ask.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::reply::{RequestList, SessionDetails, SessionList};
use agentwire_protocol::{
    AgentType, Command, ErrorCode, GatewayError, Json, Profile, SessionId, SessionRequest,
    SessionState, SessionSummary,
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use uuid::Uuid;

use crate::error::{AgentError, AgentErrorType};
use crate::follow::Plan;
use crate::request::Request;
use crate::select::ClientBuilder;
use crate::session::Session;
use crate::stream::Updates;
use crate::transport::{Call, Transport};

/// How many sessions are asked for at once.
const PAGE: usize = 500;

/// The shortest beginning of an id that is taken for it, and the length of a whole one.
const SHORTEST: usize = 4;
const WHOLE: usize = 36;

/// How long to wait before a call is made again, each time.
const PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];

/// After this it is not said again.
const INSISTENCE: Duration = Duration::from_secs(30);

/// How much of a session may wait to be read, unless something else is said.
pub(crate) const BUFFER: usize = 1 << 20;

/// How long a gateway may be away, unless something else is said.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A client of one gateway. Clones are the same client.
#[derive(Clone, Debug)]
pub struct AgentClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    transport: Arc<dyn Transport>,
    buffer: usize,
    patience: Duration,
    /// Of sessions that name none.
    working_directory: Option<String>,
    /// It has answered before.
    was_there: AtomicBool,
}

/// Which sessions are wanted: all, unless something is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Only those that are not over.
    pub only_live: bool,
    /// At most so many.
    pub limit: Option<usize>,
}

impl AgentClient {
    /// A client of whatever gateway there is: the server that `AGENTWIRE_URL` names, else the one that runs
    /// on this machine, else a child `agentwire unified` of this program. See [`ClientBuilder`].
    pub async fn connect() -> Result<Self, AgentError> {
        Self::builder().connect().await
    }

    /// A client of a gateway of your choice.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// A client over that transport.
    pub fn over(transport: impl Transport) -> Self {
        Self::builder().over(transport)
    }

    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        buffer: usize,
        patience: Duration,
        working_directory: Option<String>,
    ) -> Self {
        let was_there = AtomicBool::new(false);
        let shared = Shared { transport, buffer, patience, working_directory, was_there };
        Self { shared: Arc::new(shared) }
    }

    /// The way to the gateway.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.shared.transport
    }

    /// Begins a session. Lost answers are asked for again; it is begun once.
    pub async fn create(&self, mut request: SessionRequest) -> Result<Session, AgentError> {
        let agent = request.agent_type;
        // One that goes on does so where it was.
        if request.session_id.is_none() && self.shared.working_directory.is_some() {
            let named = &mut request.config.get_or_insert_default().working_directory;
            *named = named.take().or_else(|| self.shared.working_directory.clone());
        }
        let summary = self.start(request).await.map_err(|error| error.with_agent(agent))?;
        Ok(Session::new(self.clone(), summary, 0))
    }

    /// Goes on with a session that is over.
    ///
    /// ```rust,standalone_crate
    /// # use agentwire_client::{AgentType, EventKind, SessionRequest};
    /// # fn main() -> std::process::ExitCode { agentwire::example::run(async |trial| {
    /// # let gateway = agentwire_client::InProcessTransport::with_settings(trial.settings()).await?;
    /// # let client = agentwire_client::AgentClient::over(gateway);
    /// let session = client.create(SessionRequest::new(AgentType::Demo, "/say one")).await?;
    /// session.finish().await?;
    /// session.ended().await?;
    ///
    /// let resumed = client.resume(session.id().clone(), "/say this is turn {turns}").await?;
    /// assert_eq!(resumed.id(), session.id());
    /// let mut events = resumed.events();
    /// while let Some(event) = events.try_next().await? {
    ///     if let EventKind::TurnCompleted(turn) = &event.kind {
    ///         assert_eq!(turn.turn_number, 2);
    ///         break;
    ///     }
    /// }
    /// # client.close().await;
    /// # Ok::<_, agentwire_client::AgentError>(()) }) }
    /// ```
    ///
    /// Its [`Session::events`] begin where it goes on.
    pub async fn resume(
        &self,
        id: impl Into<SessionId>,
        prompt: impl Into<String>,
    ) -> Result<Session, AgentError> {
        let before = self.summary(&id.into()).await?;
        let request = SessionRequest {
            session_id: Some(before.id.to_string()),
            ..SessionRequest::new(before.agent_type, prompt)
        };
        let started = self.start(request).await;
        let summary = started.map_err(|error| error.with_agent(before.agent_type))?;
        Ok(Session::new(self.clone(), summary, before.last_seq))
    }

    /// Comes to a session that there is, whoever began it.
    pub async fn attach(&self, id: impl Into<SessionId>) -> Result<Session, AgentError> {
        let summary = self.summary(&id.into()).await?;
        Ok(Session::new(self.clone(), summary, 0))
    }

    /// Sessions, newest first.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionSummary>, AgentError> {
        let SessionFilter { only_live, limit } = filter;
        let mut all = Vec::new();
        let mut after = None::<SessionId>;
        loop {
            let wanted = limit.map_or(PAGE, |limit| limit.saturating_sub(all.len()).min(PAGE));
            if wanted == 0 {
                return Ok(all);
            }
            let page = Call::List { only_live, after: after.take(), limit: wanted };
            let page: SessionList = self.ask(page).await?;
            all.extend(page.sessions);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// The session whose id begins so, if there is exactly one.
    pub async fn find(&self, beginning: &str) -> Result<SessionId, AgentError> {
        if beginning.len() == WHOLE {
            return Ok(self.summary(&SessionId::from(beginning)).await?.id);
        }
        let all = match beginning.len() < SHORTEST {
            true => Vec::new(),
            false => self.sessions(SessionFilter::default()).await?,
        };
        let mut fitting = all.into_iter().filter(|found| found.id.as_str().starts_with(beginning));
        let message = match (fitting.next(), fitting.next()) {
            (Some(found), None) => return Ok(found.id),
            (Some(_), Some(_)) => {
                format!("several sessions begin with {beginning}; give more of the id")
            }
            (None, _) => {
                format!("there is no session {beginning}; `agentwire ls` lists those there are")
            }
        };
        Err(GatewayError::new(ErrorCode::SessionNotFound, message).into())
    }

    /// How a session stands.
    pub async fn summary(&self, id: &SessionId) -> Result<SessionSummary, AgentError> {
        self.ask(Call::Show(id.clone())).await
    }

    /// How a session stands, and what it runs with.
    pub async fn details(&self, id: &SessionId) -> Result<SessionDetails, AgentError> {
        self.ask(Call::Show(id.clone())).await
    }

    /// What agents ask and wait for, oldest first, over all sessions.
    pub async fn requests(&self) -> Result<Vec<Request>, AgentError> {
        self.requests_of(None, None).await
    }

    /// The same in one session, of that agent.
    pub(crate) async fn requests_of(
        &self,
        session: Option<&SessionId>,
        agent: Option<AgentType>,
    ) -> Result<Vec<Request>, AgentError> {
        let list: RequestList = self.ask(Call::Requests(session.cloned())).await?;
        let requests = list.requests.into_iter();
        Ok(requests.map(|open| Request::new(self.clone(), agent, open)).collect())
    }

    /// Ends what this client runs: its child, or the gateway in this process. To be called where nothing
    /// may be left behind when it returns; to drop the client does the same, without waiting. At the end of
    /// `main` nothing waits: what is not closed before is killed.
    pub async fn close(&self) {
        self.transport().close().await;
    }

    /// What failed once may be found by its key when it is said again, and has failed all the same.
    async fn start(&self, request: SessionRequest) -> Result<SessionSummary, AgentError> {
        let key = Uuid::new_v4().to_string();
        let (reply, before) = self.insist(Call::Start { request: Box::new(request), key }).await?;
        let summary: SessionSummary = self.read(&reply)?;
        match before {
            Some(refusal)
                if summary.reason == Some(SessionEndReason::Failed) && summary.turns == 0 =>
            {
                let why = summary.error.filter(|_| refusal.code().is_none());
                Err(why
                    .map_or(refusal, |why| GatewayError::new(ErrorCode::StartFailed, why).into()))
            }
            Some(_) | None => Ok(summary),
        }
    }

    async fn ask<T: DeserializeOwned>(&self, call: Call) -> Result<T, AgentError> {
        self.read(&self.call(call).await?)
    }

    /// Makes a call. What counts once or only asks is said again, if it may succeed then.
    pub(crate) async fn call(&self, call: Call) -> Result<Json<'static>, AgentError> {
        match call.is_repeatable() {
            true => self.insist(call).await.map(|(reply, _)| reply),
            false => self.make(call).await,
        }
    }

    /// The gateway has answered.
    pub(crate) fn note_there(&self) {
        self.shared.was_there.store(true, Ordering::Relaxed);
    }

    async fn make(&self, call: Call) -> Result<Json<'static>, AgentError> {
        let reply = self.transport().call(call).await;
        if reply.as_ref().map_or_else(AgentError::is_refusal, |_| true) {
            self.note_there();
        }
        reply
    }

    /// Makes a call, again if it may succeed then, a few times. Gives why it failed before, too. A gateway
    /// that was never there is a mistake at once; one that was may come back.
    pub(crate) async fn insist(
        &self,
        call: Call,
    ) -> Result<(Json<'static>, Option<AgentError>), AgentError> {
        let begun = Instant::now();
        let mut before = None;
        for pause in PAUSES {
            let error = match self.make(call.clone()).await {
                Ok(reply) => return Ok((reply, before)),
                Err(error) => error,
            };
            let may_be_back =
                !error.is_unreachable() || self.shared.was_there.load(Ordering::Relaxed);
            if !error.is_retryable() || !may_be_back || begun.elapsed() >= INSISTENCE {
                return Err(error);
            }
            before = Some(error);
            tokio::time::sleep(pause).await;
        }
        Ok((self.make(call).await?, before))
    }

    /// Sends a command to a session. Whichever the way, one that is over says so, and may be stopped again.
    pub(crate) async fn send(
        &self,
        session: &SessionId,
        command: Command,
    ) -> Result<Json<'static>, AgentError> {
        let is_stop = matches!(command, Command::Stop);
        let error = match self.call(Call::Command(session.clone(), command)).await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        if !matches!(error.code(), Some(ErrorCode::Conflict | ErrorCode::SessionNotFound)) {
            return Err(error);
        }
        match self.summary(session).await {
            Ok(summary) if summary.state == SessionState::Ended && is_stop => Ok(Json::EMPTY),
            Ok(summary) if summary.state == SessionState::Ended => {
                let message = format!("session {session} is over; resume it to go on");
                Err(GatewayError::new(ErrorCode::Conflict, message).into())
            }
            Ok(_) | Err(_) => Err(error),
        }
    }

    pub(crate) fn read<T: DeserializeOwned>(&self, reply: &Json<'static>) -> Result<T, AgentError> {
        read(&**self.transport(), reply)
    }

    pub(crate) fn follow(&self, session: &SessionId, after: u64) -> Updates {
        let plan = Plan {
            transport: Arc::clone(self.transport()),
            session: session.clone(),
            after,
            up_to: None,
            profile: Profile::Full,
            patience: self.shared.patience,
        };
        Updates::new(plan, self.shared.buffer)
    }
}

/// Reads a reply.
pub(crate) fn read<T: DeserializeOwned>(
    transport: &dyn Transport,
    reply: &Json<'static>,
) -> Result<T, AgentError> {
    reply.read().map_err(|error| nonsense(transport, &error))
}

/// The reply is not what such a gateway says.
fn nonsense(transport: &dyn Transport, error: &serde_json::Error) -> AgentError {
    let message =
        format!("failed to speak to {}: its answer cannot be read: {error}", transport.name());
    AgentError::new(AgentErrorType::ProtocolError, message).with_native(error).retryable()
}
