//! Bodies and queries: read with bounds, refused in words.

use std::time::Duration;

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use axum::body::{Body, HttpBody as _};
use axum::extract::FromRequestParts;
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderValue, StatusCode, Uri};
use http_body_util::{BodyExt as _, Limited};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::problem::Problem;

/// How long a body may take to come.
const BODY_TIME: Duration = Duration::from_secs(30);

/// The longest body that may carry images.
pub(crate) const LARGE: usize = 64 << 20;

/// The longest of any other.
pub(crate) const SMALL: usize = 1 << 20;

/// Reads a body as text.
pub(crate) async fn text(body: Body, limit: usize) -> Result<String, Problem> {
    // What is announced need not be waited for.
    if body.size_hint().lower() > limit as u64 {
        return Err(Problem::too_large(limit));
    }
    let whole = Limited::new(body, limit).collect();
    let read = tokio::time::timeout(BODY_TIME, whole).await;
    let read = read.map_err(|_| Problem::too_slow(BODY_TIME))?;
    let bytes = read.map_err(|error| match error.is::<http_body_util::LengthLimitError>() {
        true => Problem::too_large(limit),
        false => Problem::invalid(format!("failed to read the body: {error}")),
    })?;
    String::from_utf8(bytes.to_bytes().into()).map_err(|_| {
        Problem::from(GatewayError::new(ErrorCode::InvalidJson, "the body is not UTF-8"))
    })
}

/// Reads a body as an object of JSON.
pub(crate) async fn object<T: DeserializeOwned>(body: Body, limit: usize) -> Result<T, Problem> {
    read(&text(body, limit).await?)
}

/// Takes a body that has nothing to say, whatever it says: what stops is never refused for its form.
pub(crate) async fn unread(body: Body) {
    let _ = text(body, SMALL).await;
}

/// Reads an object of JSON.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    let invalid = |code, error: &dyn std::fmt::Display| {
        Problem::from(GatewayError::new(code, format!("failed to read the body: {error}")))
    };
    let value = Json::parse(text).map_err(|error| invalid(ErrorCode::InvalidJson, &error))?;
    if !value.get().starts_with('{') {
        return Err(invalid(ErrorCode::InvalidMessage, &"it must be an object"));
    }
    value.read().map_err(|error| invalid(ErrorCode::InvalidMessage, &error))
}

/// The parts of a path that a route names.
pub(crate) struct At<T>(pub(crate) T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for At<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let read = axum::extract::Path::<T>::from_request_parts(parts, state).await;
        read.map(|path| Self(path.0)).map_err(|error| {
            Problem::invalid(format!("failed to read the path: {}", error.body_text()))
        })
    }
}

/// Reads the query of a request.
pub(crate) fn query<T: DeserializeOwned>(uri: &Uri) -> Result<T, Problem> {
    let read = axum::extract::Query::<T>::try_from_uri(uri);
    read.map(|query| query.0)
        .map_err(|error| Problem::invalid(format!("failed to read the query: {error}")))
}

/// An answer in JSON.
pub(crate) fn json(status: StatusCode, value: &impl Serialize) -> Response {
    json_text(status, Json::of(value).get().to_owned())
}

/// An answer that is JSON already.
pub(crate) fn json_text(status: StatusCode, text: String) -> Response {
    let mut response = (status, text).into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}
