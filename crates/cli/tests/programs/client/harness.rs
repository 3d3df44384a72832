//! A machine with a server, and another machine: each a data directory of its own.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use agentwire_client::{AgentClient, HttpTransport, Session};
use agentwire_protocol::{AgentType, SessionConfig, SessionId, SessionRequest};
use serde_json::Value;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    root: TempDir,
    pub(crate) runtime: Runtime,
    server: Option<Server>,
}

struct Server {
    child: Child,
    http: String,
}

/// From where a verb is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The server's own machine: it is found.
    Here,
    /// Another one: the address and the token are known, and nothing else.
    There,
}

pub(crate) const EVERYWHERE: [From; 2] = [From::Here, From::There];

impl Place {
    /// With a server.
    pub(crate) fn new() -> Self {
        let mut place = Self::without_server();
        place.serve("127.0.0.1:0");
        place
    }

    pub(crate) fn without_server() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        for name in ["data", "elsewhere", "work", "home"] {
            std::fs::create_dir(root.path().join(name)).expect("a directory");
        }
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        Self { root, runtime, server: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    /// Starts the server, and waits until it listens.
    pub(crate) fn serve(&mut self, http: &str) {
        self.serve_with(http, &[]);
    }

    pub(crate) fn serve_with(&mut self, http: &str, args: &[&str]) {
        let mut child = self
            .command("data", &["serve", "--http", http, "--insights", "127.0.0.1:0"])
            .args(args)
            .stdout(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut lines = BufReader::new(child.stderr.take().expect("stderr"));
        let mut line = String::new();
        lines.read_line(&mut line).expect("a line");
        let ready: Value = serde_json::from_str(&line).expect("it is ready");
        std::thread::spawn(move || std::io::copy(&mut lines, &mut std::io::sink()));
        let http = ready["http"].as_str().expect("an address").to_owned();
        self.server = Some(Server { child, http });
    }

    /// Kills the server, and gives its address.
    pub(crate) fn kill(&mut self) -> String {
        let mut server = self.server.take().expect("a server");
        server.child.kill().expect("it is killed");
        server.child.wait().expect("it ends");
        server.http.split_once("://").expect("an address").1.to_owned()
    }

    pub(crate) fn url(&self) -> &str {
        &self.server.as_ref().expect("a server").http
    }

    pub(crate) fn token(&self) -> String {
        let output = self.run(From::Here, &["token", "show"]);
        text(&output.stdout).trim().to_owned()
    }

    fn command(&self, data: &str, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_agentwire"));
        command
            .args(args)
            .env_clear()
            .env("PATH", "/usr/bin:/bin")
            .env("HOME", self.path("home"))
            .env("TERM", "xterm")
            .env("AGENTWIRE_DATA_DIR", self.path(data))
            .current_dir(self.path("work"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// A verb, called from there.
    pub(crate) fn verb(&self, from: From, args: &[&str]) -> Command {
        match from {
            From::Here => self.command("data", args),
            From::There => {
                let mut command = self.command("elsewhere", args);
                command.env("AGENTWIRE_URL", self.url()).env("AGENTWIRE_TOKEN", self.token());
                command
            }
        }
    }

    pub(crate) fn run(&self, from: From, args: &[&str]) -> Output {
        self.verb(from, args).output().expect("the program runs")
    }

    /// What it prints; it must succeed.
    pub(crate) fn told(&self, from: From, args: &[&str]) -> String {
        let output = self.run(from, args);
        assert!(output.status.success(), "{from:?} {args:?}: {}", error(&output));
        text(&output.stdout)
    }

    pub(crate) fn json(&self, from: From, args: &[&str]) -> Value {
        serde_json::from_str(&self.told(from, args)).expect("JSON")
    }

    /// What it says when it fails, which it must, with that code.
    pub(crate) fn refused(&self, from: From, args: &[&str], code: i32) -> String {
        let output = self.run(from, args);
        assert_eq!(output.status.code(), Some(code), "{from:?} {args:?}: {}", error(&output));
        assert!(output.stdout.is_empty(), "{from:?} {args:?}: {}", text(&output.stdout));
        error(&output)
    }

    pub(crate) fn client(&self) -> AgentClient {
        AgentClient::over(HttpTransport::discover(&self.path("data")).expect("a server"))
    }

    /// A session of the demo agent at the server.
    pub(crate) fn session(&self, prompt: &str) -> Session {
        let work = self.path("work").to_string_lossy().into_owned();
        let config = SessionConfig { working_directory: Some(work), ..SessionConfig::default() };
        let request = SessionRequest::new(AgentType::Demo, prompt).with_config(config);
        self.runtime.block_on(self.client().create(request)).expect("a session")
    }

    /// All events of a session up to the first of that type after that number.
    pub(crate) fn until(&self, session: &Session, kind: &str, after: u64) -> Vec<Value> {
        let mut stream = session.events_after(after);
        let mut events = Vec::new();
        self.runtime.block_on(async {
            loop {
                let next = tokio::time::timeout(PATIENCE, stream.try_next()).await;
                let event = next.expect("in time").expect("an event");
                let event = event.unwrap_or_else(|| panic!("{kind} never came: {events:?}"));
                events.push(serde_json::from_str(event.raw()).expect("JSON"));
                if event.kind.name() == kind {
                    return events;
                }
            }
        })
    }

    /// The request that the session raises.
    pub(crate) fn request(&self, session: &Session) -> String {
        let events = self.until(session, "requestRaised", 0);
        let raised = events.last().expect("an event");
        raised["requestId"].as_str().expect("an id").to_owned()
    }

    pub(crate) fn state(&self, id: &SessionId) -> String {
        let shown = self.json(From::Here, &["show", id.as_str(), "--json"]);
        shown["state"].as_str().expect("a state").to_owned()
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
fn agents_in(place: &Path) -> usize {
    let place = place.display().to_string();
    let processes = std::fs::read_dir("/proc").expect("processes").flatten();
    let words = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    words.filter(|words| String::from_utf8_lossy(words).contains(&place)).count()
}

pub(crate) fn short(session: &Session) -> &str {
    &session.id().as_str()[..8]
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("UTF-8")
}

pub(crate) fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The numbers of the events that were printed, one a line.
pub(crate) fn numbers(printed: &str) -> Vec<u64> {
    let number = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        event["seq"].as_u64().expect("a number")
    };
    printed.lines().map(number).collect()
}

pub(crate) fn exists(path: &Path) -> bool {
    path.exists()
}
