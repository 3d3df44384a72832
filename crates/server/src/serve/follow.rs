//! The sessions that one client watches.

use std::collections::HashMap;
use std::time::Duration;

use agentwire_protocol::SessionId;
use agentwire_sessions::log::Cursor;
use agentwire_sessions::store::{Batch, StoreError};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// How long to wait before a store that is busy or full is read again.
const AGAIN: Duration = Duration::from_millis(200);

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
    readers: HashMap<SessionId, Reader>,
    found: mpsc::Receiver<Found>,
    finds: mpsc::Sender<Found>,
    next: u64,
}

struct Reader {
    number: u64,
    shown: u64,
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
    pub(super) fn new() -> Self {
        let (finds, found) = mpsc::channel(1);
        Self { readers: HashMap::new(), found, finds, next: 0 }
    }

    /// Watches a session from here on; a second time, from the new place.
    pub(super) fn add(&mut self, session: SessionId, cursor: Cursor) {
        self.next += 1;
        let shown = cursor.position();
        let task = tokio::spawn(read(session.clone(), self.next, cursor, self.finds.clone()));
        self.readers.insert(session, Reader { number: self.next, shown, task });
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
        self.readers.get_mut(session).map(|reader| reader.shown = seq).is_some()
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

async fn read(session: SessionId, reader: u64, mut cursor: Cursor, finds: mpsc::Sender<Found>) {
    loop {
        let batch = cursor.next().await;
        if let Err(error @ (StoreError::Busy(_) | StoreError::Full(_))) = &batch {
            tracing::debug!(%error, "events cannot be read yet");
            tokio::time::sleep(AGAIN).await;
            continue;
        }
        if let Err(error) = &batch {
            tracing::error!(session = session.as_str(), %error, "events cannot be read");
        }
        let is_end = !matches!(batch, Ok(Some(_)));
        let found = Found { session: session.clone(), reader, batch };
        if finds.send(found).await.is_err() || is_end {
            return;
        }
    }
}
