//! Reads bodies and queries within limits, and reports errors.

use std::time::Duration;

use agentwire_protocol::{ErrorCode, GatewayError, Json, strict};
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::budget::{Pool, Share, WORK};
use axum::body::{Body, HttpBody as _};
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use hyper::body::Frame;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::App;
use super::problem::Problem;
use super::websocket_budget::{Pace, SHARE_FREE_BYTES, STALL_LIMITS, share_size};

/// How long a body may take to arrive.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The longest body that may carry images, in bytes.
pub(crate) const LARGE: usize = 64 << 20;

/// The longest other body, in bytes.
pub(crate) const SMALL: usize = 1 << 20;

/// How long a large body waits for its budget share.
const SHARE_WAIT: Duration = Duration::from_secs(10);

/// The content of a body. A large one holds a budget share as long as its content is in memory.
pub(crate) struct ReadBody<T> {
    pub(crate) value: T,
    pub(crate) share: Option<Share>,
}

/// Reads a body as text. A large body is read once it has a share, and must then arrive without stopping.
/// If the body does not announce its length, the share grows with what has arrived.
pub(crate) async fn text(app: &App, body: Body, limit: usize) -> Result<ReadBody<String>, Problem> {
    // The announced length is enough to refuse it.
    if body.size_hint().lower() > limit as u64 {
        return Err(Problem::too_large(limit));
    }
    let pool = &app.hub().log().budget().clients;
    let announced = body.size_hint().exact().and_then(|size| usize::try_from(size).ok());
    let mut share = match announced {
        Some(size) if size > SHARE_FREE_BYTES => Some(acquire_share(pool, size).await?),
        Some(_) | None => None,
    };
    let mut body = Limited::new(body, limit);
    let mut bytes = Vec::with_capacity(announced.unwrap_or(0).min(SHARE_FREE_BYTES));
    let mut share_bytes = announced.unwrap_or(0);
    let mut arrival = Arrival::new(pool, 0);
    loop {
        let Some(frame) =
            arrival.next_frame(&mut body, share.is_some(), bytes.len(), share_bytes).await?
        else {
            break;
        };
        let frame =
            frame.map_err(|error| match error.is::<http_body_util::LengthLimitError>() {
                true => Problem::too_large(limit),
                false => Problem::invalid(format!("failed to read the body: {error}")),
            })?;
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if arrival.is_too_late(share.is_some(), bytes.len(), share_bytes) {
            return Err(Problem::too_slow(arrival.started.elapsed()));
        }
        let wanted = share_size(bytes.len(), limit);
        match &mut share {
            None if bytes.len() > SHARE_FREE_BYTES => {
                share = Some(acquire_share(pool, wanted).await?);
                share_bytes = wanted;
                arrival = Arrival::new(pool, bytes.len());
            }
            // Others may wait for what this body holds, so it must not wait for more.
            Some(share) if bytes.len() > share_bytes => {
                if !share.grow(wanted.saturating_mul(WORK)) {
                    return Err(overloaded());
                }
                share_bytes = wanted;
            }
            Some(_) | None => {}
        }
    }
    let value = blocking_if_long(bytes.len(), || String::from_utf8(bytes)).map_err(|_| {
        Problem::from(GatewayError::new(ErrorCode::InvalidJson, "the body is not UTF-8"))
    })?;
    Ok(ReadBody { value, share })
}

/// How long a body takes to arrive.
struct Arrival<'p> {
    pool: &'p Pool,
    started: Instant,
    pace: Pace,
}

impl<'p> Arrival<'p> {
    /// A body of which this many bytes have arrived.
    fn new(pool: &'p Pool, bytes: usize) -> Self {
        let started = Instant::now();
        Self { pool, started, pace: Pace::new(started, bytes) }
    }

    /// Whether the body has taken too long, or others wait for the share of one that arrives too slowly.
    fn is_too_late(&mut self, has_share: bool, bytes: usize, share_bytes: usize) -> bool {
        let is_too_slow = self.pace.is_too_slow(Instant::now(), bytes, share_bytes);
        let is_wanted = has_share && is_too_slow && self.pool.waiting() > 0;
        is_wanted || self.started.elapsed() >= BODY_TIME
    }

    /// The next part of the body, unless it takes too long. Nothing after the last one.
    async fn next_frame(
        &mut self,
        body: &mut Limited<Body>,
        has_share: bool,
        bytes: usize,
        share_bytes: usize,
    ) -> Result<Option<NextFrame>, Problem> {
        let last_progress = Instant::now();
        loop {
            if let Ok(frame) = tokio::time::timeout(STALL_LIMITS.0, body.frame()).await {
                return Ok(frame);
            }
            let is_stalled = has_share && last_progress.elapsed() >= STALL_LIMITS.1;
            if self.is_too_late(has_share, bytes, share_bytes) || is_stalled {
                return Err(Problem::too_slow(self.started.elapsed()));
            }
        }
    }
}

type NextFrame = Result<Frame<axum::body::Bytes>, Box<dyn std::error::Error + Send + Sync>>;

async fn acquire_share(pool: &Pool, bytes: usize) -> Result<Share, Problem> {
    let share = pool.take_within(bytes.saturating_mul(WORK), SHARE_WAIT).await;
    share.ok_or_else(overloaded)
}

fn overloaded() -> Problem {
    let message = "too many large messages at once; try again soon";
    Problem::from(GatewayError::new(ErrorCode::Overloaded, message))
}

pub(crate) async fn object<T: DeserializeOwned>(
    app: &App,
    body: Body,
    limit: usize,
) -> Result<ReadBody<T>, Problem> {
    let ReadBody { value, share } = text(app, body, limit).await?;
    Ok(ReadBody { value: blocking_if_long(value.len(), || read(&value))?, share })
}

/// Reads and ignores a body. A request that stops something is never refused for its form, and waits for
/// nobody.
pub(crate) async fn discard(app: &App, body: Body) {
    let _ = text(app, body, SHARE_FREE_BYTES).await;
}

pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let invalid = |code, error: &dyn std::fmt::Display| {
        Problem::from(GatewayError::new(code, format!("failed to read the body: {error}")))
    };
    let value = Json::parse(text).map_err(|error| invalid(ErrorCode::InvalidJson, &error))?;
    if !value.get().starts_with('{') {
        return Err(invalid(ErrorCode::InvalidMessage, &"it must be an object"));
    }
    strict::read(value.get()).map_err(|error| invalid(ErrorCode::InvalidMessage, &error))
}

pub(crate) struct PathParam<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParam<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0)).map_err(|error| {
            Problem::invalid(format!("failed to read the path: {}", error.body_text()))
        })
    }
}

pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let read = axum::extract::Query::<T>::try_from_uri(uri);
    read.map(|query| query.0)
        .map_err(|error| Problem::invalid(format!("failed to read the query: {error}")))
}

pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    json_text(status, Json::of(value).get().to_owned())
}

/// A response whose text is JSON already.
pub(crate) fn json_text(status: StatusCode, text: impl Into<Body>) -> Response {
    let body: Body = text.into();
    let mut response = (status, body).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
