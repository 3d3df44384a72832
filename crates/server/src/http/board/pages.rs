//! A session's events by pages.

use std::collections::BTreeMap;

use agentwire_dialects::board::Board;
use agentwire_protocol::{Event, Json, SessionId};
use agentwire_sessions::Hub;
use agentwire_sessions::apart::apart_if_long;
use agentwire_sessions::budget::Budget;
use agentwire_sessions::store::StoreError;
use axum::extract::State;
use http::{StatusCode, Uri};
use schemars::JsonSchema;
use serde::Deserialize;

use super::desk::{Place, STRIDE};
use crate::held::Held;
use crate::http::App;
use crate::http::body::{At, json_text, query};
use crate::http::rest::{Answer, page_size, session_id};
use crate::reading::first_or_next;

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
    let mut page = Page {
        offset,
        limit,
        text: PAGE_BEGIN.to_owned(),
        count: 0,
        is_full: false,
        held: Held::default(),
        budget: app.hub().log().budget().clone(),
    };
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
        let batch = match first_or_next(&mut cursor, page.count > 0 && !page.is_full).await {
            // What there is is a page; the rest is only counted.
            Err(StoreError::Busy(_)) if page.count > 0 && !page.is_full => {
                page.is_full = true;
                page.held.let_go();
                continue;
            }
            batch => batch.map_err(|error| Hub::storage_error(&error))?,
        };
        let Some(batch) = batch else { break };
        let before = page.count;
        for (seq, line) in batch.events() {
            let Place { board, count, .. } = &mut place;
            apart_if_long(line.len(), || {
                tell(board, line, &mut |event| {
                    page.take(*count, &event);
                    *count += 1;
                });
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
        if page.is_full {
            // What is only counted is read one by one, and waits for no share that the page itself holds.
            page.held.let_go();
        } else if page.count > before {
            page.held.keep(&batch);
        }
    }
    app.desk.keep(&session, &place, true);
    let Page { mut text, held, .. } = page;
    let total = place.count;
    text.push_str(&format!(r#"],"offset":{offset},"total":{total}}}"#));
    Ok(json_text(StatusCode::OK, held.text(text)))
}

/// What of a list is wanted.
struct Page {
    offset: usize,
    limit: usize,
    text: String,
    count: usize,
    is_full: bool,
    held: Held,
    budget: Budget,
}

/// How a page begins.
const PAGE_BEGIN: &str = r#"{"events":["#;

impl Page {
    fn take(&mut self, at: usize, event: &Json<'static>) {
        if at < self.offset || self.is_full {
            return;
        }
        let is_first = self.count == 0;
        let long = self.text.len() + event.get().len();
        let may_grow =
            |held: &mut Held| long <= PAGE_BYTES && held.may_grow(long, PAGE_BYTES, &self.budget);
        if !is_first && !may_grow(&mut self.held) {
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
