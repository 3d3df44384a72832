//! Watches all sessions: first each session and its open requests, then what changes.
//!
//! A watcher sends states, not differences. It holds what one message needs, the time of each message of the
//! last moment, and which requests its client knows.

mod elsewhere;
mod snapshot;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use agentwire_protocol::{ChangedSession, ErrorCode, GatewayError, SessionId, WatchChange};
use tokio::time::{Instant, sleep_until};

use self::elsewhere::WatchGuard;
pub(super) use self::elsewhere::Watching;
use self::snapshot::Snapshot;
use super::Hub;

/// The least time between two messages with the same session.
const SESSION_GAP: Duration = Duration::from_millis(250);

/// The least time between two messages. Changes that come together are sent together.
const MESSAGE_GAP: Duration = Duration::from_millis(10);

/// The most sessions in one message.
const AT_ONCE: usize = 50;

/// A message that has this many bytes of requests gets no more sessions.
const MESSAGE_BYTES: usize = 1 << 20;

/// In a cursor, what comes before the session up to which everything was sent.
const UP_TO: char = '~';

/// Watches all sessions for one client.
pub struct Watcher {
    hub: Hub,
    /// While it exists, sessions of other processes are watched too.
    _guard: WatchGuard,
    /// Changes up to this one are sent or deferred.
    position: u64,
    snapshot: Option<Snapshot>,
    /// The next message starts over.
    is_reset: bool,
    /// The client may know open requests that are not in `known_requests`.
    is_resumed: bool,
    /// The client has everything.
    is_ready: bool,
    sent_at: Option<Instant>,
    /// When each session was sent last, for those that may have to wait.
    sent: HashMap<SessionId, Instant>,
    deferred: BTreeMap<SessionId, Deferred>,
    /// The open requests that the client knows.
    known_requests: HashMap<SessionId, BTreeSet<String>>,
}

/// A change that waits, because its session was just sent.
struct Deferred {
    number: u64,
    due: Instant,
}

impl Hub {
    /// Watches all sessions. Continues after this cursor if possible, and otherwise starts over.
    pub async fn watch(&self, after: Option<&str>) -> Watcher {
        let guard = self.watching().await;
        let changes = self.shared.log.changes();
        let (cursor, up_to) = match after.and_then(|cursor| cursor.split_once(UP_TO)) {
            Some((cursor, up_to)) => (Some(cursor), Some(up_to)),
            None => (after, None),
        };
        let position = cursor.and_then(|cursor| changes.number(cursor));
        let mut watcher = Watcher {
            hub: self.clone(),
            _guard: guard,
            position: 0,
            snapshot: None,
            is_reset: false,
            is_resumed: false,
            is_ready: false,
            sent_at: None,
            sent: HashMap::new(),
            deferred: BTreeMap::new(),
            known_requests: HashMap::new(),
        };
        match position.filter(|position| changes.since(*position, 1).is_some()) {
            Some(position) => {
                (watcher.position, watcher.is_resumed) = (position, true);
                watcher.snapshot = up_to.map(|up_to| Snapshot::after(SessionId::from(up_to)));
            }
            None => watcher.start_over(),
        }
        watcher
    }

    /// A session has changed in a way that its log does not show.
    pub fn mark_changed(&self, id: &SessionId) {
        self.shared.log.changes().mark(id);
    }
}

impl Watcher {
    fn start_over(&mut self) {
        // Taken first: what changes during the snapshot is sent after it.
        self.position = self.hub.shared.log.changes().last();
        (self.is_reset, self.is_resumed, self.is_ready) = (true, false, false);
        self.snapshot = Some(Snapshot::default());
        self.deferred.clear();
        self.sent.clear();
        self.known_requests.clear();
    }

    /// The next message. Waits until something has changed. Not cancel safe: a call that is dropped may lose
    /// a change.
    pub async fn next(&mut self) -> Result<WatchChange, GatewayError> {
        if let Some(at) = self.sent_at {
            sleep_until(at + MESSAGE_GAP).await;
        }
        let mut change = loop {
            if let Some(change) = self.next_of_snapshot().await? {
                break change;
            }
            let due = self.due();
            if !due.is_empty() || !self.is_ready {
                break self.changed(due).await?;
            }
            let later = self.deferred.values().map(|deferred| deferred.due).min();
            let changes = self.hub.shared.log.changes();
            tokio::select! {
                () = changes.after(self.position) => {}
                () = until(later) => {}
            }
        };
        change.reset = std::mem::take(&mut self.is_reset);
        change.cursor = self.cursor();
        self.sent_at = Some(Instant::now());
        Ok(change)
    }

    fn cursor(&self) -> String {
        // What was deferred counts as not sent.
        let deferred = self.deferred.values().map(|deferred| deferred.number - 1).min();
        let cursor = self.hub.shared.log.changes().cursor(deferred.unwrap_or(self.position));
        match self.snapshot.as_ref().and_then(Snapshot::place) {
            Some(place) => format!("{cursor}{UP_TO}{place}"),
            None => cursor,
        }
    }

    async fn next_of_snapshot(&mut self) -> Result<Option<WatchChange>, GatewayError> {
        let Some(mut snapshot) = self.snapshot.take() else { return Ok(None) };
        let mut change = WatchChange::default();
        let mut bytes = 0;
        while change.sessions.len() < AT_ONCE && bytes < MESSAGE_BYTES {
            let Some(session) = snapshot.next(&self.hub).await? else {
                (change.ready, self.is_ready) = (true, true);
                return Ok(Some(change));
            };
            let mut changed = ChangedSession { session, requests: None };
            if changed.session.open_requests > 0 {
                bytes += self.add_requests(&mut changed).await?;
            }
            change.sessions.push(changed);
        }
        self.snapshot = Some(snapshot);
        Ok(Some(change))
    }

    /// The sessions to send now. Those that were just sent are deferred.
    fn due(&mut self) -> Vec<SessionId> {
        let now = Instant::now();
        self.sent.retain(|_, at| *at + SESSION_GAP > now);
        let is_due = |_: &SessionId, deferred: &mut Deferred| deferred.due <= now;
        let mut due: Vec<_> = self.deferred.extract_if(.., is_due).map(|(id, _)| id).collect();
        let Some(changed) = self.hub.shared.log.changes().since(self.position, AT_ONCE) else {
            self.start_over();
            return Vec::new();
        };
        for (number, session) in changed {
            self.position = number;
            if due.contains(&session) {
                continue;
            }
            match self.sent.get(&session) {
                Some(at) => {
                    let due = *at + SESSION_GAP;
                    self.deferred.entry(session).or_insert(Deferred { number, due });
                }
                None => due.push(session),
            }
        }
        due
    }

    async fn changed(&mut self, due: Vec<SessionId>) -> Result<WatchChange, GatewayError> {
        if let Some(change) = self.next_of_snapshot().await? {
            return Ok(change);
        }
        let mut change = WatchChange::default();
        for id in due {
            let session = match self.hub.summary(&id).await {
                Ok(session) => session,
                Err(GatewayError { code: ErrorCode::SessionNotFound, .. }) => {
                    self.known_requests.remove(&id);
                    change.forgotten.push(id);
                    continue;
                }
                Err(error) => return Err(error),
            };
            self.sent.insert(id.clone(), Instant::now());
            let mut changed = ChangedSession { session, requests: None };
            let may_differ = self.is_resumed || self.known_requests.contains_key(&id);
            if changed.session.open_requests > 0 || may_differ {
                self.add_requests(&mut changed).await?;
            }
            change.sessions.push(changed);
        }
        if !self.is_ready {
            let rest = self.hub.shared.log.changes().since(self.position, 1);
            self.is_ready = rest.is_some_and(|rest| rest.is_empty());
            change.ready = self.is_ready;
        }
        Ok(change)
    }

    /// Adds the open requests of a session, unless the client knows them. Returns their size.
    async fn add_requests(&mut self, changed: &mut ChangedSession) -> Result<usize, GatewayError> {
        let id = &changed.session.id;
        if changed.session.open_requests == 0 {
            self.known_requests.remove(id);
            changed.requests = Some(Vec::new());
            return Ok(0);
        }
        // A session that is gone by now is reported as forgotten.
        let is_gone = |error: &GatewayError| error.code == ErrorCode::SessionNotFound;
        let open: BTreeSet<String> = match self.hub.record(id).await {
            Ok(record) => record.open.requests.keys().cloned().collect(),
            Err(error) if is_gone(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        if self.known_requests.get(id).is_some_and(|known| *known == open) {
            return Ok(0);
        }
        let requests = match self.hub.open_requests(Some(id)).await {
            Ok(requests) => requests,
            Err(error) if is_gone(&error) => return Ok(0),
            Err(error) => return Err(error),
        };
        self.known_requests.insert(id.clone(), open);
        let inputs = requests.iter().filter_map(|it| it.request.input.as_ref());
        let size = inputs.map(|input| input.get().len()).sum();
        changed.requests = Some(requests);
        Ok(size)
    }
}

async fn until(at: Option<Instant>) {
    match at {
        Some(at) => sleep_until(at).await,
        None => std::future::pending().await,
    }
}
