//! The statements that write: sessions, batches and keys as rows.

use std::path::Path;

use agentwire_protocol::SessionId;
use rusqlite::{Connection, OptionalExtension, params};

use super::checksum::{self, BatchRow};
use super::error::failed;
use super::{Status, connect, listing};
use crate::store::codec::Encoder;
use crate::store::{Append, Record, StoreError, brief};

/// SQLite holds a value that it writes or reads twice more in memory; a batch of 200 MiB is therefore split
/// into parts of this length, each compressed by itself.
pub(super) const PART: usize = 1024 * 1024;

/// How many rows of deleted sessions are removed in one transaction.
const STEP: usize = 256;

/// Why a transaction is abandoned.
pub(super) enum Refusal {
    Store(StoreError),
    Sqlite(rusqlite::Error),
}

impl Refusal {
    /// As an error of the store: `what` is the operation that failed.
    pub(super) fn into_store_error(self, what: &'static str) -> StoreError {
        match self {
            Self::Store(refusal) => refusal,
            Self::Sqlite(cause) => failed(what)(cause),
        }
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for Refusal {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

pub(super) fn record_text(record: &Record) -> Result<String, StoreError> {
    serde_json::to_string(record).map_err(|error| {
        StoreError::Failed(format!(
            "failed to append to session {}: its record is not valid JSON: {error}",
            record.summary.id
        ))
    })
}

/// What is stored about a session that an append continues.
struct Known {
    session: i64,
    last: u64,
    owner: Option<String>,
    state: String,
    active_at: Option<i64>,
}

pub(super) fn append(
    connection: &Connection,
    append: &Append,
    record: &str,
    encoder: &mut Encoder,
) -> Result<(), Refusal> {
    let summary = &append.record.summary;
    let id = summary.id.as_str();
    let owner = append.record.owner.as_deref();
    let state = summary.state.as_str();
    let known: Option<Known> = connection
        .prepare_cached(
            "SELECT session, last, owner, state, \
             (SELECT at FROM activity WHERE activity.session = sessions.session) \
             FROM sessions WHERE id = ?1",
        )?
        .query_row([id], |row| {
            Ok(Known {
                session: row.get(0)?,
                last: row.get(1)?,
                owner: row.get(2)?,
                state: row.get(3)?,
                active_at: row.get(4)?,
            })
        })
        .optional()?;
    let last = append.check(known.as_ref().map(|known| (known.last, known.owner.as_deref())))?;
    let record = checksum::seal(id, state, last, record);
    let active_at = brief::active_at(summary);
    let session = if let Some(Known { session, state: before, active_at: stored, .. }) = known {
        connection
            .prepare_cached(
                "UPDATE sessions SET owner = ?2, last = ?3, record = ?4 WHERE session = ?1",
            )?
            .execute(params![session, owner, last, record])?;
        // Separately, and rarely: this also writes a page of the index of live sessions.
        if before != state {
            connection
                .prepare_cached("UPDATE sessions SET state = ?2 WHERE session = ?1")?
                .execute(params![session, state])?;
        }
        if before != state || brief::is_stale(stored, active_at) {
            listing::set_active(connection, session, active_at)?;
        }
        session
    } else {
        let session = connection
            .prepare_cached(
                "INSERT INTO sessions (id, state, owner, last, record) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .insert(params![id, state, owner, last, record])?;
        listing::set_active(connection, session, active_at)?;
        session
    };
    if let Some(batch) = &append.batch {
        let mut insert = connection.prepare_cached(
            "INSERT INTO batches (session, first, part, count, size, codec, lines, checksum) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?;
        let (first, count, size) = (batch.first, batch.count, batch.lines.len() as u64);
        for (part, lines) in (0..).zip(batch.lines.chunks(PART)) {
            let (codec, lines) = encoder.encode(lines);
            let checksum = BatchRow { session, first, part, count, size, codec, lines }.checksum();
            let codec = codec.number();
            insert.execute(params![session, first, part, count, size, codec, lines, checksum])?;
        }
    }
    for (key, answer) in &append.keys {
        let kept = connection
            .prepare_cached(
                "INSERT INTO keys (key, session, answer, checksum) VALUES (?1, ?2, ?3, ?4) \
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![key, session, answer, checksum::of_key(key, answer)])?;
        if kept == 0 {
            return Err(StoreError::used(key).into());
        }
    }
    Ok(())
}

pub(super) fn remembered(connection: &Connection, key: &str) -> Result<Option<String>, Refusal> {
    let found: Option<(Option<String>, Option<i64>)> = connection
        .prepare_cached("SELECT answer, checksum FROM keys WHERE key = ?1")?
        .query_row([key], |row| {
            let answer = row.get_ref(0)?.as_str().ok();
            Ok((answer.map(str::to_owned), row.get(1)?))
        })
        .optional()?;
    match found {
        None => Ok(None),
        Some((Some(answer), checksum))
            if checksum.is_none_or(|it| it == i64::from(checksum::of_key(key, &answer))) =>
        {
            Ok(Some(answer))
        }
        // The call is known to have counted, but its answer is lost: it must not count again.
        Some(_) => Err(StoreError::Failed(format!(
            "failed to look up a key: the answer to the call with the key {key:?} is damaged in \
             the store; repeat the call with another key"
        ))
        .into()),
    }
}

pub(super) fn forget_key(connection: &Connection, key: &str) -> Result<(), rusqlite::Error> {
    connection.execute("DELETE FROM keys WHERE key = ?1", [key]).map(drop)
}

pub(super) fn claim(
    connection: &Connection,
    session: &SessionId,
    expected: Option<&str>,
    owner: &str,
) -> Result<bool, rusqlite::Error> {
    let changed = connection
        .prepare_cached("UPDATE sessions SET owner = ?3 WHERE id = ?1 AND owner IS ?2")?
        .execute(params![session.as_str(), expected, owner])?;
    Ok(changed > 0)
}

/// From here on, the session is unknown; its events are removed later.
pub(super) fn doom(connection: &Connection, session: &SessionId) -> Result<(), rusqlite::Error> {
    let session: Option<i64> = connection
        .prepare_cached("DELETE FROM sessions WHERE id = ?1 RETURNING session")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(session) = session {
        connection.execute("DELETE FROM keys WHERE session = ?1", [session])?;
        connection.execute("DELETE FROM labels WHERE session = ?1", [session])?;
        connection.execute("DELETE FROM activity WHERE session = ?1", [session])?;
        connection.execute("INSERT INTO deleted (session) VALUES (?1)", [session])?;
    }
    Ok(())
}

/// Removes some events of deleted sessions. Returns whether there may be more.
pub(super) fn delete_some(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let session: Option<i64> = connection
        .prepare_cached("SELECT session FROM deleted LIMIT 1")?
        .query_row((), |row| row.get(0))
        .optional()?;
    let Some(session) = session else {
        return Ok(false);
    };
    let removed = connection
        .prepare_cached(
            "DELETE FROM batches WHERE rowid IN \
             (SELECT rowid FROM batches WHERE session = ?1 LIMIT ?2)",
        )?
        .execute(params![session, STEP])?;
    if removed < STEP {
        connection.execute("DELETE FROM deleted WHERE session = ?1", [session])?;
    }
    Ok(true)
}

pub(super) fn status(connection: &Connection, path: &Path) -> Result<Status, rusqlite::Error> {
    let number = |name| connection.pragma_query_value(None, name, |row| row.get::<_, u64>(0));
    let page = number("page_size")?;
    Ok(Status {
        path: path.to_owned(),
        sqlite: rusqlite::version(),
        schema: connection.pragma_query_value(None, "user_version", |row| row.get(0))?,
        journal_mode: connection.pragma_query_value(None, "journal_mode", |row| row.get(0))?,
        synchronous: connection.pragma_query_value(None, "synchronous", |row| row.get(0))?,
        bytes: page * number("page_count")?,
        free_bytes: page * number("freelist_count")?,
        log_bytes: connect::length(&connect::log_path(path)),
    })
}
