//! The sessions that one client watches.

use std::collections::HashMap;

use agentwire_dialects::front::WATCHED;
use agentwire_protocol::SessionId;
use agentwire_sessions::Hub;
use agentwire_sessions::budget::{self, Pool};
use agentwire_sessions::hub::Events;
use agentwire_sessions::store::{Batch, StoreError};
use futures_util::future::{AbortHandle, Abortable, BoxFuture, FutureExt as _};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::EVENTS_WAIT;
use crate::connection::Outgoing;
use crate::log_reads;
use crate::read_budget::unless_stalled;

pub(super) enum WatchUpdate {
    Events(SessionId, Batch),
    End(SessionId),
    /// The events cannot be read; the session itself may continue.
    Lost(SessionId, StoreError),
}

/// The sessions that one client watches. Each holds one batch and reads no further until that batch is
/// taken.
pub(super) struct WatchedSessions {
    /// While too many bytes wait here, nothing is read, and nothing that was read is shown.
    outgoing: Outgoing,
    pool: Pool,
    readers: HashMap<SessionId, WatchedSession>,
    reading: FuturesUnordered<Abortable<BoxFuture<'static, ReadBatch>>>,
}

struct WatchedSession {
    shown: u64,
    /// The session has ended, and nothing has been shown since.
    is_waiting: bool,
    reading: AbortHandle,
}

/// A batch, and the cursor after it.
struct ReadBatch {
    session: SessionId,
    events: Events,
    batch: Result<Option<Batch>, StoreError>,
}

impl Drop for WatchedSession {
    fn drop(&mut self) {
        self.reading.abort();
    }
}

impl WatchedSessions {
    pub(super) fn new(hub: &Hub, outgoing: Outgoing) -> Self {
        let pool = hub.log().budget().read.clone();
        Self { outgoing, pool, readers: HashMap::new(), reading: FuturesUnordered::new() }
    }

    /// Watches a session from here on. If it is already watched, continues from the new position. With
    /// `is_waiting`, waits first until the session runs again.
    pub(super) fn add(&mut self, hub: &Hub, session: &SessionId, after: u64, is_waiting: bool) {
        let events = hub.follow(session, after);
        let (log, id) = (hub.log().clone(), session.clone());
        let (outgoing, pool) = (self.outgoing.clone(), self.pool.clone());
        let reading = self.read(async move {
            if is_waiting {
                log.opened(&id, after).await;
            }
            read(id, events, outgoing, pool).await
        });
        self.readers.insert(session.clone(), WatchedSession { shown: after, is_waiting, reading });
    }

    fn read(&self, read: impl Future<Output = ReadBatch> + Send + 'static) -> AbortHandle {
        let (handle, registration) = AbortHandle::new_pair();
        self.reading.push(Abortable::new(read.boxed(), registration));
        handle
    }

    /// Whether one more session can be watched: each may hold a piece of its log in memory. Sessions that
    /// only wait take no room from the others.
    pub(super) fn has_room(&self, is_waiting: bool) -> bool {
        let counts = |reader: &&WatchedSession| is_waiting || !reader.is_waiting;
        self.readers.values().filter(counts).count() < WATCHED
    }

    pub(super) fn remove(&mut self, session: &SessionId) {
        self.readers.remove(session);
    }

    pub(super) fn contains(&self, session: &SessionId) -> bool {
        self.readers.contains_key(session)
    }

    /// The number of the last event shown for this session.
    pub(super) fn shown(&self, session: &SessionId) -> Option<u64> {
        self.readers.get(session).map(|reader| reader.shown)
    }

    /// Records that an event is shown. Returns whether it is wanted.
    pub(super) fn set_shown(&mut self, session: &SessionId, seq: u64) -> bool {
        let Some(reader) = self.readers.get_mut(session) else { return false };
        (reader.shown, reader.is_waiting) = (seq, false);
        true
    }

    pub(super) async fn next(&mut self) -> WatchUpdate {
        loop {
            let ReadBatch { session, events, batch } = match self.reading.next().await {
                Some(Ok(read)) => read,
                // The session is no longer watched.
                Some(Err(_)) => continue,
                None => return std::future::pending().await,
            };
            let batch = match batch {
                Ok(Some(batch)) => batch,
                end => {
                    self.readers.remove(&session);
                    return end.map_or_else(
                        |error| WatchUpdate::Lost(session.clone(), error),
                        |_| WatchUpdate::End(session.clone()),
                    );
                }
            };
            let (outgoing, pool) = (self.outgoing.clone(), self.pool.clone());
            let further = self.read(read(session.clone(), events, outgoing, pool));
            if let Some(reader) = self.readers.get_mut(&session) {
                reader.reading = further;
            }
            return WatchUpdate::Events(session, batch);
        }
    }
}

async fn read(session: SessionId, mut events: Events, outgoing: Outgoing, pool: Pool) -> ReadBatch {
    outgoing.below(EVENTS_WAIT).await;
    let batch = log_reads::next(&mut events).await;
    if let Err(error) = &batch {
        tracing::error!(session = session.as_str(), %error, "failed to read events");
    }
    // Other events may have been shown in the meantime.
    let has_room = outgoing.below(EVENTS_WAIT);
    let size: usize = batch.iter().flatten().map(|batch| batch.lines.len()).sum();
    if size <= budget::SMALL {
        has_room.await;
    } else if unless_stalled(&pool, size, has_room).await.is_none() {
        // A client that does not read must not hold memory that others wait for.
        outgoing.fail();
    }
    ReadBatch { session, events, batch }
}
