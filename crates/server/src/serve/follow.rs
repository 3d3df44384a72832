//! The sessions that one client watches.

use std::collections::HashMap;

use agentwire_dialects::front::WATCHED;
use agentwire_protocol::SessionId;
use agentwire_sessions::budget::{self, Pool};
use agentwire_sessions::log::{Cursor, EventLog};
use agentwire_sessions::store::{Batch, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::EVENTS_WAIT;
use crate::connection::Outgoing;
use crate::held::taken;
use crate::reading;

/// What is to be shown next.
pub(super) enum Seen {
    Events(SessionId, Batch),
    End(SessionId),
    /// Its events cannot be read; the session may go on all the same.
    Lost(SessionId, StoreError),
}

/// The sessions that one client watches. Each has one batch at hand, and reads no further until that
/// is taken.
pub(super) struct Follows {
    /// As long as much waits there, nothing is read.
    outgoing: Outgoing,
    readers: HashMap<SessionId, Reader>,
    found: mpsc::Receiver<Found>,
    finds: mpsc::Sender<Found>,
    next: u64,
}

struct Reader {
    number: u64,
    shown: u64,
    /// It is over, and nothing was shown since.
    waits: bool,
    task: JoinHandle<()>,
}

struct Found {
    session: SessionId,
    reader: u64,
    batch: Result<Option<Batch>, StoreError>,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Follows {
    pub(super) fn new(outgoing: Outgoing) -> Self {
        let (finds, found) = mpsc::channel(1);
        Self { outgoing, readers: HashMap::new(), found, finds, next: 0 }
    }

    /// Watches a session from here on; a second time, from the new place. `waits` until it runs again.
    pub(super) fn add(&mut self, log: &EventLog, session: &SessionId, after: u64, waits: bool) {
        self.next += 1;
        let (number, finds) = (self.next, self.finds.clone());
        let (log, id, outgoing) = (log.clone(), session.clone(), self.outgoing.clone());
        let task = tokio::spawn(async move {
            if waits {
                log.opened(&id, after).await;
            }
            let cursor = log.cursor(&id, after);
            read(id, number, cursor, (outgoing, log.budget().read.clone()), finds).await;
        });
        self.readers.insert(session.clone(), Reader { number, shown: after, waits, task });
    }

    /// Whether there is room for one more: each may hold a piece of its log in memory. Those that only
    /// wait take no room from the others.
    pub(super) fn has_room(&self, waits: bool) -> bool {
        let counts = |reader: &&Reader| waits || !reader.waits;
        self.readers.values().filter(counts).count() < WATCHED
    }

    pub(super) fn remove(&mut self, session: &SessionId) {
        self.readers.remove(session);
    }

    pub(super) fn has(&self, session: &SessionId) -> bool {
        self.readers.contains_key(session)
    }

    /// The number of the last event of that session that was shown.
    pub(super) fn shown(&self, session: &SessionId) -> Option<u64> {
        self.readers.get(session).map(|reader| reader.shown)
    }

    /// Notes that an event is shown, and says whether it is wanted.
    pub(super) fn show(&mut self, session: &SessionId, seq: u64) -> bool {
        let Some(reader) = self.readers.get_mut(session) else { return false };
        (reader.shown, reader.waits) = (seq, false);
        true
    }

    /// What is to be shown next.
    pub(super) async fn next(&mut self) -> Seen {
        loop {
            let Some(found) = self.found.recv().await else {
                return std::future::pending().await;
            };
            let Found { session, reader, batch } = found;
            if self.readers.get(&session).is_none_or(|known| known.number != reader) {
                continue;
            }
            if !matches!(batch, Ok(Some(_))) {
                self.readers.remove(&session);
            }
            return match batch {
                Ok(Some(batch)) => Seen::Events(session, batch),
                Ok(None) => Seen::End(session),
                Err(error) => Seen::Lost(session, error),
            };
        }
    }
}

async fn read(
    session: SessionId,
    reader: u64,
    mut cursor: Cursor,
    (outgoing, pool): (Outgoing, Pool),
    finds: mpsc::Sender<Found>,
) {
    loop {
        outgoing.below(EVENTS_WAIT).await;
        let batch = reading::next(&mut cursor).await;
        if let Err(error) = &batch {
            tracing::error!(session = session.as_str(), %error, "events cannot be read");
        }
        let is_end = !matches!(batch, Ok(Some(_)));
        let size = batch.iter().flatten().map(|batch| batch.lines.len()).sum();
        let found = Found { session: session.clone(), reader, batch };
        let sent = match size > budget::SMALL {
            true => taken(&pool, size, finds.send(found)).await,
            false => Some(finds.send(found).await),
        };
        match sent {
            Some(Ok(())) if !is_end => {}
            Some(_) => return,
            // What others wait for is not held for a client that does not read.
            None => return outgoing.fail(),
        }
    }
}
