//! The engine with its agents, and readers of the engine's log or the relay.

use std::path::{Path, PathBuf};
use std::time::Duration;

use agentwire_protocol::{AgentType, Command, Prompt, SessionConfig, SessionState};
use agentwire_sessions::hub::Events;
use agentwire_sessions::process::Containment;
use agentwire_sessions::settings::AgentCommand;
use agentwire_sessions::{Hub, NewSession, SessionHandle, Settings};
use bytes::Bytes;
use memchr::memmem::Finder;
use tempfile::TempDir;
use tokio::sync::mpsc;

use crate::agent;

/// The program under test, which is also the keeper.
pub const AGENTWIRE: &str = env!("CARGO_BIN_EXE_agentwire");

/// Longer than anything here takes: lines that arrive later count as lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// The engine with its own log.
pub struct Gateway {
    pub hub: Hub,
    directory: TempDir,
}

pub fn settings(directory: &Path) -> Settings {
    let own = std::env::current_exe().expect("this program");
    let agent = AgentCommand {
        program: Some(own.to_string_lossy().into_owned()),
        args: vec![agent::VERB.to_owned()],
        ..AgentCommand::default()
    };
    Settings {
        data_dir: directory.join("data"),
        keeper: Some(PathBuf::from(AGENTWIRE)),
        agents: [("claude", agent)].into(),
        ..Settings::default()
    }
}

impl Gateway {
    pub async fn new() -> Self {
        let directory = crate::directory();
        let hub = Hub::open(settings(directory.path())).await.expect("a hub");
        let containment = hub.containment().containment();
        assert!(!matches!(containment, Containment::ProcessGroup { .. }), "{containment:?}");
        Self { hub, directory }
    }

    /// A session whose agent waits for orders.
    pub async fn session(&self) -> SessionHandle {
        let work = self.directory.path().join("work");
        std::fs::create_dir_all(&work).expect("a directory");
        let config = SessionConfig {
            working_directory: Some(work.to_string_lossy().into_owned()),
            ..SessionConfig::default()
        };
        let agent = AgentType::Claude;
        let new = NewSession { config, ..NewSession::of(agent) };
        let session = self.hub.start(new).await.expect("a session");
        let summary = session.until(|summary| summary.state == SessionState::Idle).await;
        assert_eq!(summary.state, SessionState::Idle, "{summary:?}");
        session
    }

    /// A reader that starts after the last event so far.
    pub async fn reader(&self, session: &SessionHandle) -> Reader {
        let after = session.summary().last_seq;
        let cursor = self.hub.events(session.id(), after).await.expect("a cursor");
        Reader { source: Source::Log(Box::new(cursor)), finder: agent::finder() }
    }

    pub async fn end(self) {
        self.hub.shutdown().await;
    }
}

pub async fn order(session: &SessionHandle, order: String) {
    session.send(Command::Prompt(Prompt::text(order))).await.expect("the order is accepted");
}

pub struct Reader {
    source: Source,
    finder: Finder<'static>,
}

enum Source {
    Log(Box<Events>),
    Relay(mpsc::Receiver<Bytes>),
}

/// What a reader saw of one order.
#[derive(Default)]
pub struct Seen {
    /// Lines that were lost, doubled or out of order.
    pub faults: u64,
    /// Events that carried them; for the relay, lines.
    pub events: u64,
    /// Microseconds between the writing and the reading of each line.
    pub ages: Vec<f64>,
}

impl Reader {
    pub fn relay(lines: mpsc::Receiver<Bytes>) -> Self {
        Self { source: Source::Relay(lines), finder: agent::finder() }
    }

    /// Reads this many lines of the agent. Calls `each` after each chunk with the number of lines so far.
    pub async fn read(&mut self, lines: u64, mut each: impl FnMut(u64)) -> Seen {
        let mut seen = Seen::default();
        let mut next = 0;
        while next < lines {
            let chunk = tokio::time::timeout(PATIENCE, self.source.next()).await;
            let Ok(Some((bytes, events))) = chunk else {
                seen.faults += lines - next;
                return seen;
            };
            seen.events += events;
            let now = agent::now();
            for (number, written) in agent::marks(&self.finder, &bytes) {
                seen.faults += u64::from(number != next);
                next = number + 1;
                seen.ages.push(now.saturating_sub(written) as f64 / 1000.0);
            }
            each(next);
        }
        seen
    }
}

impl Source {
    async fn next(&mut self) -> Option<(Bytes, u64)> {
        match self {
            Self::Log(cursor) => {
                let batch = cursor.next().await.expect("the log can be read")?;
                Some((batch.lines, batch.count))
            }
            Self::Relay(lines) => lines.recv().await.map(|line| (line, 1)),
        }
    }
}
