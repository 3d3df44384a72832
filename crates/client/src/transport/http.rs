//! The transport to a server: calls over HTTP; events over a WebSocket, as server-sent events, or by long
//! polling, whichever the network lets through.

mod polling;
mod requests;
mod socket;
mod sse;
#[cfg(feature = "tls")]
mod tls;
mod wire;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use std::time::Duration;

use agentwire_protocol::{Command, Json, Profile, SessionId};
use http::Method;
use serde::Deserialize;

use self::requests::{Caller, Request, encode, strange};
#[cfg(feature = "tls")]
pub(crate) use self::tls::Prepared;
use super::{Call, Calling, Connection, Opening, Transport};
use crate::discovery::{Equipment, Place, Server};
use crate::error::AgentError;

/// The time limit of an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// The time limit where an agent must start or answer.
const AGENT: Duration = Duration::from_secs(120);

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
#[derive(Clone)]
pub struct HttpTransport {
    shared: Arc<Shared>,
}

pub(crate) struct Shared {
    place: Place,
    caller: Caller,
    /// The best method that has worked so far; better ones are not tried again.
    streaming: AtomicU8,
    /// The size of the next page of events.
    page: AtomicUsize,
}

/// Why no connection opened.
enum Unopened {
    /// Another method would fail too.
    Failed(AgentError),
    /// The network does not let this method through; another may work.
    Refused(AgentError),
    /// The connection broke or stalled. The second time, the method counts as unusable.
    Faltered(AgentError),
}

#[derive(Deserialize)]
struct Queried {
    result: Json<'static>,
}

impl HttpTransport {
    /// Connects to this server.
    pub fn new(server: Server) -> Self {
        Self::at(Place::Named(server))
    }

    /// Connects to the server that this data directory names. If the server restarts at another address, it
    /// is found there.
    pub fn discover(data_dir: &Path) -> Result<Self, AgentError> {
        Self::discover_with(data_dir, Equipment::default())
    }

    pub(crate) fn discover_with(data_dir: &Path, equipment: Equipment) -> Result<Self, AgentError> {
        let place = Place::Found(data_dir.to_owned(), equipment);
        place.server()?;
        Ok(Self::at(place))
    }

    fn at(place: Place) -> Self {
        let caller = Caller::new(place.clone());
        let (streaming, page) = (AtomicU8::new(0), AtomicUsize::new(polling::FIRST));
        Self { shared: Arc::new(Shared { place, caller, streaming, page }) }
    }

    /// Skips better methods, for networks that are known to block them.
    pub fn with_streaming(self, streaming: Streaming) -> Self {
        self.shared.settle_for(streaming);
        self
    }

    /// How events are received, as far as is known.
    pub fn streaming(&self) -> Streaming {
        self.shared.streaming()
    }

    /// The server that is used now.
    pub fn server(&self) -> Result<Server, AgentError> {
        self.shared.place.server()
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
        let server = self.place.server()?;
        let Written { method, path, body, key, within } = written(call)?;
        let is_query = path.ends_with("/query");
        let request = Request { method, path: &path, body, key: key.as_deref(), within };
        let answer = self.caller.call(&server, request).await?;
        let read = match is_query {
            true => serde_json::from_slice::<Queried>(&answer).map(|queried| queried.result),
            false => serde_json::from_slice(&answer),
        };
        read.map_err(|error| strange(&server, format_args!("its answer cannot be read: {error}")))
    }

    async fn follow(
        self: Arc<Self>,
        session: SessionId,
        after: u64,
        profile: Profile,
    ) -> Result<Connection, AgentError> {
        let of = encode(session.as_str());
        let query = format!("after={after}&profile={}", word(profile));
        let mut has_faltered = false;
        loop {
            let server = self.place.server()?;
            let streaming = self.streaming();
            let (opened, then) = match streaming {
                Streaming::Socket => {
                    let path = format!("/v1/sessions/{of}/ws?{query}");
                    (socket::open(server, &path).await, Streaming::Events)
                }
                Streaming::Events => {
                    let path = format!("/v1/sessions/{of}/events?{query}");
                    (sse::open(&self.caller, server, &path).await, Streaming::Polling)
                }
                Streaming::Polling => return Ok(polling::open(self, &session, after, profile)),
            };
            let (error, is_settled) = match opened {
                Ok(connection) => return Ok(connection),
                Err(Unopened::Failed(error)) => return Err(error),
                Err(Unopened::Refused(error)) => (error, true),
                Err(Unopened::Faltered(error)) => {
                    (error, std::mem::replace(&mut has_faltered, true))
                }
            };
            // If the server does not answer either, the method is not to blame.
            self.call(Call::Show(session.clone())).await.map_err(|_| error)?;
            if is_settled {
                has_faltered = false;
                self.settle_for(then);
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

    fn settle_for(&self, streaming: Streaming) {
        let number = match streaming {
            Streaming::Socket => 0,
            Streaming::Events => 1,
            Streaming::Polling => 2,
        };
        self.streaming.fetch_max(number, Ordering::Relaxed);
    }
}

fn word(profile: Profile) -> &'static str {
    match profile {
        Profile::Core => "core",
        Profile::Full => "full",
    }
}

/// A call as an HTTP request.
struct Written {
    method: Method,
    path: String,
    body: Option<Json<'static>>,
    key: Option<String>,
    within: Duration,
}

fn written(call: Call) -> Result<Written, AgentError> {
    let get =
        |path: String| Written { method: Method::GET, path, body: None, key: None, within: ANSWER };
    Ok(match call {
        Call::Start { request, key } => Written {
            method: Method::POST,
            path: "/v1/sessions".to_owned(),
            body: Some(Json::of(&request)),
            key: Some(key),
            within: AGENT,
        },
        Call::List { only_live, after, limit } => {
            let after = after.map(|id| format!("&after={}", encode(id.as_str())));
            let after = after.unwrap_or_default();
            get(format!("/v1/sessions?limit={limit}&live={only_live}{after}"))
        }
        Call::Show(id) => get(format!("/v1/sessions/{}", encode(id.as_str()))),
        Call::Requests(of) => {
            let of = of.map(|id| format!("&sessionId={}", encode(id.as_str()))).unwrap_or_default();
            get(format!("/v1/requests?state=open{of}"))
        }
        Call::Command(id, command) => {
            let (method, rest, body) = ordered(&command)?;
            let path = format!("/v1/sessions/{}{rest}", encode(id.as_str()));
            Written { method, path, body, key: None, within: AGENT }
        }
    })
}

/// The method, the end of the path, and the body of a command.
fn ordered(command: &Command) -> Result<(Method, String, Option<Json<'static>>), AgentError> {
    let post = |name: &str, body| Ok((Method::POST, format!("/{name}"), body));
    match command {
        Command::Prompt(prompt) => post("prompt", Some(Json::of(prompt))),
        Command::Interrupt { .. } | Command::Query { .. } | Command::Rewind { .. } => {
            post(command.name(), Some(command.fields()))
        }
        Command::Stop | Command::Finish => post(command.name(), None),
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
