//! One turn of the demo agent. It takes the path of a real turn, except for the disk.

use std::time::Duration;

use agentwire_protocol::{EventKind, Prompt, SessionConfig};
use agentwire_sessions::settings::StoreKind;
use agentwire_sessions::{Hub, NewSession, Settings};

use super::Check;
use crate::commands::logs::read;
use crate::engine;
use crate::settings::Loaded;

const NAME: &str = "demo turn";

/// A turn takes less than a second.
const PATIENCE: Duration = Duration::from_secs(20);

/// What the demo agent should say.
const WORD: &str = "ok";

pub(super) async fn check(loaded: &Loaded) -> Check {
    let fix = "run `agentwire --log-level debug doctor` and report its output";
    match tokio::time::timeout(PATIENCE, turn(loaded)).await {
        Ok(Ok(text)) if text.trim() == WORD => {
            Check::ok(NAME, "the demo agent started and answered a prompt")
        }
        Ok(Ok(text)) => Check::fail(NAME, format!("the demo agent said `{text}`"), fix),
        Ok(Err(why)) => Check::fail(NAME, why, fix),
        Err(_) => {
            let why = format!("no answer in {} s", PATIENCE.as_secs());
            Check::fail(NAME, why, fix)
        }
    }
}

/// Runs in a temporary directory, so that the user's log has no trace of it.
async fn turn(loaded: &Loaded) -> Result<String, String> {
    let place = tempfile::Builder::new().prefix("agentwire-doctor-").tempdir();
    let place = place.map_err(|error| format!("failed to create a directory: {error}"))?;
    let work = place.path().join("work");
    std::fs::create_dir(&work).map_err(|error| format!("failed to create a directory: {error}"))?;
    let hub = Hub::open(Settings {
        data_dir: place.path().join("data"),
        store: StoreKind::Memory,
        keeper: loaded.engine.keeper.clone(),
        containment: loaded.engine.containment,
        ..Settings::default()
    });
    let hub = hub.await.map_err(|error| error.message)?;
    let said = speak(&hub, &work.to_string_lossy()).await;
    hub.shutdown().await;
    said
}

async fn speak(hub: &Hub, directory: &str) -> Result<String, String> {
    let config =
        SessionConfig { working_directory: Some(directory.to_owned()), ..SessionConfig::default() };
    let session = hub.start(NewSession {
        prompt: Some(Prompt::text(format!("/say {WORD}"))),
        config,
        ..NewSession::of(engine::built_in())
    });
    let session = session.await.map_err(|error| error.message)?;
    let mut cursor = hub.events(session.id(), 0).await.map_err(|error| error.message)?;
    let mut said = String::new();
    while let Some(batch) = cursor.next().await.map_err(|error| error.to_string())? {
        for (_, line) in batch.events() {
            match read(line).map_err(|error| error.message)?.kind {
                EventKind::TextChunk(chunk) => said.push_str(&chunk.content.decode()),
                EventKind::TurnCompleted(_) => return Ok(said),
                EventKind::TurnFailed(failed) => return Err(failed.error.to_string()),
                _ => {}
            }
        }
    }
    Err(session.summary().error.unwrap_or_else(|| "the session ended without a turn".to_owned()))
}
