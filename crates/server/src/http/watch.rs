//! All sessions: summaries and open requests, then changes, as a stream of server-sent events or message by
//! message.

use std::convert::Infallible;
use std::time::Duration;

use agentwire_protocol::{GatewayError, Json, WatchChange};
use agentwire_sessions::hub::Watcher;
use axum::body::Body;
use axum::extract::{Extension, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::future::{BoxFuture, FutureExt as _};
use futures_util::stream;
use http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, StatusCode, Uri};
use serde::Deserialize;
use tokio::time::{Instant, Interval};

use super::App;
use super::body::{json, query};
use super::metrics::{self, Wire};
use super::rest::{HttpResult, clamped};
use crate::tokens::Caller;

/// How often a stream sends a heartbeat, and checks that its client may still read.
const HEARTBEAT: Duration = Duration::from_secs(15);

/// Tells a client to reconnect after this many milliseconds.
const RETRY: &str = "retry: 1000\n\n";

#[derive(Deserialize)]
struct WatchQuery {
    after: Option<String>,
    wait: Option<String>,
}

/// The longest time that a message may wait for a change, in seconds.
const WAIT_LIMIT: u64 = 60;

type NextChange = (Watcher, Result<WatchChange, GatewayError>);

/// `GET /v1/watch`
pub(super) async fn watch(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
    headers: HeaderMap,
) -> HttpResult {
    let WatchQuery { after, wait } = query(&uri)?;
    let wait = wait.as_deref().map(|wait| clamped("wait", wait, (0, WAIT_LIMIT))).transpose()?;
    // A client that reconnects sends its last position, which is newer than the one in its first URL. Any text
    // is a cursor: one that is not known starts over.
    let last = headers.get("last-event-id").and_then(|value| value.to_str().ok());
    let after = last.map(str::to_owned).or(after);
    let accepts = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    if !accepts.contains("text/event-stream") {
        let wait = Duration::from_secs(wait.unwrap_or(0));
        return Ok(json(StatusCode::OK, &message(&app, after.as_deref(), wait).await?));
    }
    let hub = app.hub().clone();
    let reading = async move { read(hub.watch(after.as_deref()).await).await };
    let stream = ChangeStream {
        _open: app.traffic.stream(Wire::Sse, None),
        reading: reading.boxed(),
        beat: tokio::time::interval_at(Instant::now() + HEARTBEAT, HEARTBEAT),
        app,
        caller,
        is_new: true,
    };
    let body = stream::unfold(stream, |mut stream| async {
        let bytes = stream.next().await?;
        Some((Ok::<_, Infallible>(bytes), stream))
    });
    let mut response = Response::new(Body::from_stream(body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// One message: what has changed, or else what changes first within this time.
async fn message(
    app: &App,
    after: Option<&str>,
    wait: Duration,
) -> Result<WatchChange, GatewayError> {
    let mut watcher = app.hub().watch(after).await;
    let first = watcher.next().await?;
    let has_news = !first.sessions.is_empty() || !first.forgotten.is_empty();
    if first.reset || !first.ready || has_news {
        return Ok(first);
    }
    tokio::select! {
        change = watcher.next() => Ok(WatchChange { ready: true, ..change? }),
        () = tokio::time::sleep(wait) => Ok(first),
        () = app.stopping.cancelled() => Ok(first),
    }
}

async fn read(mut watcher: Watcher) -> NextChange {
    let change = watcher.next().await;
    (watcher, change)
}

struct ChangeStream {
    _open: metrics::StreamGuard,
    reading: BoxFuture<'static, NextChange>,
    beat: Interval,
    app: App,
    caller: Caller,
    is_new: bool,
}

impl ChangeStream {
    async fn next(&mut self) -> Option<Bytes> {
        if std::mem::take(&mut self.is_new) {
            return Some(Bytes::from_static(RETRY.as_bytes()));
        }
        tokio::select! {
            biased;
            () = self.app.stopping.cancelled() => None,
            // A client whose token was revoked gets nothing more.
            _ = self.beat.tick() => {
                self.app.allows(&self.caller).then(|| Bytes::from_static(b":\n\n"))
            }
            (watcher, change) = &mut self.reading => {
                self.reading = read(watcher).boxed();
                match change {
                    Ok(change) => {
                        let data = Json::of(&change);
                        let text = format!("id: {}\ndata: {}\n\n", change.cursor, data.get());
                        Some(Bytes::from(text))
                    }
                    // The client reconnects and continues where it was.
                    Err(error) => {
                        tracing::warn!(%error.message, "failed to read changes");
                        None
                    }
                }
            }
        }
    }
}
