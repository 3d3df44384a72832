//! A home, optionally a server in it, and every transport to its gateway.

use std::path::{Path, PathBuf};
use std::time::Instant;

use agentwire_client::transport::in_process::Settings;
use agentwire_client::{
    AgentClient, AgentError, AgentType, ClientBuilder, Event, EventStream, HttpTransport,
    InProcessTransport, Server, SessionConfig, SessionRequest, StdioTransport, Streaming,
};
use serde_json::Value;

use crate::shared::{self, AGENTWIRE, Home, PATIENCE, naming};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Http(Streaming),
    Stdio,
    InProcess,
}

pub(crate) const SERVER_WAYS: [Way; 3] =
    [Way::Http(Streaming::Socket), Way::Http(Streaming::Events), Way::Http(Streaming::Polling)];

pub(crate) const WAYS: [Way; 5] =
    [SERVER_WAYS[0], SERVER_WAYS[1], SERVER_WAYS[2], Way::Stdio, Way::InProcess];

/// A home, and optionally a server in it.
pub(crate) struct Gateway {
    home: Home,
    server: Option<shared::Server>,
}

impl Gateway {
    pub(crate) fn new() -> Self {
        Self { home: Home::new(), server: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path(name)
    }

    pub(crate) fn serve(&mut self, args: &[&str]) {
        self.server = Some(shared::Server::at(&self.home, args));
    }

    pub(crate) fn serve_at(&mut self, http: &str, args: &[&str]) {
        self.serve(&[&["--http", http], args].concat());
    }

    /// Kills the server and returns its address.
    pub(crate) fn kill(&mut self) -> String {
        self.server.take().expect("a server").kill()
    }

    pub(crate) fn http(&self) -> &str {
        &self.server.as_ref().expect("a server").http
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        let found =
            std::fs::read_to_string(self.path("data").join("server.json")).expect("a server");
        let found: Value = serde_json::from_str(&found).expect("JSON");
        found.get("tokenFile").and_then(Value::as_str).expect("a file").into()
    }

    /// The server at another address that leads to it.
    pub(crate) fn server_at(&self, address: &str) -> Server {
        let server = Server::new(&format!("http://{address}")).expect("an address");
        server.with_token_file(&self.token_file()).expect("a token")
    }

    pub(crate) fn child(&self) -> StdioTransport {
        child_at(self.home.root())
    }

    pub(crate) async fn client(&self, way: Way) -> AgentClient {
        self.client_with(way, AgentClient::builder()).await
    }

    pub(crate) async fn client_with(&self, way: Way, builder: ClientBuilder) -> AgentClient {
        client_at(self.home.root(), way, builder).await
    }

    /// A request for a session of the demo agent.
    pub(crate) fn request(&self, prompt: &str) -> SessionRequest {
        let work = self.path("work").to_string_lossy().into_owned();
        let config = SessionConfig { working_directory: Some(work), ..SessionConfig::default() };
        SessionRequest::new(AgentType::Demo, prompt).with_config(config)
    }
}

fn child_at(root: &Path) -> StdioTransport {
    StdioTransport::new(AGENTWIRE)
        .env("AGENTWIRE_DATA_DIR", root.join("data"))
        .env("HOME", root.join("home"))
        .directory(root.join("work"))
}

/// A client that uses this transport to the gateway of this home.
pub(crate) async fn client_at(root: &Path, way: Way, builder: ClientBuilder) -> AgentClient {
    let data_dir = root.join("data");
    match way {
        Way::Http(streaming) => {
            let transport = HttpTransport::discover(&data_dir).expect("a server");
            builder.over(transport.with_streaming(streaming))
        }
        Way::Stdio => builder.over(child_at(root)),
        Way::InProcess => {
            let settings =
                Settings { data_dir, keeper: Some(AGENTWIRE.into()), ..Settings::default() };
            let opened = InProcessTransport::with_settings(settings).await;
            builder.over(opened.expect("a gateway"))
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.server = None;
        // An agent that is being killed could still write files into a home that is being removed.
        let begun = Instant::now();
        while !naming(self.home.root()).is_empty() && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
    }
}

pub(crate) async fn next(events: &mut EventStream) -> Result<Option<Event>, AgentError> {
    tokio::time::timeout(PATIENCE, events.try_next()).await.expect("in time")
}

pub(crate) async fn until(events: &mut EventStream, kind: &str) -> Event {
    loop {
        let event = next(events).await.expect("an event");
        let event = event.unwrap_or_else(|| panic!("{kind} never came"));
        if event.kind.name() == kind {
            return event;
        }
    }
}

/// The remaining events, as they are stored.
pub(crate) async fn rest(events: &mut EventStream) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    while let Some(event) = next(events).await.expect("an event") {
        all.push((event.seq, event.raw().to_owned()));
    }
    all
}

/// Asserts that the numbers have no gap, starting with `from`.
pub(crate) fn assert_whole(events: &[(u64, String)], from: u64) {
    let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
    let expected: Vec<u64> = (from..from + numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}
