//! One server: its sessions, and what they ask.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::event::RequestRaised;
use agentwire_protocol::{
    ErrorCode, GatewayError, Json, SessionId, SessionRequest, SessionSummary, Settlement,
};
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::discovery::{Place, Server};
use crate::error::Error;
use crate::session::Session;
use crate::transport::{Call, Caller, encode};

/// How long the server may take to answer.
const CALL: Duration = Duration::from_secs(30);

/// How long it may take to begin something: an agent starts.
const START: Duration = Duration::from_secs(120);

/// How many sessions are asked for at once.
const PAGE: usize = 500;

/// The shortest beginning of an id that is taken for it, and the length of a whole one.
const SHORTEST: usize = 4;
const WHOLE: usize = 36;

/// A client of one server. Clones are the same client.
#[derive(Clone)]
pub struct AgentClient {
    shared: Arc<Shared>,
}

struct Shared {
    place: Place,
    caller: Caller,
}

/// What an agent asks and waits for.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenRequest {
    /// The session that asks.
    pub session_id: SessionId,
    /// The agent within it that asks.
    pub agent_id: String,
    /// When it was asked.
    pub raised_at: String,
    /// The number of the event that tells it.
    pub seq: u64,
    /// What is asked.
    pub request: RequestRaised<'static>,
}

#[derive(Deserialize)]
struct Sessions {
    sessions: Vec<SessionSummary>,
    next: Option<SessionId>,
}

#[derive(Deserialize)]
struct Inbox {
    requests: Vec<Json<'static>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Waiting {
    session_id: SessionId,
    agent_id: String,
    raised_at: String,
    seq: u64,
}

impl AgentClient {
    /// A client of that server.
    pub fn new(server: Server) -> Self {
        Self::at(Place::Named(server))
    }

    /// A client of the server that says in a data directory where it is. If it starts anew at another
    /// address, it is found there.
    pub fn discover(data_dir: &Path) -> Result<Self, Error> {
        Server::find(data_dir)?;
        Ok(Self::at(Place::Found(data_dir.to_owned())))
    }

    fn at(place: Place) -> Self {
        let caller = Caller::new(place.clone());
        Self { shared: Arc::new(Shared { place, caller }) }
    }

    /// The server, as it is known now.
    pub fn server(&self) -> Result<Server, Error> {
        self.shared.place.server()
    }

    /// Begins a session, or goes on with one that is over. With a `key`, sent twice it counts once.
    pub async fn create(
        &self,
        request: &SessionRequest,
        key: Option<&str>,
    ) -> Result<SessionSummary, Error> {
        let call = Call {
            method: Method::POST,
            path: "/v1/sessions",
            body: Some(Json::of(request)),
            key,
            within: START,
        };
        self.call(call).await
    }

    /// Sessions, newest first: at most `limit`, all if there is none.
    pub async fn sessions(
        &self,
        only_live: bool,
        limit: Option<usize>,
    ) -> Result<Vec<SessionSummary>, Error> {
        let mut all = Vec::new();
        let mut after = None::<SessionId>;
        loop {
            let wanted = limit.map_or(PAGE, |limit| limit.saturating_sub(all.len()).min(PAGE));
            if wanted == 0 {
                return Ok(all);
            }
            let after_text = after.map(|id| format!("&after={}", encode(id.as_str())));
            let path = format!(
                "/v1/sessions?limit={wanted}&live={only_live}{}",
                after_text.unwrap_or_default()
            );
            let page: Sessions = self.get(&path).await?;
            all.extend(page.sessions);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// The session whose id begins so, if there is exactly one.
    pub async fn find(&self, beginning: &str) -> Result<SessionId, Error> {
        if beginning.len() == WHOLE {
            let id = SessionId::from(beginning);
            return Ok(self.session(id).summary().await?.id);
        }
        let all = match beginning.len() < SHORTEST {
            true => Vec::new(),
            false => self.sessions(false, None).await?,
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

    /// A session, by its whole id. Nothing is asked yet.
    pub fn session(&self, id: SessionId) -> Session {
        Session::new(self.clone(), id)
    }

    /// What agents ask and wait for, oldest first: of one session, or of all that run there.
    pub async fn requests(&self, of: Option<&SessionId>) -> Result<Vec<OpenRequest>, Error> {
        let of = of.map(|id| format!("&sessionId={}", encode(id.as_str()))).unwrap_or_default();
        let inbox: Inbox = self.get(&format!("/v1/requests?state=open{of}")).await?;
        let read = inbox.requests.iter().map(|waiting| {
            let Waiting { session_id, agent_id, raised_at, seq } = waiting.read()?;
            Ok(OpenRequest { session_id, agent_id, raised_at, seq, request: waiting.read()? })
        });
        read.collect::<Result<_, _>>().map_err(|error| self.nonsense(&error))
    }

    /// Answers a request.
    pub async fn settle(
        &self,
        session: &SessionId,
        settlement: &Settlement,
    ) -> Result<Json<'static>, Error> {
        let request = encode(settlement.request_id.as_str());
        let path = format!("/v1/sessions/{}/requests/{request}", encode(session.as_str()));
        self.post(&path, Some(Json::of(settlement))).await
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Error> {
        self.get_within(path, CALL).await
    }

    /// Asks for what the server may wait with.
    pub(crate) async fn get_within<T: DeserializeOwned>(
        &self,
        path: &str,
        within: Duration,
    ) -> Result<T, Error> {
        self.call(Call { method: Method::GET, path, body: None, key: None, within }).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: Option<Json<'static>>,
    ) -> Result<T, Error> {
        self.call(Call { method: Method::POST, path, body, key: None, within: START }).await
    }

    async fn call<T: DeserializeOwned>(&self, call: Call<'_>) -> Result<T, Error> {
        let server = self.server()?;
        let answer = self.shared.caller.call(&server, call).await?;
        serde_json::from_slice(&answer).map_err(|error| self.nonsense(&error))
    }

    /// The answer is not what such a server answers.
    pub(crate) fn nonsense(&self, error: &serde_json::Error) -> Error {
        let at = self.server().map(|server| server.url()).unwrap_or_default();
        Error::Broken { at, why: format!("its answer cannot be read: {error}") }
    }
}

impl std::fmt::Debug for AgentClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AgentClient").field("server", &self.server().ok()).finish()
    }
}
