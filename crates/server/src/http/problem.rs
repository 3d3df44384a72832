//! Errors over HTTP: `application/problem+json` with agentwire's own code.

use std::time::Duration;

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use axum::response::{IntoResponse, Response};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Serialize;

/// An error response.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    error: GatewayError,
}

#[derive(Serialize)]
struct Body<'b> {
    #[serde(rename = "type")]
    kind: &'static str,
    title: &'static str,
    status: u16,
    code: ErrorCode,
    detail: &'b str,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: &'b Option<Json<'static>>,
}

impl Problem {
    fn new(status: StatusCode, code: ErrorCode, message: impl Into<String>) -> Self {
        Self { status, error: GatewayError::new(code, message) }
    }

    pub(crate) fn message(&self) -> &str {
        &self.error.message
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::from(GatewayError::new(ErrorCode::InvalidMessage, message))
    }

    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::from(GatewayError::new(ErrorCode::Forbidden, message))
    }

    pub(crate) fn unauthorized(message: impl Into<String>) -> Self {
        Self::from(GatewayError::new(ErrorCode::Unauthorized, message))
    }

    pub(crate) fn unsupported_type() -> Self {
        let message = "the body must be application/json";
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, ErrorCode::InvalidMessage, message)
    }

    pub(crate) fn too_large(limit: usize) -> Self {
        let message = format!("the body has more than {limit} bytes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::InvalidMessage, message)
    }

    pub(crate) fn too_slow(limit: Duration) -> Self {
        let message = format!("the body took longer than {} s", limit.as_secs());
        Self::new(StatusCode::REQUEST_TIMEOUT, ErrorCode::Timeout, message)
    }

    pub(crate) fn no_route() -> Self {
        let message = "no such path; see /docs for all paths";
        Self::new(StatusCode::NOT_FOUND, ErrorCode::UnknownMethod, message)
    }

    pub(crate) fn no_method() -> Self {
        let message = "this path does not support that method; see /docs for all paths";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::UnknownMethod, message)
    }
}

impl From<GatewayError> for Problem {
    fn from(error: GatewayError) -> Self {
        let status = match error.code {
            ErrorCode::InvalidJson | ErrorCode::InvalidMessage => StatusCode::BAD_REQUEST,
            ErrorCode::UnknownMethod => StatusCode::NOT_FOUND,
            ErrorCode::Unauthorized => StatusCode::UNAUTHORIZED,
            ErrorCode::Forbidden => StatusCode::FORBIDDEN,
            ErrorCode::SessionNotFound | ErrorCode::RequestNotFound => StatusCode::NOT_FOUND,
            ErrorCode::RequestSettled | ErrorCode::Conflict => StatusCode::CONFLICT,
            ErrorCode::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
            ErrorCode::AgentUnavailable | ErrorCode::StartFailed | ErrorCode::AgentFailed => {
                StatusCode::BAD_GATEWAY
            }
            ErrorCode::Timeout => StatusCode::GATEWAY_TIMEOUT,
            ErrorCode::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            ErrorCode::StorageFull => StatusCode::INSUFFICIENT_STORAGE,
            ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        Self { status, error }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Json::of(&Body {
            kind: "about:blank",
            title: self.status.canonical_reason().unwrap_or("Error"),
            status: self.status.as_u16(),
            code: self.error.code,
            detail: &self.error.message,
            details: &self.error.details,
        });
        let kind = HeaderValue::from_static("application/problem+json");
        let mut response = (self.status, body.get().to_owned()).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, kind);
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        response
    }
}
