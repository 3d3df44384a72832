//! A store in one SQLite file, shared by all processes of a data directory.

mod checkpoint;
mod checksum;
mod connect;
mod error;
mod events;
mod labels;
mod listing;
mod readers;
mod records;
mod rows;
mod scan;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread;
use std::time::{Duration, Instant};

use agentwire_protocol::{LabelChange, Labels, SessionId};
use rusqlite::{Connection, Transaction, TransactionBehavior};

use self::checkpoint::CheckpointThread;
use self::error::failed;
use self::readers::Readers;
pub use self::scan::{Damage, ScanReport};
use super::codec::Encoder;
use super::{Append, Batch, Brief, End, Filter, ListOrder, Place, Record, Store, StoreError};
use crate::held_dir::HeldDir;
use crate::owner;

/// The write-ahead log is copied back into the database while appends continue, but it can restart only at
/// a moment without readers. If readers leave no such moment, one is forced when the log is this long.
const LOG_LIMIT: u64 = 64 * 1024 * 1024;

/// How long appends wait for that, at most.
const LOG_WAIT: Duration = Duration::from_secs(1);

/// How long callers that actually want to read wait for other writers.
const SOON: Duration = Duration::from_millis(200);

/// How often they check meanwhile whether this process still writes.
const GLANCE: Duration = Duration::from_millis(5);

/// Stores logs in `agentwire.db` in a data directory.
///
/// Later events reuse the space of deleted sessions; the file does not shrink.
#[derive(Debug)]
pub struct Sqlite {
    directory: HeldDir,
    path: PathBuf,
    writer: Arc<Mutex<Writer>>,
    _checkpoint_thread: CheckpointThread,
    readers: Readers,
    /// `PRAGMA data_version` compares with what the same connection saw before.
    watcher: Mutex<Connection>,
}

#[derive(Debug)]
struct Writer {
    connection: Connection,
    encoder: Encoder,
    log: PathBuf,
    /// The length at which the write-ahead log is next restarted.
    log_limit: u64,
}

/// The setup and size of a database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub path: PathBuf,
    pub sqlite: &'static str,
    pub schema: u32,
    /// `wal`.
    pub journal_mode: String,
    /// 2 is `FULL`.
    pub synchronous: u32,
    /// Size of the file.
    pub bytes: u64,
    /// Bytes of the file that are free for new events.
    pub free_bytes: u64,
    /// Size of the write-ahead log.
    pub log_bytes: u64,
}

impl Sqlite {
    /// Opens the store of a data directory, and creates both if needed.
    pub fn open(directory: &Path) -> Result<Self, StoreError> {
        let (directory, path, mut connection) = connect::open(directory)?;
        let signal = checkpoint::watch(&mut connection).map_err(failed("open the store"))?;
        let writer = Arc::new(Mutex::new(Writer {
            connection,
            encoder: Encoder::new(),
            log: connect::log_path(&path),
            log_limit: LOG_LIMIT,
        }));
        let error = failed("open the store");
        let copier = connect::copier(&path).map_err(&error)?;
        // Only for speed: without it, no room is made ahead.
        let log = connect::log(&path).ok();
        let checkpoint_thread = CheckpointThread::start(signal, copier, log, Arc::clone(&writer))?;
        Ok(Self {
            writer,
            _checkpoint_thread: checkpoint_thread,
            readers: Readers::open(&path).map_err(&error)?,
            watcher: Mutex::new(connect::reader(&path).map_err(&error)?),
            directory: HeldDir::open(&directory).map_err(|error| {
                StoreError::Failed(format!("failed to open the store: {error}"))
            })?,
            path,
        })
    }

    /// The state of the store, for diagnosis.
    pub fn status(&self) -> Result<Status, StoreError> {
        // `synchronous` is a setting of the writing connection.
        rows::status(&self.writer().connection, &self.path)
            .map_err(failed("read the state of the store"))
    }

    /// Reads everything and reports what is damaged or missing. `progress` is called with the number of
    /// sessions read, and of all sessions.
    pub fn check(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<ScanReport, StoreError> {
        self.readers
            .with(|connection| scan::check(connection, progress))
            .map_err(failed("check the store"))
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        lock(&self.writer)
    }

    /// Stores one append if nothing else in this process writes. Waits for other processes up to
    /// `patience`.
    fn append_within(&self, append: &Append, patience: Duration) -> Option<Result<(), StoreError>> {
        let mut writer = match self.writer.try_lock() {
            Ok(writer) => writer,
            Err(TryLockError::Poisoned(writer)) => writer.into_inner(),
            Err(TryLockError::WouldBlock) => return None,
        };
        writer.connection.busy_timeout(patience).ok()?;
        let kept = rows::record_text(&append.record).and_then(|record| {
            writer.change_with("append", |transaction, encoder| {
                rows::append(transaction, append, &record, encoder)
            })
        });
        let _ = writer.connection.busy_timeout(connect::BUSY_TIMEOUT);
        Some(kept)
    }
}

fn lock(writer: &Mutex<Writer>) -> MutexGuard<'_, Writer> {
    writer.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Store for Sqlite {
    fn append(&self, appends: &[&Append]) -> Result<(), StoreError> {
        let records = appends
            .iter()
            .map(|append| rows::record_text(&append.record))
            .collect::<Result<Vec<_>, _>>()?;
        self.writer().change_with("append", |transaction, encoder| {
            for (append, record) in appends.iter().zip(&records) {
                rows::append(transaction, append, record, encoder)?;
            }
            Ok(())
        })
    }

    fn append_at_once(&self, append: &Append) -> Option<Result<(), StoreError>> {
        // Does not wait for another process that writes.
        self.append_within(append, Duration::ZERO)
    }

    fn append_soon(&self, append: &Append) -> Result<(), StoreError> {
        let begun = Instant::now();
        loop {
            let left = SOON.saturating_sub(begun.elapsed());
            match self.append_within(append, left) {
                Some(kept) => return kept,
                None if left.is_zero() => {
                    let text = "failed to append: the store is busy; try again";
                    return Err(StoreError::Busy(text.to_owned()));
                }
                // A standard library lock has no wait with a timeout.
                None => thread::park_timeout(GLANCE),
            }
        }
    }

    fn read(
        &self,
        session: &SessionId,
        after: u64,
        bytes: usize,
    ) -> Result<Vec<Batch>, StoreError> {
        self.readers
            .with(|connection| events::read(connection, session, after, bytes))
            .map_err(failed("read events"))
    }

    fn next_size(&self, session: &SessionId, after: u64) -> Result<u64, StoreError> {
        self.readers
            .with(|connection| events::next_size(connection, session, after))
            .map_err(failed("read events"))
    }

    fn start_before(
        &self,
        session: &SessionId,
        before: u64,
        count: u64,
        bytes: u64,
    ) -> Result<u64, StoreError> {
        self.readers
            .with(|connection| events::start_before(connection, session, before, count, bytes))
            .map_err(failed("read events"))
    }

    fn session(&self, id: &SessionId) -> Result<Option<Record>, StoreError> {
        self.readers
            .with(|connection| records::session(connection, id))
            .map_err(failed("read a session"))
    }

    fn sessions(&self, filter: &Filter) -> Result<Vec<Record>, StoreError> {
        self.readers
            .with(|connection| records::sessions(connection, filter))
            .map_err(failed("list sessions"))
    }

    fn briefs(
        &self,
        order: ListOrder,
        after: Place,
        limit: usize,
    ) -> Result<Vec<Brief>, StoreError> {
        let found = self
            .readers
            .with(|connection| listing::briefs(connection, order, after, limit))
            .map_err(failed("list sessions"))?;
        if let Some(briefs) = found {
            return Ok(briefs);
        }
        let mut named = self.labels()?;
        let with_labels = |record: Record| {
            let labels = named.remove(&record.summary.id).unwrap_or_default();
            (record, labels)
        };
        let records = self.sessions(&Filter::default())?.into_iter().map(with_labels).collect();
        Ok(listing::salvaged(records, order, after, limit))
    }

    fn brief(&self, session: &SessionId) -> Result<Option<Brief>, StoreError> {
        self.readers
            .with(|connection| listing::one(connection, session))
            .map_err(failed("read a session"))
    }

    fn ends(&self) -> Result<Vec<End>, StoreError> {
        self.readers.with(labels::ends).map_err(failed("list sessions"))
    }

    fn label(&self, session: &SessionId) -> Result<Labels, StoreError> {
        self.readers
            .with(|connection| labels::of(connection, session))
            .map_err(failed("read a session"))
    }

    fn labels(&self) -> Result<HashMap<SessionId, Labels>, StoreError> {
        self.readers.with(labels::all).map_err(failed("list sessions"))
    }

    fn set_label(&self, session: &SessionId, change: LabelChange) -> Result<bool, StoreError> {
        self.writer()
            .change("label a session", |transaction| labels::set(transaction, session, change))
    }

    fn remembered(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.readers
            .with(|connection| Ok(rows::remembered(connection, key)))
            .map_err(rows::Refusal::Sqlite)
            .flatten()
            .map_err(|refusal| refusal.into_store_error("look up a key"))
    }

    fn forget_key(&self, key: &str) -> Result<(), StoreError> {
        self.writer().change("forget a key", |transaction| Ok(rows::forget_key(transaction, key)?))
    }

    fn claim(
        &self,
        session: &SessionId,
        expected: Option<&str>,
        owner: &str,
    ) -> Result<bool, StoreError> {
        self.writer().change("claim a session", |transaction| {
            Ok(rows::claim(transaction, session, expected, owner)?)
        })
    }

    fn is_alive(&self, owner: &str) -> bool {
        owner::is_alive(self.directory.path(), owner)
    }

    /// Sessions are gone at once. Their events are removed in steps, so that other appends can run between
    /// them. If a crash interrupts the steps, the next call completes them.
    fn delete(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.writer().change("delete sessions", |transaction| {
            for session in sessions {
                rows::doom(transaction, session)?;
            }
            Ok(())
        })?;
        while self
            .writer()
            .change("delete events", |transaction| Ok(rows::delete_some(transaction)?))?
        {
            thread::yield_now();
        }
        Ok(())
    }

    fn size(&self) -> Result<Option<u64>, StoreError> {
        let log = connect::log_path(&self.path);
        Ok(Some(connect::length(&self.path) + connect::length(&log)))
    }

    fn version(&self) -> Result<Option<u64>, StoreError> {
        let watcher = self.watcher.lock().unwrap_or_else(PoisonError::into_inner);
        let version = watcher.pragma_query_value(None, "data_version", |row| row.get(0));
        version.map(Some).map_err(failed("read the version of the store"))
    }
}

impl Writer {
    /// Runs one transaction: all of it or nothing.
    fn change<T>(
        &mut self,
        what: &'static str,
        work: impl FnOnce(&Transaction<'_>) -> Result<T, rows::Refusal>,
    ) -> Result<T, StoreError> {
        self.change_with(what, |transaction, _| work(transaction))
    }

    /// The same for a transaction that stores lines.
    fn change_with<T>(
        &mut self,
        what: &'static str,
        work: impl FnOnce(&Transaction<'_>, &mut Encoder) -> Result<T, rows::Refusal>,
    ) -> Result<T, StoreError> {
        let error = failed(what);
        // Immediate: a transaction that started as a reader could not wait for another writer.
        let transaction = self
            .connection
            .transaction_with_behavior(TransactionBehavior::Immediate)
            .map_err(&error)?;
        let done = work(&transaction, &mut self.encoder)
            .map_err(|refusal| refusal.into_store_error(what))?;
        transaction.commit().map_err(&error)?;
        Ok(done)
    }

    /// Restarts a write-ahead log that is too long. A failure is harmless: the events are durable, and it
    /// is tried again.
    fn limit_log(&mut self) {
        let length = connect::length(&self.log);
        if length < self.log_limit {
            return;
        }
        let _ = self.connection.busy_timeout(LOG_WAIT);
        let busy = self
            .connection
            .query_row("PRAGMA wal_checkpoint(RESTART)", (), |row| row.get::<_, bool>(0))
            .unwrap_or(true);
        let _ = self.connection.busy_timeout(connect::BUSY_TIMEOUT);
        self.log_limit = if busy { length + LOG_LIMIT } else { LOG_LIMIT };
    }
}
