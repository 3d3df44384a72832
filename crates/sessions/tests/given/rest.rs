//! Before Gemini starts. A session that may not go on before the next minute waits by itself; that it then
//! goes on is shown with the real program (`crates/cli/tests/real`, resume).

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use agentwire_protocol::event::{EventKind, SessionEndReason, Status, TurnFailure};
use agentwire_protocol::{AgentType, Command, ErrorCode, Event, Prompt, SessionState};
use agentwire_sessions::log::Cursor;
use agentwire_sessions::settings::{AgentCommand, StoreKind};
use agentwire_sessions::{Hub, NewSession, Settings};
use serde_json::Value;

async fn until<T>(cursor: &mut Cursor, pick: impl Fn(&EventKind<'static>) -> Option<T>) -> T {
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

/// A gateway whose Gemini is a script, and a directory to work in.
async fn gateway() -> (tempfile::TempDir, Hub, std::path::PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("agent.sh");
    std::fs::write(&program, include_str!("acp.sh")).unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut settings = Settings {
        data_dir: dir.path().join("data"),
        store: StoreKind::Memory,
        ..Settings::default()
    };
    let program = Some(program.to_string_lossy().into_owned());
    settings.agents.insert("gemini", AgentCommand { program, ..AgentCommand::default() });
    let hub = Hub::open(settings).await.unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    (dir, hub, work)
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
    // With nothing to leave out, it starts as if it were trusted.
    let session = hub.start(new()).await.unwrap();
    session.send(Command::Stop).await.unwrap();
    std::fs::write(work.join(".env"), "GEMINI_API_KEY=x\n").unwrap();
    let error = hub.start(new()).await.err().unwrap();
    assert_eq!(error.code, ErrorCode::StartFailed);
    assert!(error.message.contains("no MCP servers"), "{}", error.message);
    hub.shutdown().await;
}

#[tokio::test]
async fn a_resume_in_the_first_minute_waits_and_can_be_interrupted_and_stopped() {
    let (_dir, hub, work) = gateway().await;
    let new = || {
        let mut new = NewSession::of(AgentType::Gemini);
        new.config.working_directory = Some(work.to_string_lossy().into_owned());
        new.prompt = Some(Prompt::text("PLAN-good"));
        new
    };
    let first = hub.start(new()).await.unwrap();
    let mut cursor = hub.events(first.id(), 0).await.unwrap();
    until(&mut cursor, |kind| matches!(kind, EventKind::TurnCompleted(_)).then_some(())).await;
    first.send(Command::Stop).await.unwrap();
    until(&mut cursor, |kind| matches!(kind, EventKind::SessionEnded(_)).then_some(())).await;
    let (id, after) = (first.id().clone(), first.summary().last_seq);

    let again = hub.start(NewSession { resume: Some(id.clone()), ..new() }).await.unwrap();
    let mut cursor = hub.events(&id, after).await.unwrap();
    let told = until(&mut cursor, |kind| match kind {
        EventKind::StatusChanged(status) if status.status == Status::Waiting => {
            Some(status.details.as_ref().unwrap().read::<Value>().unwrap())
        }
        _ => None,
    });
    let seconds = told.await["seconds"].as_u64().unwrap();
    assert!((1..=70).contains(&seconds), "{seconds}");
    assert_eq!(again.summary().state, SessionState::Starting);
    let query = Command::Query { method: "supportedModels".to_owned(), args: Vec::new() };
    let error = again.send(query).await.unwrap_err();
    let message = "gemini has not started yet: it waits for the next minute";
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
    // The agent never heard of it.
    let heard = std::fs::read_to_string(work.join("heard")).unwrap();
    assert!(!heard.contains("session/load"), "{heard}");
    hub.shutdown().await;
}
