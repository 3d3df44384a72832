//! A machine with a data directory, a server if one is wanted, and every way to a gateway on it.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use agentwire_client::transport::in_process::Settings;
use agentwire_client::{
    AgentClient, AgentError, AgentType, ClientBuilder, Event, EventStream, HttpTransport,
    InProcessTransport, Server, SessionConfig, SessionRequest, StdioTransport, Streaming,
};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

pub(crate) const AGENTWIRE: &str = env!("CARGO_BIN_EXE_agentwire");

/// A way to a gateway.
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

pub(crate) struct Place {
    root: TempDir,
    server: Option<Running>,
}

struct Running {
    child: Child,
    /// `127.0.0.1:PORT`
    http: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["data", "work", "home"] {
            std::fs::create_dir(root.path().join(name)).expect("a directory");
        }
        Self { root, server: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Starts a server, and waits until it listens.
    pub(crate) fn serve(&mut self, args: &[&str]) {
        self.serve_at("127.0.0.1:0", args);
    }

    pub(crate) fn serve_at(&mut self, http: &str, args: &[&str]) {
        let mut child = Command::new(AGENTWIRE)
            .args(["serve", "--http", http, "--insights", "127.0.0.1:0"])
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("AGENTWIRE_DATA_DIR", self.path("data"))
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("it is ready");
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let http = ready.get("http").and_then(Value::as_str).expect("an address");
        let http = http.split_once("://").expect("an address").1.to_owned();
        self.server = Some(Running { child, http });
    }

    /// Kills the server, and gives its address.
    pub(crate) fn kill(&mut self) -> String {
        let mut server = self.server.take().expect("a server");
        server.child.kill().expect("it is killed");
        server.child.wait().expect("it ends");
        server.http
    }

    pub(crate) fn http(&self) -> &str {
        &self.server.as_ref().expect("a server").http
    }

    /// The file of the operator's token.
    pub(crate) fn token_file(&self) -> PathBuf {
        let found =
            std::fs::read_to_string(self.path("data").join("server.json")).expect("a server");
        let found: Value = serde_json::from_str(&found).expect("JSON");
        found.get("tokenFile").and_then(Value::as_str).expect("a file").into()
    }

    /// The server, by another address that leads to it.
    pub(crate) fn server_at(&self, address: &str) -> Server {
        let server = Server::new(&format!("http://{address}")).expect("an address");
        server.with_token_file(&self.token_file()).expect("a token")
    }

    pub(crate) fn child(&self) -> StdioTransport {
        child_at(self.root.path())
    }

    pub(crate) async fn client(&self, way: Way) -> AgentClient {
        self.client_with(way, AgentClient::builder()).await
    }

    pub(crate) async fn client_with(&self, way: Way, builder: ClientBuilder) -> AgentClient {
        client_at(self.root.path(), way, builder).await
    }

    /// A session of the demo agent.
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

/// A client that comes that way to the gateway of the place that is there.
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

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(server) = &mut self.server {
            let _ = server.child.kill();
            let _ = server.child.wait();
        }
        // An agent that is just being killed could still write where nothing is to be left.
        let begun = Instant::now();
        while agents_in(self.root.path()) > 0 && begun.elapsed() < PATIENCE {
            std::thread::yield_now();
        }
    }
}

/// How many processes have their state there.
pub(crate) fn agents_in(place: &Path) -> usize {
    let place = place.display().to_string();
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let words = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    words.filter(|words| String::from_utf8_lossy(words).contains(&place)).count()
}

/// The next event, in time.
pub(crate) async fn next(events: &mut EventStream) -> Result<Option<Event>, AgentError> {
    tokio::time::timeout(PATIENCE, events.try_next()).await.expect("in time")
}

/// Reads on to the first event of that type.
pub(crate) async fn until(events: &mut EventStream, kind: &str) -> Event {
    loop {
        let event = next(events).await.expect("an event");
        let event = event.unwrap_or_else(|| panic!("{kind} never came"));
        if event.kind.name() == kind {
            return event;
        }
    }
}

/// All that is left, as it is kept.
pub(crate) async fn rest(events: &mut EventStream) -> Vec<(u64, String)> {
    let mut all = Vec::new();
    while let Some(event) = next(events).await.expect("an event") {
        all.push((event.seq, event.raw().to_owned()));
    }
    all
}

/// Numbers that are dense from one on.
pub(crate) fn assert_whole(events: &[(u64, String)], from: u64) {
    let numbers: Vec<u64> = events.iter().map(|(seq, _)| *seq).collect();
    let expected: Vec<u64> = (from..from + numbers.len() as u64).collect();
    assert_eq!(numbers, expected);
}
