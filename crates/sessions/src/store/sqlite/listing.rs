//! Reads a list of sessions in its order, with an index: what a page costs does not depend on how many sessions
//! there are.

use agentwire_protocol::SessionId;
use rusqlite::{Connection, OptionalExtension as _, Params, Row, params};

use super::error::sound;
use super::{labels, records};
use crate::store::brief::{self, BriefRecord};
use crate::store::{Brief, ListOrder, Place, Record};

/// The first five as `records::is_sound` expects them.
const COLUMNS: &str = "sessions.id, state, owner, last, record, sessions.session, at, labels";

/// Stores when a session was last active.
pub(super) fn set_active(
    connection: &Connection,
    session: i64,
    at: i64,
) -> Result<(), rusqlite::Error> {
    connection
        .prepare_cached("INSERT OR REPLACE INTO activity (session, at) VALUES (?1, ?2)")?
        .execute(params![session, at])
        .map(drop)
}

/// The sessions after a place; `None` if the store is too damaged for this.
pub(super) fn briefs(
    connection: &Connection,
    order: ListOrder,
    after: Place,
    limit: usize,
) -> Result<Option<Vec<Brief>>, rusqlite::Error> {
    let found = match order {
        ListOrder::Created => created(connection, after, limit),
        ListOrder::Activity => active(connection, after, limit),
    };
    Ok(sound(found)?.flatten())
}

pub(super) fn one(
    connection: &Connection,
    id: &SessionId,
) -> Result<Option<Brief>, rusqlite::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions LEFT JOIN activity USING (session) \
         LEFT JOIN labels USING (session) WHERE sessions.id = ?1"
    );
    let found = connection
        .prepare_cached(&sql)?
        .query_row([id.as_str()], |row| read(connection, row))
        .optional();
    Ok(sound(found)?.flatten().flatten())
}

fn created(
    connection: &Connection,
    after: Place,
    limit: usize,
) -> Result<Option<Vec<Brief>>, rusqlite::Error> {
    let sql = format!(
        "SELECT {COLUMNS} FROM sessions LEFT JOIN activity USING (session) \
         LEFT JOIN labels USING (session) \
         WHERE sessions.session < ?1 ORDER BY sessions.session DESC LIMIT ?2"
    );
    all(connection, &sql, params![after.number, length(limit)])
}

fn active(
    connection: &Connection,
    after: Place,
    limit: usize,
) -> Result<Option<Vec<Brief>>, rusqlite::Error> {
    let mut found = Vec::new();
    if after.at > Place::UNKNOWN {
        // In this order of tables, the index gives the order of rows.
        let sql = format!(
            "SELECT {COLUMNS} FROM activity \
             CROSS JOIN sessions ON sessions.session = activity.session \
             LEFT JOIN labels ON labels.session = activity.session \
             WHERE (at, activity.session) < (?1, ?2) \
             ORDER BY at DESC, activity.session DESC LIMIT ?3"
        );
        let read = all(connection, &sql, params![after.at, after.number, length(limit)])?;
        let Some(read) = read else { return Ok(None) };
        found = read;
    }
    if found.len() < limit {
        let number = if after.at > Place::UNKNOWN { i64::MAX } else { after.number };
        let sql = format!(
            "SELECT {COLUMNS} FROM sessions LEFT JOIN activity USING (session) \
             LEFT JOIN labels USING (session) \
             WHERE sessions.session < ?1 AND at IS NULL \
             ORDER BY sessions.session DESC LIMIT ?2"
        );
        let rest = all(connection, &sql, params![number, length(limit - found.len())])?;
        let Some(rest) = rest else { return Ok(None) };
        found.extend(rest);
    }
    Ok(Some(found))
}

fn length(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

fn all(
    connection: &Connection,
    sql: &str,
    params: impl Params,
) -> Result<Option<Vec<Brief>>, rusqlite::Error> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        match read(connection, row)? {
            Some(brief) => found.push(brief),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// A row of [`COLUMNS`]; `None` if not even its id can be read.
fn read(connection: &Connection, row: &Row<'_>) -> Result<Option<Brief>, rusqlite::Error> {
    let place =
        Place { at: row.get::<_, Option<i64>>(6)?.unwrap_or(Place::UNKNOWN), number: row.get(5)? };
    let labels = labels::read(row, 7);
    if sound(records::is_sound(row))?.unwrap_or(false)
        && let Ok(record) = serde_json::from_str::<BriefRecord>(row.get_ref(4)?.as_str()?)
    {
        return Ok(Some(record.with(labels, place)));
    }
    // Damaged, or written by a newer agentwire: shown as far as it is known.
    let Some(id) = sound(row.get::<_, String>(0))? else { return Ok(None) };
    let record = records::session(connection, &SessionId::from(id))?;
    Ok(record.map(|record| Brief::new(record, labels, place)))
}

/// A list of a damaged store: these are all its sessions that can be found, the last started first.
pub(super) fn salvaged(
    records: Vec<(Record, agentwire_protocol::Labels)>,
    order: ListOrder,
    after: Place,
    limit: usize,
) -> Vec<Brief> {
    let count = i64::try_from(records.len()).unwrap_or(i64::MAX);
    let numbered = (1..=count).rev().zip(records);
    let mut briefs: Vec<Brief> = numbered
        .map(|(number, (record, labels))| {
            let at = brief::active_at(&record.summary);
            Brief::new(record, labels, Place { at, number })
        })
        .filter(|brief| brief.place.is_after(after, order))
        .collect();
    if order == ListOrder::Activity {
        briefs.sort_by_key(|brief| std::cmp::Reverse(brief.place));
    }
    briefs.truncate(limit);
    briefs
}
