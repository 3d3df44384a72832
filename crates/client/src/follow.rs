//! Makes a session's stream reliable over any transport: keeps the position in the log, reconnects, and
//! reads no faster than the reader.

mod backoff;
pub(crate) mod cursor;

use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::{Profile, SessionId, SessionState};
use futures_util::StreamExt as _;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use self::backoff::Backoff;
use self::cursor::Cursor;
use crate::client::parse;
use crate::error::{AgentError, Gap};
use crate::event_lines::EventLines;
use crate::stream::Update;
use crate::transport::{Call, Connection, Followed, Transport};

/// A connection that lasts this long counts as successful even without events.
const STEADY: Duration = Duration::from_secs(10);

/// How long the stream waits in silence before it asks whether the session has ended: normally, and the
/// first time after a `sessionEnded` event.
const QUIET: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(20);

/// Marks the last event of a session. It only saves time: without it the gateway is asked later.
const END: &str = "\"type\":\"sessionEnded\"";

/// What to follow, and how.
#[derive(Clone, Debug)]
pub(crate) struct FollowPlan {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) session: SessionId,
    pub(crate) after: u64,
    pub(crate) up_to: Option<u64>,
    pub(crate) profile: Profile,
    /// How long the gateway may be unreachable.
    pub(crate) patience: Duration,
}

/// An update for the reader, and the buffer space that it occupies.
pub(crate) struct BufferedUpdate {
    pub(crate) update: Result<Update, AgentError>,
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// The channel to the reader, bounded in bytes.
pub(crate) struct UpdateSender {
    pub(crate) updates: mpsc::Sender<BufferedUpdate>,
    pub(crate) room: Arc<Semaphore>,
    /// The whole buffer, in bytes.
    pub(crate) size: usize,
}

/// Follows a session to its end, over as many connections as needed.
pub(crate) async fn follow(plan: FollowPlan, sender: UpdateSender) {
    let cursor = Cursor::new(plan.after);
    let mut follower =
        Follower { plan, sender, cursor, is_lost: false, opened: None, has_end: false };
    match follower.run().await {
        Ok(()) | Err(Stop::Unread) => {}
        // A gateway that is gone for good cannot confirm the end, but the last event was `sessionEnded`.
        Err(Stop::Failed(error)) if follower.has_end && !error.is_retryable() => {}
        Err(Stop::Failed(error)) => {
            let _ = follower.sender.send(Err(error), 0).await;
        }
    }
}

struct Follower {
    plan: FollowPlan,
    sender: UpdateSender,
    cursor: Cursor,
    /// The reader has received `Update::Lost`.
    is_lost: bool,
    /// When the last connection opened.
    opened: Option<Instant>,
    /// The last event was `sessionEnded`.
    has_end: bool,
}

/// The part of a session's summary that a follower needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct SessionStatus {
    last_seq: u64,
    /// A string, because a newer gateway may have states that this version does not know.
    state: String,
}

impl SessionStatus {
    fn is_ended(&self) -> bool {
        self.state == SessionState::Ended.as_str()
    }
}

/// How a connection ended, if it did not break.
enum End {
    Over,
    /// Reconnect at once.
    Reconnect,
}

/// Why a follower stops early.
enum Stop {
    /// The reader is gone.
    Unread,
    Failed(AgentError),
}

impl From<AgentError> for Stop {
    fn from(error: AgentError) -> Self {
        Self::Failed(error)
    }
}

impl Follower {
    async fn run(&mut self) -> Result<(), Stop> {
        let mut backoff = Backoff::new(self.plan.patience);
        loop {
            let (position, before) = (self.cursor.position(), self.opened);
            let why = match self.connection().await {
                Ok(End::Over) => return Ok(()),
                Ok(End::Reconnect) => {
                    backoff = Backoff::new(self.plan.patience);
                    continue;
                }
                Err(Stop::Unread) => return Err(Stop::Unread),
                Err(Stop::Failed(why)) => why,
            };
            // The session was found before, so the gateway may come back.
            if !why.is_retryable() {
                return Err(why.into());
            }
            let is_steady = |opened: Instant| opened.elapsed() > STEADY;
            let was_steady = before != self.opened && self.opened.is_some_and(is_steady);
            if self.cursor.position() > position || was_steady {
                backoff = Backoff::new(self.plan.patience);
            } else if backoff.is_over() {
                return Err(why.into());
            }
            if !std::mem::replace(&mut self.is_lost, true) {
                self.send(Update::Lost(why)).await?;
            }
            sleep(backoff.next()).await;
        }
    }

    /// Opens one connection and reads it to its end.
    async fn connection(&mut self) -> Result<End, Stop> {
        let status = self.status().await?;
        let (last, position) = (status.last_seq, self.cursor.position());
        if position > last {
            self.cursor.go_back(last);
            self.send(Update::Gap(Gap::Forgotten { from: last + 1, to: position })).await?;
        }
        if self.is_over(&status) {
            return Ok(End::Over);
        }
        // An ended session stops at its last event, unless it is resumed.
        let end = status.is_ended().then_some(last);
        // The last event may be one that the profile leaves out. Where the end is known, request all
        // events.
        let has_all = self.plan.profile.has_all_events();
        let is_whole = has_all || end.or(self.plan.up_to).is_some();
        let profile = if has_all || !is_whole { self.plan.profile } else { Profile::Full };
        self.cursor.expect_all(is_whole);
        let (session, after) = (&self.plan.session, self.cursor.position());
        let mut connection = self.plan.transport.follow(session, after, profile).await?;
        self.opened = Some(Instant::now());
        if std::mem::take(&mut self.is_lost) {
            self.send(Update::Back).await?;
        }
        self.read(&mut connection, is_whole, end).await
    }

    /// Reads a connection. `is_whole` says whether it shows every event, `end` is the last event if known.
    async fn read(
        &mut self,
        connection: &mut Connection,
        is_whole: bool,
        end: Option<u64>,
    ) -> Result<End, Stop> {
        let (mut ask_at, mut soon) = (Instant::now() + QUIET, SOON);
        // The position at the last check, if it was behind the log.
        let mut behind = None;
        loop {
            let next = tokio::select! {
                biased;
                next = connection.next() => next,
                () = sleep_until(ask_at) => {
                    match self.status().await {
                        Ok(status) if self.is_over(&status) => return Ok(End::Over),
                        Ok(status) if status.is_ended() && !is_whole => {
                            return Ok(End::Reconnect);
                        }
                        // The remaining events are on their way.
                        Ok(status) if status.is_ended() && soon < QUIET => {
                            ask_at = Instant::now() + soon;
                            soon = (soon * 2).min(QUIET);
                        }
                        Ok(status) => {
                            let position = self.cursor.position();
                            let is_behind = is_whole && status.last_seq > position;
                            let at = is_behind.then_some(position);
                            if at.is_some() && at == behind {
                                let why = format!("the log has more events, but none arrived after {position}");
                                return Err(self.broken(why).into());
                            }
                            (behind, ask_at) = (at, Instant::now() + QUIET);
                        }
                        // The connection itself reports when it is lost.
                        Err(error) if error.is_retryable() => ask_at = Instant::now() + QUIET,
                        Err(error) => return Err(error.into()),
                    }
                    continue;
                }
            };
            match next {
                Some(Ok(Followed::Events(lines))) if lines.is_empty() => {}
                Some(Ok(Followed::Events(lines))) => {
                    let last = lines.get(lines.len() - 1).map(|(_, line)| line);
                    self.hand_out(&lines).await?;
                    self.has_end = last.is_some_and(|line| has_end(&line));
                    let has_reached = |last: u64| self.cursor.position() >= last;
                    if self.plan.up_to.is_some_and(has_reached) {
                        return Ok(End::Over);
                    }
                    let may_be_over = self.has_end || end.is_some_and(has_reached);
                    ask_at = Instant::now() + if may_be_over { Duration::ZERO } else { QUIET };
                    soon = SOON;
                }
                Some(Ok(Followed::End)) => return Ok(End::Over),
                Some(Ok(Followed::LetGo)) => return Ok(End::Reconnect),
                Some(Err(error)) => return Err(error.into()),
                None => return Err(self.broken("the connection ended").into()),
            }
        }
    }

    /// Hands the new events to the reader.
    async fn hand_out(&mut self, lines: &EventLines) -> Result<(), Stop> {
        let mut new = Vec::new();
        let advanced = self.cursor.advance(lines, &mut new);
        // The gateway has already applied a profile that it was asked for.
        let is_applied = self.plan.profile.has_all_events() || !self.cursor.expects_all();
        let profile = if is_applied { Profile::Full } else { self.plan.profile };
        for update in new {
            let update = match update {
                Update::Events(lines) => Update::Events(lines.filtered(profile)),
                other => other,
            };
            if !matches!(&update, Update::Events(lines) if lines.is_empty()) {
                self.send(update).await?;
            }
        }
        advanced.map_err(|jump| self.broken(jump).into())
    }

    fn broken(&self, why: impl std::fmt::Display) -> AgentError {
        AgentError::broken(self.plan.transport.name(), why)
    }

    async fn status(&self) -> Result<SessionStatus, AgentError> {
        let shown = self.plan.transport.call(Call::Show(self.plan.session.clone())).await?;
        parse(&*self.plan.transport, &shown)
    }

    fn is_over(&self, status: &SessionStatus) -> bool {
        let position = self.cursor.position();
        let is_read = position >= status.last_seq && status.is_ended();
        is_read || self.plan.up_to.is_some_and(|last| position >= last)
    }

    async fn send(&mut self, update: Update) -> Result<(), Stop> {
        let bytes = match &update {
            Update::Events(lines) => lines.text().len(),
            _ => 0,
        };
        self.sender.send(Ok(update), bytes).await
    }
}

fn has_end(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| line.contains(END))
}

impl UpdateSender {
    /// Waits for buffer space. An update larger than the buffer waits until the buffer is empty.
    async fn send(&self, update: Result<Update, AgentError>, bytes: usize) -> Result<(), Stop> {
        let wanted = u32::try_from(bytes.min(self.size)).unwrap_or(u32::MAX);
        let room = match wanted {
            0 => None,
            wanted => {
                let room = Arc::clone(&self.room).acquire_many_owned(wanted).await;
                Some(room.map_err(|_| Stop::Unread)?)
            }
        };
        self.updates.send(BufferedUpdate { update, room }).await.map_err(|_| Stop::Unread)
    }
}
