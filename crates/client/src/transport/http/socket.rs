//! The WebSocket of a session: one message per event.

use std::borrow::Cow;
use std::time::Duration;

use agentwire_protocol::{ErrorCode, Json};
use bytes::Bytes;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use http::Response;
use http::header::AUTHORIZATION;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use super::OpenError;
use super::dial::{CONNECT, Wire, dial};
use super::http_client::{refusal, unexpected};
use crate::discovery::Server;
use crate::error::{AgentError, Refusal};
use crate::event_lines::EventLinesBuilder;
use crate::transport::{Connection, Followed};

/// The size limit of a message: an event may be several times as large as an agent's line.
const MESSAGE: usize = 512 << 20;

/// How many bytes to collect before passing them on.
const GATHERED: usize = 128 << 10;

/// The server sends something at least three times in this time; otherwise the connection is dead.
const SILENCE: Duration = Duration::from_secs(60);

struct SocketReader {
    socket: WebSocketStream<Wire>,
    server: Server,
    gathered: EventLinesBuilder,
    /// Why reading stopped.
    failed: Option<AgentError>,
}

/// The part of a message that is parsed; an event has a `type`.
#[derive(Deserialize)]
struct Frame<'f> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'f, str>>,
    #[serde(default)]
    seq: Option<u64>,
    /// In an event, this is a text.
    #[serde(borrow, default)]
    error: Option<&'f RawValue>,
}

pub(super) async fn open(server: Server, path: &str) -> Result<Connection, OpenError> {
    let mut request = server.address("ws", path).into_client_request().map_err(|error| {
        OpenError::Failed(AgentError::invalid(format!("failed to make a request: {error}")))
    })?;
    if let Some(bearer) = server.bearer() {
        request.headers_mut().insert(AUTHORIZATION, bearer.clone());
    }
    let wire = dial(&server).await.map_err(OpenError::Failed)?;
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    let opening = tokio_tungstenite::client_async_with_config(request, wire, Some(config));
    let Ok(opened) = timeout(CONNECT, opening).await else {
        return Err(OpenError::Stalled(AgentError::timed_out(&server, CONNECT.as_secs())));
    };
    let (socket, _) = opened.map_err(|error| refused(&server, error))?;
    let reader =
        SocketReader { socket, server, gathered: EventLinesBuilder::default(), failed: None };
    Ok(Box::pin(stream::unfold(reader, |mut reader| async {
        let next = reader.next().await?;
        Some((next, reader))
    })))
}

/// Tells a refusal of the server from a proxy that does not pass WebSockets on.
fn refused(server: &Server, error: tungstenite::Error) -> OpenError {
    match error {
        tungstenite::Error::Http(answer) => {
            let (head, body) = answer.into_parts();
            let body = Bytes::from(body.unwrap_or_default());
            let refusal = refusal(server, &Response::from_parts(head, body));
            // If a proxy removed the upgrade header, the server reports it as missing.
            match refusal.is_refusal() && refusal.code() != Some(ErrorCode::InvalidMessage) {
                true => OpenError::Failed(refusal),
                false => OpenError::Blocked(refusal),
            }
        }
        error => OpenError::Stalled(AgentError::broken(server, error)),
    }
}

impl SocketReader {
    /// The events that have arrived; `None` after an error.
    async fn next(&mut self) -> Option<Result<Followed, AgentError>> {
        if self.failed.is_none() {
            let message = timeout(SILENCE, self.socket.next()).await;
            let read = match message {
                Ok(message) => self.read_message(message),
                Err(_) => Err(self.broken(format!("no data for {} s", SILENCE.as_secs()))),
            };
            self.failed = read.err();
            // Add what has arrived already.
            while self.failed.is_none()
                && self.gathered.len() < GATHERED
                && let Some(message) = self.socket.next().now_or_never()
            {
                self.failed = self.read_message(message).err();
            }
        }
        match (self.gathered.finish(), &mut self.failed) {
            (events, _) if !events.is_empty() => Some(Ok(Followed::Events(events))),
            (_, Some(_)) => self.failed.take().map(Err),
            // It was a ping.
            (events, None) => Some(Ok(Followed::Events(events))),
        }
    }

    fn read_message(
        &mut self,
        message: Option<Result<Message, tungstenite::Error>>,
    ) -> Result<(), AgentError> {
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) | Message::Binary(_),
            )) => return Ok(()),
            Some(Ok(Message::Close(_))) | None => {
                return Err(self.broken("the server closed the connection"));
            }
            Some(Err(error)) => return Err(self.broken(error)),
        };
        let invalid = || unexpected(&self.server, "it sent an invalid message");
        let frame: Frame<'_> = serde_json::from_str(&text).map_err(|_| invalid())?;
        let error = match (frame.kind, frame.error) {
            (Some(_), _) => {
                self.gathered.push(frame.seq.ok_or_else(invalid)?, &text);
                return Ok(());
            }
            (None, None) => return Ok(()),
            (None, Some(error)) => serde_json::from_str::<Refusal>(error.get()),
        };
        let error = error.map_err(|_| invalid())?;
        Err(match error.details.as_ref().is_some_and(is_gap) {
            // The log does not have these events. The follower asks what it has.
            true => self.broken(error.message),
            // The server cannot read its log now; it may later.
            false => AgentError::from(error).retryable(),
        })
    }

    fn broken(&self, why: impl std::fmt::Display) -> AgentError {
        AgentError::broken(&self.server, why)
    }
}

fn is_gap(details: &Json<'static>) -> bool {
    details.get().starts_with("{\"missing\"")
}
