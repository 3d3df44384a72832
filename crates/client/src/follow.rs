//! What makes a session's stream reliable, over any transport: it keeps its place in the log, opens
//! connections that broke again, and reads no faster than its reader.

mod backoff;
pub(crate) mod cursor;

use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::{Profile, SessionId, SessionState};
use futures_util::StreamExt as _;
use serde::Deserialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::time::{Instant, sleep, sleep_until};

use self::backoff::Pause;
use self::cursor::Cursor;
use crate::client::read;
use crate::error::{AgentError, Gap};
use crate::lines::EventLines;
use crate::stream::Update;
use crate::transport::{Call, Connection, Followed, Transport};

/// A connection that lasts so long was one, even if nothing came over it.
const STEADY: Duration = Duration::from_secs(10);

/// How long nothing comes before it is asked whether the session is over: usually, and at first where
/// its end was told.
const QUIET: Duration = Duration::from_secs(20);
const SOON: Duration = Duration::from_millis(20);

/// How the last event of a session looks. Where it does not look so, the gateway is asked all the same.
const END: &str = "\"type\":\"sessionEnded\"";

/// What is to be followed, and how.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) transport: Arc<dyn Transport>,
    pub(crate) session: SessionId,
    pub(crate) after: u64,
    pub(crate) up_to: Option<u64>,
    pub(crate) profile: Profile,
    /// How long a gateway may be away.
    pub(crate) patience: Duration,
}

/// What is handed to the reader, and the room that it takes.
pub(crate) struct Handed {
    pub(crate) update: Result<Update, AgentError>,
    pub(crate) room: Option<OwnedSemaphorePermit>,
}

/// The way to the reader: bounded in bytes.
pub(crate) struct Outlet {
    pub(crate) handed: mpsc::Sender<Handed>,
    pub(crate) room: Arc<Semaphore>,
    /// All the room there is.
    pub(crate) size: usize,
}

/// Follows a session to its end, over as many connections as it takes.
pub(crate) async fn follow(plan: Plan, outlet: Outlet) {
    let cursor = Cursor::new(plan.after);
    let mut follower =
        Follower { plan, outlet, cursor, is_lost: false, opened: None, has_end: false };
    match follower.run().await {
        Ok(()) | Err(Stop::Unread) => {}
        // A gateway that is gone for good cannot say that its session is over; its last event did.
        Err(Stop::Failed(error)) if follower.has_end && !error.is_retryable() => {}
        Err(Stop::Failed(error)) => {
            let _ = follower.outlet.send(Err(error), 0).await;
        }
    }
}

struct Follower {
    plan: Plan,
    outlet: Outlet,
    cursor: Cursor,
    /// It was told that the connection is lost.
    is_lost: bool,
    /// When the last connection was opened, if there was one.
    opened: Option<Instant>,
    /// The last event that came was the session's end.
    has_end: bool,
}

/// How a session stands, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Standing {
    last_seq: u64,
    /// A newer gateway may have states that are not known here.
    state: String,
}

impl Standing {
    fn is_ended(&self) -> bool {
        self.state == SessionState::Ended.as_str()
    }
}

/// Why a connection is read no further, if not because it broke.
enum End {
    Over,
    /// It is opened again at once.
    LetGo,
}

/// Why nothing is read any more.
enum Stop {
    /// Nobody reads.
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
        let mut pause = Pause::new(self.plan.patience);
        loop {
            let (position, before) = (self.cursor.position(), self.opened);
            let why = match self.connection().await {
                Ok(End::Over) => return Ok(()),
                Ok(End::LetGo) => {
                    pause = Pause::new(self.plan.patience);
                    continue;
                }
                Err(Stop::Unread) => return Err(Stop::Unread),
                Err(Stop::Failed(why)) => why,
            };
            // It was there when the session was found, and may come back.
            if !why.is_retryable() {
                return Err(why.into());
            }
            let is_steady = |opened: Instant| opened.elapsed() > STEADY;
            let was_steady = before != self.opened && self.opened.is_some_and(is_steady);
            if self.cursor.position() > position || was_steady {
                pause = Pause::new(self.plan.patience);
            } else if pause.is_over() {
                return Err(why.into());
            }
            if !std::mem::replace(&mut self.is_lost, true) {
                self.tell(Update::Lost(why)).await?;
            }
            sleep(pause.next()).await;
        }
    }

    /// One connection, to its end.
    async fn connection(&mut self) -> Result<End, Stop> {
        let standing = self.ask().await?;
        let (last, position) = (standing.last_seq, self.cursor.position());
        if position > last {
            self.cursor.go_back(last);
            self.tell(Update::Gap(Gap::Forgotten { from: last + 1, to: position })).await?;
        }
        if self.is_over(&standing) {
            return Ok(End::Over);
        }
        // Of a session that is over it is known where it ends, unless it goes on.
        let end = standing.is_ended().then_some(last);
        // What is left out could be the last: where the end is known, all is asked for.
        let is_whole = self.plan.profile == Profile::Full || end.or(self.plan.up_to).is_some();
        let profile = if is_whole { Profile::Full } else { self.plan.profile };
        self.cursor.expect_all(is_whole);
        let (session, after) = (&self.plan.session, self.cursor.position());
        let mut connection = self.plan.transport.follow(session, after, profile).await?;
        self.opened = Some(Instant::now());
        if std::mem::take(&mut self.is_lost) {
            self.tell(Update::Back).await?;
        }
        self.read(&mut connection, is_whole, end).await
    }

    /// Reads a connection that shows all events, or some; of a session that ends there, as far as is known.
    async fn read(
        &mut self,
        connection: &mut Connection,
        is_whole: bool,
        end: Option<u64>,
    ) -> Result<End, Stop> {
        let (mut ask_at, mut soon) = (Instant::now() + QUIET, SOON);
        // Where it was when it was behind.
        let mut behind = None;
        loop {
            let next = tokio::select! {
                biased;
                next = connection.next() => next,
                () = sleep_until(ask_at) => {
                    match self.ask().await {
                        Ok(standing) if self.is_over(&standing) => return Ok(End::Over),
                        Ok(standing) if standing.is_ended() && !is_whole => {
                            return Ok(End::LetGo);
                        }
                        // What there is more of is on its way.
                        Ok(standing) if standing.is_ended() && soon < QUIET => {
                            ask_at = Instant::now() + soon;
                            soon = (soon * 2).min(QUIET);
                        }
                        Ok(standing) => {
                            let position = self.cursor.position();
                            let is_behind = is_whole && standing.last_seq > position;
                            let at = is_behind.then_some(position);
                            if at.is_some() && at == behind {
                                let why = format!("nothing came after event {position}");
                                return Err(self.broken(why).into());
                            }
                            (behind, ask_at) = (at, Instant::now() + QUIET);
                        }
                        // The connection itself tells whether it is lost.
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
                    self.take(&lines).await?;
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
                Some(Ok(Followed::LetGo)) => return Ok(End::LetGo),
                Some(Err(error)) => return Err(error.into()),
                None => return Err(self.broken("the connection ended").into()),
            }
        }
    }

    /// Hands on what is new.
    async fn take(&mut self, lines: &EventLines) -> Result<(), Stop> {
        let mut new = Vec::new();
        let taken = self.cursor.take(lines, &mut new);
        // What came by the profile already is not looked at again.
        let profile = if self.cursor.expects_all() { self.plan.profile } else { Profile::Full };
        for update in new {
            let update = match update {
                Update::Events(lines) => Update::Events(lines.shown(profile)),
                other @ (Update::Lost(_) | Update::Back | Update::Gap(_)) => other,
            };
            if !matches!(&update, Update::Events(lines) if lines.is_empty()) {
                self.tell(update).await?;
            }
        }
        taken.map_err(|jump| self.broken(jump).into())
    }

    fn broken(&self, why: impl std::fmt::Display) -> AgentError {
        AgentError::broken(self.plan.transport.name(), why)
    }

    async fn ask(&self) -> Result<Standing, AgentError> {
        let shown = self.plan.transport.call(Call::Show(self.plan.session.clone())).await?;
        read(&*self.plan.transport, &shown)
    }

    fn is_over(&self, standing: &Standing) -> bool {
        let position = self.cursor.position();
        let is_read = position >= standing.last_seq && standing.is_ended();
        is_read || self.plan.up_to.is_some_and(|last| position >= last)
    }

    async fn tell(&mut self, update: Update) -> Result<(), Stop> {
        let bytes = match &update {
            Update::Events(lines) => lines.text().len(),
            Update::Lost(_) | Update::Back | Update::Gap(_) => 0,
        };
        self.outlet.send(Ok(update), bytes).await
    }
}

fn has_end(line: &[u8]) -> bool {
    std::str::from_utf8(line).is_ok_and(|line| line.contains(END))
}

impl Outlet {
    /// Waits until there is room. What is larger than all of it waits until there is nothing else.
    async fn send(&self, update: Result<Update, AgentError>, bytes: usize) -> Result<(), Stop> {
        let wanted = u32::try_from(bytes.min(self.size)).unwrap_or(u32::MAX);
        let room = match wanted {
            0 => None,
            wanted => {
                let room = Arc::clone(&self.room).acquire_many_owned(wanted).await;
                Some(room.map_err(|_| Stop::Unread)?)
            }
        };
        self.handed.send(Handed { update, room }).await.map_err(|_| Stop::Unread)
    }
}
