//! The transport to a server: calls over HTTP; events over a WebSocket, as server-sent events, or by long
//! polling, whichever the network lets through.

mod dial;
mod http_client;
mod polling;
mod socket;
mod sse;
#[cfg(feature = "tls")]
mod tls;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use agentwire_protocol::reply::SessionList;
use agentwire_protocol::{
    AgentType, Command, Json, ListQuery, Profile, SearchQuery, SessionId, SessionSort,
    SessionState, UsageBin, UsageBy, UsageQuery,
};
use http::Method;
use serde::Deserialize;

use self::http_client::{HttpClient, HttpRequest, encode, unexpected};
#[cfg(feature = "tls")]
pub(crate) use self::tls::Prepared;
use super::{Call, Calling, Connection, Opening, Transport};
use crate::discovery::{Credentials, Server, ServerLocation};
use crate::error::AgentError;

/// The time limit of an answer.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);

/// The time limit where an agent must start or answer.
const AGENT_TIMEOUT: Duration = Duration::from_secs(120);

/// How a server sends events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Streaming {
    /// Over a WebSocket.
    #[default]
    Socket,
    /// Server-sent events.
    Events,
    /// Long polling.
    Polling,
}

/// The transport to a server over HTTP. Clones share connections.
///
/// ```rust,no_run
/// use agentwire_client::{AgentClient, AgentError, HttpTransport, Server};
///
/// fn client(token: &str) -> Result<AgentClient, AgentError> {
///     let server = Server::new("http://127.0.0.1:8080")?.with_token(token)?;
///     Ok(AgentClient::over(HttpTransport::new(server)))
/// }
/// ```
#[derive(Clone)]
pub struct HttpTransport {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    location: ServerLocation,
    client: HttpClient,
    /// The best method that has worked so far; better ones are not tried again.
    streaming: AtomicU8,
    /// The size of the next page of events.
    page: AtomicUsize,
}

/// Why no connection opened.
enum OpenError {
    /// Another method would fail too.
    Failed(AgentError),
    /// The network does not let this method through; another may work.
    Blocked(AgentError),
    /// The connection broke or stalled. The second time, the method counts as unusable.
    Stalled(AgentError),
}

#[derive(Deserialize)]
struct QueryReply {
    result: Json<'static>,
}

impl HttpTransport {
    /// Connects to this server.
    pub fn new(server: Server) -> Self {
        Self::at(ServerLocation::Named(server))
    }

    /// Connects to the server that this data directory names. If the server restarts at another address, it
    /// is found there.
    pub fn discover(data_dir: &Path) -> Result<Self, AgentError> {
        Self::discover_with(data_dir, Credentials::default())
    }

    pub(crate) fn discover_with(
        data_dir: &Path,
        credentials: Credentials,
    ) -> Result<Self, AgentError> {
        let location = ServerLocation::Found(data_dir.to_owned(), credentials);
        location.server()?;
        Ok(Self::at(location))
    }

    fn at(location: ServerLocation) -> Self {
        let client = HttpClient::new(location.clone());
        let (streaming, page) = (AtomicU8::new(0), AtomicUsize::new(polling::FIRST));
        Self { shared: Arc::new(Shared { location, client, streaming, page }) }
    }

    /// Skips better methods, for networks that are known to block them.
    pub fn with_streaming(self, streaming: Streaming) -> Self {
        self.shared.fall_back_to(streaming);
        self
    }

    /// How events are received, as far as is known.
    pub fn streaming(&self) -> Streaming {
        self.shared.streaming()
    }

    /// The server that is used now.
    pub fn server(&self) -> Result<Server, AgentError> {
        self.shared.location.server()
    }
}

impl Transport for HttpTransport {
    fn name(&self) -> String {
        match self.server() {
            Ok(server) => server.to_string(),
            Err(_) => "the server on this machine".to_owned(),
        }
    }

    fn call(&self, call: Call) -> Calling<'_> {
        Box::pin(self.shared.call(call))
    }

    fn follow(&self, session: &SessionId, after: u64, profile: Profile) -> Opening<'_> {
        let session = session.clone();
        Box::pin(async move { self.shared.clone().follow(session, after, profile).await })
    }
}

impl Shared {
    async fn call(&self, call: Call) -> Result<Json<'static>, AgentError> {
        let server = self.location.server()?;
        let HttpCall { method, path, body, key, within } = http_call(call)?;
        let is_query = path.ends_with("/query");
        let request = HttpRequest { method, path: &path, body, key: key.as_deref(), within };
        let answer = self.client.call(&server, request).await?;
        let read = match is_query {
            true => serde_json::from_slice::<QueryReply>(&answer).map(|queried| queried.result),
            false => serde_json::from_slice(&answer),
        };
        read.map_err(|error| {
            unexpected(&server, format_args!("its answer cannot be read: {error}"))
        })
    }

    async fn follow(
        self: Arc<Self>,
        session: SessionId,
        after: u64,
        profile: Profile,
    ) -> Result<Connection, AgentError> {
        let of = encode(session.as_str());
        let query = format!("after={after}&profile={}", profile.as_str());
        let mut has_stalled = false;
        loop {
            let server = self.location.server()?;
            let streaming = self.streaming();
            let (opened, then) = match streaming {
                Streaming::Socket => {
                    let path = format!("/v1/sessions/{of}/ws?{query}");
                    (socket::open(server, &path).await, Streaming::Events)
                }
                Streaming::Events => {
                    let path = format!("/v1/sessions/{of}/events?{query}");
                    (sse::open(&self.client, server, &path).await, Streaming::Polling)
                }
                Streaming::Polling => return Ok(polling::open(self, &session, after, profile)),
            };
            let (error, is_settled) = match opened {
                Ok(connection) => return Ok(connection),
                Err(OpenError::Failed(error)) => return Err(error),
                Err(OpenError::Blocked(error)) => (error, true),
                Err(OpenError::Stalled(error)) => {
                    (error, std::mem::replace(&mut has_stalled, true))
                }
            };
            // If the server does not answer either, the method is not to blame.
            self.call(Call::Show(session.clone())).await.map_err(|_| error)?;
            if is_settled {
                has_stalled = false;
                self.fall_back_to(then);
            }
        }
    }

    fn streaming(&self) -> Streaming {
        match self.streaming.load(Ordering::Relaxed) {
            0 => Streaming::Socket,
            1 => Streaming::Events,
            _ => Streaming::Polling,
        }
    }

    fn fall_back_to(&self, streaming: Streaming) {
        let number = match streaming {
            Streaming::Socket => 0,
            Streaming::Events => 1,
            Streaming::Polling => 2,
        };
        self.streaming.fetch_max(number, Ordering::Relaxed);
    }
}

/// A call as an HTTP request.
struct HttpCall {
    method: Method,
    path: String,
    body: Option<Json<'static>>,
    key: Option<String>,
    within: Duration,
}

fn http_call(call: Call) -> Result<HttpCall, AgentError> {
    let get = |path: String| HttpCall {
        method: Method::GET,
        path,
        body: None,
        key: None,
        within: ANSWER_TIMEOUT,
    };
    Ok(match call {
        Call::Start { request, key } => HttpCall {
            method: Method::POST,
            path: "/v1/sessions".to_owned(),
            body: Some(Json::of(&request)),
            key: Some(key),
            within: AGENT_TIMEOUT,
        },
        Call::List(query) => get(list_path(&query)),
        Call::Usage(query) => get(usage_path(&query)),
        Call::Search(query) => get(search_path(&query)),
        Call::Label(id, change) => HttpCall {
            method: Method::PATCH,
            body: Some(Json::of(&change)),
            ..get(format!("/v1/sessions/{}", encode(id.as_str())))
        },
        Call::Show(id) => get(format!("/v1/sessions/{}", encode(id.as_str()))),
        Call::Requests(of) => {
            let of = of.map(|id| format!("&sessionId={}", encode(id.as_str()))).unwrap_or_default();
            get(format!("/v1/requests?state=open{of}"))
        }
        Call::Command(id, command) => {
            let (method, rest, body) = command_request(&command)?;
            let path = format!("/v1/sessions/{}{rest}", encode(id.as_str()));
            HttpCall { method, path, body, key: None, within: AGENT_TIMEOUT }
        }
    })
}

fn list_path(query: &ListQuery) -> String {
    let limit = query.limit.unwrap_or(SessionList::PAGE);
    let mut path = format!("/v1/sessions?limit={limit}&live={}", query.live);
    let fields = [
        ("after", query.after.as_deref()),
        ("state", query.state.map(SessionState::as_str)),
        ("agent", query.agent.map(AgentType::as_str)),
        ("directory", query.directory.as_deref()),
        ("q", query.q.as_deref()),
        ("sort", query.sort.map(SessionSort::as_str)),
    ];
    for (name, value) in fields {
        if let Some(value) = value {
            path.push_str(&format!("&{name}={}", encode(value)));
        }
    }
    path
}

fn usage_path(query: &UsageQuery) -> String {
    let fields = [
        ("from", query.from.as_deref()),
        ("to", query.to.as_deref()),
        ("bin", query.bin.map(UsageBin::as_str)),
        ("by", query.by.map(UsageBy::as_str)),
    ];
    with_fields("/v1/usage?", &fields)
}

fn search_path(query: &SearchQuery) -> String {
    let limit = query.limit.map(|limit| limit.to_string());
    let fields = [
        ("q", Some(query.q.as_str())),
        ("sessionId", query.session_id.as_ref().map(SessionId::as_str)),
        ("type", query.kind.as_deref()),
        ("after", query.after.as_deref()),
        ("limit", limit.as_deref()),
    ];
    with_fields("/v1/search?", &fields)
}

/// The path with the fields that are given.
fn with_fields(path: &str, fields: &[(&str, Option<&str>)]) -> String {
    let given = fields.iter().filter_map(|(name, value)| Some((name, (*value)?)));
    let fields: Vec<String> =
        given.map(|(name, value)| format!("{name}={}", encode(value))).collect();
    format!("{path}{}", fields.join("&"))
}

/// The method, the end of the path, and the body of a command.
fn command_request(
    command: &Command,
) -> Result<(Method, String, Option<Json<'static>>), AgentError> {
    let post = |name: &str, body| Ok((Method::POST, format!("/{name}"), body));
    match command {
        Command::Prompt(prompt) => post("prompt", Some(Json::of(prompt))),
        Command::Interrupt { .. } | Command::Query { .. } | Command::Rewind { .. } => {
            post(command.name(), Some(command.fields()))
        }
        Command::Stop | Command::Finish => post(command.name(), None),
        Command::Queue => Ok((Method::GET, "/queue".to_owned(), None)),
        Command::Cancel { message_id } => {
            Ok((Method::DELETE, format!("/queue/{}", encode(message_id)), None))
        }
        Command::Edit { message_id, text } => {
            let body = Json::of(&serde_json::json!({ "prompt": text }));
            Ok((Method::PATCH, format!("/queue/{}", encode(message_id)), Some(body)))
        }
        Command::Settle(settlement) => {
            let request = encode(settlement.request_id.as_str());
            post(&format!("requests/{request}"), Some(Json::of(settlement)))
        }
        Command::Configure(change) => Ok((Method::PATCH, String::new(), Some(Json::of(change)))),
        Command::Start(_) | Command::Attach { .. } => Err(AgentError::invalid(format!(
            "{} is not a command for an existing session",
            command.name()
        ))),
    }
}

impl fmt::Debug for HttpTransport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpTransport").field("server", &self.server().ok()).finish_non_exhaustive()
    }
}
