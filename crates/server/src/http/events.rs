//! A session's events: a page, a page that waits, or a stream. All read the same log with the same cursor,
//! and the bytes of an event are the same in each.

use std::convert::Infallible;
use std::time::Duration;

use agentwire_protocol::{ErrorCode, GatewayError, Json, Profile, Resume, SessionId, SessionState};
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::hub::Events;
use agentwire_sessions::store::Batch;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use serde::Deserialize;
use tokio::time::{Instant, Interval};

use super::body::{PathParam, json_text, query};
use super::metrics::Wire;
use super::problem::Problem;
use super::rest::{HttpResult, clamped, page_size, session_id};
use super::{App, metrics};
use crate::event_pages::{self, Before, FilledPage, PageBuilder, in_profile};
use crate::read_budget::ReadShares;
use crate::tokens::Caller;

const PAGE: usize = 100;
const PAGE_LIMIT: usize = 10_000;

/// The longest time that a page may wait for its first event, in seconds.
const WAIT_LIMIT: u64 = 60;

/// How often a stream sends a heartbeat, and checks that its client may still read.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Tells a client to reconnect after this many milliseconds.
const RETRY: &str = "retry: 1000\n\n";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventsQuery {
    #[serde(default)]
    after: Option<u64>,
    before: Option<u64>,
    limit: Option<String>,
    #[serde(default)]
    profile: Profile,
    wait: Option<String>,
}

/// `GET /v1/sessions/{id}/events`
pub(super) async fn events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    PathParam(id): PathParam<String>,
    uri: Uri,
    headers: HeaderMap,
) -> HttpResult {
    let id = session_id(&id)?;
    let wanted: EventsQuery = query(&uri)?;
    // A client that reconnects sends its last position, which is newer than the one in its first URL.
    let last_event = headers.get("last-event-id").map(|value| {
        let number = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
        number.ok_or_else(|| Problem::invalid("Last-Event-ID must be the number of an event"))
    });
    let after = last_event.transpose()?.or(wanted.after).unwrap_or(0);
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/event-stream") {
        return event_stream(app, caller, &id, &wanted, after).await;
    }
    let limit = page_size(wanted.limit.as_deref(), PAGE, PAGE_LIMIT)?;
    let wait = wanted.wait.as_deref().map(|wait| clamped("wait", wait, (0, WAIT_LIMIT)));
    let wait = Duration::from_secs(wait.transpose()?.unwrap_or(0));
    let filled = match wanted.before {
        Some(before) => {
            let wanted_events = Before { before, after, limit };
            event_pages::read_before(app.hub(), &id, wanted_events, PAGE_START, wanted.profile)
                .await?
        }
        None => page(&app, &id, after, (limit, wanted.profile), wait).await?,
    };
    let (text, resume) = page_text(filled);
    let mut response = json_text(StatusCode::OK, text);
    add_resume_header(&mut response, resume);
    Ok(response)
}

/// The response header that says whether a client can continue without a gap.
const RESUME: HeaderName = HeaderName::from_static("agentwire-resume");

/// Adds the header. Every client can read it, except a web page.
pub(super) fn add_resume_header(response: &mut Response, resume: Resume) {
    let text = match resume {
        Resume::Exact => "exact".to_owned(),
        Resume::Missing { from, to } => format!("missing {from}-{to}"),
    };
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().insert(RESUME, value);
    }
}

/// What comes before the events of a page.
const PAGE_START: &str = r#"{"events":["#;

async fn page(
    app: &App,
    id: &SessionId,
    after: u64,
    (limit, profile): (usize, Profile),
    wait: Duration,
) -> Result<FilledPage, GatewayError> {
    let patience = async {
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = app.stopping.cancelled() => {}
        }
    };
    let page = PageBuilder::new(app.hub(), PAGE_START, limit);
    event_pages::read(app.hub(), id, after, page, profile, patience).await
}

/// The text of a page, and whether the client can continue with it without a gap.
fn page_text(filled: FilledPage) -> (Bytes, Resume) {
    let FilledPage { page, next, previous, last, is_ended, resume } = filled;
    let (mut text, shares) = page.into_parts();
    let resume_json = Json::of(&resume);
    text.push_str(&format!(
        r#"],"next":{next},"last":{last},"ended":{is_ended},"resume":{}"#,
        resume_json.get()
    ));
    if let Some(previous) = previous {
        text.push_str(&format!(r#","previous":{previous}"#));
    }
    text.push('}');
    (shares.into_bytes(text), resume)
}

#[derive(Deserialize)]
struct EventQuery {
    #[serde(default)]
    profile: Profile,
}

/// `GET /v1/sessions/{id}/events/{seq}`
pub(super) async fn event(
    State(app): State<App>,
    PathParam((id, seq)): PathParam<(String, String)>,
    uri: Uri,
) -> HttpResult {
    let id = session_id(&id)?;
    let EventQuery { profile } = query(&uri)?;
    let number = seq.parse().ok().filter(|seq| *seq > 0);
    let found = match number {
        Some(number) => event_pages::read_one(app.hub(), &id, number, profile).await?,
        None => None,
    };
    match found {
        Some(page) => {
            let (text, shares) = page.into_parts();
            Ok(json_text(StatusCode::OK, shares.into_bytes(text)))
        }
        None => {
            app.hub().summary(&id).await?;
            let message = match number {
                Some(_) if profile == Profile::Core => {
                    format!("session {id} has no event {seq} that the profile core shows")
                }
                Some(_) | None => format!("session {id} has no event {seq}"),
            };
            Err(GatewayError::new(ErrorCode::SessionNotFound, message).into())
        }
    }
}

async fn event_stream(
    app: App,
    caller: Caller,
    id: &SessionId,
    wanted: &EventsQuery,
    after: u64,
) -> HttpResult {
    if wanted.limit.is_some() || wanted.wait.is_some() || wanted.before.is_some() {
        return Err(Problem::invalid("before, limit and wait are for pages, not for a stream"));
    }
    let summary = app.hub().summary(id).await?;
    let (resume, after) = Resume::of(after, summary.last_seq);
    let is_ended = summary.state == SessionState::Ended && after >= summary.last_seq && after > 0;
    if is_ended && resume == Resume::Exact {
        // No event will ever come. With this status, browsers stop reconnecting.
        let mut response = StatusCode::NO_CONTENT.into_response();
        add_resume_header(&mut response, resume);
        return Ok(response);
    }
    let cursor = app.hub().events(id, after).await?;
    let stream = SseStream {
        _open: app.traffic.stream(Wire::Sse, None),
        cursor,
        profile: wanted.profile,
        beat: tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT),
        app,
        caller,
        stream_head: Some(stream_head(resume)),
    };
    let body = stream::unfold(Some(stream), |stream| async {
        let mut stream = stream?;
        let (bytes, goes_on) = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), goes_on.then_some(stream)))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    add_resume_header(&mut response, resume);
    Ok(response)
}

/// The start of a stream. A web page cannot read response headers, so a gap is also reported as an event.
fn stream_head(resume: Resume) -> Bytes {
    match resume {
        Resume::Exact => Bytes::from_static(RETRY.as_bytes()),
        Resume::Missing { .. } => {
            let resume_json = Json::of(&resume);
            Bytes::from(format!("{RETRY}event: resume\ndata: {}\n\n", resume_json.get()))
        }
    }
}

struct SseStream {
    _open: metrics::StreamGuard,
    cursor: Events,
    profile: Profile,
    beat: Interval,
    app: App,
    caller: Caller,
    stream_head: Option<Bytes>,
}

impl SseStream {
    /// The next bytes, and whether more follow.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        if let Some(stream_head) = self.stream_head.take() {
            return Some((stream_head, true));
        }
        tokio::select! {
            biased;
            () = self.app.stopping.cancelled() => None,
            // A client whose token was revoked gets nothing more.
            _ = self.beat.tick() => {
                self.app.allows(&self.caller).then(|| (Bytes::from_static(b":\n\n"), true))
            }
            batch = self.cursor.next() => match batch {
                Ok(Some(batch)) => {
                    let size = batch.lines.len();
                    Some((blocking_if_long(size, || self.lines(&batch)), true))
                }
                Ok(None) => Some((Bytes::from_static(b"event: end\ndata: {}\n\n"), false)),
                // The client reconnects and continues where it was.
                Err(error) => {
                    tracing::warn!(%error, "failed to read events");
                    None
                }
            },
        }
    }

    fn lines(&self, batch: &Batch) -> Bytes {
        let mut bytes = Vec::with_capacity(batch.lines.len() + 32 * batch.count as usize);
        for (seq, line) in batch.events() {
            if let Some(line) = in_profile(self.profile, line) {
                bytes.extend_from_slice(format!("id: {seq}\ndata: ").as_bytes());
                bytes.extend_from_slice(line.as_bytes());
                bytes.extend_from_slice(b"\n\n");
            }
        }
        let mut shares = ReadShares::default();
        shares.add(batch);
        shares.into_bytes(bytes)
    }
}
