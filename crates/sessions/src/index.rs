//! What is made from the log so that all sessions can be counted and searched: usage and texts. It is in a
//! file of its own, `index.db`, and follows the log with a cursor for each session. An append does nothing
//! for it, and what is lost is made again.

mod facts;
mod search;
#[cfg(test)]
mod tests;
mod usage;

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use agentwire_protocol::{Event, SessionId};
use rusqlite::{Connection, OptionalExtension as _, TransactionBehavior, params};

use self::facts::{Facts, Follower};
pub use self::usage::UsageSpan;
use crate::store::{Batch, End, Store, StoreError};

/// The version of the tables. Tables of another version are made again.
const VERSION: i64 = 1;

/// How long to wait for another process that writes to the index.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// How many bytes of events are read for one transaction of the index.
const STEP: usize = 1024 * 1024;

/// The rest after a step, in lengths of the step, and the longest.
const RESTS: u32 = 4;
const REST: Duration = Duration::from_millis(200);

/// How many KiB of the file are cached, as SQLite wants it.
const CACHE: i32 = -8192;

/// The index of a data directory. Several processes may share it.
#[derive(Debug)]
pub struct Index {
    path: Option<PathBuf>,
    connection: Mutex<Option<Connection>>,
}

/// How the index reads what is new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// As fast as possible: somebody waits.
    Full,
    /// With a rest after each step that is longer than the step, so that sessions come first.
    Gentle,
}

/// A session of which some events are not in the index.
struct Behind {
    end: End,
    /// The last event that is in the index.
    seq: u64,
}

impl Index {
    /// The index of this directory; in memory if there is none. It is opened when it is used.
    pub fn new(directory: Option<&Path>) -> Self {
        let path = directory.map(|directory| directory.join("index.db"));
        Self { path, connection: Mutex::new(None) }
    }

    /// Adds what is new in the store, until `deadline`. Returns whether the index has everything.
    pub fn catch_up(
        &self,
        store: &dyn Store,
        deadline: Instant,
        pace: Pace,
    ) -> Result<bool, StoreError> {
        let ends = store.ends()?;
        let behind = self.with(|connection| behind(connection, &ends))?;
        for session in behind {
            let mut seq = session.seq;
            while seq < session.end.last {
                if Instant::now() >= deadline {
                    return Ok(false);
                }
                let begun = Instant::now();
                let batches = store.read(&session.end.id, seq, STEP)?;
                if batches.is_empty() {
                    break;
                }
                let Some(now) =
                    self.with(|connection| add(connection, &session.end, seq, &batches))?
                else {
                    break;
                };
                seq = now;
                if pace == Pace::Gentle {
                    thread::park_timeout((begun.elapsed() * RESTS).min(REST));
                }
            }
        }
        Ok(true)
    }

    /// Deletes everything, so that it is made again.
    pub fn clear(&self) -> Result<(), StoreError> {
        let mut slot = self.slot();
        *slot = None;
        if let Some(path) = &self.path {
            // A connection of another process would write to a file without a name, so the file stays if
            // it can be emptied.
            let emptied =
                open(Some(path)).and_then(|connection| make(&connection).map(|()| connection));
            match emptied {
                Ok(connection) => *slot = Some(connection),
                Err(_) => {
                    for end in ["", "-wal", "-shm"] {
                        let mut name = path.as_os_str().to_owned();
                        name.push(end);
                        let _ = std::fs::remove_file(name);
                    }
                }
            }
        }
        Ok(())
    }

    fn slot(&self) -> MutexGuard<'_, Option<Connection>> {
        self.connection.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(
        &self,
        work: impl FnOnce(&mut Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, StoreError> {
        let mut slot = self.slot();
        let connection = match &mut *slot {
            Some(connection) => connection,
            empty => empty.insert(open(self.path.as_deref()).map_err(|error| failed(&error))?),
        };
        work(connection).map_err(|error| failed(&error))
    }
}

fn failed(error: &rusqlite::Error) -> StoreError {
    let text = format!("failed to use the index: {error}");
    match error.sqlite_error_code() {
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            StoreError::Busy(text)
        }
        Some(rusqlite::ErrorCode::DiskFull) => StoreError::Full(text),
        _ => StoreError::Failed(format!("{text}; make it again with `agentwire search --rebuild`")),
    }
}

fn open(path: Option<&Path>) -> Result<Connection, rusqlite::Error> {
    let connection = match path {
        None => Connection::open_in_memory()?,
        Some(path) => {
            // SQLite gives the files that it makes beside it the same mode.
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false).mode(0o600);
            let made = options.open(path);
            made.map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
            Connection::open(path)?
        }
    };
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update_and_check(None, "journal_mode", "wal", |_| Ok(()))?;
    // After a power cut the last changes may be missing, and are made again.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "cache_size", CACHE)?;
    let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
    if version != VERSION {
        make(&connection)?;
    }
    Ok(connection)
}

/// Makes empty tables.
fn make(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch(concat!(
        "BEGIN IMMEDIATE; DROP TABLE IF EXISTS followed; DROP TABLE IF EXISTS turns; \
         DROP TABLE IF EXISTS texts; ",
        include_str!("index/schema.sql"),
        "COMMIT;"
    ))
}

/// The sessions of which events are missing. What is known of deleted sessions is removed.
fn behind(connection: &mut Connection, ends: &[End]) -> Result<Vec<Behind>, rusqlite::Error> {
    let mut known: HashMap<i64, (u64, String)> = {
        let mut statement = connection.prepare_cached("SELECT session, seq, id FROM followed")?;
        let rows = statement.query_map((), |row| Ok((row.get(0)?, (row.get(1)?, row.get(2)?))))?;
        rows.collect::<Result<_, _>>()?
    };
    let mut behind = Vec::new();
    for end in ends {
        // If the store was replaced by an older copy, the index may know another session by this number,
        // or events that are no longer there.
        let fits = |(seq, id): &(u64, String)| *seq <= end.last && *id == end.id.as_str();
        let seq = match known.get(&end.number) {
            Some(session) if fits(session) => session.0,
            Some(_) | None => 0,
        };
        if seq > 0 {
            known.remove(&end.number);
        }
        if seq < end.last {
            behind.push(Behind { end: end.clone(), seq });
        }
    }
    for session in known.into_keys() {
        let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        forget(&change, session)?;
        change.commit()?;
    }
    Ok(behind)
}

fn forget(connection: &Connection, session: i64) -> Result<(), rusqlite::Error> {
    connection.execute("DELETE FROM followed WHERE session = ?1", [session])?;
    connection.execute("DELETE FROM turns WHERE session = ?1", [session])?;
    connection.execute(
        "DELETE FROM texts WHERE rowid IN (SELECT rowid FROM texts WHERE texts MATCH ?1)",
        [format!("scope : s{session}")],
    )?;
    Ok(())
}

/// Adds these events after `seq`. Returns the last one that is in the index now; `None` if another process
/// is adding to the same session.
fn add(
    connection: &mut Connection,
    end: &End,
    seq: u64,
    batches: &[Batch],
) -> Result<Option<u64>, rusqlite::Error> {
    let change = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let known: Option<(u64, String)> = change
        .prepare_cached("SELECT seq, state FROM followed WHERE session = ?1")?
        .query_row([end.number], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (now, state) = known.unwrap_or_default();
    if now != seq {
        return Ok(None);
    }
    let mut follower: Follower = serde_json::from_str(&state).unwrap_or_default();
    let mut facts = Facts::default();
    let mut last = seq;
    for (number, line) in batches.iter().flat_map(Batch::events).filter(|(at, _)| *at > seq) {
        last = number;
        let event = std::str::from_utf8(line).ok().and_then(|text| Event::from_json(text).ok());
        if let Some(event) = event {
            follower.read(&event, &mut facts);
        }
    }
    put(&change, end, &facts)?;
    let state = serde_json::to_string(&follower).unwrap_or_default();
    let agent = follower.agent.map_or("", |agent| agent.as_str());
    change
        .prepare_cached(
            "INSERT OR REPLACE INTO followed (session, id, seq, agent, directory, state) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![end.number, end.id.as_str(), last, agent, follower.directory, state])?;
    change.commit()?;
    Ok(Some(last))
}

fn put(connection: &Connection, end: &End, facts: &Facts) -> Result<(), rusqlite::Error> {
    let mut text = connection.prepare_cached(
        "INSERT INTO texts (scope, body, session, seq, time) VALUES (?1, ?2, ?3, ?4, ?5)",
    )?;
    for piece in &facts.texts {
        let scope = format!("s{} {}", end.number, piece.kind);
        text.execute(params![scope, piece.text, end.number, piece.seq, piece.time])?;
    }
    let mut turn = connection.prepare_cached(
        "INSERT OR REPLACE INTO turns (session, seq, part, ended, model, input, output, cached, created, \
         reasoning, cost, turns, calls, waited) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14)",
    )?;
    let count = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    for it in &facts.turns {
        turn.execute(params![
            end.number,
            count(it.seq),
            count(it.part),
            count(it.ended),
            it.model,
            count(it.usage.fresh_tokens()),
            count(it.usage.output_tokens),
            count(it.usage.cached_tokens.unwrap_or(0)),
            count(it.usage.cache_creation_tokens.unwrap_or(0)),
            count(it.usage.reasoning_tokens.unwrap_or(0)),
            it.cost,
            count(it.turns),
            count(it.calls),
            count(it.waited),
        ])?;
    }
    Ok(())
}

/// The number of a session in the index; `None` if none of its events is in it.
fn number(connection: &Connection, id: &SessionId) -> Result<Option<i64>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT session FROM followed WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()
}
