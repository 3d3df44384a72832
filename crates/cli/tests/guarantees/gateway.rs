//! An in-process gateway with the demo agent, for one test.

use std::path::{Path, PathBuf};

use agentwire_protocol::event::{EventKind, RequestKind};
use agentwire_protocol::{
    AgentType, ApprovalMode, Command, Event, Prompt, SessionConfig, SessionSummary,
};
use agentwire_sessions::hub::Events;
use agentwire_sessions::settings::{AgentCommand, StoreKind, Timing};
use agentwire_sessions::{Hub, NewSession, SessionHandle, Settings};

use crate::shared::{AGENTWIRE, Home, PATIENCE, write_program};

pub(crate) struct Gateway {
    pub(crate) hub: Hub,
    pub(crate) home: Home,
}

pub(crate) fn settings(data_dir: &Path) -> Settings {
    Settings {
        data_dir: data_dir.join("data"),
        keeper: Some(PathBuf::from(AGENTWIRE)),
        ..Settings::default()
    }
}

impl Gateway {
    pub(crate) async fn new() -> Self {
        Self::with(|_| {}).await
    }

    pub(crate) async fn with(change: impl FnOnce(&mut Settings)) -> Self {
        let home = Home::new();
        let mut settings = settings(home.root());
        change(&mut settings);
        let hub = Hub::open(settings).await.expect("a hub");
        Self { hub, home }
    }

    pub(crate) async fn memory() -> Self {
        Self::with(|settings| settings.store = StoreKind::Memory).await
    }

    pub(crate) async fn timed(change: impl FnOnce(&mut Timing)) -> Self {
        Self::with(|settings| change(&mut settings.timing)).await
    }

    /// A gateway whose `claude` agent is this script.
    pub(crate) async fn script(text: &str) -> Self {
        let home = Home::new();
        let path = script(home.root(), "agent.sh", text);
        let mut settings = settings(home.root());
        let command = AgentCommand { program: Some(path), ..AgentCommand::default() };
        settings.agents.insert("claude", command);
        let hub = Hub::open(settings).await.expect("a hub");
        Self { hub, home }
    }

    pub(crate) fn config(&self) -> SessionConfig {
        SessionConfig {
            working_directory: Some(self.home.path("work").to_string_lossy().into_owned()),
            ..SessionConfig::default()
        }
    }

    pub(crate) fn session(&self, agent: AgentType, prompt: &str) -> NewSession {
        NewSession {
            prompt: (!prompt.is_empty()).then(|| Prompt::text(prompt)),
            config: self.config(),
            ..NewSession::of(agent)
        }
    }

    pub(crate) async fn start(&self, prompt: &str) -> SessionHandle {
        self.hub.start(self.session(AgentType::Demo, prompt)).await.expect("a session")
    }

    /// A session of the demo agent in which everything is allowed.
    pub(crate) async fn start_free(&self, prompt: &str) -> SessionHandle {
        let mut new = self.session(AgentType::Demo, prompt);
        new.config.approval_mode = Some(ApprovalMode::AutoAll);
        self.hub.start(new).await.expect("a session")
    }

    pub(crate) async fn reader(&self, session: &SessionHandle) -> Reader {
        let cursor = self.hub.events(session.id(), 0).await.expect("a cursor");
        Reader { cursor, ready: Default::default() }
    }

    /// All events of a session that has ended.
    pub(crate) async fn events(&self, session: &SessionHandle) -> Vec<Event<'static>> {
        let mut reader = self.reader(session).await;
        let mut events = Vec::new();
        while let Some(event) = reader.next().await {
            events.push(event);
        }
        events
    }
}

pub(crate) struct Reader {
    pub(crate) cursor: Events,
    ready: std::collections::VecDeque<Event<'static>>,
}

impl Reader {
    pub(crate) async fn next(&mut self) -> Option<Event<'static>> {
        while self.ready.is_empty() {
            let batch = tokio::time::timeout(PATIENCE, self.cursor.next());
            let batch = batch.await.expect("an event in time").expect("the log can be read")?;
            self.ready.extend(batch.events().map(|(seq, line)| {
                let line = std::str::from_utf8(line).expect("UTF-8");
                let event = Event::from_json(line).expect("an event");
                assert_eq!(event.seq, seq);
                event
            }));
        }
        self.ready.pop_front()
    }

    pub(crate) async fn until(&mut self, fits: impl Fn(&EventKind<'_>) -> bool) -> Event<'static> {
        loop {
            let event = self.next().await.expect("the event, before the session ends");
            if fits(&event.kind) {
                return event;
            }
        }
    }

    /// The id of the next permission request or question.
    pub(crate) async fn request(&mut self) -> String {
        let event = self
            .until(|kind| match kind {
                EventKind::RequestRaised(request) => {
                    matches!(request.kind, RequestKind::Permission | RequestKind::Question)
                }
                _ => false,
            })
            .await;
        let EventKind::RequestRaised(request) = event.kind else { unreachable!() };
        request.request_id.to_string()
    }

    pub(crate) async fn turn_end(&mut self) -> Event<'static> {
        self.until(|kind| matches!(kind, EventKind::TurnCompleted(_) | EventKind::TurnFailed(_)))
            .await
    }
}

pub(crate) async fn prompt(session: &SessionHandle, text: &str) {
    session.send(Command::Prompt(Prompt::text(text))).await.expect("the prompt is accepted");
}

pub(crate) async fn stop(session: &SessionHandle) -> SessionSummary {
    // It may have ended already.
    let _ = session.send(Command::Stop).await;
    tokio::time::timeout(PATIENCE, session.ended()).await.expect("an end in time")
}

pub(crate) fn script(dir: &Path, name: &str, text: &str) -> String {
    let path = dir.join(name);
    write_program(&path, text);
    path.to_string_lossy().into_owned()
}
