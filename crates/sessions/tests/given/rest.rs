//! Before Gemini starts: a session that must not resume before the next minute waits by itself.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use agentwire_protocol::event::{EventKind, SessionEndReason, Status, TurnFailure};
use agentwire_protocol::{AgentType, Command, ErrorCode, Event, Prompt, SessionState, Settlement};
use agentwire_sessions::hub::Events;
use agentwire_sessions::settings::AgentCommand;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Append, Store as _};
use agentwire_sessions::{Hub, NewSession, SessionHandle, Settings, clock};
use serde_json::Value;

use crate::waiting::{once, queued};

async fn until<T>(cursor: &mut Events, pick: impl Fn(&EventKind<'static>) -> Option<T>) -> T {
    loop {
        let batch = tokio::time::timeout(Duration::from_secs(60), cursor.next()).await;
        let batch = batch.unwrap().unwrap().unwrap();
        for (_, line) in batch.events() {
            let event: Event<'static> =
                Event::from_json(std::str::from_utf8(line).unwrap()).unwrap();
            if let Some(picked) = pick(&event.kind) {
                return picked;
            }
        }
    }
}

/// A gateway whose Gemini is a script, and a working directory.
async fn gateway() -> (tempfile::TempDir, Hub, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("agent.sh");
    std::fs::write(&program, include_str!("acp.sh")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let hub = open(dir.path()).await;
    (dir, hub, work)
}

async fn open(dir: &Path) -> Hub {
    let mut settings = Settings { data_dir: dir.join("data"), ..Settings::default() };
    let program = Some(dir.join("agent.sh").to_string_lossy().into_owned());
    settings.agents.insert("gemini", AgentCommand { program, ..AgentCommand::default() });
    Hub::open(settings).await.unwrap()
}

fn new(work: &Path) -> NewSession {
    let mut new = NewSession::of(AgentType::Gemini);
    new.config.working_directory = Some(work.to_string_lossy().into_owned());
    new.prompt = Some(Prompt::text("PLAN-good"));
    new
}

/// A resumed session that started an hour ago and whose agent created its own session just now; and its
/// events since.
async fn resumed(dir: &Path, hub: Hub, work: &Path) -> (Hub, SessionHandle, Events) {
    let session = hub.start(new(work)).await.unwrap();
    let mut cursor = hub.events(session.id(), 0).await.unwrap();
    until(&mut cursor, |kind| matches!(kind, EventKind::TurnCompleted(_)).then_some(())).await;
    session.send(Command::Stop).await.unwrap();
    until(&mut cursor, |kind| matches!(kind, EventKind::SessionEnded(_)).then_some(())).await;
    let (id, after) = (session.id().clone(), session.summary().last_seq);
    drop((session, cursor));
    hub.shutdown().await;
    drop(hub);
    let store = Sqlite::open(&dir.join("data")).unwrap();
    let mut record = store.session(&id).unwrap().unwrap();
    // The agent reported its id after it had created the session.
    assert!(record.native_since.as_ref().unwrap() >= &record.summary.created_at);
    record.summary.created_at = clock::ago(Duration::from_secs(3600));
    // So that the clock minute cannot end while this test runs.
    let soon = clock::nanoseconds(&clock::now()).unwrap() + 20_000_000_000;
    let soon = jiff::Timestamp::from_nanosecond(soon.into()).unwrap();
    record.native_since = Some(soon.to_string());
    store.append(&[&Append { batch: None, record, keys: Vec::new() }]).unwrap();
    drop(store);
    let hub = open(dir).await;
    let again = hub.start(NewSession { resume: Some(id.clone()), ..new(work) }).await.unwrap();
    let cursor = hub.events(&id, after).await.unwrap();
    (hub, again, cursor)
}

/// Gemini connects to no MCP server in a folder that it does not trust: the tools would be missing.
#[tokio::test]
async fn mcp_servers_are_not_lost_where_the_project_is_not_trusted() {
    let (_dir, hub, work) = gateway().await;
    let new = || {
        let mut new = NewSession::of(AgentType::Gemini);
        let config = serde_json::json!({
            "workingDirectory": work,
            "trust": false,
            "mcpServers": { "a": { "command": "/bin/true" } },
        });
        new.config = serde_json::from_value(config).unwrap();
        new
    };
    // With nothing to leave out, it starts as if the folder were trusted.
    let session = hub.start(new()).await.unwrap();
    session.send(Command::Stop).await.unwrap();
    std::fs::write(work.join(".env"), "GEMINI_API_KEY=x\n").unwrap();
    let error = hub.start(new()).await.err().unwrap();
    assert_eq!(error.code, ErrorCode::StartFailed);
    assert!(error.message.contains("no MCP servers"), "{}", error.message);
    hub.shutdown().await;
}

#[tokio::test]
async fn prompts_that_wait_for_trust_are_announced_once() {
    let (_dir, hub, work) = gateway().await;
    std::fs::write(work.join(".env"), "GEMINI_API_KEY=x\n").unwrap();
    let mut new = NewSession::of(AgentType::Gemini);
    new.config.working_directory = Some(work.to_string_lossy().into_owned());
    let session = hub.start(new).await.unwrap();
    let mut cursor = hub.events(session.id(), 0).await.unwrap();
    let request = until(&mut cursor, |kind| match kind {
        EventKind::RequestRaised(request) => Some(request.request_id.to_string()),
        _ => None,
    });
    let request = request.await;
    for id in ["one", "two", "three"] {
        let message_id = Some(id.to_owned());
        let prompt = Prompt { message_id, ..Prompt::text("PLAN-good") };
        session.send(Command::Prompt(prompt)).await.unwrap();
    }
    session.send(Command::Settle(Settlement::allow(request))).await.unwrap();
    for _ in ["one", "two", "three"] {
        until(&mut cursor, |kind| matches!(kind, EventKind::TurnCompleted(_)).then_some(())).await;
    }
    session.send(Command::Stop).await.unwrap();
    let mut events = Vec::new();
    let mut cursor = hub.events(session.id(), 0).await.unwrap();
    while let Some(batch) = cursor.next().await.unwrap() {
        let lines = batch.events().map(|(_, line)| std::str::from_utf8(line).unwrap());
        events.extend(lines.map(|line| Event::from_json(line).unwrap()));
    }
    assert_eq!(queued(&events), once(&["one", "two", "three"]));
    hub.shutdown().await;
}

#[tokio::test]
async fn a_resume_in_the_first_minute_of_the_agents_session_waits_and_can_be_stopped() {
    let (dir, hub, work) = gateway().await;
    let (hub, again, mut cursor) = resumed(dir.path(), hub, &work).await;
    let told = until(&mut cursor, |kind| match kind {
        EventKind::StatusChanged(status) if status.status == Status::Waiting => {
            Some(status.details.as_ref().unwrap().read::<Value>().unwrap())
        }
        _ => None,
    });
    let seconds = told.await["seconds"].as_u64().unwrap();
    assert!((1..=60).contains(&seconds), "{seconds}");
    assert_eq!(again.summary().state, SessionState::Starting);
    let query = Command::Query { method: "supportedModels".to_owned(), args: Vec::new() };
    let error = again.send(query).await.unwrap_err();
    let message = "gemini has not started yet; it starts in the next minute";
    assert_eq!((error.code, error.message.as_str()), (ErrorCode::Conflict, message));
    again.send(Command::Interrupt { cancel_queued: false }).await.unwrap();
    let failed = until(&mut cursor, |kind| match kind {
        EventKind::TurnFailed(failed) => Some(failed.reason),
        _ => None,
    });
    assert_eq!(failed.await, TurnFailure::Interrupted);
    again.send(Command::Stop).await.unwrap();
    let ended = until(&mut cursor, |kind| match kind {
        EventKind::SessionEnded(ended) => Some(ended.reason),
        _ => None,
    });
    assert_ne!(ended.await, SessionEndReason::Failed);
    // The agent never received it.
    let heard = std::fs::read_to_string(work.join("heard")).unwrap();
    assert!(!heard.contains("session/load"), "{heard}");
    hub.shutdown().await;
}

#[tokio::test]
async fn when_the_minute_is_over_the_agent_starts_and_has_the_prompt_that_waited() {
    let (dir, hub, work) = gateway().await;
    let (hub, again, mut cursor) = resumed(dir.path(), hub, &work).await;
    let is_waiting = |kind: &EventKind<'_>| match kind {
        EventKind::StatusChanged(status) => (status.status == Status::Waiting).then_some(()),
        _ => None,
    };
    until(&mut cursor, is_waiting).await;
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    let turn = until(&mut cursor, |kind| match kind {
        EventKind::TurnCompleted(turn) => Some(turn.turn_number),
        _ => None,
    });
    assert_eq!(turn.await, 2);
    let heard = std::fs::read_to_string(work.join("heard")).unwrap();
    assert!(heard.contains("session/load"), "{heard}");
    again.send(Command::Stop).await.unwrap();
    hub.shutdown().await;
}
