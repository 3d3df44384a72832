//! The WebSocket of a session: what it does comes over it, commands go over it. When it breaks it is
//! opened again, and goes on where it was.

mod pause;
mod talk;

use std::time::Duration;

use agentwire_protocol::{Command, ErrorCode, GatewayError, Json};
use bytes::Bytes;
use http::Response;
use http::header::AUTHORIZATION;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use self::pause::Pause;
use self::talk::{End, Talk};
use super::http::refusal;
use super::{CONNECT, Wire, dial};
use crate::discovery::Server;
use crate::error::Error;
use crate::session::{Session, Update};

/// The longest message: an event may be as large as a line of an agent, several times over.
const MESSAGE: usize = 512 << 20;

/// A connection that lasts so long was one, even if nothing came over it.
const STEADY: Duration = Duration::from_secs(10);

/// A command on its way.
#[derive(Debug)]
pub(crate) struct Order {
    pub(crate) command: Command,
    pub(crate) reply: oneshot::Sender<Replied>,
}

type Replied = Result<Json<'static>, Error>;
type Socket = WebSocketStream<Wire>;

/// Follows a session to its end, over as many connections as it takes.
pub(crate) async fn follow(
    session: Session,
    after: u64,
    updates: mpsc::Sender<Result<Update, Error>>,
    orders: mpsc::Receiver<Order>,
) {
    let mut follower = Follower { session, position: after, updates, orders, is_lost: false };
    if let Err(error) = follower.run().await {
        let _ = follower.updates.send(Err(error)).await;
    }
}

struct Follower {
    session: Session,
    position: u64,
    updates: mpsc::Sender<Result<Update, Error>>,
    orders: mpsc::Receiver<Order>,
    /// It was told that the connection is lost.
    is_lost: bool,
}

impl Follower {
    async fn run(&mut self) -> Result<(), Error> {
        // A server that cannot be reached at first is a mistake; later it may come back.
        let mut socket = self.open().await?;
        let mut pause = Pause::new();
        loop {
            let (position, begun) = (self.position, Instant::now());
            let why = match Talk::new(self, socket).run().await? {
                End::Done => return Ok(()),
                End::Lost(why) => why,
            };
            if self.position > position || begun.elapsed() > STEADY {
                pause = Pause::new();
            } else if pause.is_over() {
                return Err(why);
            }
            self.is_lost = true;
            if self.updates.send(Ok(Update::Lost(why))).await.is_err() {
                return Ok(());
            }
            socket = loop {
                if !self.rest(pause.next()).await {
                    return Ok(());
                }
                match self.open().await {
                    Ok(socket) => break socket,
                    Err(error) if error.is_retryable() && !pause.is_over() => {}
                    Err(error) => return Err(error),
                }
            };
        }
    }

    /// Waits; nobody can be commanded meanwhile. Says whether somebody still reads.
    async fn rest(&mut self, time: Duration) -> bool {
        let until = Instant::now() + time;
        let mut is_open = true;
        loop {
            tokio::select! {
                () = self.updates.closed() => return false,
                order = self.orders.recv(), if is_open => match order {
                    Some(order) => {
                        let why = "the connection is lost; it is tried again".to_owned();
                        let error = Error::Broken { at: self.at(), why };
                        let _ = order.reply.send(Err(error));
                    }
                    None => is_open = false,
                },
                () = sleep_until(until) => return true,
            }
        }
    }

    async fn open(&self) -> Result<Socket, Error> {
        // An answer in words comes from here; a socket that is refused says little.
        let last = self.session.summary().await?.last_seq;
        if self.position > last {
            let message = format!(
                "the log of session {} has {last} events, and {} were read before: it is another log",
                self.session.id(),
                self.position
            );
            return Err(GatewayError::new(ErrorCode::Conflict, message).into());
        }
        let server = self.session.client().server()?;
        let path = self.session.path(&format!("/ws?after={}", self.position));
        connect(&server, &path).await
    }

    fn at(&self) -> String {
        self.session.client().server().map(|server| server.url()).unwrap_or_default()
    }
}

async fn connect(server: &Server, path: &str) -> Result<Socket, Error> {
    let mut request = server
        .address("ws", path)
        .into_client_request()
        .map_err(|error| Error::Invalid(format!("failed to make a request: {error}")))?;
    if let Some(bearer) = server.bearer() {
        request.headers_mut().insert(AUTHORIZATION, bearer.clone());
    }
    let wire = dial(server).await?;
    let config =
        WebSocketConfig::default().max_message_size(Some(MESSAGE)).max_frame_size(Some(MESSAGE));
    let opening = tokio_tungstenite::client_async_with_config(request, wire, Some(config));
    let opened = timeout(CONNECT, opening).await;
    let opened =
        opened.map_err(|_| Error::TimedOut { at: server.url(), seconds: CONNECT.as_secs() })?;
    match opened {
        Ok((socket, _)) => Ok(socket),
        Err(tungstenite::Error::Http(answer)) => {
            let (head, body) = answer.into_parts();
            let body = Bytes::from(body.unwrap_or_default());
            Err(refusal(server, &Response::from_parts(head, body)))
        }
        Err(error) => Err(Error::Broken { at: server.url(), why: error.to_string() }),
    }
}
