//! [`AgentClient`]: starts, finds and lists the sessions of one gateway, and repeats calls that are safe to
//! repeat.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::reply::{RequestList, SessionDetails, SessionList};
use agentwire_protocol::{
    AgentType, Command, ErrorCode, GatewayError, Json, LabelChange, ListQuery, Profile,
    SearchQuery, SearchResult, SessionId, SessionRequest, SessionSort, SessionState,
    SessionSummary, UsageQuery, UsageReport,
};
use serde::de::DeserializeOwned;
use tokio::time::Instant;
use uuid::Uuid;

use crate::builder::ClientBuilder;
use crate::error::{AgentError, AgentErrorType};
use crate::follow::FollowPlan;
use crate::request::Request;
use crate::session::Session;
use crate::stream::Updates;
use crate::transport::{Call, Transport};

/// The page size of `list` calls.
const PAGE_SIZE: usize = 500;

/// The shortest id prefix that [`AgentClient::find`] accepts, and the length of a whole id.
const MIN_PREFIX: usize = 4;
const ID_LENGTH: usize = 36;

/// The pauses between attempts of one call.
const RETRY_PAUSES: [Duration; 3] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(3)];

/// No new attempt starts after this time.
const RETRY_WINDOW: Duration = Duration::from_secs(30);

/// The default of `ClientBuilder::buffer_bytes`.
pub(crate) const BUFFER: usize = 1 << 20;

/// The default of `ClientBuilder::patience`.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A client of one gateway. Clones share the same connection state.
#[derive(Clone, Debug)]
pub struct AgentClient {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    transport: Arc<dyn Transport>,
    buffer: usize,
    patience: Duration,
    /// For new sessions whose config has no working directory.
    working_directory: Option<String>,
    /// Whether the gateway has ever answered.
    has_answered: AtomicBool,
}

/// Selects sessions in [`AgentClient::sessions`]. The default selects all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SessionFilter {
    /// Leave out sessions that have ended.
    pub only_live: bool,
    /// Return at most this many.
    pub limit: Option<usize>,
    /// Only sessions in this state.
    pub state: Option<SessionState>,
    /// Only sessions of this agent.
    pub agent: Option<AgentType>,
    /// Only sessions that work in this directory or below it.
    pub directory: Option<String>,
    /// Only sessions with all of these words in the title, the start of the first prompt, the directory or
    /// the tags.
    pub words: Option<String>,
    /// The order; the newest first if omitted.
    pub sort: Option<SessionSort>,
}

impl AgentClient {
    /// Connects to the first gateway found: the server that `AGENTWIRE_URL` names, else the server that
    /// runs on this machine, else a child process `agentwire unified`. [`ClientBuilder`] has the exact
    /// rules.
    pub async fn connect() -> Result<Self, AgentError> {
        Self::builder().connect().await
    }

    /// Configures which gateway to use, and how.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    /// Makes a client that uses this transport.
    pub fn over(transport: impl Transport) -> Self {
        Self::builder().over(transport)
    }

    pub(crate) fn new(
        transport: Arc<dyn Transport>,
        buffer: usize,
        patience: Duration,
        working_directory: Option<String>,
    ) -> Self {
        let has_answered = AtomicBool::new(false);
        let shared = Shared { transport, buffer, patience, working_directory, has_answered };
        Self { shared: Arc::new(shared) }
    }

    /// The transport to the gateway.
    pub fn transport(&self) -> &Arc<dyn Transport> {
        &self.shared.transport
    }

    /// Starts a session. If the reply is lost, the call is repeated; the session starts only once.
    pub async fn create(&self, mut request: SessionRequest) -> Result<Session, AgentError> {
        let agent = request.agent_type;
        // A resumed session stays in its own directory.
        if request.session_id.is_none() && self.shared.working_directory.is_some() {
            let named = &mut request.config.get_or_insert_default().working_directory;
            *named = named.take().or_else(|| self.shared.working_directory.clone());
        }
        let summary = self.start(request).await.map_err(|error| error.with_agent(agent))?;
        Ok(Session::new(self.clone(), summary, 0))
    }

    /// Resumes a session that has ended, with a new prompt.
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
    /// [`Session::events`] of the result starts with the first event after the resume.
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

    /// Attaches to an existing session, no matter which client started it.
    pub async fn attach(&self, id: impl Into<SessionId>) -> Result<Session, AgentError> {
        let summary = self.summary(&id.into()).await?;
        Ok(Session::new(self.clone(), summary, 0))
    }

    /// Lists sessions, newest first unless the filter has another order.
    pub async fn sessions(&self, filter: SessionFilter) -> Result<Vec<SessionSummary>, AgentError> {
        let SessionFilter { only_live, limit, state, agent, directory, words, sort } = filter;
        let mut all = Vec::new();
        let mut query = ListQuery {
            live: only_live,
            state,
            agent,
            directory,
            q: words,
            sort: Some(sort.unwrap_or(SessionSort::Created)),
            ..ListQuery::default()
        };
        loop {
            let wanted =
                limit.map_or(PAGE_SIZE, |limit| limit.saturating_sub(all.len()).min(PAGE_SIZE));
            if wanted == 0 {
                return Ok(all);
            }
            query.limit = Some(wanted);
            let page: SessionList =
                self.call_and_parse(Call::List(Box::new(query.clone()))).await?;
            all.extend(page.sessions);
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// One page of sessions, in the order of the query.
    pub async fn page(&self, query: ListQuery) -> Result<SessionList, AgentError> {
        self.call_and_parse(Call::List(Box::new(query))).await
    }

    /// Returns the id of the one session whose id starts with this prefix. The prefix needs at least four
    /// characters; if no session or several sessions match, the error is `sessionNotFound`.
    pub async fn find(&self, prefix: &str) -> Result<SessionId, AgentError> {
        if prefix.len() == ID_LENGTH {
            return Ok(self.summary(&SessionId::from(prefix)).await?.id);
        }
        let all = match prefix.len() < MIN_PREFIX {
            true => Vec::new(),
            false => self.sessions(SessionFilter::default()).await?,
        };
        let mut fitting = all.into_iter().filter(|found| found.id.as_str().starts_with(prefix));
        let message = match (fitting.next(), fitting.next()) {
            (Some(found), None) => return Ok(found.id),
            (Some(_), Some(_)) => {
                format!("several sessions start with {prefix}; use more of the id")
            }
            (None, _) => {
                format!("there is no session {prefix}; list sessions with `agentwire ls`")
            }
        };
        Err(GatewayError::new(ErrorCode::SessionNotFound, message).into())
    }

    /// Asks the gateway for the session's current summary.
    pub async fn summary(&self, id: &SessionId) -> Result<SessionSummary, AgentError> {
        self.call_and_parse(Call::Show(id.clone())).await
    }

    /// Asks the gateway for the session's current summary and its configuration.
    pub async fn details(&self, id: &SessionId) -> Result<SessionDetails, AgentError> {
        self.call_and_parse(Call::Show(id.clone())).await
    }

    /// Reports the usage of turns that have ended.
    pub async fn usage(&self, query: UsageQuery) -> Result<UsageReport, AgentError> {
        self.call_and_parse(Call::Usage(query)).await
    }

    /// Searches in prompts, answers, thinking, calls and paths.
    pub async fn search(&self, query: SearchQuery) -> Result<SearchResult, AgentError> {
        self.call_and_parse(Call::Search(Box::new(query))).await
    }

    /// Changes the title, the pin or the tags of a session, whichever process runs it. Returns the session.
    pub async fn label(
        &self,
        id: &SessionId,
        change: LabelChange,
    ) -> Result<SessionSummary, AgentError> {
        self.call_and_parse(Call::Label(id.clone(), change)).await
    }

    /// Lists the open requests of all sessions, oldest first.
    pub async fn requests(&self) -> Result<Vec<Request>, AgentError> {
        self.requests_of(None, None).await
    }

    pub(crate) async fn requests_of(
        &self,
        session: Option<&SessionId>,
        agent: Option<AgentType>,
    ) -> Result<Vec<Request>, AgentError> {
        let list: RequestList = self.call_and_parse(Call::Requests(session.cloned())).await?;
        let requests = list.requests.into_iter();
        Ok(requests.map(|open| Request::new(self.clone(), agent, open)).collect())
    }

    /// Ends what this client runs, a child process or the gateway in this process, and waits for it. Call
    /// it where nothing may be left behind. Dropping the client does the same without waiting, but at the
    /// end of `main` nothing waits: what is not closed by then is killed.
    pub async fn close(&self) {
        self.transport().close().await;
    }

    /// A repeated start can find, by its key, a session whose first start failed. That is still a failure.
    async fn start(&self, request: SessionRequest) -> Result<SessionSummary, AgentError> {
        let key = Uuid::new_v4().to_string();
        let (reply, before) =
            self.call_with_retries(Call::Start { request: Box::new(request), key }).await?;
        let summary: SessionSummary = self.parse(&reply)?;
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

    async fn call_and_parse<T: DeserializeOwned>(&self, call: Call) -> Result<T, AgentError> {
        self.parse(&self.call(call).await?)
    }

    /// Makes a call. A call that counts once or only reads is repeated if it may succeed later.
    pub(crate) async fn call(&self, call: Call) -> Result<Json<'static>, AgentError> {
        match call.is_repeatable() {
            true => self.call_with_retries(call).await.map(|(reply, _)| reply),
            false => self.call_once(call).await,
        }
    }

    /// Records that the gateway has answered.
    pub(crate) fn note_answered(&self) {
        self.shared.has_answered.store(true, Ordering::Relaxed);
    }

    async fn call_once(&self, call: Call) -> Result<Json<'static>, AgentError> {
        let reply = self.transport().call(call).await;
        if reply.as_ref().map_or_else(AgentError::is_refusal, |_| true) {
            self.note_answered();
        }
        reply
    }

    /// Makes a call, and repeats it a few times while it may succeed later. Returns the last failure too,
    /// if there was one. If the gateway has never answered, the first failure is final; otherwise it may
    /// come back.
    pub(crate) async fn call_with_retries(
        &self,
        call: Call,
    ) -> Result<(Json<'static>, Option<AgentError>), AgentError> {
        let begun = Instant::now();
        let mut before = None;
        for pause in RETRY_PAUSES {
            let error = match self.call_once(call.clone()).await {
                Ok(reply) => return Ok((reply, before)),
                Err(error) => error,
            };
            let may_come_back =
                !error.is_unreachable() || self.shared.has_answered.load(Ordering::Relaxed);
            if !error.is_retryable() || !may_come_back || begun.elapsed() >= RETRY_WINDOW {
                return Err(error);
            }
            before = Some(error);
            tokio::time::sleep(pause).await;
        }
        Ok((self.call_once(call).await?, before))
    }

    /// Sends a command to a session. Over every transport, a command to an ended session fails as
    /// `conflict`, except that `stop` succeeds.
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
                let message = format!("session {session} has ended; resume it to continue");
                Err(GatewayError::new(ErrorCode::Conflict, message).into())
            }
            Ok(_) | Err(_) => Err(error),
        }
    }

    pub(crate) fn parse<T: DeserializeOwned>(
        &self,
        reply: &Json<'static>,
    ) -> Result<T, AgentError> {
        parse(&**self.transport(), reply)
    }

    pub(crate) fn follow(&self, session: &SessionId, after: u64) -> Updates {
        let plan = FollowPlan {
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

pub(crate) fn parse<T: DeserializeOwned>(
    transport: &dyn Transport,
    reply: &Json<'static>,
) -> Result<T, AgentError> {
    reply.read().map_err(|error| unreadable(transport, &error))
}

fn unreadable(transport: &dyn Transport, error: &serde_json::Error) -> AgentError {
    let message = format!("failed to read the answer of {}: {error}", transport.name());
    AgentError::new(AgentErrorType::ProtocolError, message).with_native(error).retryable()
}
