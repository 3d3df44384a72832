//! A gateway whose agents are scripts, and a client of one of its sessions.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use agentwire_protocol::event::{
    EventKind, RequestKind, RequestOutcome, RequestRaised, RequestSettled, SettledBy, Status,
    TurnFailed,
};
use agentwire_protocol::{
    AgentType, Command, Event, GatewayError, Json, Prompt, SessionConfig, Settlement,
};
use agentwire_sessions::hub::Events;
use agentwire_sessions::settings::{AgentCommand, StoreKind, Timing};
use agentwire_sessions::{Hub, NewSession, SessionHandle, Settings};
use serde_json::{Value, json};

/// Longer than anything here takes, even on a busy machine.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) const CODEX: (AgentType, &str) = (AgentType::Codex, include_str!("codex.sh"));
pub(crate) const EXEC: (AgentType, &str) = (AgentType::Codex, include_str!("exec.sh"));
pub(crate) const CLAUDE: (AgentType, &str) = (AgentType::Claude, include_str!("claude.sh"));
pub(crate) const ACP: (AgentType, &str) = (AgentType::Acp, include_str!("acp.sh"));

/// A session, and all its events read so far.
pub(crate) struct Session {
    hub: Hub,
    dir: tempfile::TempDir,
    pub(crate) handle: SessionHandle,
    cursor: Events,
    ready: std::collections::VecDeque<Event<'static>>,
    pub(crate) seen: Vec<Event<'static>>,
}

/// One hook for everything, with the event's name as its callback.
pub(crate) fn hooks(events: &[&str]) -> Value {
    let one = |event: &&str| ((*event).to_owned(), json!([{ "hookCallbackIds": [event] }]));
    Value::Object(events.iter().map(one).collect())
}

pub(crate) fn config(hooks: &Value) -> SessionConfig {
    serde_json::from_value(json!({ "hooks": hooks })).unwrap()
}

impl Session {
    pub(crate) async fn start(
        agent: (AgentType, &str),
        config: SessionConfig,
        prompt: &str,
    ) -> Self {
        Self::try_start(agent, config, prompt).await.unwrap()
    }

    pub(crate) async fn try_start(
        agent: (AgentType, &str),
        config: SessionConfig,
        prompt: &str,
    ) -> Result<Self, GatewayError> {
        Self::start_within(Timing::default(), agent, config, prompt).await
    }

    /// A session with other timeouts.
    pub(crate) async fn start_within(
        timing: Timing,
        agent: (AgentType, &str),
        config: SessionConfig,
        prompt: &str,
    ) -> Result<Self, GatewayError> {
        Self::start_in(StoreKind::Memory, timing, agent, config, prompt).await
    }

    /// A session whose log a test can hold up with [`Self::disk`].
    pub(crate) async fn start_on_disk(
        timing: Timing,
        agent: (AgentType, &str),
        config: SessionConfig,
        prompt: &str,
    ) -> Self {
        Self::start_in(StoreKind::Sqlite, timing, agent, config, prompt).await.unwrap()
    }

    async fn start_in(
        store: StoreKind,
        timing: Timing,
        (agent, script): (AgentType, &str),
        mut config: SessionConfig,
        prompt: &str,
    ) -> Result<Self, GatewayError> {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let program = dir.path().join("agent.sh");
        std::fs::write(&program, script).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let mut settings =
            Settings { data_dir: dir.path().join("data"), store, timing, ..Settings::default() };
        let program = Some(program.to_string_lossy().into_owned());
        settings.agents.insert(agent.as_str(), AgentCommand { program, ..AgentCommand::default() });
        let hub = Hub::open(settings).await.unwrap();
        config.working_directory = Some(work.to_string_lossy().into_owned());
        let prompt = (!prompt.is_empty()).then(|| Prompt::text(prompt));
        let new = NewSession { prompt, config, ..NewSession::of(agent) };
        let handle = hub.start(new).await?;
        let cursor = hub.events(handle.id(), 0).await.unwrap();
        let (ready, seen) = Default::default();
        Ok(Self { hub, dir, handle, cursor, ready, seen })
    }

    /// The session's database. While a transaction of it writes, nothing becomes durable.
    pub(crate) fn disk(&self) -> rusqlite::Connection {
        rusqlite::Connection::open(self.dir.path().join("data/agentwire.db")).unwrap()
    }

    /// A file in the agent's directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("work").join(name)
    }

    /// The next event; `None` after the last.
    pub(crate) async fn next(&mut self) -> Option<Event<'static>> {
        while self.ready.is_empty() {
            let batch = tokio::time::timeout(PATIENCE, self.cursor.next()).await;
            let batch = batch.unwrap_or_else(|_| panic!("no further event: {:#?}", self.seen));
            self.ready.extend(
                batch
                    .unwrap()?
                    .events()
                    .map(|(_, line)| Event::from_json(std::str::from_utf8(line).unwrap()).unwrap()),
            );
        }
        let event = self.ready.pop_front()?;
        self.seen.push(event.clone());
        Some(event)
    }

    pub(crate) async fn until<T>(&mut self, pick: impl Fn(&EventKind<'static>) -> Option<T>) -> T {
        loop {
            let Some(event) = self.next().await else { panic!("it never came: {:#?}", self.seen) };
            if let Some(picked) = pick(&event.kind) {
                return picked;
            }
        }
    }

    /// The next request, which must be a hook of this event.
    pub(crate) async fn hook(&mut self, event: &str) -> RequestRaised<'static> {
        let request = self.request().await;
        assert_eq!(request.kind, RequestKind::Hook, "{request:?}");
        assert_eq!(request.name.as_ref().unwrap().decode(), event);
        request
    }

    pub(crate) async fn request(&mut self) -> RequestRaised<'static> {
        self.until(|kind| match kind {
            EventKind::RequestRaised(request) => Some((**request).clone()),
            _ => None,
        })
        .await
    }

    pub(crate) async fn settled(&mut self, id: &str) -> RequestSettled<'static> {
        self.until(|kind| match kind {
            EventKind::RequestSettled(settled) if settled.request_id == *id => {
                Some(settled.clone())
            }
            _ => None,
        })
        .await
    }

    pub(crate) async fn warning(&mut self) -> String {
        self.until(|kind| match kind {
            EventKind::StatusChanged(status) if status.status == Status::Warning => {
                Some(status.message.as_ref().unwrap().to_string())
            }
            _ => None,
        })
        .await
    }

    pub(crate) async fn completed(&mut self) {
        self.until(|kind| match kind {
            EventKind::TurnCompleted(_) => Some(()),
            EventKind::TurnFailed(failed) => panic!("the turn failed: {failed:?}"),
            _ => None,
        })
        .await;
    }

    /// Waits for the end of a turn, whatever it is.
    pub(crate) async fn turn_ended(&mut self) {
        self.until(|kind| {
            matches!(kind, EventKind::TurnCompleted(_) | EventKind::TurnFailed(_)).then_some(())
        })
        .await;
    }

    pub(crate) async fn failed(&mut self) -> TurnFailed<'static> {
        self.until(|kind| match kind {
            EventKind::TurnFailed(failed) => Some((**failed).clone()),
            EventKind::TurnCompleted(_) => panic!("the turn did not fail"),
            _ => None,
        })
        .await
    }

    pub(crate) async fn prompt(&self, text: &str) {
        self.handle.send(Command::Prompt(Prompt::text(text))).await.unwrap();
    }

    pub(crate) async fn answer(&self, request: &RequestRaised<'_>, output: &Value) {
        self.try_answer(&request.request_id.decode(), output).await.unwrap();
    }

    pub(crate) async fn try_answer(&self, id: &str, output: &Value) -> Result<(), GatewayError> {
        let mut settlement: Settlement =
            serde_json::from_value(json!({ "requestId": id })).unwrap();
        settlement.hook_output = Some(Json::of(output));
        self.settle(settlement).await
    }

    pub(crate) async fn settle(&self, settlement: Settlement) -> Result<(), GatewayError> {
        self.handle.send(Command::Settle(settlement)).await.map(drop)
    }

    /// The lines that the agent has received and read so far.
    pub(crate) fn heard(&self) -> String {
        std::fs::read_to_string(self.work().join("heard")).unwrap_or_default()
    }

    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// Ends the session and returns all its events.
    pub(crate) async fn end(self) -> Vec<Event<'static>> {
        let _ = self.handle.send(Command::Stop).await;
        self.over().await
    }

    /// All events of a session that ends by itself. Checks that every request is settled exactly once.
    pub(crate) async fn over(mut self) -> Vec<Event<'static>> {
        while self.next().await.is_some() {}
        let mut open = std::collections::BTreeSet::new();
        for event in &self.seen {
            match &event.kind {
                EventKind::RequestRaised(raised) => {
                    assert!(open.insert(raised.request_id.to_string()), "{raised:?} again");
                }
                EventKind::RequestSettled(settled) => {
                    let id = settled.request_id.to_string();
                    assert!(open.remove(&id), "{settled:?} is not open");
                }
                _ => {}
            }
        }
        assert!(open.is_empty(), "never settled: {open:?}");
        self.hub.shutdown().await;
        self.seen
    }
}

/// The events with an agent's line that contains `text`.
pub(crate) fn carriers<'e>(events: &'e [Event<'static>], text: &str) -> Vec<&'e Event<'static>> {
    let has = |event: &&Event<'_>| {
        let mut bytes = Vec::new();
        event.native.iter().for_each(|line| line.write_to(&mut bytes));
        String::from_utf8_lossy(&bytes).contains(text)
    };
    events.iter().filter(has).collect()
}

pub(crate) fn count(events: &[Event<'_>], is_it: impl Fn(&EventKind<'_>) -> bool) -> usize {
    events.iter().filter(|event| is_it(&event.kind)).count()
}

/// The input of a hook.
pub(crate) fn input(request: &RequestRaised<'_>) -> Value {
    request.input.as_ref().unwrap().read().unwrap()
}

pub(crate) fn outcome(settled: &RequestSettled<'_>) -> (RequestOutcome, SettledBy, String) {
    let reason = settled.reason.as_ref().map(ToString::to_string).unwrap_or_default();
    (settled.outcome, settled.by, reason)
}

pub(crate) fn decision(word: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": word,
        "permissionDecisionReason": reason,
    } })
}
