//! The Rust client in the scenarios that every client must survive.

use std::sync::Arc;

use agentwire_client::{
    AgentClient, AgentError, AgentType, HttpTransport, Profile, Server, SessionConfig,
    SessionRequest, Streaming,
};
use serde_json::{Value, json};
use tokio::sync::{Notify, mpsc};

use crate::scenarios::{Reader, Task, play_all};

const WAYS: [&str; 3] = ["socket", "events", "polling"];

#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn the_client_survives_every_scenario() {
    play_all(&WAYS, start).await;
}

fn start(task: Task) -> Reader {
    let (reports, received) = mpsc::unbounded_channel();
    let paused = Arc::new(Notify::new());
    let wait = Arc::clone(&paused);
    tokio::spawn(async move {
        if let Err(error) = read(task, &wait, &reports).await {
            let _ = reports.send(json!({ "error": error.message() }));
        }
    });
    Reader { reports: received, go: Box::new(move || paused.notify_one()) }
}

async fn read(
    task: Task,
    paused: &Notify,
    reports: &mpsc::UnboundedSender<Value>,
) -> Result<(), AgentError> {
    let report = |value: Value| drop(reports.send(value));
    let server = Server::new(&task.url)?.with_token(&task.token)?;
    let streaming = match task.way {
        "socket" => Streaming::Socket,
        "events" => Streaming::Events,
        _ => Streaming::Polling,
    };
    let transport = HttpTransport::new(server).with_streaming(streaming);
    let client = AgentClient::over(transport.clone());
    let session = match (&task.session, &task.plan.creates) {
        (Some(id), _) => client.attach(id.as_str()).await?,
        (None, prompt) => {
            // A client that has never reached its server does not try again.
            client.requests().await?;
            let prompt = prompt.as_deref().expect("a prompt");
            let config = SessionConfig {
                working_directory: Some(task.directory),
                ..SessionConfig::default()
            };
            client.create(SessionRequest::new(AgentType::Demo, prompt).with_config(config)).await?
        }
    };
    report(json!({ "session": session.id().as_str() }));
    let profile = match task.plan.profile.as_deref() {
        Some("core") => Profile::Core,
        Some("lean") => Profile::Lean,
        _ => Profile::Full,
    };
    let mut prompts = task.plan.prompts.iter();
    let mut events = session.events_after(task.plan.after).profile(profile);
    loop {
        let event = match events.try_next().await {
            Ok(Some(event)) => event,
            Ok(None) => break,
            Err(error) => match error.gap() {
                Some(
                    agentwire_client::Gap::Skipped { from, to }
                    | agentwire_client::Gap::Forgotten { from, to },
                ) => {
                    report(json!({ "gap": [from, to] }));
                    continue;
                }
                None => return Err(error),
            },
        };
        report(json!({ "seq": event.seq, "type": event.kind.name() }));
        if task.plan.pause_at == Some(event.seq) {
            paused.notified().await;
        }
        if event.kind.name() == "turnCompleted" && task.session.is_none() {
            match prompts.next() {
                Some(prompt) => drop(session.prompt(prompt.as_str()).await?),
                None => session.stop().await?,
            }
        }
    }
    let used = match transport.streaming() {
        Streaming::Socket => "socket",
        Streaming::Events => "events",
        Streaming::Polling => "polling",
    };
    report(json!({ "streaming": used }));
    report(json!({ "end": true }));
    Ok(())
}
