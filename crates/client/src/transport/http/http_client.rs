//! HTTP requests. They follow no redirects, so the token goes only to the named server.

use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agentwire_protocol::{ErrorCode, Json};
use bytes::Bytes;
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, Method, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Incoming;
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Deserialize;
use tower_service::Service;

use super::dial::{Wire, dial};
use crate::discovery::{Server, ServerLocation};
use crate::error::{AgentError, AgentErrorType, Refusal};

/// The size limit of an answer: a page of events, one of which may be as large as an agent's line.
pub(super) const ANSWER_LIMIT: usize = 512 << 20;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Sends requests, and keeps connections open for the next one.
#[derive(Clone)]
pub(super) struct HttpClient {
    client: Client<Dialer, Full<Bytes>>,
}

pub(super) struct HttpRequest<'c> {
    pub(super) method: Method,
    pub(super) path: &'c str,
    pub(super) body: Option<Json<'static>>,
    /// The idempotency key.
    pub(super) key: Option<&'c str>,
    pub(super) within: Duration,
}

impl<'c> HttpRequest<'c> {
    pub(super) fn get(path: &'c str, within: Duration) -> Self {
        Self { method: Method::GET, path, body: None, key: None, within }
    }
}

#[derive(Deserialize)]
struct Problem {
    code: String,
    detail: String,
    #[serde(default)]
    status: Option<u16>,
    #[serde(default)]
    details: Option<Json<'static>>,
}

impl HttpClient {
    pub(super) fn new(location: ServerLocation) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build(Dialer { location }) }
    }

    /// Sends a request and returns the body of the answer.
    pub(super) async fn call(
        &self,
        server: &Server,
        request: HttpRequest<'_>,
    ) -> Result<Bytes, AgentError> {
        let within = request.within;
        let called = tokio::time::timeout(within, self.exchange(server, request)).await;
        called.unwrap_or_else(|_| Err(AgentError::timed_out(server, within.as_secs())))
    }

    async fn exchange(
        &self,
        server: &Server,
        request: HttpRequest<'_>,
    ) -> Result<Bytes, AgentError> {
        let answer = self.open(server, request, None).await?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER_LIMIT).collect().await;
        let body = body.map_err(|error| AgentError::broken(server, error))?.to_bytes();
        match head.status {
            status if status.is_success() => Ok(body),
            _ => Err(refusal(server, &Response::from_parts(head, body))),
        }
    }

    /// Sends a request whose answer is read as it arrives.
    pub(super) async fn open(
        &self,
        server: &Server,
        request: HttpRequest<'_>,
        accept: Option<&'static str>,
    ) -> Result<Response<Incoming>, AgentError> {
        let mut request = http_request(server, request)?;
        if let Some(accept) = accept {
            request.headers_mut().insert(ACCEPT, HeaderValue::from_static(accept));
        }
        self.client.request(request).await.map_err(|error| innermost_error(server, &error))
    }
}

fn http_request(
    server: &Server,
    request: HttpRequest<'_>,
) -> Result<http::Request<Full<Bytes>>, AgentError> {
    let address = server.address("http", request.path);
    let mut written = http::Request::builder().method(request.method.clone()).uri(address);
    if let Some(bearer) = server.bearer() {
        written = written.header(AUTHORIZATION, bearer);
    }
    if let Some(key) = request.key {
        written = written.header(IDEMPOTENCY_KEY, key);
    }
    if request.method != Method::GET {
        written = written.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let body = request.body.map(|body| Bytes::from(body.get().to_owned())).unwrap_or_default();
    written
        .body(Full::new(body))
        .map_err(|error| AgentError::invalid(format!("failed to make a request: {error}")))
}

/// The innermost error is the most precise.
fn innermost_error(server: &Server, error: &hyper_util::client::legacy::Error) -> AgentError {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        if let Some(inner_error) = source.downcast_ref::<AgentError>() {
            return inner_error.clone();
        }
        inner = source;
    }
    AgentError::broken(server, inner)
}

/// The error that an unsuccessful answer describes.
pub(super) fn refusal(server: &Server, answer: &Response<Bytes>) -> AgentError {
    let status = answer.status();
    if let Ok(problem) = serde_json::from_slice::<Problem>(answer.body()) {
        // Another program may use a code too, but not with the right status.
        if ErrorCode::named(&problem.code).is_some() || problem.status == Some(status.as_u16()) {
            return refused(server, problem);
        }
    }
    let why = match answer.headers().get(LOCATION).and_then(|location| location.to_str().ok()) {
        Some(location) if status.is_redirection() => {
            format!(
                "it redirects to {location}, where the token is not sent; use that address instead"
            )
        }
        Some(_) | None => format!("it answered {status}; is it an agentwire server?"),
    };
    match status {
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            AgentError::unreachable(server, why)
        }
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => unexpected(server, why),
        status if status.is_server_error() => unexpected(server, why),
        // Another program answers: for good, or while the server is down.
        _ => unexpected(server, why).not_received(),
    }
}

fn refused(server: &Server, problem: Problem) -> AgentError {
    let Problem { code, detail, details, .. } = problem;
    let message = match (ErrorCode::named(&code), server.bearer()) {
        (Some(ErrorCode::Unauthorized), None) => format!(
            "the server at {} requires a token; set AGENTWIRE_TOKEN or use --token-file",
            server.url()
        ),
        (Some(ErrorCode::Unauthorized), Some(_)) => {
            let url = server.url();
            format!(
                "the server at {url} does not accept this token: {detail}; create one there with \
                 `agentwire token create`"
            )
        }
        _ => detail,
    };
    Refusal { code, message, details }.into()
}

/// An answer that no agentwire server sends. The next one may be right.
pub(super) fn unexpected(server: &Server, why: impl std::fmt::Display) -> AgentError {
    let message = format!("failed to communicate with {server}: {why}");
    AgentError::new(AgentErrorType::ProtocolError, message).with_native(why).retryable()
}

pub(super) fn encode(part: &str) -> String {
    part.bytes().fold(String::with_capacity(part.len()), |mut path, byte| {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                path.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            byte => drop(write!(path, "%{byte:02X}")),
        }
        path
    })
}

/// Opens connections for requests.
#[derive(Clone)]
struct Dialer {
    location: ServerLocation,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<Wire>;
    type Error = AgentError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, AgentError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), AgentError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        // Looked up now: a restarted server may have a new certificate.
        let server = self.location.server();
        Box::pin(async move {
            let server = server?;
            if !server.is_at(&address) {
                return Err(AgentError::unreachable(
                    format_args!("the server at {address}"),
                    "it has moved",
                ));
            }
            dial(&server).await.map(TokioIo::new)
        })
    }
}
