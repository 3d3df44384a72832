//! The events of a board session in pages.

use std::collections::BTreeMap;

use agentwire_dialects::board::Board;
use agentwire_protocol::{Event, Json, SessionId};
use agentwire_sessions::Hub;
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::store::StoreError;
use axum::extract::State;
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::Deserialize;

use super::sessions::{Position, STRIDE};
use crate::event_pages::PageBuilder;
use crate::http::App;
use crate::http::body::{PathParam, json_text, query};
use crate::http::rest::{HttpResult, page_size, session_id};

const PAGE: usize = 100;
const PAGE_LIMIT: usize = 1000;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventsQuery {
    #[serde(default)]
    offset: usize,
    limit: Option<String>,
}

/// A page of board events.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "written as text; only used for its schema")]
pub(in crate::http) struct BoardEventPage {
    /// The events, in order.
    events: Vec<BoardEvent>,
    /// How many events come before them.
    offset: u64,
    /// The total number of events.
    total: u64,
}

/// A board event.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "made by the board; only used for its schema")]
struct BoardEvent {
    /// A UUID.
    id: String,
    session_id: SessionId,
    /// The type, which determines the payload.
    #[schemars(extend(
        "enum" = ["plan", "log", "diff", "action", "toolResult", "error", "cancelled"]
    ))]
    r#type: String,
    payload: BTreeMap<String, Json<'static>>,
    timestamp: String,
}

/// `GET /api/sessions/{id}/events`
pub(in crate::http) async fn events(
    State(app): State<App>,
    PathParam(id): PathParam<String>,
    uri: Uri,
) -> HttpResult {
    let EventsQuery { offset, limit } = query(&uri)?;
    let limit = page_size(limit.as_deref(), PAGE, PAGE_LIMIT)?;
    let session = app.hub().summary(&session_id(&id)?).await?;
    let mut page = PageBuilder::new(app.hub(), r#"{"events":["#, limit);
    let mut position = app.board_sessions.position_before(&session, offset);
    let mut stored_count = position.count;
    let mut cursor = app.hub().follow(&session.id, position.seq);
    while position.seq < session.last_seq {
        if page.is_full() {
            // The rest is only counted. Skip what was counted before.
            let further = app.board_sessions.position_before(&session, usize::MAX);
            if further.seq > position.seq && further.seq <= session.last_seq {
                cursor = app.hub().follow(&session.id, further.seq);
                (stored_count, position) = (further.count, further);
                continue;
            }
        }
        let batch = match page.next(&mut cursor).await {
            // The events so far make a page; the rest is only counted.
            Err(StoreError::Busy(_)) if page.count() > 0 && !page.is_full() => {
                page.close();
                continue;
            }
            batch => batch.map_err(|error| Hub::storage_error(&error))?,
        };
        let Some(batch) = batch else { break };
        let before = page.count();
        for (seq, line) in batch.events() {
            let Position { board, count, .. } = &mut position;
            blocking_if_long(line.len(), || {
                add_events(board, line, &mut |event| {
                    if *count >= offset && !page.is_full() {
                        page.push(event.get());
                    }
                    *count += 1;
                });
            });
            position.seq = seq;
            if position.count >= stored_count + STRIDE {
                stored_count = position.count;
                app.board_sessions.store_position(&session, &position, false);
            }
            if seq == session.last_seq {
                break;
            }
        }
        if page.is_full() {
            // Events that are only counted are read one by one, and must not wait for a share that the page
            // itself holds.
            page.close();
        } else if page.count() > before {
            page.hold_shares(&batch);
        }
    }
    app.board_sessions.store_position(&session, &position, true);
    let (mut text, shares) = page.into_parts();
    let total = position.count;
    text.push_str(&format!(r#"],"offset":{offset},"total":{total}}}"#));
    Ok(json_text(StatusCode::OK, shares.into_bytes(text)))
}

fn add_events(board: &mut Board, line: &[u8], add: &mut dyn FnMut(Json<'static>)) {
    let event = std::str::from_utf8(line).ok().and_then(|text| Event::from_json(text).ok());
    if let Some(event) = event {
        board.event(&event, add);
    }
}
