//! A session's events by pages.

use std::collections::BTreeMap;

use agentwire_dialects::board::Board;
use agentwire_protocol::{Event, Json, SessionId};
use agentwire_sessions::Hub;
use axum::extract::State;
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::Deserialize;

use super::desk::{Place, STRIDE};
use crate::http::App;
use crate::http::body::{At, json_text, query};
use crate::http::rest::{Answer, page_size, session_id};

const PAGE: usize = 100;
const PAGE_LIMIT: usize = 1000;

/// How many bytes of events a page may have; one event always fits.
const PAGE_BYTES: usize = 8 << 20;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventsQuery {
    #[serde(default)]
    offset: usize,
    limit: Option<String>,
}

/// A page of the board's events.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is written as text; this is its schema")]
#[schemars(rename = "BoardEventPage")]
pub(in crate::http) struct EventPage {
    /// In order.
    events: Vec<BoardEvent>,
    /// How many come before them.
    offset: u64,
    /// How many there are.
    total: u64,
}

/// An event of the board.
#[derive(JsonSchema)]
#[schemars(rename_all = "camelCase")]
#[expect(dead_code, reason = "the board makes it; this is its schema")]
struct BoardEvent {
    /// A UUID.
    id: String,
    session_id: SessionId,
    /// What it is, and so what its payload has.
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
    At(id): At<String>,
    uri: Uri,
) -> Answer {
    let EventsQuery { offset, limit } = query(&uri)?;
    let limit = page_size(limit.as_deref(), PAGE, PAGE_LIMIT)?;
    let session = app.hub().summary(&session_id(&id)?).await?;
    let mut page = Page { offset, limit, text: String::new(), count: 0, is_full: false };
    let mut place = app.desk.before(&session, offset);
    let mut kept = place.count;
    let mut cursor = app.hub().log().cursor(&session.id, place.seq);
    while place.seq < session.last_seq {
        if page.is_full {
            // The rest is only counted, and as far as it was before, not again.
            let further = app.desk.before(&session, usize::MAX);
            if further.seq > place.seq && further.seq <= session.last_seq {
                cursor = app.hub().log().cursor(&session.id, further.seq);
                place = further;
                kept = place.count;
                continue;
            }
        }
        let batch = cursor.next().await.map_err(|error| Hub::storage_error(&error))?;
        let Some(batch) = batch else { break };
        for (seq, line) in batch.events() {
            let Place { board, count, .. } = &mut place;
            tell(board, line, &mut |event| {
                page.take(*count, &event);
                *count += 1;
            });
            place.seq = seq;
            if place.count >= kept + STRIDE {
                kept = place.count;
                app.desk.keep(&session, &place, false);
            }
            if seq == session.last_seq {
                break;
            }
        }
    }
    app.desk.keep(&session, &place, true);
    let Page { text, .. } = page;
    let total = place.count;
    let text = format!(r#"{{"events":[{text}],"offset":{offset},"total":{total}}}"#);
    Ok(json_text(StatusCode::OK, text))
}

/// What of a list is wanted.
struct Page {
    offset: usize,
    limit: usize,
    text: String,
    count: usize,
    is_full: bool,
}

impl Page {
    fn take(&mut self, at: usize, event: &Json<'static>) {
        if at < self.offset || self.is_full {
            return;
        }
        let is_first = self.text.is_empty();
        if !is_first && self.text.len() + event.get().len() > PAGE_BYTES {
            self.is_full = true;
            return;
        }
        if !is_first {
            self.text.push(',');
        }
        self.text.push_str(event.get());
        self.count += 1;
        self.is_full = self.count == self.limit;
    }
}

/// Tells of an event as it stands in the log.
pub(super) fn tell(board: &mut Board, line: &[u8], say: &mut dyn FnMut(Json<'static>)) {
    let event = std::str::from_utf8(line).ok().and_then(|text| Event::from_json(text).ok());
    if let Some(event) = event {
        board.event(&event, say);
    }
}
