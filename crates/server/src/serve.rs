//! The one pump behind every front: carries a client's calls to the hub, and replies and events back.
//!
//! A client that does not read slows only itself: events wait in the store, and once too much waits for
//! it, it is not listened to either.

mod asks;
mod follow;

use std::collections::BTreeMap;
use std::time::Duration;

use agentwire_dialects::front::{Ask, Effect, Front, Outbox, Reply};
use agentwire_protocol::{Call, Command, ErrorCode, GatewayError, SessionId};
use agentwire_sessions::{Hub, SessionHandle};
use tokio::task::JoinSet;
use tokio::time::Instant;
use uuid::Uuid;

use self::asks::Answered;
use self::follow::{Follows, Seen};
use crate::connection::{Connection, Incoming};

/// As long as more waits for the client, it is shown no further events.
const EVENTS_WAIT: usize = 1 << 20;

/// As long as more waits for the client, it is not listened to.
const CALLS_WAIT: usize = 8 << 20;

/// How many calls may be open at once.
const OPEN_CALLS: usize = 1024;

/// How long sessions may take to end once they are told to stop.
const STOPPING: Duration = Duration::from_secs(8);

/// How long the last words may take to get out.
const FAREWELL: Duration = Duration::from_secs(2);

/// What becomes of a client's sessions when it says no more.
#[derive(Clone, Copy, Debug)]
pub struct Closing {
    /// How long they may work off what they have; as long as it takes, if left out.
    pub linger: Option<Duration>,
}

/// Serves one client until it is done, and gives the exit code of a program that serves nobody else.
/// `stop` ends it early, in order. The sessions it started are told to finish when it closes.
pub async fn serve(
    hub: &Hub,
    mut connection: Connection,
    front: &mut dyn Front,
    closing: Closing,
    stop: impl Future<Output = ()>,
) -> u8 {
    let mut pump = Pump {
        hub,
        front,
        out: Outbox::new(Uuid::new_v4().as_u128()),
        calls: JoinSet::new(),
        follows: Follows::new(),
        held: Vec::new(),
        own: BTreeMap::new(),
        is_closed: false,
        is_stopping: false,
        deadline: None,
        code: None,
    };
    pump.front.on_open(&mut pump.out);
    let code = pump.run(&mut connection, closing, stop).await;
    drop(pump);
    let _ = tokio::time::timeout(FAREWELL, connection.finish()).await;
    code
}

struct Pump<'s> {
    hub: &'s Hub,
    front: &'s mut dyn Front,
    out: Outbox,
    calls: JoinSet<Answered>,
    follows: Follows,
    /// Replies that wait until the events of what they did are shown.
    held: Vec<Held>,
    /// The sessions that this client started.
    own: BTreeMap<SessionId, SessionHandle>,
    /// The client says no more.
    is_closed: bool,
    is_stopping: bool,
    deadline: Option<Instant>,
    code: Option<u8>,
}

struct Held {
    session: SessionId,
    until: u64,
    call: Call,
    reply: Result<Reply, GatewayError>,
}

impl Pump<'_> {
    async fn run(
        &mut self,
        connection: &mut Connection,
        closing: Closing,
        stop: impl Future<Output = ()>,
    ) -> u8 {
        tokio::pin!(stop);
        let outgoing = connection.outgoing.clone();
        loop {
            self.carry_out(connection).await;
            if let Some(code) = self.code {
                // Who is told to end ends well, whatever was cut off by it.
                return if self.is_stopping { 0 } else { code };
            }
            if self.is_closed && self.is_done() {
                return 0;
            }
            let waiting = outgoing.waiting();
            let may_show = waiting < EVENTS_WAIT;
            let may_listen = waiting < CALLS_WAIT && self.calls.len() < OPEN_CALLS;
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
                Some(answered) = self.calls.join_next(), if !self.calls.is_empty() => {
                    if let Ok(answered) = answered {
                        self.answered(answered);
                    }
                }
                incoming = connection.incoming.recv(), if !self.is_closed && may_listen => {
                    match incoming {
                        Some(Incoming::Line(line)) => self.front.on_line(&line, &mut self.out),
                        Some(Incoming::Overlong(bytes)) => {
                            self.front.on_overlong(bytes, &mut self.out);
                        }
                        None => self.close(closing.linger),
                    }
                }
                seen = self.follows.next(), if may_show => self.seen(seen, connection).await,
                () = outgoing.below(EVENTS_WAIT), if !may_show => {}
            }
        }
    }

    /// The client says no more: what it started works off what it has.
    fn close(&mut self, linger: Option<Duration>) {
        self.is_closed = true;
        self.deadline = linger.map(|linger| Instant::now() + linger);
        self.front.on_close(&mut self.out);
        for session in self.own.keys() {
            self.out.finish(session);
        }
    }

    /// Ends what this client started.
    fn stop(&mut self) {
        if !self.is_closed {
            self.is_closed = true;
            self.front.on_close(&mut self.out);
        }
        self.is_stopping = true;
        self.deadline = Some(Instant::now() + STOPPING);
        for session in self.own.values() {
            let _ = session.post(Command::Stop);
        }
    }

    /// Whether nothing more can come of what this client started.
    fn is_done(&self) -> bool {
        let is_over = |id| !self.follows.has(id);
        self.calls.is_empty() && self.held.is_empty() && self.own.keys().all(is_over)
    }

    async fn carry_out(&mut self, connection: &Connection) {
        // What is carried out may ask for more.
        loop {
            let effects = self.out.take();
            if effects.is_empty() {
                return;
            }
            for effect in effects {
                match effect {
                    Effect::Say(line) => connection.outgoing.push(&line),
                    Effect::Ask(call, ask) => self.ask(call, ask),
                    Effect::Follow(session, after) => {
                        let cursor = self.hub.log().cursor(&session, after);
                        self.follows.add(session, cursor);
                    }
                    Effect::Leave(session) => {
                        self.follows.remove(&session);
                        self.release(&session, u64::MAX);
                    }
                    Effect::Finish(session) => {
                        if let Some(session) = self.own.get(&session) {
                            let _ = session.post(Command::Finish);
                        }
                    }
                    Effect::Close(code) => {
                        self.code.get_or_insert(code);
                    }
                }
            }
        }
    }

    fn ask(&mut self, call: Call, ask: Ask) {
        match ask {
            Ask::Command(session, command) => {
                // Commands reach a session in the order in which the client gave them.
                let posted = self.hub.session(&session).and_then(|handle| handle.post(command));
                match posted {
                    Ok(answer) => {
                        self.calls.spawn(asks::command(call, session, answer));
                    }
                    Err(error) => self.front.on_reply(call, Err(error), &mut self.out),
                }
            }
            _ if self.calls.len() >= OPEN_CALLS => {
                let error = GatewayError::new(ErrorCode::Overloaded, "too many calls are open");
                self.front.on_reply(call, Err(error), &mut self.out);
            }
            other => {
                self.calls.spawn(asks::other(self.hub.clone(), call, other));
            }
        }
    }

    fn answered(&mut self, answered: Answered) {
        let Answered { call, reply, started, after } = answered;
        if let Some(handle) = started {
            let id = handle.id().clone();
            self.own.insert(id.clone(), handle);
            self.front.on_reply(call, reply, &mut self.out);
            if self.is_closed {
                self.out.finish(&id);
            }
            return;
        }
        match after {
            Some((session, until)) if self.follows.shown(&session).is_some_and(|at| at < until) => {
                self.held.push(Held { session, until, call, reply });
            }
            Some(_) | None => self.front.on_reply(call, reply, &mut self.out),
        }
    }

    async fn seen(&mut self, seen: Seen, connection: &Connection) {
        match seen {
            Seen::Events(session, batch) => {
                for (seq, line) in batch.events() {
                    let Ok(event) = std::str::from_utf8(line) else { continue };
                    if !self.follows.show(&session, seq) {
                        return;
                    }
                    self.front.on_event(&session, event, &mut self.out);
                    self.release(&session, seq);
                    self.carry_out(connection).await;
                    if self.code.is_some() {
                        return;
                    }
                }
                self.front.on_pause(&session, &mut self.out);
            }
            Seen::End(session) => {
                self.release(&session, u64::MAX);
                self.front.on_end(&session, &mut self.out);
                self.own.remove(&session);
            }
        }
    }

    /// Hands out the replies whose events have been shown.
    fn release(&mut self, session: &SessionId, shown: u64) {
        let fits = |held: &mut Held| held.session == *session && held.until <= shown;
        let due: Vec<Held> = self.held.extract_if(.., fits).collect();
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
