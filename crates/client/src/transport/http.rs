//! Calls over HTTP. No redirect is followed: the token goes to the named server alone.

use std::fmt::Write as _;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use bytes::Bytes;
use http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Deserialize;
use tower_service::Service;

use super::{Wire, dial};
use crate::discovery::{Place, Server};
use crate::error::Error;

/// The longest answer that is read: a page of events, of which one may be as large as a line of an
/// agent.
const ANSWER: usize = 512 << 20;

const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Calls servers, and keeps connections for the next call.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client<Dialer, Full<Bytes>>,
}

/// A call.
pub(crate) struct Call<'c> {
    pub(crate) method: Method,
    pub(crate) path: &'c str,
    pub(crate) body: Option<Json<'static>>,
    /// Sent twice, it counts once.
    pub(crate) key: Option<&'c str>,
    pub(crate) within: Duration,
}

#[derive(Deserialize)]
struct Problem {
    code: ErrorCode,
    detail: String,
    #[serde(default)]
    details: Option<Json<'static>>,
}

impl Caller {
    pub(crate) fn new(place: Place) -> Self {
        Self { client: Client::builder(TokioExecutor::new()).build(Dialer { place }) }
    }

    /// Makes a call, and gives what is answered.
    pub(crate) async fn call(&self, server: &Server, call: Call<'_>) -> Result<Bytes, Error> {
        let within = call.within;
        let called = tokio::time::timeout(within, self.exchange(server, call)).await;
        called.unwrap_or_else(|_| {
            Err(Error::TimedOut { at: server.url(), seconds: within.as_secs() })
        })
    }

    async fn exchange(&self, server: &Server, call: Call<'_>) -> Result<Bytes, Error> {
        let broken = |why: String| Error::Broken { at: server.url(), why };
        let request = request(server, call)?;
        let answer = self.client.request(request).await.map_err(|error| reason(server, &error))?;
        let (head, body) = answer.into_parts();
        let body = Limited::new(body, ANSWER).collect().await;
        let body = body.map_err(|error| broken(error.to_string()))?.to_bytes();
        match head.status {
            status if status.is_success() => Ok(body),
            _ => Err(refusal(server, &Response::from_parts(head, body))),
        }
    }
}

fn request(server: &Server, call: Call<'_>) -> Result<Request<Full<Bytes>>, Error> {
    let address = server.address("http", call.path);
    let mut request = Request::builder().method(call.method.clone()).uri(address);
    if let Some(bearer) = server.bearer() {
        request = request.header(AUTHORIZATION, bearer);
    }
    if let Some(key) = call.key {
        request = request.header(IDEMPOTENCY_KEY, key);
    }
    if call.method != Method::GET {
        request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let body = call.body.map(|body| Bytes::from(body.get().to_owned())).unwrap_or_default();
    request
        .body(Full::new(body))
        .map_err(|error| Error::Invalid(format!("failed to make a request: {error}")))
}

/// Why there was no answer: the innermost reason says it best.
fn reason(server: &Server, error: &hyper_util::client::legacy::Error) -> Error {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        if let Some(told) = source.downcast_ref::<Error>() {
            return told.clone();
        }
        inner = source;
    }
    Error::Broken { at: server.url(), why: inner.to_string() }
}

/// What an answer says that is none.
pub(super) fn refusal(server: &Server, answer: &Response<Bytes>) -> Error {
    let status = answer.status();
    if let Ok(problem) = serde_json::from_slice::<Problem>(answer.body()) {
        let Problem { code, detail, details } = problem;
        let message = match code {
            ErrorCode::Unauthorized if server.bearer().is_none() => format!(
                "the server at {} wants a token: set AGENTWIRE_TOKEN, or give a token file",
                server.url()
            ),
            ErrorCode::Unauthorized => {
                format!("the server at {} does not know this token: {detail}", server.url())
            }
            _ => detail,
        };
        return Error::Refused(GatewayError { details, ..GatewayError::new(code, message) });
    }
    let why = match answer.headers().get(LOCATION).and_then(|place| place.to_str().ok()) {
        Some(place) if status.is_redirection() => {
            format!("it sends us to {place}, where the token is not sent; name that address itself")
        }
        Some(_) | None => format!("it answered {status}; is it an agentwire server?"),
    };
    match status {
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Error::Unreachable { at: server.url(), why }
        }
        _ => Error::Broken { at: server.url(), why },
    }
}

/// A part of a path, as paths have it.
pub(crate) fn encode(part: &str) -> String {
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

/// Opens the connections that calls go over.
#[derive(Clone)]
struct Dialer {
    place: Place,
}

impl Service<Uri> for Dialer {
    type Response = TokioIo<Wire>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, address: Uri) -> Self::Future {
        // As it is now: one that started anew may show another certificate.
        let server = self.place.server();
        Box::pin(async move {
            let server = server?;
            if !server.is_at(&address) {
                let why = "the server has moved".to_owned();
                return Err(Error::Unreachable { at: address.to_string(), why });
            }
            dial(&server).await.map(TokioIo::new)
        })
    }
}
