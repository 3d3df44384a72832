//! The statements: what a session, a batch and a key are as rows.

use std::mem;
use std::path::Path;

use agentwire_protocol::SessionId;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use super::{Status, connect};
use crate::store::{Append, Batch, Filter, Record, StoreError};

/// SQLite holds a value it writes or reads twice more in memory; a batch of 200 MiB is therefore
/// cut into parts of this length.
const PART: usize = 1024 * 1024;

/// How many rows of deleted sessions are removed in one transaction.
const STEP: usize = 256;

/// Why a transaction is given up.
pub(super) enum Refusal {
    Store(StoreError),
    Sqlite(rusqlite::Error),
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
            "failed to append to session {}: its record is not JSON: {error}",
            record.summary.id
        ))
    })
}

pub(super) fn append(
    connection: &Connection,
    append: &Append,
    record: &str,
) -> Result<(), Refusal> {
    let summary = &append.record.summary;
    let id = summary.id.as_str();
    let owner = append.record.owner.as_deref();
    let state = summary.state.as_str();
    let known: Option<(i64, u64, Option<String>, String)> = connection
        .prepare_cached("SELECT session, last, owner, state FROM sessions WHERE id = ?1")?
        .query_row([id], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))
        .optional()?;
    let last = append.check(known.as_ref().map(|(_, last, owner, _)| (*last, owner.as_deref())))?;
    let session = if let Some((session, .., before)) = known {
        connection
            .prepare_cached(
                "UPDATE sessions SET owner = ?2, last = ?3, record = ?4 WHERE session = ?1",
            )?
            .execute(params![session, owner, last, record])?;
        // By itself, and seldom: it writes a page of the index of live sessions too.
        if before != state {
            connection
                .prepare_cached("UPDATE sessions SET state = ?2 WHERE session = ?1")?
                .execute(params![session, state])?;
        }
        session
    } else {
        connection
            .prepare_cached(
                "INSERT INTO sessions (id, state, owner, last, record) VALUES (?1, ?2, ?3, ?4, ?5)",
            )?
            .insert(params![id, state, owner, last, record])?
    };
    if let Some(batch) = &append.batch {
        let mut insert = connection.prepare_cached(
            "INSERT INTO batches (session, first, part, count, size, lines) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?;
        let size = batch.lines.len();
        for (part, lines) in batch.lines.chunks(PART).enumerate() {
            insert.execute(params![session, batch.first, part, batch.count, size, lines])?;
        }
    }
    for (key, answer) in &append.keys {
        let kept = connection
            .prepare_cached(
                "INSERT INTO keys (key, session, answer) VALUES (?1, ?2, ?3) \
                 ON CONFLICT DO NOTHING",
            )?
            .execute(params![key, session, answer])?;
        if kept == 0 {
            return Err(StoreError::used(key).into());
        }
    }
    Ok(())
}

pub(super) fn read(
    connection: &Connection,
    session: &SessionId,
    after: u64,
    bytes: usize,
) -> Result<Vec<Batch>, rusqlite::Error> {
    // No number is beyond SQLite's integers: there are fewer events than that.
    let Some(next) = i64::try_from(after).ok().and_then(|after| after.checked_add(1)) else {
        return Ok(Vec::new());
    };
    let mut statement = connection.prepare_cached(
        "WITH it AS MATERIALIZED (SELECT session FROM sessions WHERE id = ?1) \
         SELECT first, count, size, lines FROM batches \
         WHERE session = (SELECT session FROM it) \
         AND first >= ifnull((SELECT first FROM batches WHERE session = (SELECT session FROM it) \
                              AND first <= ?2 ORDER BY first DESC LIMIT 1), 0) \
         AND first + count > ?2 \
         ORDER BY first, part",
    )?;
    let mut rows = statement.query(params![session.as_str(), next])?;
    let mut batches = Vec::new();
    let mut total = 0;
    let mut lines = Vec::new();
    while total < bytes.max(1)
        && let Some(row) = rows.next()?
    {
        let size: usize = row.get(2)?;
        lines.reserve_exact(size - lines.len().min(size));
        lines.extend_from_slice(row.get_ref(3)?.as_blob()?);
        if lines.len() < size {
            continue;
        }
        total += size;
        batches.push(Batch {
            first: row.get(0)?,
            count: row.get(1)?,
            lines: mem::take(&mut lines).into(),
        });
    }
    Ok(batches)
}

pub(super) fn session(
    connection: &Connection,
    id: &SessionId,
) -> Result<Option<Record>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT owner, record FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], record)
        .optional()
}

pub(super) fn sessions(
    connection: &Connection,
    filter: &Filter,
) -> Result<Vec<Record>, rusqlite::Error> {
    let wanted = if filter.live {
        // Named, for the planner would walk through all sessions to have them in order.
        "INDEXED BY live_sessions WHERE state <> 'ended' AND"
    } else {
        "WHERE"
    };
    let before = filter.before.as_ref().map(SessionId::as_str);
    let limit = filter.limit.and_then(|limit| i64::try_from(limit).ok());
    connection
        .prepare_cached(&format!(
            "SELECT owner, record FROM sessions {wanted} \
             session < iif(?1 IS NULL, {}, (SELECT session FROM sessions WHERE id = ?1)) \
             ORDER BY session DESC LIMIT ifnull(?2, -1)",
            i64::MAX
        ))?
        .query_map(params![before, limit], record)?
        .collect()
}

pub(super) fn remembered(
    connection: &Connection,
    key: &str,
) -> Result<Option<String>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT answer FROM keys WHERE key = ?1")?
        .query_row([key], |row| row.get(0))
        .optional()
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

/// From here on the session is not known; its events wait to be removed.
pub(super) fn doom(connection: &Connection, session: &SessionId) -> Result<(), rusqlite::Error> {
    let session: Option<i64> = connection
        .prepare_cached("DELETE FROM sessions WHERE id = ?1 RETURNING session")?
        .query_row([session.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(session) = session {
        connection.execute("DELETE FROM keys WHERE session = ?1", [session])?;
        connection.execute("INSERT INTO deleted (session) VALUES (?1)", [session])?;
    }
    Ok(())
}

/// Removes some events of deleted sessions, and says whether there may be more.
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

/// The owner stands in a column of its own, so that it can change hands without the record.
fn record(row: &Row<'_>) -> Result<Record, rusqlite::Error> {
    let mut record: Record = serde_json::from_str(row.get_ref(1)?.as_str()?)
        .map_err(|error| rusqlite::Error::FromSqlConversionFailure(1, Type::Text, error.into()))?;
    record.owner = row.get(0)?;
    Ok(record)
}
