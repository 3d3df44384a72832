//! The pump that serves every front: passes a client's calls to the hub, and replies and events back.
//!
//! A client that does not read slows only itself: events wait in the store, and once too many bytes wait
//! for it, the pump stops reading its input too.

mod asks;
mod calls;
mod command_queue;
mod follow;

use std::collections::{BTreeMap, HashMap, VecDeque};
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
use tokio::time::Instant;
use uuid::Uuid;

use self::calls::{Answered, Shares};
use self::command_queue::Queue;
use self::follow::{Follows, Seen};
use crate::connection::{Connection, Farewell, Incoming};

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

/// How long the last messages may take to be written.
const FAREWELL: Duration = Duration::from_secs(2);

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
        names: HashMap::new(),
        queue: Queue::default(),
        pages: VecDeque::new(),
        page: None,
        follows: Follows::new(hub, connection.outgoing.clone()),
        held: Vec::new(),
        own: BTreeMap::new(),
        is_closed: false,
        is_stopping: false,
        deadline: None,
        code: None,
        is_over: false,
        share: None,
        paged: None,
    };
    pump.front.on_open(&mut pump.out);
    let code = pump.run(&mut connection, stop).await;
    let deadline = pump.deadline;
    drop(pump);
    let left = deadline.map(|deadline| deadline.saturating_duration_since(Instant::now()));
    let longest = left.map_or(FAREWELL, |left| FAREWELL.min(left + LATE_FAREWELL));
    let farewell = Farewell { is_error: code != 0, words: front.farewell() };
    let _ = tokio::time::timeout(longest, connection.finish(farewell)).await;
    code
}

struct Pump<'s> {
    hub: &'s Hub,
    front: &'s mut dyn Front,
    terms: Terms<'s>,
    out: Outbox,
    /// Commands that sessions are working on. There is no task between a reply and the pump, because the
    /// reply must not arrive after the events that follow it.
    commands: FuturesUnordered<BoxFuture<'static, Answered>>,
    /// All other calls to the hub.
    calls: JoinSet<Answered>,
    /// The calls by task, for tasks that fail.
    names: HashMap<task::Id, Call>,
    queue: Queue,
    /// Requested pages. They are read one at a time, and only while the client keeps reading.
    pages: VecDeque<(Call, BoxFuture<'static, Answered>)>,
    page: Option<task::Id>,
    follows: Follows,
    /// Replies that wait until the events they caused are shown.
    held: Vec<Held>,
    own: BTreeMap<SessionId, SessionHandle>,
    is_closed: bool,
    is_stopping: bool,
    deadline: Option<Instant>,
    code: Option<u8>,
    /// The front has nothing more to do.
    is_over: bool,
    /// The budget share of the message that is being processed.
    share: Option<Arc<Share>>,
    /// The budget shares of the page that was last given to the client.
    paged: Option<Shares>,
}

struct Held {
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
            self.carry_out(connection);
            if let Some(code) = self.code {
                if self.is_over {
                    self.answer_open(connection).await;
                }
                // A program that is told to stop exits with success, whatever was interrupted.
                return if self.is_stopping { 0 } else { code };
            }
            if self.is_closed && self.is_done() {
                return 0;
            }
            let waiting = outgoing.waiting();
            let may_show = waiting < EVENTS_WAIT;
            let may_listen = waiting < CALLS_WAIT
                && self.open() < OPEN_CALLS
                && self.queue.is_empty()
                && !self.front.is_full();
            if may_show {
                self.paged = None;
                self.next_page();
            }
            tokio::select! {
                biased;
                () = &mut stop, if !self.is_stopping => self.stop(),
                () = outgoing.broken(), if !self.is_stopping => self.stop(),
                () = until(self.deadline) => {
                    if self.is_stopping {
                        return 0;
                    }
                    self.stop();
                }
                Some(answered) = self.commands.next() => self.answered(answered),
                Some(back) = self.calls.join_next_with_id(), if !self.calls.is_empty() => {
                    self.came_back(back);
                }
                session = self.queue.room() => self.catch_up(&session),
                incoming = connection.incoming.recv(), if !self.is_closed && may_listen => {
                    match incoming {
                        Some(Incoming::Line(line, share)) => {
                            blocking_if_long(line.len(), || self.front.on_line(&line, &mut self.out));
                            drop(line);
                            // The calls that this line causes keep its share.
                            self.share = share.map(Arc::new);
                            self.carry_out(connection);
                            self.share = None;
                        }
                        Some(Incoming::Overlong(bytes)) => {
                            self.front.on_overlong(bytes, &mut self.out);
                        }
                        None => self.close(),
                    }
                }
                seen = self.follows.next() => {
                    self.take_replies();
                    self.seen(seen, connection);
                }
                () = outgoing.below(EVENTS_WAIT), if !may_show => {}
            }
        }
    }

    /// Every call gets its reply: wait for the replies of a session that has just ended.
    async fn answer_open(&mut self, connection: &Connection) {
        let soon = Instant::now() + LAST_ANSWERS;
        while !self.commands.is_empty() || !self.calls.is_empty() {
            tokio::select! {
                Some(answered) = self.commands.next() => self.answered(answered),
                Some(back) = self.calls.join_next_with_id() => self.came_back(back),
                () = tokio::time::sleep_until(soon) => return,
            }
            self.carry_out(connection);
        }
    }

    /// Takes the replies that are ready. A reply that comes before an event is always ready once that event
    /// is seen.
    fn take_replies(&mut self) {
        while let Some(Some(answered)) = coop::unconstrained(self.commands.next()).now_or_never() {
            self.answered(answered);
        }
    }

    /// The client has closed its input: its own sessions finish their work.
    fn close(&mut self) {
        self.is_closed = true;
        self.front.on_close(&mut self.out);
        let Closing::Finish { linger } = self.terms.closing else {
            self.code = Some(0);
            return;
        };
        self.deadline = linger.map(|linger| Instant::now() + linger);
        for session in self.own.keys() {
            self.out.finish(session);
        }
    }

    fn stop(&mut self) {
        if !self.is_closed {
            self.is_closed = true;
            self.front.on_close(&mut self.out);
        }
        self.is_stopping = true;
        if let Closing::Leave = self.terms.closing {
            self.code = Some(0);
            return;
        }
        self.deadline = Some(Instant::now() + STOPPING);
        let own: Vec<SessionHandle> = self.own.values().cloned().collect();
        for session in own {
            self.post(None, session, Command::Stop);
        }
    }

    /// How many calls have no reply yet.
    fn open(&self) -> usize {
        self.commands.len()
            + self.calls.len()
            + self.held.len()
            + self.pages.len()
            + self.queue.len()
    }

    /// Whether the sessions that this client started can produce nothing more.
    fn is_done(&self) -> bool {
        self.open() == 0 && self.own.keys().all(|id| !self.follows.has(id))
    }

    fn carry_out(&mut self, connection: &Connection) {
        // An effect may cause more effects.
        loop {
            let effects = self.out.take();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Send(line) => connection.outgoing.push(&line),
                    Effect::Call(call, ask) => self.ask(call, ask),
                    Effect::Follow(session, after) => self.follow(&session, after, false),
                    Effect::Await(session, after) => self.follow(&session, after, true),
                    Effect::Unfollow(session) => {
                        self.follows.remove(&session);
                        self.release(&session, u64::MAX);
                    }
                    Effect::Finish(session) => {
                        if let Some(session) = self.own.get(&session).cloned() {
                            self.post(None, session, Command::Finish);
                        }
                    }
                    Effect::Close(code) => {
                        self.code.get_or_insert(code);
                        self.is_over = true;
                    }
                }
            }
        }
    }

    fn follow(&mut self, session: &SessionId, after: u64, waits: bool) {
        if self.follows.has_room(waits) || self.follows.has(session) {
            self.follows.add(self.hub, session, after, waits);
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

    fn seen(&mut self, seen: Seen, connection: &Connection) {
        match seen {
            Seen::Events(session, batch) if self.passes(&session) => {
                if self.follows.show(&session, batch.last()) {
                    connection.outgoing.pass(batch.lines.clone());
                    self.front.on_passed(&session, batch.last());
                    self.front.on_pause(&session, &mut self.out);
                }
            }
            Seen::Events(session, batch) => {
                let goes_on = self.show(&session, &batch, connection);
                connection.outgoing.hold(&batch.lines);
                if goes_on {
                    self.front.on_pause(&session, &mut self.out);
                }
            }
            Seen::End(session) => {
                self.release(&session, u64::MAX);
                self.front.on_end(&session, &mut self.out);
                self.own.remove(&session);
            }
            Seen::Lost(session, error) => {
                self.release(&session, u64::MAX);
                self.front.on_lost(&session, Hub::storage_error(&error), &mut self.out);
            }
        }
    }

    /// Shows events to the front, one by one. Returns whether it wants more.
    fn show(&mut self, session: &SessionId, batch: &Batch, connection: &Connection) -> bool {
        for (seq, line) in batch.events() {
            let Ok(event) = std::str::from_utf8(line) else { continue };
            if !self.follows.show(session, seq) {
                return false;
            }
            blocking_if_long(line.len(), || self.front.on_event(session, event, &mut self.out));
            self.release(session, seq);
            self.carry_out(connection);
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
            && !self.held.iter().any(|held| held.session == *session)
    }

    /// Passes on the replies whose events have been shown.
    fn release(&mut self, session: &SessionId, shown: u64) {
        let fits = |held: &mut Held| held.session == *session && held.until <= shown;
        let due: Vec<Held> = self.held.extract_if(.., fits).collect();
        if !due.is_empty() {
            // A request of the agent is shown before the reply that comes after it.
            self.front.on_pause(session, &mut self.out);
        }
        for held in due {
            self.front.on_reply(held.call, held.reply, &mut self.out);
        }
    }
}

async fn until(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}
