//! WebSockets: any front, served by the pump; each message is one text frame.

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use agentwire_dialects::board::Watcher;
use agentwire_dialects::front::{Front, GatewayCall};
use agentwire_dialects::insights::Insights;
use agentwire_dialects::jsonrpc::JsonRpc;
use agentwire_dialects::unified::Unified;
use agentwire_protocol::{ErrorCode, GatewayError, Profile, Resume};
use agentwire_sessions::budget::{self, Pool};
use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::extract::{Extension, State};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use http::Uri;
use serde::Deserialize;
use tokio::sync::mpsc;

use super::body::{PathParam, query};
use super::events::add_resume_header;
use super::metrics::Wire;
use super::problem::Problem;
use super::rest::{HttpResult, session_id};
use super::websocket_budget::{self, WebSocketBudget};
use super::{App, auth, authorization};
use crate::connection::{Connection, Farewell, Incoming, LINE_LIMIT, Outgoing};
use crate::read_budget::unless_stalled;
use crate::serve::{Closing, Terms, serve};
use crate::tokens::{Caller, Scope};

/// How often a client is pinged.
const PING: Duration = Duration::from_secs(20);

/// The longest message of a client that may only watch, in bytes.
pub(super) const WATCHER_LIMIT: usize = 64 << 10;

/// The longest message of a board client, in bytes.
const BOARD_LIMIT: usize = 4 << 10;

/// How much a socket reads at once. Clients send little, and each has such a buffer.
const READ_BUFFER: usize = 8 << 10;

/// How many bytes are collected before they are written, if more are ready.
const WRITE_BUFFER: usize = 64 << 10;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct WatchQuery {
    #[serde(default)]
    after: u64,
    #[serde(default)]
    profile: Profile,
}

/// `GET /v1/sessions/{id}/ws`
pub(super) async fn unified(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(budget): Extension<WebSocketBudget>,
    PathParam(id): PathParam<String>,
    uri: Uri,
    upgrade: Upgrade,
) -> HttpResult {
    let WatchQuery { after, profile } = query(&uri)?;
    let id = session_id(&id)?;
    let last = app.hub().summary(&id).await?.last_seq;
    let front = Unified::watching(id, after, last, profile);
    let mut response = serve_front(app, caller, Wire::Unified, front, (upgraded(upgrade)?, budget));
    add_resume_header(&mut response, Resume::of(after, last).0);
    Ok(response)
}

/// `GET /v1/ws`
pub(super) async fn all(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(budget): Extension<WebSocketBudget>,
    upgrade: Upgrade,
) -> HttpResult {
    let front = Unified::default();
    Ok(serve_front(app, caller, Wire::Unified, front, (upgraded(upgrade)?, budget)))
}

/// `GET /rpc`
pub(super) async fn rpc(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(budget): Extension<WebSocketBudget>,
    upgrade: Upgrade,
) -> HttpResult {
    let front = JsonRpc::new(app.setup.agent);
    Ok(serve_front(app, caller, Wire::Rpc, front, (upgraded(upgrade)?, budget)))
}

/// `GET /insights`
pub(super) async fn insights(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(budget): Extension<WebSocketBudget>,
    upgrade: Upgrade,
) -> HttpResult {
    let front = Insights::new(app.setup.agent, app.setup.prices.clone());
    Ok(serve_front(app, caller, Wire::Insights, front, (upgraded(upgrade)?, budget)))
}

/// `GET /ws/sessions/{id}`
pub(super) async fn board(
    State(app): State<App>,
    Extension(caller): Extension<Caller>,
    Extension(budget): Extension<WebSocketBudget>,
    PathParam(id): PathParam<String>,
    upgrade: Upgrade,
) -> HttpResult {
    let id = session_id(&id)?;
    app.hub().summary(&id).await?;
    let front = Watcher::new(id.clone(), app.board_sessions.owns(&id));
    Ok(serve_front(app, caller, Wire::Board, front, (upgraded(upgrade)?, budget)))
}

/// A request that may not be a WebSocket request.
type Upgrade = Result<WebSocketUpgrade, WebSocketUpgradeRejection>;

/// Refuses a request that is not a WebSocket request.
fn upgraded(upgrade: Upgrade) -> Result<WebSocketUpgrade, Problem> {
    upgrade.map_err(|why| {
        Problem::invalid(format!("this path needs a WebSocket request: {}", why.body_text()))
    })
}

/// Limits a socket's buffers. At most one message waits beyond the write buffer: the next one is not
/// started before there is room.
fn bounded(upgrade: WebSocketUpgrade, longest: usize) -> WebSocketUpgrade {
    upgrade
        .protocols([auth::SUBPROTOCOL])
        .max_message_size(longest)
        .max_frame_size(longest)
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(WRITE_BUFFER)
}

fn serve_front(
    app: App,
    caller: Caller,
    wire: Wire,
    mut front: impl Front + 'static,
    (upgrade, budget): (WebSocketUpgrade, WebSocketBudget),
) -> axum::response::Response {
    // A client that may only watch has little to send, and a board client has nothing.
    let longest = match (wire, caller.scope) {
        (Wire::Board, _) => BOARD_LIMIT,
        (_, Scope::Watch) => WATCHER_LIMIT,
        (_, Scope::Drive | Scope::Approve | Scope::Admin) => LINE_LIMIT,
    };
    budget.start_frames(longest);
    bounded(upgrade, longest).on_upgrade(move |socket| async move {
        let may = |ask: &GatewayCall| match app.allows(&caller) {
            true => authorization::check(&caller, ask),
            false => Err(GatewayError::new(ErrorCode::Unauthorized, REVOKED.1)),
        };
        let terms = Terms {
            closing: Closing::Leave,
            client: Some(caller.name.clone()),
            is_limited: caller.is_limited(),
            keys: caller.id().to_owned(),
            may: &may,
        };
        let connection = connect(socket, app.clone(), caller.clone(), budget);
        let _open = app.traffic.stream(wire, Some(&connection.outgoing));
        serve(app.hub(), connection, &mut front, terms, app.stopping.cancelled()).await;
    })
}

/// How long a client may take to read why it is disconnected.
const CLOSE_TIME: Duration = Duration::from_secs(1);

/// Makes a connection of messages from a socket.
fn connect(socket: WebSocket, app: App, caller: Caller, budget: WebSocketBudget) -> Connection {
    let (sink, stream) = socket.split();
    let (sender, incoming) = mpsc::channel(1);
    let (outgoing, fault) = (Outgoing::default(), Arc::default());
    let reader = SocketReader {
        stream,
        sender,
        budget,
        clients: app.hub().log().budget().clients.clone(),
        outgoing: outgoing.clone(),
        fault: Arc::clone(&fault),
    };
    let writer = SocketWriter { sink, app, caller, outgoing: outgoing.clone(), fault };
    Connection::of(incoming, outgoing, tokio::spawn(reader.run()), writer.run())
}

struct SocketReader {
    stream: SplitStream<WebSocket>,
    sender: mpsc::Sender<Incoming>,
    budget: WebSocketBudget,
    clients: Pool,
    outgoing: Outgoing,
    /// Why the connection ends early.
    fault: Arc<OnceLock<Reason>>,
}

impl SocketReader {
    async fn run(mut self) {
        while let Some(message) = self.stream.next().await {
            let line = match message {
                Ok(message @ (Message::Text(_) | Message::Binary(_))) => message.into_data(),
                // Reading on answers a close.
                Ok(Message::Ping(_) | Message::Pong(_) | Message::Close(_)) => continue,
                Err(error) => {
                    let _ = self.fault.set(fault_of(&error));
                    return;
                }
            };
            let share = self.budget.take_share(line.len());
            let is_large = share.is_some();
            let message = Incoming::Line(line, share);
            let is_heard = match is_large {
                true => pass_in_time(&self.sender, message, &self.clients).await,
                false => Some(self.sender.send(message).await.is_ok()),
            };
            match is_heard {
                Some(true) => {}
                Some(false) => return,
                None => {
                    let _ = self.fault.set(NOT_PROCESSED);
                    // The pump is not reading; this tells it.
                    return self.outgoing.fail();
                }
            }
        }
    }
}

struct SocketWriter {
    sink: SplitSink<WebSocket, Message>,
    app: App,
    caller: Caller,
    outgoing: Outgoing,
    fault: Arc<OnceLock<Reason>>,
}

impl SocketWriter {
    async fn run(mut self) {
        let mut beat = beat();
        loop {
            let bytes = tokio::select! {
                bytes = self.outgoing.take() => bytes,
                _ = beat.tick() => match self.ping().await {
                    true => continue,
                    false => break,
                },
            };
            let Some(bytes) = bytes else { return self.close().await };
            if !self.write(bytes).await {
                // If the connection still works, this tells the client that the session has not ended.
                let reason = self.fault.get().copied().unwrap_or(NOT_SENT);
                let _ = tokio::time::timeout(CLOSE_TIME, self.sink.send(closing(reason))).await;
                break;
            }
        }
        self.outgoing.fail();
    }

    /// Pings the client, if it may stay. Returns whether the connection continues.
    async fn ping(&mut self) -> bool {
        if !self.app.allows(&self.caller) {
            let _ = self.sink.send(closing(REVOKED)).await;
            return false;
        }
        self.sink.send(Message::Ping(Bytes::new())).await.is_ok()
    }

    /// Writes complete lines, unless the pump gives up on the client.
    async fn write(&mut self, pieces: Vec<Bytes>) -> bool {
        let pool = &self.app.hub().log().budget().read;
        let (sink, outgoing) = (&mut self.sink, &self.outgoing);
        let writing = async {
            for piece in pieces {
                if !feed_in_time(sink, &piece, outgoing, pool).await {
                    return false;
                }
                outgoing.written(piece.len());
            }
            sink.flush().await.is_ok()
        };
        tokio::select! {
            biased;
            () = outgoing.broken() => false,
            is_written = writing => is_written,
        }
    }

    /// Everything is written: tells the client why the connection ends.
    async fn close(&mut self) {
        let fault = self.fault.get().copied();
        let reason = match fault {
            Some(fault) => fault,
            None if self.app.stopping.is_cancelled() => STOPPING,
            None => match self.outgoing.farewell() {
                Farewell { is_error: true, text } => (close_code::ERROR, text),
                Farewell { is_error: false, text } => (close_code::NORMAL, text),
            },
        };
        let is_sent = self.sink.send(closing(reason)).await.is_ok();
        if is_sent && fault.is_some() {
            // Closing at once while the client still sends could discard the reason.
            tokio::time::sleep(CLOSE_TIME).await;
        }
    }
}

/// Passes a large message to the client's pump. Returns whether the pump took it, or `None` if that took
/// too long while others wait for the message's share, as with a client that does not read.
async fn pass_in_time(
    sender: &mpsc::Sender<Incoming>,
    message: Incoming,
    pool: &Pool,
) -> Option<bool> {
    // There is room for the next message once this one is taken.
    let passed = async { sender.send(message).await.is_ok() && sender.reserve().await.is_ok() };
    pool.unless_wanted(websocket_budget::STALL_LIMITS.0, passed).await
}

/// Writes lines to a socket. Large data is held until the client has it, and others may wait for that.
async fn feed_in_time(
    sink: &mut SplitSink<WebSocket, Message>,
    lines: &Bytes,
    outgoing: &Outgoing,
    pool: &Pool,
) -> bool {
    if lines.len() <= budget::SMALL {
        return feed(sink, lines, outgoing).await.is_ok();
    }
    let written = async {
        feed(sink, lines, outgoing).await?;
        sink.flush().await
    };
    unless_stalled(pool, lines.len(), written).await.is_some_and(|given| given.is_ok())
}

/// Writes lines to a socket, each as a message, without copying them.
async fn feed(
    sink: &mut SplitSink<WebSocket, Message>,
    lines: &Bytes,
    outgoing: &Outgoing,
) -> Result<(), axum::Error> {
    let mut from = 0;
    for end in memchr::memchr_iter(b'\n', lines) {
        if let Ok(text) = Utf8Bytes::try_from(lines.slice(from..end)) {
            sink.feed(Message::Text(text)).await?;
            outgoing.advance();
        }
        from = end + 1;
    }
    Ok(())
}

/// Why a socket is closed, as the client sees it.
type Reason = (u16, &'static str);

const STOPPING: Reason = (close_code::AWAY, "the server is stopping");
const NOT_SENT: Reason = (close_code::ERROR, "failed to send events");
const NOT_PROCESSED: Reason = (close_code::AGAIN, "the message could not be processed in time");
const REVOKED: Reason = (close_code::POLICY, "the token is no longer valid");

fn closing((code, reason): Reason) -> Message {
    Message::Close(Some(CloseFrame { code, reason: Utf8Bytes::from_static(reason) }))
}

/// When to ping clients and check that they may stay connected.
fn beat() -> tokio::time::Interval {
    let mut beat = tokio::time::interval_at(tokio::time::Instant::now() + PING, PING);
    beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    beat
}

/// What the client did wrong, as the client sees it.
fn fault_of(error: &axum::Error) -> Reason {
    let error = std::error::Error::source(error);
    match error.and_then(|error| error.downcast_ref::<tungstenite::Error>()) {
        Some(tungstenite::Error::Capacity(_)) => (close_code::SIZE, "the message is too long"),
        Some(tungstenite::Error::Io(error)) if error.kind() == io::ErrorKind::TimedOut => {
            (close_code::AGAIN, "the message took too long to arrive")
        }
        Some(tungstenite::Error::Utf8(_)) => (close_code::INVALID, "the text is not UTF-8"),
        Some(_) | None => (close_code::PROTOCOL, "this is not the WebSocket protocol"),
    }
}
