//! The engine and the relay with agents, and readers of both.

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

/// The program under measurement; also the keeper.
pub const AGENTWIRE: &str = env!("CARGO_BIN_EXE_agentwire");

/// Longer than anything here takes: what comes later is lost.
const PATIENCE: Duration = Duration::from_secs(60);

/// The engine with a log of its own.
pub struct Gateway {
    pub hub: Hub,
    directory: TempDir,
}

/// What the engine is told for a log in that directory.
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

    /// A reader of what comes from now on.
    pub async fn reader(&self, session: &SessionHandle) -> Reader {
        let after = session.summary().last_seq;
        let cursor = self.hub.events(session.id(), after).await.expect("a cursor");
        Reader { source: Source::Log(Box::new(cursor)), finder: agent::finder() }
    }

    pub async fn end(self) {
        self.hub.shutdown().await;
    }
}

/// Tells the agent of a session what to print.
pub async fn order(session: &SessionHandle, order: String) {
    session.send(Command::Prompt(Prompt::text(order))).await.expect("an order that is taken");
}

/// One reader of the engine's log or of the relay.
pub struct Reader {
    source: Source,
    finder: Finder<'static>,
}

enum Source {
    Log(Box<Events>),
    Relay(mpsc::Receiver<Bytes>),
}

/// What a reader saw of an order.
#[derive(Default)]
pub struct Seen {
    /// Lines that were lost, doubled or out of order.
    pub faults: u64,
    /// Events that carried them; of the relay, lines.
    pub events: u64,
    /// Microseconds from each line's writing to its sight.
    pub ages: Vec<f64>,
}

impl Reader {
    pub fn relay(lines: mpsc::Receiver<Bytes>) -> Self {
        Self { source: Source::Relay(lines), finder: agent::finder() }
    }

    /// Reads so many lines of the agent. After each chunk `each` hears how many there were so far.
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
                let batch = cursor.next().await.expect("a log that reads")?;
                Some((batch.lines, batch.count))
            }
            Self::Relay(lines) => lines.recv().await.map(|line| (line, 1)),
        }
    }
}
