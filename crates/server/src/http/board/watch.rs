//! A session's events as they come, over a WebSocket.

use std::time::Duration;

use agentwire_dialects::board::{Board, State as BoardState};
use agentwire_protocol::{GatewayError, SessionId, SessionState};
use agentwire_sessions::Hub;
use agentwire_sessions::apart::apart_if_long;
use axum::extract::ws::{Message, WebSocket, close_code};
use axum::extract::{Extension, State};
use tokio::time::timeout;

use super::pages::tell;
use super::state;
use crate::http::App;
use crate::http::body::At;
use crate::http::metrics::Wire;
use crate::http::rest::{Answer, session_id};
use crate::http::socket::{
    REVOKED, Reason, STOPS, Upgrade, beat, bounded, closing, fault_of, upgraded,
};
use crate::reading;
use crate::tokens::Caller;

/// How long a client may take to say that it closes too.
const FAREWELL: Duration = Duration::from_secs(2);

const OVER: Reason = (close_code::NORMAL, "the session is over");
const FAILED: Reason = (close_code::NORMAL, "the turn failed; the session waits for a prompt");
const GOODBYE: Reason = (close_code::NORMAL, "goodbye");

/// The longest message of a client, which has nothing to say here.
const HEARD: usize = 4 << 10;

/// `GET /ws/sessions/{id}`
pub(in crate::http) async fn watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    At(id): At<String>,
    upgrade: Upgrade,
) -> Answer {
    let id = session_id(&id)?;
    app.hub().summary(&id).await?;
    let upgrade = bounded(upgraded(upgrade)?, HEARD);
    Ok(upgrade.on_upgrade(move |mut wire| async move {
        let _open = app.traffic.stream(Wire::Board, None);
        let reason = match replay(&app, &caller, &id, &mut wire).await {
            Ok(reason) => reason,
            Err(error) => {
                tracing::warn!(session = id.as_str(), error.message, "a watcher is sent away");
                (close_code::ERROR, "the events cannot be read")
            }
        };
        if wire.send(closing(reason)).await.is_ok() {
            // A socket that is dropped with something unread may take the last words with it.
            let heard = async { while let Some(Ok(_)) = wire.recv().await {} };
            let _ = timeout(FAREWELL, heard).await;
        }
    }))
}

/// All that was, then what comes, up to the end of the session or of its turn.
async fn replay(
    app: &App,
    caller: &Caller,
    id: &SessionId,
    wire: &mut WebSocket,
) -> Result<Reason, GatewayError> {
    let mut cursor = app.hub().events(id, 0).await?;
    let mut board = Board::default();
    let mut beat = beat();
    loop {
        tokio::select! {
            batch = reading::next(&mut cursor) => {
                let batch = batch.map_err(|error| Hub::storage_error(&error))?;
                let Some(batch) = batch else { return Ok(OVER) };
                let mut lines = Vec::new();
                for (_, line) in batch.events() {
                    apart_if_long(line.len(), || {
                        tell(&mut board, line, &mut |event| lines.push(event));
                    });
                }
                for line in lines {
                    if wire.send(Message::text(line.get().to_owned())).await.is_err() {
                        return Ok(GOODBYE);
                    }
                }
                if board.rests() && let Some(reason) = rest(app, id, cursor.position()).await? {
                    return Ok(reason);
                }
            }
            said = wire.recv() => match said {
                Some(Ok(Message::Close(_))) | None => return Ok(GOODBYE),
                Some(Err(error)) => return Ok(fault_of(&error)),
                Some(Ok(_)) => {}
            },
            _ = beat.tick() => {
                if !app.keeps(caller) {
                    return Ok(REVOKED);
                }
                if wire.send(Message::Ping(axum::body::Bytes::new())).await.is_err() {
                    return Ok(GOODBYE);
                }
                if board.rests() && let Some(reason) = rest(app, id, cursor.position()).await? {
                    return Ok(reason);
                }
            }
            () = app.stopping.cancelled() => return Ok(STOPS),
        }
    }
}

/// Why to close, if all is told. A session of the board has an end, which is the last of its events;
/// another may wait for a prompt for ever, and whether that it failed was its end is not known yet.
async fn rest(app: &App, id: &SessionId, shown: u64) -> Result<Option<Reason>, GatewayError> {
    if app.desk.sees_to(id) {
        return Ok(None);
    }
    let record = app.hub().record(id).await?;
    let state = state(&record);
    if shown < record.summary.last_seq || !state.is_over() {
        return Ok(None);
    }
    let waits = record.summary.state != SessionState::Ended;
    Ok(Some(if waits && state == BoardState::Failed { FAILED } else { OVER }))
}
