//! What people call sessions.

use std::collections::HashMap;

use agentwire_protocol::{LabelChange, Labels, SessionId};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use super::error::sound;
use super::{records, rows};
use crate::store::{End, Filter, StoreError};

/// The labels of a session. Damaged ones are none: they must not hide the session.
pub(super) fn of(connection: &Connection, id: &SessionId) -> Result<Labels, rusqlite::Error> {
    let found = connection
        .prepare_cached(
            "SELECT labels FROM labels WHERE session = (SELECT session FROM sessions WHERE id = ?1)",
        )?
        .query_row([id.as_str()], |row| Ok(read(row, 0)))
        .optional();
    Ok(sound(found)?.flatten().unwrap_or_default())
}

pub(super) fn all(connection: &Connection) -> Result<HashMap<SessionId, Labels>, rusqlite::Error> {
    Ok(sound(listed(connection))?.unwrap_or_default())
}

fn listed(connection: &Connection) -> Result<HashMap<SessionId, Labels>, rusqlite::Error> {
    let mut statement =
        connection.prepare_cached("SELECT id, labels FROM labels JOIN sessions USING (session)")?;
    let mut rows = statement.query(())?;
    let mut found = HashMap::new();
    while let Some(row) = rows.next()? {
        found.insert(SessionId::from(row.get::<_, String>(0)?), read(row, 1));
    }
    Ok(found)
}

pub(super) fn read(row: &Row<'_>, column: usize) -> Labels {
    let text = row.get_ref(column).ok().and_then(|value| value.as_str().ok());
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

pub(super) fn set(
    connection: &Connection,
    id: &SessionId,
    change: LabelChange,
) -> Result<bool, rows::Refusal> {
    let Some(number) = records::number(connection, id)? else { return Ok(false) };
    let mut labels = of(connection, id)?;
    change.apply(&mut labels);
    let text = serde_json::to_string(&labels)
        .map_err(|error| StoreError::Failed(format!("failed to label session {id}: {error}")))?;
    connection
        .prepare_cached("INSERT OR REPLACE INTO labels (session, labels) VALUES (?1, ?2)")?
        .execute(params![number, text])?;
    Ok(true)
}

/// Where the log of each session ends. If a page is damaged, the sessions are found one by one.
pub(super) fn ends(connection: &Connection) -> Result<Vec<End>, rusqlite::Error> {
    let read = || {
        let mut statement = connection.prepare_cached("SELECT id, session, last FROM sessions")?;
        let rows = statement.query_map((), |row| {
            let id = SessionId::from(row.get::<_, String>(0)?);
            Ok(End { id, number: row.get(1)?, last: row.get(2)? })
        })?;
        rows.collect::<Result<Vec<End>, _>>()
    };
    if let Some(ends) = sound(read())? {
        return Ok(ends);
    }
    let mut ends = Vec::new();
    for record in records::sessions(connection, &Filter::default())? {
        let (id, last) = (record.summary.id, record.summary.last_seq);
        if let Some(number) = records::number(connection, &id)? {
            ends.push(End { id, number, last });
        }
    }
    Ok(ends)
}
