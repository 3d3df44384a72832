//! A session's events: a page, a page that waits, or a stream. All read the same log by the same
//! cursor, and the bytes of an event are the same in each.

use std::convert::Infallible;
use std::time::Duration;

use agentwire_protocol::{Event, GatewayError, Json, Profile, Resume, SessionId, SessionState};
use agentwire_sessions::Hub;
use agentwire_sessions::apart::apart_if_long;
use agentwire_sessions::log::Cursor;
use agentwire_sessions::store::{Batch, StoreError};
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri};
use serde::Deserialize;
use tokio::time::{Instant, Interval};

use super::body::{At, json_text, query};
use super::metrics::Wire;
use super::problem::Problem;
use super::rest::{Answer, page_size, session_id};
use super::{App, metrics};
use crate::held::Held;
use crate::reading::first_or_next;
use crate::tokens::Caller;

const PAGE: usize = 100;
const PAGE_LIMIT: usize = 10_000;

/// How many bytes of events a page may have; one event always fits.
const PAGE_BYTES: usize = 8 << 20;

/// The longest that a page may wait for its first event.
const WAIT_LIMIT: u64 = 60;

/// How often a stream shows that it lives, and it is looked whether its reader may still read.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// After how many milliseconds a client whose stream broke should come back.
const RETRY: &str = "retry: 1000\n\n";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct EventsQuery {
    #[serde(default)]
    after: Option<u64>,
    limit: Option<String>,
    #[serde(default)]
    profile: Profile,
    wait: Option<u64>,
}

/// `GET /v1/sessions/{id}/events`
pub(super) async fn events(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    At(id): At<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Answer {
    let id = session_id(&id)?;
    let wanted: EventsQuery = query(&uri)?;
    // A client that comes back says where it was; that is newer than the address it first used.
    let last_event = headers.get("last-event-id").map(|value| {
        let number = value.to_str().ok().and_then(|text| text.trim().parse::<u64>().ok());
        number.ok_or_else(|| Problem::invalid("Last-Event-ID must be the number of an event"))
    });
    let after = last_event.transpose()?.or(wanted.after).unwrap_or(0);
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if accepts.contains("text/event-stream") {
        return stream_of(app, caller, &id, &wanted, after).await;
    }
    let limit = page_size(wanted.limit.as_deref(), PAGE, PAGE_LIMIT)?;
    let wait = wanted.wait.unwrap_or(0).min(WAIT_LIMIT);
    let page =
        Page::read(&app, &id, after, limit, wanted.profile, Duration::from_secs(wait)).await?;
    let mut response = json_text(StatusCode::OK, page.text);
    note(&mut response, page.resume);
    Ok(response)
}

/// Says in the head of an answer whether a client can go on without a gap.
const RESUME: HeaderName = HeaderName::from_static("agentwire-resume");

/// Notes it in the head of an answer, where every client can read it but a page.
pub(super) fn note(response: &mut Response, resume: Resume) {
    let text = match resume {
        Resume::Exact => "exact".to_owned(),
        Resume::Missing { from, to } => format!("missing {from}-{to}"),
    };
    if let Ok(value) = HeaderValue::try_from(text) {
        response.headers_mut().insert(RESUME, value);
    }
}

/// How a page begins.
const PAGE_BEGIN: &str = r#"{"events":["#;

struct Page {
    text: Bytes,
    resume: Resume,
}

impl Page {
    async fn read(
        app: &App,
        id: &SessionId,
        after: u64,
        limit: usize,
        profile: Profile,
        wait: Duration,
    ) -> Result<Self, GatewayError> {
        let summary = app.hub().summary(id).await?;
        let (resume, after) = Resume::of(after, summary.last_seq);
        let mut cursor = app.hub().events(id, after).await?;
        let deadline = Instant::now() + wait;
        let mut text = PAGE_BEGIN.to_owned();
        let mut held = Held::default();
        let (mut next, mut count) = (after, 0);
        let mut is_over = false;
        'page: while count < limit && text.len() < PAGE_BYTES {
            let is_live = cursor.position() >= summary.last_seq;
            // What is there is not waited for; the first event that comes is.
            let deadline = if is_live && count == 0 { deadline } else { Instant::now() };
            let batch = match is_live {
                true => tokio::select! {
                    biased;
                    batch = first_or_next(&mut cursor, count > 0) => batch,
                    () = tokio::time::sleep_until(deadline) => break,
                    () = app.stopping.cancelled() => break,
                },
                false => first_or_next(&mut cursor, count > 0).await,
            };
            let batch = match batch {
                Ok(Some(batch)) => batch,
                Ok(None) => {
                    is_over = true;
                    break;
                }
                // What there is is a page.
                Err(StoreError::Busy(_)) if count > 0 => break,
                Err(error) => return Err(Hub::storage_error(&error)),
            };
            let mut is_kept = false;
            for (seq, line) in batch.events() {
                let long = text.len() + line.len();
                let too_much = count > 0
                    && (long > PAGE_BYTES
                        || !held.may_grow(long, PAGE_BYTES, app.hub().log().budget()));
                if count == limit || too_much {
                    break 'page;
                }
                next = seq;
                let before = count;
                apart_if_long(line.len(), || {
                    if let Some(line) = shown(profile, line) {
                        text.reserve_exact(if line.len() > PAGE_BYTES {
                            line.len() + 256
                        } else {
                            0
                        });
                        text.push_str(if count > 0 { "," } else { "" });
                        text.push_str(&line);
                        count += 1;
                    }
                });
                // Events that are not shown hold nothing: the page may have to wait for the next.
                if count > before && !std::mem::replace(&mut is_kept, true) {
                    held.keep(&batch);
                }
            }
        }
        let end = format!(
            r#"],"next":{next},"last":{},"ended":{},"resume":{}}}"#,
            summary.last_seq.max(next),
            is_over || (summary.state == SessionState::Ended && next >= summary.last_seq),
            Json::of(&resume).get(),
        );
        text.push_str(&end);
        Ok(Self { text: held.text(text), resume })
    }
}

/// An event in that profile; none if it is not shown there.
pub(super) fn shown(profile: Profile, line: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    let text = std::str::from_utf8(line).ok()?;
    match profile {
        Profile::Full => Some(text.into()),
        Profile::Core => {
            let event = Profile::Core.show(Event::from_json(text).ok()?)?;
            Some(Json::of(&event).get().to_owned().into())
        }
    }
}

async fn stream_of(
    app: App,
    caller: Caller,
    id: &SessionId,
    wanted: &EventsQuery,
    after: u64,
) -> Answer {
    if wanted.limit.is_some() || wanted.wait.is_some() {
        return Err(Problem::invalid("limit and wait are for pages, not for a stream"));
    }
    let summary = app.hub().summary(id).await?;
    let (resume, after) = Resume::of(after, summary.last_seq);
    let is_over = summary.state == SessionState::Ended && after >= summary.last_seq && after > 0;
    if is_over && resume == Resume::Exact {
        // Nothing ever comes: browsers then stop to ask.
        let mut response = StatusCode::NO_CONTENT.into_response();
        note(&mut response, resume);
        return Ok(response);
    }
    let cursor = app.hub().events(id, after).await?;
    let stream = Stream {
        _open: app.traffic.stream(Wire::Sse, None),
        cursor,
        profile: wanted.profile,
        beat: tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT),
        app,
        caller,
        head: Some(head(resume)),
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
    note(&mut response, resume);
    Ok(response)
}

/// What a stream begins with. A page cannot read the head of the answer: a gap is told it as an event.
fn head(resume: Resume) -> Bytes {
    match resume {
        Resume::Exact => Bytes::from_static(RETRY.as_bytes()),
        Resume::Missing { .. } => {
            let told = Json::of(&resume);
            Bytes::from(format!("{RETRY}event: resume\ndata: {}\n\n", told.get()))
        }
    }
}

struct Stream {
    _open: metrics::Stream,
    cursor: Cursor,
    profile: Profile,
    beat: Interval,
    app: App,
    caller: Caller,
    head: Option<Bytes>,
}

impl Stream {
    /// The next bytes, and whether more come.
    async fn next(&mut self) -> Option<(Bytes, bool)> {
        if let Some(head) = self.head.take() {
            return Some((head, true));
        }
        tokio::select! {
            biased;
            () = self.app.stopping.cancelled() => None,
            // Who is no longer welcome hears nothing more.
            _ = self.beat.tick() => {
                self.app.keeps(&self.caller).then(|| (Bytes::from_static(b":\n\n"), true))
            }
            batch = self.cursor.next() => match batch {
                Ok(Some(batch)) => {
                    let size = batch.lines.len();
                    Some((apart_if_long(size, || self.lines(&batch)), true))
                }
                Ok(None) => Some((Bytes::from_static(b"event: end\ndata: {}\n\n"), false)),
                // The client comes back and reads on where it was.
                Err(error) => {
                    tracing::warn!(%error, "events cannot be read");
                    None
                }
            },
        }
    }

    fn lines(&self, batch: &Batch) -> Bytes {
        let mut bytes = Vec::with_capacity(batch.lines.len() + 32 * batch.count as usize);
        for (seq, line) in batch.events() {
            if let Some(line) = shown(self.profile, line) {
                bytes.extend_from_slice(format!("id: {seq}\ndata: ").as_bytes());
                bytes.extend_from_slice(line.as_bytes());
                bytes.extend_from_slice(b"\n\n");
            }
        }
        let mut held = Held::default();
        held.keep(batch);
        held.text(bytes)
    }
}
