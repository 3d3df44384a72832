//! One connection: what comes over it, what goes over it, and whether it still lives.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::time::Duration;

use agentwire_protocol::{CommandFrame, ErrorCode, GatewayError, Json};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_tungstenite::tungstenite::{self, Message};

use super::{Follower, Order, Replied, Socket};
use crate::error::Error;
use crate::lines::Gathering;
use crate::session::Update;

/// How much is gathered before it is handed on.
const GATHERED: usize = 256 << 10;

/// The server says something at least three times in that time; else the connection is dead.
const SILENCE: Duration = Duration::from_secs(60);

/// How long a command may take to go out.
const WRITE: Duration = Duration::from_secs(30);

/// How long nothing comes before it is asked whether the session is over: usually, and once its end
/// was told or may have been missed.
const QUIET: (Duration, Duration) = (Duration::from_secs(20), Duration::from_millis(50));

type Asking = Pin<Box<dyn Future<Output = Result<bool, Error>> + Send>>;

/// Why it is read no further.
pub(super) enum End {
    /// The session is over, or nobody reads any more.
    Done,
    /// The connection broke.
    Lost(Error),
}

/// What a message may be; an event has a `type`.
#[derive(Deserialize)]
struct Frame<'f> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'f, str>>,
    #[serde(default)]
    seq: u64,
    #[serde(borrow, default)]
    id: Option<&'f RawValue>,
    #[serde(borrow, default)]
    reply: Option<&'f RawValue>,
    #[serde(borrow, default)]
    error: Option<&'f RawValue>,
}

/// One connection.
pub(super) struct Talk<'f> {
    follower: &'f mut Follower,
    socket: Socket,
    at: String,
    gathered: Gathering,
    /// Commands without a reply, by their number.
    waiting: BTreeMap<u64, oneshot::Sender<Replied>>,
    number: u64,
    /// The session may be over: its end was told, or was told before we came.
    may_be_over: bool,
    /// Asks whether it is; it was at that event.
    asking: Option<(u64, Asking)>,
    ask_at: Instant,
    dead_at: Instant,
}

impl<'f> Talk<'f> {
    pub(super) fn new(follower: &'f mut Follower, socket: Socket) -> Self {
        let now = Instant::now();
        Self {
            at: follower.at(),
            follower,
            socket,
            gathered: Gathering::default(),
            waiting: BTreeMap::new(),
            number: 0,
            may_be_over: true,
            asking: None,
            ask_at: now + QUIET.1,
            dead_at: now + SILENCE,
        }
    }

    pub(super) async fn run(mut self) -> Result<End, Error> {
        let ended = self.converse().await;
        let why = match &ended {
            Ok(End::Lost(why)) | Err(why) => why.clone(),
            Ok(End::Done) => self.broken("the session is over"),
        };
        for reply in std::mem::take(&mut self.waiting).into_values() {
            let _ = reply.send(Err(why.clone()));
        }
        // What came before it broke is as good as ever.
        if !self.gathered.is_empty() {
            let events = Update::Events(self.gathered.take());
            if self.follower.updates.send(Ok(events)).await.is_err() {
                return Ok(End::Done);
            }
        }
        ended
    }

    async fn converse(&mut self) -> Result<End, Error> {
        if std::mem::take(&mut self.follower.is_lost)
            && self.follower.updates.send(Ok(Update::Back)).await.is_err()
        {
            return Ok(End::Done);
        }
        let updates = self.follower.updates.clone();
        loop {
            let has_room = self.gathered.len() < GATHERED;
            tokio::select! {
                biased;
                () = updates.closed() => return Ok(End::Done),
                Some(order) = self.follower.orders.recv() => if let Some(end) = self.order(order).await {
                    return Ok(end);
                },
                message = self.socket.next(), if has_room => {
                    if let Some(end) = self.message(message)? {
                        return Ok(end);
                    }
                }
                permit = updates.reserve(), if !self.gathered.is_empty() => {
                    let Ok(permit) = permit else { return Ok(End::Done) };
                    permit.send(Ok(Update::Events(self.gathered.take())));
                }
                is_over = answer(&mut self.asking) => if self.is_over(is_over)? {
                    return Ok(End::Done);
                },
                // What is gathered is to be read first.
                () = sleep_until(self.ask_at), if self.asking.is_none() && self.gathered.is_empty() => {
                    self.ask();
                }
                () = sleep_until(self.dead_at), if has_room => {
                    let why = format!("nothing came for {} s", SILENCE.as_secs());
                    return Ok(End::Lost(self.broken(&why)));
                }
            }
        }
    }

    /// Asks the server whether the session is over; only it knows of sessions that nobody runs.
    fn ask(&mut self) {
        let (session, after) = (self.follower.session.clone(), self.follower.position);
        let wait = if self.may_be_over { 0 } else { 1 };
        self.asking = Some((
            after,
            Box::pin(async move {
                let page = session.page(after, 1, wait).await?;
                Ok(page.has_ended && page.events.count() == 0)
            }),
        ));
    }

    fn is_over(&mut self, (asked_at, is_over): (u64, Result<bool, Error>)) -> Result<bool, Error> {
        self.asking = None;
        let is_over = match is_over {
            Ok(is_over) => is_over,
            // The connection itself tells whether it is lost.
            Err(error) if error.is_retryable() => false,
            Err(error) => return Err(error),
        };
        let is_current = asked_at == self.follower.position && self.gathered.is_empty();
        if is_current && !is_over {
            self.may_be_over = false;
        }
        self.quiet();
        Ok(is_current && is_over)
    }

    /// Something came, or was found out: it is asked again only later.
    fn quiet(&mut self) {
        let quiet = if self.may_be_over { QUIET.1 } else { QUIET.0 };
        self.ask_at = Instant::now() + quiet;
    }

    async fn order(&mut self, order: Order) -> Option<End> {
        self.number += 1;
        let id = Some(Json::of(&self.number));
        let frame = CommandFrame { id, session_id: None, command: order.command };
        self.waiting.insert(self.number, order.reply);
        let message = Message::text(frame.to_json().get());
        match timeout(WRITE, self.socket.send(message)).await {
            Ok(Ok(())) => None,
            Ok(Err(error)) => Some(End::Lost(self.broken(&error.to_string()))),
            Err(_) => Some(End::Lost(self.broken("it takes nothing any more"))),
        }
    }

    fn message(
        &mut self,
        message: Option<Result<Message, tungstenite::Error>>,
    ) -> Result<Option<End>, Error> {
        self.dead_at = Instant::now() + SILENCE;
        let text = match message {
            Some(Ok(Message::Text(text))) => text,
            Some(Ok(
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) | Message::Binary(_),
            )) => return Ok(None),
            Some(Ok(Message::Close(_))) | None => {
                return Ok(Some(End::Lost(self.broken("the server closed the connection"))));
            }
            Some(Err(error)) => return Ok(Some(End::Lost(self.broken(&error.to_string())))),
        };
        let Ok(frame) = serde_json::from_str::<Frame<'_>>(&text) else {
            return Ok(Some(End::Lost(self.broken("it sent what is no message of ours"))));
        };
        match (&frame.kind, &frame.error) {
            (Some(kind), _) => Ok(self.event(kind, frame.seq, &text)),
            (None, None) => {
                let reply = frame.reply.and_then(|reply| Json::parse(reply.get()).ok());
                self.replied(frame.id, Ok(reply.map_or(Json::checked("null"), Json::into_owned)));
                Ok(None)
            }
            (None, Some(error)) => {
                let error: GatewayError = serde_json::from_str(error.get()).unwrap_or_else(|_| {
                    GatewayError::new(ErrorCode::Internal, "the server refused without words")
                });
                match frame.id {
                    Some(_) => self.replied(frame.id, Err(error.into())),
                    // It cannot read the log; it may later.
                    None => return Ok(Some(End::Lost(error.into()))),
                }
                Ok(None)
            }
        }
    }

    fn event(&mut self, kind: &str, seq: u64, text: &str) -> Option<End> {
        let next = self.follower.position + 1;
        if seq < next {
            return None;
        }
        if seq > next {
            let why = format!("event {seq} came where {next} was expected");
            return Some(End::Lost(self.broken(&why)));
        }
        self.follower.position = seq;
        self.gathered.push(seq, text);
        match kind {
            "sessionEnded" => self.may_be_over = true,
            "sessionStarted" => self.may_be_over = false,
            _ => {}
        }
        self.quiet();
        None
    }

    fn replied(&mut self, id: Option<&RawValue>, result: Replied) {
        let number = id.and_then(|id| id.get().parse::<u64>().ok());
        if let Some(reply) = number.and_then(|number| self.waiting.remove(&number)) {
            let _ = reply.send(result);
        }
    }

    fn broken(&self, why: &str) -> Error {
        Error::Broken { at: self.at.clone(), why: why.to_owned() }
    }
}

async fn answer(asking: &mut Option<(u64, Asking)>) -> (u64, Result<bool, Error>) {
    match asking {
        Some((at, asked)) => (*at, asked.await),
        None => std::future::pending().await,
    }
}
