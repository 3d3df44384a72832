//! The pump that serves every front: passes a client's calls to the hub, and replies and events back.
//!
//! A client that does not read slows only itself: events wait in the store, and once too many bytes wait
//! for it, the pump stops reading its input too.

mod changes;
mod command_queue;
mod dispatch;
mod hub_calls;
#[cfg(test)]
mod tests;
mod watched_sessions;

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::front::{Effect, Front, GatewayCall, GatewayReply, Outbox};
use agentwire_protocol::{Call, Command, ErrorCode, GatewayError, SessionId};
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::budget::Share;
use agentwire_sessions::store::Batch;
use agentwire_sessions::{Hub, SessionHandle};
use futures_util::future::{BoxFuture, FutureExt};
use futures_util::stream::{FuturesUnordered, StreamExt};
use tokio::task::{self, JoinSet, coop};
use tokio::time::{Instant, timeout};
use uuid::Uuid;

use self::changes::WatchedChanges;
use self::command_queue::CommandQueue;
use self::hub_calls::FinishedCall;
use self::watched_sessions::{WatchUpdate, WatchedSessions};
use crate::connection::{Connection, Farewell, Incoming};
use crate::read_budget::ReadShares;

/// While more bytes than this wait for the client, it is shown no further events.
const EVENTS_WAIT: usize = 256 << 10;

/// While more bytes than this wait for the client, its input is not read.
const CALLS_WAIT: usize = 8 << 20;

const OPEN_CALLS: usize = 1024;

/// How long sessions may take to end after they are told to stop. An agent that ignores signals is killed
/// before that.
const STOPPING: Duration = Duration::from_millis(5500);

/// How long to wait for the replies of sessions that have ended.
const LAST_ANSWERS: Duration = Duration::from_secs(1);

/// How long the last messages may take to be written, while the client takes nothing.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long they may take at most.
const SLOW_FAREWELL: Duration = Duration::from_secs(60);

/// How long past the client's deadline they may take.
const LATE_FAREWELL: Duration = Duration::from_millis(500);

pub struct Terms<'t> {
    /// What to do with its sessions when the client closes its input.
    pub closing: Closing,
    /// A name that no other client has. What the client starts and answers is recorded under it.
    pub client: Option<Arc<str>>,
    /// Its answers can allow only what was asked for and shown.
    pub is_limited: bool,
    /// Separates its idempotency keys from those of other clients.
    pub keys: String,
    pub may: &'t (dyn Fn(&GatewayCall) -> Result<(), GatewayError> + Sync),
}

/// What to do with a client's sessions when it closes its input.
#[derive(Clone, Copy, Debug)]
pub enum Closing {
    /// The sessions belong to the client, so they end.
    Finish {
        /// How long they may finish their work; no limit if `None`.
        linger: Option<Duration>,
    },
    /// Others may watch and drive the sessions, so they continue.
    Leave,
}

impl Terms<'_> {
    /// The terms of the process that started the program: it may do everything, and its sessions belong to
    /// it.
    pub fn of_parent(linger: Option<Duration>) -> Self {
        Self {
            closing: Closing::Finish { linger },
            client: None,
            is_limited: false,
            keys: String::new(),
            may: &|_| Ok(()),
        }
    }
}

/// Serves one client until it is done. Returns the exit code of a program that serves only this client.
/// `stop` ends it early, in an orderly way. When the client closes its input, the sessions it started are
/// told to finish.
pub async fn serve(
    hub: &Hub,
    mut connection: Connection,
    front: &mut dyn Front,
    terms: Terms<'_>,
    stop: impl Future<Output = ()>,
) -> u8 {
    let mut pump = Pump {
        hub,
        front: &mut *front,
        terms,
        out: Outbox::new(Uuid::new_v4().as_u128()),
        commands: FuturesUnordered::new(),
        calls: JoinSet::new(),
        calls_by_task: HashMap::new(),
        queue: CommandQueue::default(),
        pages: VecDeque::new(),
        page_task: None,
        watched: WatchedSessions::new(hub, connection.outgoing.clone()),
        changes: WatchedChanges::default(),
        delayed: Vec::new(),
        own_sessions: BTreeMap::new(),
        phase: Phase::Open,
        deadline: None,
        code: None,
        has_closed: false,
        share: None,
        page_shares: None,
    };
    pump.front.on_open(&mut pump.out);
    let code = pump.run(&mut connection, stop).await;
    let deadline = pump.deadline;
    drop(pump);
    let farewell = Farewell { is_error: code != 0, text: front.farewell() };
    match deadline.map(|deadline| deadline.saturating_duration_since(Instant::now())) {
        None => finish(connection, farewell).await,
        Some(left) => {
            let longest = FAREWELL.min(left + LATE_FAREWELL);
            let _ = timeout(longest, connection.finish(farewell)).await;
        }
    }
    code
}

/// Waits for a client to take what is left for it, as long as it does take something.
async fn finish(mut connection: Connection, farewell: Farewell) {
    let outgoing = connection.outgoing.clone();
    let end = Instant::now() + SLOW_FAREWELL;
    let mut finished = pin!(connection.finish(farewell));
    loop {
        let before = outgoing.progress();
        let is_finished = timeout(FAREWELL, &mut finished).await.is_ok();
        if is_finished || outgoing.progress() == before || Instant::now() >= end {
            return;
        }
    }
}

struct Pump<'s> {
    hub: &'s Hub,
    front: &'s mut dyn Front,
    terms: Terms<'s>,
    out: Outbox,
    /// Commands that sessions are working on. There is no task between a reply and the pump, because the
    /// reply must not arrive after the events that follow it.
    commands: FuturesUnordered<BoxFuture<'static, FinishedCall>>,
    /// All other calls to the hub.
    calls: JoinSet<FinishedCall>,
    /// The calls by task, for tasks that fail.
    calls_by_task: HashMap<task::Id, Call>,
    queue: CommandQueue,
    /// Requested pages. They are read one at a time, and only while the client keeps reading.
    pages: VecDeque<(Call, BoxFuture<'static, FinishedCall>)>,
    page_task: Option<task::Id>,
    watched: WatchedSessions,
    changes: WatchedChanges,
    /// Replies that wait until the events they caused are shown.
    delayed: Vec<DelayedReply>,
    own_sessions: BTreeMap<SessionId, SessionHandle>,
    phase: Phase,
    deadline: Option<Instant>,
    code: Option<u8>,
    /// The front has nothing more to do.
    has_closed: bool,
    /// The budget share of the message that is being processed.
    share: Option<Arc<Share>>,
    /// The budget shares of the page that was last given to the client.
    page_shares: Option<ReadShares>,
}

/// The phase of a connection. It only moves forward.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The client may send more.
    Open,
    /// The client has closed its input.
    Closed,
    /// The connection is being closed, by the program or because the client no longer reads.
    Stopping,
}

struct DelayedReply {
    session: SessionId,
    until: u64,
    call: Call,
    reply: Result<GatewayReply, GatewayError>,
}

impl Pump<'_> {
    async fn run(&mut self, connection: &mut Connection, stop: impl Future<Output = ()>) -> u8 {
        tokio::pin!(stop);
        let outgoing = connection.outgoing.clone();
        loop {
            self.apply_effects(connection);
            if let Some(code) = self.code {
                if self.has_closed {
                    self.finish_open_calls(connection).await;
                }
                // A program that is told to stop exits with success, whatever was interrupted.
                return if self.phase == Phase::Stopping { 0 } else { code };
            }
            let (is_open, is_stopping) = (self.phase == Phase::Open, self.phase == Phase::Stopping);
            if !is_open && self.is_done() {
                return 0;
            }
            let waiting = outgoing.waiting();
            let may_show = waiting < EVENTS_WAIT;
            let may_listen = waiting < CALLS_WAIT
                && self.open() < OPEN_CALLS
                && self.queue.is_empty()
                && !self.front.is_full();
            if may_show {
                self.page_shares = None;
                self.next_page();
            }
            tokio::select! {
                biased;
                () = &mut stop, if !is_stopping => self.stop(),
                () = outgoing.broken(), if !is_stopping => self.stop(),
                // Each time round, since anything may have been added.
                () = &mut connection.writer => {}
                () = until(self.deadline) => {
                    if is_stopping {
                        return 0;
                    }
                    self.stop();
                }
                Some(finished) = self.commands.next() => self.finish_call(finished),
                Some(ended) = self.calls.join_next_with_id(), if !self.calls.is_empty() => {
                    self.finish_task(ended);
                }
                session = self.queue.next_with_room() => self.post_waiting(&session),
                incoming = connection.incoming.recv(), if is_open && may_listen => {
                    self.receive(incoming, connection);
                }
                update = self.watched.next() => {
                    self.process_ready_replies();
                    self.handle_update(update, connection);
                }
                change = self.changes.next(), if may_show => match change {
                    Ok(change) => self.front.on_change(change.get(), &mut self.out),
                    Err(error) => self.front.on_watch_lost(error, &mut self.out),
                },
                () = outgoing.below(EVENTS_WAIT), if !may_show => {}
            }
        }
    }

    fn receive(&mut self, incoming: Option<Incoming>, connection: &Connection) {
        match incoming {
            Some(Incoming::Line(line, share)) => {
                blocking_if_long(line.len(), || self.front.on_line(&line, &mut self.out));
                drop(line);
                // The calls that this line causes keep its share.
                self.share = share.map(Arc::new);
                self.apply_effects(connection);
                self.share = None;
            }
            Some(Incoming::Overlong(bytes)) => self.front.on_overlong(bytes, &mut self.out),
            None => self.close(),
        }
    }

    /// Every call gets its reply: wait for the replies of a session that has just ended.
    async fn finish_open_calls(&mut self, connection: &mut Connection) {
        let soon = Instant::now() + LAST_ANSWERS;
        while !self.commands.is_empty() || !self.calls.is_empty() {
            tokio::select! {
                () = &mut connection.writer => {}
                Some(finished) = self.commands.next() => self.finish_call(finished),
                Some(ended) = self.calls.join_next_with_id() => self.finish_task(ended),
                () = tokio::time::sleep_until(soon) => return,
            }
            self.apply_effects(connection);
        }
    }

    /// Takes the replies that are ready. A reply that comes before an event is always ready once that event
    /// is seen.
    fn process_ready_replies(&mut self) {
        while let Some(Some(finished)) = coop::unconstrained(self.commands.next()).now_or_never() {
            self.finish_call(finished);
        }
    }

    /// The client has closed its input: its own sessions finish their work.
    fn close(&mut self) {
        self.phase = Phase::Closed;
        self.front.on_close(&mut self.out);
        let Closing::Finish { linger } = self.terms.closing else {
            self.code = Some(0);
            return;
        };
        self.deadline = linger.map(|linger| Instant::now() + linger);
        for session in self.own_sessions.keys() {
            self.out.finish(session);
        }
    }

    fn stop(&mut self) {
        if self.phase == Phase::Open {
            self.front.on_close(&mut self.out);
        }
        self.phase = Phase::Stopping;
        if let Closing::Leave = self.terms.closing {
            self.code = Some(0);
            return;
        }
        self.deadline = Some(Instant::now() + STOPPING);
        let own_sessions: Vec<SessionHandle> = self.own_sessions.values().cloned().collect();
        for session in own_sessions {
            self.post(None, session, Command::Stop);
        }
    }

    /// How many calls have no reply yet.
    fn open(&self) -> usize {
        self.commands.len()
            + self.calls.len()
            + self.delayed.len()
            + self.pages.len()
            + self.queue.len()
    }

    /// Whether the sessions that this client started can produce nothing more.
    fn is_done(&self) -> bool {
        self.open() == 0 && self.own_sessions.keys().all(|id| !self.watched.contains(id))
    }

    fn apply_effects(&mut self, connection: &Connection) {
        // An effect may cause more effects.
        loop {
            let effects = self.out.take();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Send(line) => connection.outgoing.push(&line),
                    Effect::Call(call, ask) => self.dispatch(call, ask),
                    Effect::Follow(session, after) => self.follow(&session, after, false),
                    Effect::Await(session, after) => self.follow(&session, after, true),
                    Effect::Unfollow(session) => {
                        self.watched.remove(&session);
                        self.release(&session, u64::MAX);
                    }
                    Effect::Watch(after) => self.changes.start(self.hub, after),
                    Effect::Unwatch => self.changes.stop(),
                    Effect::Finish(session) => {
                        if let Some(session) = self.own_sessions.get(&session).cloned() {
                            self.post(None, session, Command::Finish);
                        }
                    }
                    Effect::Close(code) => {
                        self.code.get_or_insert(code);
                        self.has_closed = true;
                    }
                }
            }
        }
    }

    fn follow(&mut self, session: &SessionId, after: u64, waits: bool) {
        if self.watched.has_room(waits) || self.watched.contains(session) {
            self.watched.add(self.hub, session, after, waits);
            // Everything from here on comes after the events that these replies wait for.
            return self.release(session, after);
        }
        // A session that has ended is looked up again when the client wants something from it.
        if waits {
            return;
        }
        let message = "too many sessions are watched on one connection; open another";
        let error = GatewayError::new(ErrorCode::Overloaded, message);
        self.front.on_lost(session, error, &mut self.out);
    }

    fn handle_update(&mut self, update: WatchUpdate, connection: &Connection) {
        match update {
            WatchUpdate::Events(session, batch) if self.passes(&session) => {
                if self.watched.set_shown(&session, batch.last()) {
                    connection.outgoing.pass(batch.lines.clone());
                    self.front.on_passed(&session, batch.last());
                    self.front.on_pause(&session, &mut self.out);
                }
            }
            WatchUpdate::Events(session, batch) => {
                let wants_more = self.show(&session, &batch, connection);
                connection.outgoing.hold(&batch.lines);
                if wants_more {
                    self.front.on_pause(&session, &mut self.out);
                }
            }
            WatchUpdate::End(session) => {
                self.release(&session, u64::MAX);
                self.front.on_end(&session, &mut self.out);
                self.own_sessions.remove(&session);
            }
            WatchUpdate::Lost(session, error) => {
                self.release(&session, u64::MAX);
                self.front.on_lost(&session, Hub::storage_error(&error), &mut self.out);
            }
        }
    }

    /// Shows events to the front, one by one. Returns whether it wants more.
    fn show(&mut self, session: &SessionId, batch: &Batch, connection: &Connection) -> bool {
        for (seq, line) in batch.events() {
            let Ok(event) = std::str::from_utf8(line) else { continue };
            if !self.watched.set_shown(session, seq) {
                return false;
            }
            blocking_if_long(line.len(), || self.front.on_event(session, event, &mut self.out));
            self.release(session, seq);
            self.apply_effects(connection);
            if self.code.is_some() {
                return false;
            }
        }
        true
    }

    /// Whether a session's events go to the client unchanged, with nothing to write before or between them.
    fn passes(&self, session: &SessionId) -> bool {
        self.out.is_empty()
            && self.front.passes(session)
            && !self.delayed.iter().any(|delayed| delayed.session == *session)
    }

    /// Passes on the replies whose events have been shown.
    fn release(&mut self, session: &SessionId, shown: u64) {
        let fits =
            |delayed: &mut DelayedReply| delayed.session == *session && delayed.until <= shown;
        let due: Vec<DelayedReply> = self.delayed.extract_if(.., fits).collect();
        if !due.is_empty() {
            // A request of the agent is shown before the reply that comes after it.
            self.front.on_pause(session, &mut self.out);
        }
        for delayed in due {
            self.front.on_reply(delayed.call, delayed.reply, &mut self.out);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
