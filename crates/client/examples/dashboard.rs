//! Watches many sessions at once over one gateway, and prints a line for each change.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::process::ExitCode;
use std::time::Duration;

use agentwire::example::{self, Trial};
use agentwire_client::{
    AgentClient, AgentError, AgentType, InProcessTransport, Session, SessionFilter, SessionRequest,
};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const SESSIONS: usize = 12;

fn main() -> ExitCode {
    example::run(dashboard)
}

// In your program: `#[tokio::main] async fn main() -> Result<(), AgentError>`, and a client from
// `AgentClient::connect().await?` or a gateway with your own settings.
async fn dashboard(trial: &Trial) -> Result<(), AgentError> {
    let client = AgentClient::over(InProcessTransport::with_settings(trial.settings()).await?);
    for number in 0..SESSIONS {
        let prompt = format!("/usage {number} 10 0 0\n/repeat 20 word \n/say I am number {number}");
        client.create(SessionRequest::new(AgentType::Demo, prompt)).await?;
    }

    // The dashboard attaches to all sessions, no matter which client started them. Each one reports its
    // changes.
    let (changes, mut changed) = mpsc::channel(SESSIONS);
    let mut watchers = JoinSet::new();
    for summary in client.sessions(SessionFilter::default()).await? {
        let session = client.attach(summary.id).await?;
        watchers.spawn(watch(session, changes.clone()));
    }
    drop(changes);
    while let Some(line) = changed.recv().await {
        println!("{line}");
    }
    let done = watchers.join_all().await;
    let tokens: u64 = done.into_iter().collect::<Result<Vec<u64>, AgentError>>()?.iter().sum();
    println!("{SESSIONS} sessions, {tokens} tokens");
    client.close().await;
    Ok(())
}

/// Follows a session through its first turn in batches, so that a screen is not drawn for each event.
async fn watch(session: Session, changes: mpsc::Sender<String>) -> Result<u64, AgentError> {
    let mut batches = session.events().batches(Duration::from_millis(50));
    let mut last = None;
    while let Some(batch) = batches.try_next().await? {
        let state = session.state();
        if last.replace(state) != Some(state) {
            let short = session.id().as_str().get(..8).unwrap_or_default();
            let tokens = session.usage().total_tokens;
            let _ = changes.send(format!("{short}  {:<10} {tokens} tokens", state.as_str())).await;
        }
        if batch.iter().any(|event| event.ends_turn()) {
            break;
        }
    }
    Ok(session.usage().total_tokens)
}
