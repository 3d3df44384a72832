//! Reads sessions. A session whose record is damaged, or was written by a newer agentwire, is shown as far
//! as it is known, and does not affect others.

use agentwire_protocol::event::SessionEndReason;
use agentwire_protocol::{
    AgentType, Event, EventKind, SessionConfig, SessionId, SessionState, SessionSummary, TokenUsage,
};
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde_json::{Map, Value};

use super::error::sound;
use super::{checksum, events};
use crate::store::{Filter, Open, Record};

/// The time of something whose time is unknown.
const SOMETIME: &str = "1970-01-01T00:00:00Z";

/// The error shown for a session whose record cannot be read.
const DAMAGED: &str = "damaged record: what is stored about this session besides its events is not what was \
                       written; its events can be read";

enum StoredRecord {
    Complete(Box<Record>),
    /// Written by another version of agentwire; this is the part that we understand.
    Newer(Box<Record>),
    Damaged {
        owner: Option<String>,
    },
}

/// The number of a session's rows. It comes from the index of ids, which exists even if the row cannot be
/// read.
pub(super) fn number(
    connection: &Connection,
    id: &SessionId,
) -> Result<Option<i64>, rusqlite::Error> {
    connection
        .prepare_cached("SELECT session FROM sessions WHERE id = ?1")?
        .query_row([id.as_str()], |row| row.get(0))
        .optional()
}

pub(super) fn session(
    connection: &Connection,
    id: &SessionId,
) -> Result<Option<Record>, rusqlite::Error> {
    let Some(number) = number(connection, id)? else { return Ok(None) };
    let found = row(connection, number)?;
    found.map(|found| shown(connection, number, Some(id), found)).transpose()
}

pub(super) fn sessions(
    connection: &Connection,
    filter: &Filter,
) -> Result<Vec<Record>, rusqlite::Error> {
    match sound(listed(connection, filter))? {
        Some(records) => Ok(records),
        // A page is damaged: the sessions on other pages are found one by one.
        None => salvaged(connection, filter),
    }
}

fn listed(connection: &Connection, filter: &Filter) -> Result<Vec<Record>, rusqlite::Error> {
    let wanted = if filter.live {
        // Named explicitly: the planner would walk through all sessions to get them in order.
        "INDEXED BY live_sessions WHERE state <> 'ended' AND"
    } else {
        "WHERE"
    };
    let before = filter.before.as_ref().map(SessionId::as_str);
    let limit = filter.limit.and_then(|limit| i64::try_from(limit).ok());
    let mut statement = connection.prepare_cached(&format!(
        "SELECT id, state, owner, last, record, session FROM sessions {wanted} \
         session < iif(?1 IS NULL, {}, (SELECT session FROM sessions WHERE id = ?1)) \
         ORDER BY session DESC LIMIT ifnull(?2, -1)",
        i64::MAX
    ))?;
    let mut rows = statement.query(params![before, limit])?;
    let mut records = Vec::new();
    while let Some(row) = rows.next()? {
        records.push(shown(connection, row.get(5)?, None, stored_record(row)?)?);
    }
    Ok(records)
}

fn salvaged(connection: &Connection, filter: &Filter) -> Result<Vec<Record>, rusqlite::Error> {
    let before = match &filter.before {
        Some(id) => number(connection, id)?.unwrap_or(0),
        None => i64::MAX,
    };
    let mut statement = connection.prepare_cached(
        "SELECT session FROM sessions INDEXED BY sqlite_autoindex_sessions_1 \
         WHERE session < ?1 ORDER BY session DESC",
    )?;
    let numbers = statement.query_map([before], |row| row.get(0))?;
    let mut records = Vec::new();
    for number in numbers.collect::<Result<Vec<i64>, _>>()? {
        if filter.limit.is_some_and(|limit| records.len() >= limit) {
            break;
        }
        let Some(found) = row(connection, number)? else { continue };
        let record = shown(connection, number, None, found)?;
        if !filter.live || record.summary.state != SessionState::Ended {
            records.push(record);
        }
    }
    Ok(records)
}

/// The number of a session's last event, if its record can tell.
pub(super) fn last(connection: &Connection, number: i64) -> Result<Option<u64>, rusqlite::Error> {
    let looked = connection
        .prepare_cached("SELECT id, state, owner, last, record FROM sessions WHERE session = ?1")?
        .query_row([number], |row| is_sound(row)?.then(|| row.get(3)).transpose());
    match sound(looked.optional())? {
        Some(Some(last)) => Ok(last),
        Some(None) | None => Ok(None),
    }
}

/// When a session started, as far as that is known.
pub(super) fn created_at(connection: &Connection, number: i64) -> Result<String, rusqlite::Error> {
    Ok(match row(connection, number)? {
        Some(StoredRecord::Complete(record) | StoredRecord::Newer(record)) => {
            record.summary.created_at
        }
        Some(StoredRecord::Damaged { .. }) | None => beginning(connection, number)?.1,
    })
}

/// Whether the record of this session is as it was written; `None` if it has none.
pub(super) fn check(connection: &Connection, number: i64) -> Result<Option<bool>, rusqlite::Error> {
    Ok(row(connection, number)?.map(|found| !matches!(found, StoredRecord::Damaged { .. })))
}

pub(super) fn id(connection: &Connection, number: i64) -> Result<SessionId, rusqlite::Error> {
    let id: Option<Option<String>> = sound(
        connection
            .prepare_cached(
                "SELECT id FROM sessions INDEXED BY sqlite_autoindex_sessions_1 WHERE session = ?1",
            )?
            .query_row([number], |row| row.get(0))
            .optional(),
    )?;
    Ok(SessionId::from(id.flatten().unwrap_or_else(|| format!("damaged-{number}"))))
}

fn row(connection: &Connection, number: i64) -> Result<Option<StoredRecord>, rusqlite::Error> {
    let found = connection
        .prepare_cached("SELECT id, state, owner, last, record FROM sessions WHERE session = ?1")?
        .query_row([number], stored_record);
    match sound(found.optional())? {
        Some(found) => Ok(found),
        // The row exists, because the index has it, but cannot be read.
        None => Ok(Some(StoredRecord::Damaged { owner: None })),
    }
}

/// Whether a row is as it was written, as far as its checksum can tell.
pub(super) fn is_sound(row: &Row<'_>) -> Result<bool, rusqlite::Error> {
    let text = |column| row.get_ref(column).ok().and_then(|value| value.as_str().ok());
    let (Some(id), Some(state), Some(record)) = (text(0), text(1), text(4)) else {
        return Ok(false);
    };
    Ok(checksum::is_sealed(id, state, row.get(3)?, record).unwrap_or(true))
}

/// The owner has its own column, so that it can change without the record.
fn stored_record(row: &Row<'_>) -> Result<StoredRecord, rusqlite::Error> {
    let owner = row.get_ref(2)?.as_str_or_null().ok().flatten().map(str::to_owned);
    if !sound(is_sound(row))?.unwrap_or(false) {
        return Ok(StoredRecord::Damaged { owner });
    }
    let text = row.get_ref(4)?.as_str()?;
    if let Ok(mut record) = serde_json::from_str::<Record>(text) {
        record.owner = owner;
        return Ok(StoredRecord::Complete(Box::new(record)));
    }
    Ok(match newer(text) {
        Some(mut record) => {
            record.owner = owner;
            StoredRecord::Newer(Box::new(record))
        }
        None => StoredRecord::Damaged { owner },
    })
}

/// Reads a record with values that we do not know: every field that we can read.
fn newer(text: &str) -> Option<Record> {
    let mut record: Map<String, Value> = serde_json::from_str(text).ok()?;
    let Some(Value::Object(mut fields)) = record.remove("summary") else { return None };
    let mut unknown = Vec::new();
    let mut known = serde_json::to_value(summary(SessionId::from(""))).ok()?;
    let known = known.as_object_mut()?;
    for (name, value) in std::mem::take(&mut fields) {
        let mut tried = known.clone();
        tried.insert(name.clone(), value.clone());
        match serde_json::from_value::<SessionSummary>(Value::Object(tried.clone())) {
            Ok(_) => *known = tried,
            Err(_) => unknown.push(format!("{name} {value}")),
        }
    }
    let mut summary: SessionSummary = serde_json::from_value(Value::Object(known.clone())).ok()?;
    let why = match unknown.is_empty() {
        true => "a newer agentwire wrote its record; upgrade this one".to_owned(),
        false => format!(
            "its record has values that this agentwire does not know ({}); upgrade agentwire",
            unknown.join(", ")
        ),
    };
    if !unknown.is_empty() || summary.state != SessionState::Ended {
        mark_ended(&mut summary, &why);
    }
    let config = record.remove("config").and_then(|config| serde_json::from_value(config).ok());
    Some(Record {
        summary,
        owner: None,
        config: config.unwrap_or_default(),
        open: Open::default(),
        client: None,
        unkept: Vec::new(),
        native_since: None,
        first_prompt: None,
        unfit: Some(why),
    })
}

/// A session as it is shown to callers.
fn shown(
    connection: &Connection,
    number: i64,
    known: Option<&SessionId>,
    found: StoredRecord,
) -> Result<Record, rusqlite::Error> {
    let owner = match found {
        StoredRecord::Complete(record) | StoredRecord::Newer(record) => return Ok(*record),
        StoredRecord::Damaged { owner } => owner,
    };
    let id = match known {
        Some(id) => id.clone(),
        None => id(connection, number)?,
    };
    tracing::warn!(session = id.as_str(), "the record of a session is damaged");
    let mut summary = summary(id);
    let (agent_type, created_at) = beginning(connection, number)?;
    summary.agent_type = agent_type;
    summary.updated_at.clone_from(&created_at);
    summary.created_at = created_at;
    let end: Option<u64> = sound(
        connection
            .prepare_cached("SELECT max(first) FROM batches WHERE session = ?1")?
            .query_row([number], |row| row.get(0)),
    )?
    .flatten();
    if let Some(first) = end {
        let batch = sound(events::batch(connection, number, first))?.flatten();
        summary.last_seq = batch.as_ref().map_or(first, |batch| batch.last());
        let line = batch.as_ref().and_then(|batch| batch.events().last()).map(|(_, line)| line);
        if let Some(event) = line.and_then(event) {
            summary.updated_at = event.timestamp.into_owned();
        }
    }
    mark_ended(&mut summary, DAMAGED);
    Ok(Record {
        summary,
        owner,
        config: SessionConfig::default(),
        open: Open::default(),
        client: None,
        unkept: Vec::new(),
        native_since: None,
        first_prompt: None,
        unfit: Some(DAMAGED.to_owned()),
    })
}

/// The agent of a session and its start time, according to its first event.
fn beginning(connection: &Connection, number: i64) -> Result<(AgentType, String), rusqlite::Error> {
    let batch = sound(events::batch(connection, number, 1))?.flatten();
    let line = batch.as_ref().and_then(|batch| batch.events().next()).map(|(_, line)| line);
    Ok(match line.and_then(event) {
        Some(Event { kind: EventKind::SessionStarted(started), timestamp, .. }) => {
            (started.agent_type, timestamp.into_owned())
        }
        Some(event) => (AgentType::ANY, event.timestamp.into_owned()),
        None => (AgentType::ANY, SOMETIME.to_owned()),
    })
}

fn event(line: &[u8]) -> Option<Event<'static>> {
    Event::from_json(std::str::from_utf8(line).ok()?).ok()
}

fn summary(id: SessionId) -> SessionSummary {
    SessionSummary {
        id,
        agent_type: AgentType::ANY,
        state: SessionState::Ended,
        reason: None,
        error: None,
        title: None,
        working_directory: None,
        model: None,
        approval_mode: None,
        driver: None,
        native_session_id: None,
        agent_version: None,
        gateway_version: None,
        created_at: SOMETIME.to_owned(),
        updated_at: SOMETIME.to_owned(),
        last_seq: 0,
        turns: 0,
        last_turn: None,
        usage: TokenUsage::default(),
        cost_usd: None,
        open_requests: 0,
        pinned: false,
        tags: Vec::new(),
    }
}

fn mark_ended(summary: &mut SessionSummary, why: &str) {
    summary.state = SessionState::Ended;
    summary.reason = Some(SessionEndReason::Failed);
    summary.error = Some(why.to_owned());
    summary.open_requests = 0;
}
