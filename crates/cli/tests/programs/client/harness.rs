//! A machine with a server, and another machine. Each has its own data directory.

use std::path::PathBuf;
use std::process::{Command, Output};

use agentwire_client::{AgentClient, HttpTransport, Session};
use agentwire_protocol::{AgentType, SessionConfig, SessionId, SessionRequest};
use serde_json::Value;
use tokio::runtime::Runtime;

use crate::shared::{Home, PATIENCE, Server, error, text};

pub(crate) struct Machines {
    home: Home,
    pub(crate) runtime: Runtime,
    server: Option<Server>,
}

/// Where a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum From {
    /// The server's own machine: the command finds the server itself.
    Here,
    /// Another machine, which knows only the address and the token.
    There,
}

pub(crate) const EVERYWHERE: [From; 2] = [From::Here, From::There];

impl Machines {
    pub(crate) fn new() -> Self {
        let mut machines = Self::without_server();
        machines.serve("127.0.0.1:0");
        machines
    }

    pub(crate) fn without_server() -> Self {
        let home = Home::new();
        std::fs::create_dir(home.path("elsewhere")).expect("a directory");
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build().expect("a runtime");
        Self { home, runtime, server: None }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path(name)
    }

    /// Starts the server and waits until it listens.
    pub(crate) fn serve(&mut self, http: &str) {
        self.serve_with(http, &[]);
    }

    pub(crate) fn serve_with(&mut self, http: &str, args: &[&str]) {
        self.server = Some(Server::at(&self.home, &[&["--http", http], args].concat()));
    }

    /// Kills the server and returns its address.
    pub(crate) fn kill(&mut self) -> String {
        self.server.take().expect("a server").kill()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.server.as_ref().expect("a server").http)
    }

    pub(crate) fn token(&self) -> String {
        self.home.told(&["token", "show"]).trim().to_owned()
    }

    pub(crate) fn verb(&self, from: From, args: &[&str]) -> Command {
        match from {
            From::Here => self.home.command(args),
            From::There => {
                let mut command = self.home.command(args);
                command.env("AGENTWIRE_DATA_DIR", self.path("elsewhere"));
                command.env("AGENTWIRE_URL", self.url()).env("AGENTWIRE_TOKEN", self.token());
                command
            }
        }
    }

    pub(crate) fn run(&self, from: From, args: &[&str]) -> Output {
        self.verb(from, args).output().expect("the program runs")
    }

    /// Runs a command that must succeed, and returns its output.
    pub(crate) fn told(&self, from: From, args: &[&str]) -> String {
        let output = self.run(from, args);
        assert!(output.status.success(), "{from:?} {args:?}: {}", error(&output));
        text(&output.stdout)
    }

    pub(crate) fn json(&self, from: From, args: &[&str]) -> Value {
        serde_json::from_str(&self.told(from, args)).expect("JSON")
    }

    /// Runs a command that must fail with that code, and returns its stderr.
    pub(crate) fn refused(&self, from: From, args: &[&str], code: i32) -> String {
        let output = self.run(from, args);
        assert_eq!(output.status.code(), Some(code), "{from:?} {args:?}: {}", error(&output));
        assert!(output.stdout.is_empty(), "{from:?} {args:?}: {}", text(&output.stdout));
        error(&output)
    }

    pub(crate) fn client(&self) -> AgentClient {
        AgentClient::over(HttpTransport::discover(&self.path("data")).expect("a server"))
    }

    /// Starts a session of the demo agent on the server.
    pub(crate) fn session(&self, prompt: &str) -> Session {
        let work = self.path("work").to_string_lossy().into_owned();
        let config = SessionConfig { working_directory: Some(work), ..SessionConfig::default() };
        let request = SessionRequest::new(AgentType::Demo, prompt).with_config(config);
        self.runtime.block_on(self.client().create(request)).expect("a session")
    }

    /// All events of a session, up to the first one of that type after that number.
    pub(crate) fn until(&self, session: &Session, kind: &str, after: u64) -> Vec<Value> {
        let mut stream = session.events_after(after);
        let mut events = Vec::new();
        self.runtime.block_on(async {
            loop {
                let next = tokio::time::timeout(PATIENCE, stream.try_next()).await;
                let event = next.expect("an event in time").expect("an event");
                let event = event.unwrap_or_else(|| panic!("{kind} never came: {events:?}"));
                events.push(serde_json::from_str(event.raw()).expect("JSON"));
                if event.kind.name() == kind {
                    return events;
                }
            }
        })
    }

    /// Waits for the session's request.
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

pub(crate) fn short(session: &Session) -> &str {
    &session.id().as_str()[..8]
}

/// The numbers of the printed events, one per line.
pub(crate) fn numbers(printed: &str) -> Vec<u64> {
    let number = |line: &str| {
        let event: Value = serde_json::from_str(line).expect("JSON");
        event["seq"].as_u64().expect("a number")
    };
    printed.lines().map(number).collect()
}
