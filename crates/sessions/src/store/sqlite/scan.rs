//! Reads a whole store to find what is damaged or missing.

use agentwire_protocol::SessionId;
use rusqlite::Connection;

use super::error::sound;
use super::events::{Next, Walk};
use super::{checksum, records};
use crate::store::gap::{Gap, GapReason};

/// How many faults of the file are reported.
const FAULTS: u32 = 20;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ScanReport {
    pub sessions: u64,
    pub events: u64,
    pub damage: Vec<Damage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Damage {
    Events(SessionId, Gap),
    /// What is stored about a session, except its events, is damaged.
    Record(SessionId),
    /// The answer to a call with this key is damaged.
    Key(String),
    /// SQLite reports a fault in the file itself.
    File(String),
}

impl std::fmt::Display for Damage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Events(session, Gap { from, to, why }) if from == to => {
                write!(f, "session {session}: event {from} is {}", why.as_str())
            }
            Self::Events(session, Gap { from, to, why }) => {
                write!(f, "session {session}: events {from} to {to} are {}", why.as_str())
            }
            Self::Record(session) => write!(f, "session {session}: its record is damaged"),
            Self::Key(key) => write!(f, "the answer to the call with the key {key:?} is damaged"),
            Self::File(fault) => write!(f, "the file of the store is damaged: {fault}"),
        }
    }
}

impl ScanReport {
    /// How many events are damaged or missing.
    pub fn lost(&self) -> u64 {
        let lost = self.damage.iter().map(|damage| match damage {
            Damage::Events(_, Gap { from, to, why: GapReason::Damaged | GapReason::Missing }) => {
                to - from + 1
            }
            Damage::Record(_) | Damage::Key(_) | Damage::File(_) => 0,
        });
        lost.sum()
    }
}

pub(super) fn check(
    connection: &Connection,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<ScanReport, rusqlite::Error> {
    let mut checked = ScanReport::default();
    let numbers: Vec<i64> = sound(
        connection
            .prepare(
                "SELECT session FROM sessions INDEXED BY sqlite_autoindex_sessions_1 \
                 ORDER BY session",
            )?
            .query_map((), |row| row.get(0))?
            .collect(),
    )?
    .unwrap_or_default();
    let total = numbers.len() as u64;
    for (done, number) in (1..).zip(numbers) {
        session(connection, number, &mut checked)?;
        progress(done, total);
    }
    keys(connection, &mut checked)?;
    let faults = connection
        .prepare(&format!("PRAGMA quick_check({FAULTS})"))?
        .query_map((), |row| row.get::<_, String>(0))?
        .collect::<Result<Vec<_>, _>>();
    match sound(faults)? {
        Some(faults) => checked
            .damage
            .extend(faults.into_iter().filter(|fault| fault != "ok").map(Damage::File)),
        None => checked.damage.push(Damage::File("it cannot be read to the end".to_owned())),
    }
    Ok(checked)
}

fn session(
    connection: &Connection,
    number: i64,
    checked: &mut ScanReport,
) -> Result<(), rusqlite::Error> {
    // One snapshot of the store: what is added meanwhile is neither included nor missing.
    let snapshot = connection.unchecked_transaction()?;
    let Some(is_sound) = records::check(&snapshot, number)? else { return Ok(()) };
    checked.sessions += 1;
    let id = records::id(&snapshot, number)?;
    if !is_sound {
        checked.damage.push(Damage::Record(id.clone()));
    }
    let last = records::last(&snapshot, number)?;
    let mut walk = Walk::begin(&snapshot, number, last, 0)?;
    while let Some(next) = walk.next()? {
        match next {
            Next::Batch(batch) => checked.events += batch.count,
            Next::Gap(gap) => checked.damage.push(Damage::Events(id.clone(), gap)),
        }
    }
    Ok(())
}

fn keys(connection: &Connection, checked: &mut ScanReport) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare("SELECT key, answer, checksum FROM keys")?;
    let mut rows = statement.query(())?;
    while let Some(Some(row)) = sound(rows.next())? {
        let text = |column| row.get_ref(column).ok().and_then(|value| value.as_str().ok());
        let (key, answer) = (text(0).unwrap_or_default(), text(1));
        let checksum: Option<i64> = sound(row.get(2))?.flatten();
        let is_sound = answer.is_some_and(|answer| {
            checksum.is_none_or(|it| it == i64::from(checksum::of_key(key, answer)))
        });
        if !is_sound {
            checked.damage.push(Damage::Key(key.to_owned()));
        }
    }
    Ok(())
}
