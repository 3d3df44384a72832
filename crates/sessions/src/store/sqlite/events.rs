//! Reads events: batches that are as they were written, and gaps where there should be more.

use agentwire_protocol::SessionId;
use rusqlite::{Connection, OptionalExtension as _, Row, params};
use serde::Deserialize;
use serde::de::IgnoredAny;

use super::checksum::BatchRow;
use super::error::sound;
use super::{records, rows};
use crate::store::codec::Codec;
use crate::store::gap::{Gap, GapReason};
use crate::store::{Batch, batch};

/// If a session's record does not say how many events there are, a row that claims to be further away than
/// this is not believed.
const FAR: u64 = 1 << 20;

/// Maximum number of bytes reserved for a batch before it is read.
const RESERVED: usize = 256 << 20;

pub(super) fn read(
    connection: &Connection,
    session: &SessionId,
    after: u64,
    bytes: usize,
) -> Result<Vec<Batch>, rusqlite::Error> {
    // Larger numbers do not fit SQLite's integers, and no session has that many events.
    if i64::try_from(after).is_ok_and(|after| after < i64::MAX) {
        // One snapshot of the store: what is added meanwhile is neither included nor missing.
        let snapshot = connection.unchecked_transaction()?;
        if let Some(number) = records::number(&snapshot, session)? {
            return batches(&snapshot, session, number, after, bytes);
        }
    }
    Ok(Vec::new())
}

/// How many bytes are read to get what comes after `after`: the batch that contains the next event, and the
/// one after it. A damaged row may claim any size.
pub(super) fn next_size(
    connection: &Connection,
    session: &SessionId,
    after: u64,
) -> Result<u64, rusqlite::Error> {
    let Some(number) = records::number(connection, session)? else { return Ok(0) };
    let after = i64::try_from(after).unwrap_or(i64::MAX).saturating_add(1);
    let mut size = 0_u64;
    for order in [
        "SELECT size FROM batches INDEXED BY batches_in_order \
         WHERE session = ?1 AND first <= ?2 ORDER BY first DESC, part DESC LIMIT 1",
        "SELECT size FROM batches INDEXED BY batches_in_order \
         WHERE session = ?1 AND first > ?2 ORDER BY first, part LIMIT 1",
    ] {
        let mut statement = connection.prepare_cached(order)?;
        let found = statement.query_row(params![number, after], |row| row.get::<_, u64>(0));
        size = size.saturating_add(sound(found.optional())?.flatten().unwrap_or(0));
    }
    Ok(size)
}

/// Where to start reading for the newest events before `before`, by the index and the sizes alone. A row that
/// cannot be read ends the search; reading then starts after it.
pub(super) fn start_before(
    connection: &Connection,
    session: &SessionId,
    before: u64,
    count: u64,
    bytes: u64,
) -> Result<u64, rusqlite::Error> {
    let Some(number) = records::number(connection, session)? else { return Ok(0) };
    let mut statement = connection.prepare_cached(
        "SELECT first, size FROM batches INDEXED BY batches_in_order \
         WHERE session = ?1 AND first < ?2 AND part = 0 ORDER BY first DESC",
    )?;
    let end = i64::try_from(before).unwrap_or(i64::MAX);
    let rows = statement.query_map(params![number, end], |row| Ok((row.get(0)?, row.get(1)?)))?;
    Ok(batch::start_before(rows.map_while(Result::ok), before, count, bytes))
}

fn batches(
    connection: &Connection,
    session: &SessionId,
    number: i64,
    after: u64,
    bytes: usize,
) -> Result<Vec<Batch>, rusqlite::Error> {
    let mut found = Vec::new();
    let mut total = 0;
    let mut walk = Walk::begin(connection, number, records::last(connection, number)?, after)?;
    while total < bytes.max(1)
        && let Some(next) = walk.next()?
    {
        match next {
            Next::Batch(batch) => {
                if batch.last() > after {
                    total += batch.lines.len();
                    found.push(batch);
                }
            }
            Next::Gap(gap) => {
                let time = records::created_at(connection, number)?;
                let mut first = gap.from.max(after + 1);
                while first <= gap.to && total < bytes.max(1) {
                    let batch = gap.batch(session, first, &time);
                    first = batch.last() + 1;
                    total += batch.lines.len();
                    found.push(batch);
                }
            }
        }
        // A long batch is read alone: the caller can ask for its length first.
        if !found.is_empty() {
            walk.most = bytes as u64;
        }
    }
    Ok(found)
}

pub(super) enum Next {
    Batch(Batch),
    Gap(Gap),
}

/// Walks over a session's batches. They are found by the index alone and read one by one, so a row that
/// cannot be read hides no other.
pub(super) struct Walk<'a> {
    connection: &'a Connection,
    session: i64,
    /// The number of the session's last event, if its record can tell.
    last: Option<u64>,
    /// Everything up to this event has been returned.
    position: u64,
    /// Where the row that was looked at last starts.
    place: u64,
    /// Where the last damaged row since the last batch starts, if there was one.
    damaged: Option<u64>,
    /// The batch to return next.
    held: Option<Batch>,
    /// Stops before a batch that is longer than this.
    most: u64,
}

impl<'a> Walk<'a> {
    /// Starts with the last whole batch that does not start after the next wanted event, so that a gap is
    /// the same from wherever it is read.
    pub(super) fn begin(
        connection: &'a Connection,
        session: i64,
        last: Option<u64>,
        after: u64,
    ) -> Result<Self, rusqlite::Error> {
        let mut walk = Self {
            connection,
            session,
            last,
            position: 0,
            place: 0,
            damaged: None,
            held: None,
            most: u64::MAX,
        };
        let mut before = after.saturating_add(2);
        while let Some(first) = sound(walk.first_before(before))?.flatten() {
            if let Read::Batch(batch) = walk.read(first)? {
                (walk.position, walk.place) = (first.saturating_sub(1), first);
                walk.held = Some(batch);
                break;
            }
            before = first;
        }
        Ok(walk)
    }

    pub(super) fn next(&mut self) -> Result<Option<Next>, rusqlite::Error> {
        if let Some(batch) = self.held.take() {
            return Ok(Some(self.tell(batch)));
        }
        loop {
            let first = match sound(self.first_after(self.place))? {
                Some(first) => first,
                // The index itself is damaged from here on.
                None => {
                    self.damaged.get_or_insert(self.place);
                    None
                }
            };
            let Some(first) = first else { return Ok(self.rest().map(Next::Gap)) };
            match self.read(first)? {
                Read::Batch(batch) => {
                    self.place = first;
                    return Ok(Some(self.tell(batch)));
                }
                Read::Long => return Ok(None),
                Read::Damaged => {
                    self.place = first;
                    self.damaged = Some(first);
                }
            }
        }
    }

    /// Returns a batch, or first the gap before it.
    fn tell(&mut self, batch: Batch) -> Next {
        if batch.first > self.position + 1 {
            let gap = self.gap(batch.first - 1);
            self.held = Some(batch);
            return Next::Gap(gap);
        }
        self.damaged = None;
        self.position = batch.last();
        Next::Batch(batch)
    }

    /// What is missing after the last row.
    fn rest(&mut self) -> Option<Gap> {
        let to = self.last.or_else(|| {
            let near = |first: &u64| first.saturating_sub(self.position) < FAR;
            self.damaged.filter(near)
        });
        to.filter(|to| *to > self.position).map(|to| self.gap(to))
    }

    fn gap(&mut self, to: u64) -> Gap {
        let why =
            if self.damaged.take().is_some() { GapReason::Damaged } else { GapReason::Missing };
        let gap = Gap { from: self.position + 1, to, why };
        self.position = to;
        gap
    }

    fn first_after(&self, first: u64) -> Result<Option<u64>, rusqlite::Error> {
        self.connection
            .prepare_cached(
                "SELECT first FROM batches INDEXED BY batches_in_order \
                 WHERE session = ?1 AND first > ?2 ORDER BY first LIMIT 1",
            )?
            .query_row(params![self.session, first], |row| row.get(0))
            .optional()
    }

    fn first_before(&self, first: u64) -> Result<Option<u64>, rusqlite::Error> {
        let first = i64::try_from(first).unwrap_or(i64::MAX);
        self.connection
            .prepare_cached(
                "SELECT first FROM batches INDEXED BY batches_in_order \
                 WHERE session = ?1 AND first < ?2 ORDER BY first DESC LIMIT 1",
            )?
            .query_row(params![self.session, first], |row| row.get(0))
            .optional()
    }

    /// The batch that starts here, if it can belong to this session.
    fn read(&self, first: u64) -> Result<Read, rusqlite::Error> {
        let read = sound(read_batch(self.connection, self.session, first, self.most))?;
        let fits = |batch: &Batch| {
            batch.first > self.position && self.last.is_none_or(|last| batch.last() <= last)
        };
        Ok(match read {
            Some(Read::Batch(batch)) if fits(&batch) => Read::Batch(batch),
            Some(Read::Long) => Read::Long,
            Some(Read::Batch(_) | Read::Damaged) | None => Read::Damaged,
        })
    }
}

enum Read {
    Batch(Batch),
    /// Longer than wanted.
    Long,
    /// Not as it was written.
    Damaged,
}

/// The batch that starts here, in one row or several; `None` if one of them is not as it was written.
pub(super) fn batch(
    connection: &Connection,
    session: i64,
    first: u64,
) -> Result<Option<Batch>, rusqlite::Error> {
    Ok(match read_batch(connection, session, first, u64::MAX)? {
        Read::Batch(batch) => Some(batch),
        Read::Long | Read::Damaged => None,
    })
}

fn read_batch(
    connection: &Connection,
    session: i64,
    first: u64,
    most: u64,
) -> Result<Read, rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "SELECT session, first, part, count, size, lines, checksum, codec FROM batches \
         INDEXED BY batches_in_order WHERE session = ?1 AND first = ?2 ORDER BY part",
    )?;
    let mut rows = statement.query(params![session, first])?;
    let mut found: Option<(u64, u64)> = None;
    let mut is_checked = true;
    let mut lines = Vec::new();
    let mut parts = 0;
    while let Some(row) = rows.next()? {
        // A row that is not as it was written may belong elsewhere. Whether the batch is whole is checked
        // without it.
        let Some((part, checksum)) = sound(part(row))?.flatten() else { continue };
        let is_next = part.session == session
            && part.first == first
            && part.part == parts
            && found.is_none_or(|sizes| sizes == (part.count, part.size));
        if !is_next || checksum.is_some_and(|checksum| checksum != i64::from(part.checksum())) {
            continue;
        }
        parts += 1;
        is_checked &= checksum.is_some();
        found = Some((part.count, part.size));
        if parts == 1 && checksum.is_some() && part.size > most {
            return Ok(Read::Long);
        }
        // A size without a checksum may be any number.
        let missing = usize::try_from(part.size).unwrap_or(usize::MAX).saturating_sub(lines.len());
        if parts == 1 && checksum.is_some() {
            lines.reserve_exact(missing.min(RESERVED));
        }
        part.codec.decode(part.lines, missing.min(rows::PART), &mut lines);
    }
    let Some((count, size)) = found else { return Ok(Read::Damaged) };
    let batch = Batch { first, count, lines: lines.into() };
    let is_whole = batch.lines.len() as u64 == size && batch.check().is_ok();
    Ok(match is_whole && (is_checked || is_log(&batch)) {
        true => Read::Batch(batch),
        false => Read::Damaged,
    })
}

/// A row as it is stored; `None` if it cannot be valid.
fn part<'a>(row: &'a Row<'_>) -> Result<Option<(BatchRow<'a>, Option<i64>)>, rusqlite::Error> {
    let lines = row.get_ref(5)?.as_blob().unwrap_or_default();
    if lines.is_empty() || lines.len() > rows::PART {
        return Ok(None);
    }
    let Some(codec) = Codec::from_number(row.get(7)?) else { return Ok(None) };
    let part = BatchRow {
        session: row.get(0)?,
        first: row.get(1)?,
        part: row.get(2)?,
        count: row.get(3)?,
        size: row.get(4)?,
        codec,
        lines,
    };
    Ok(Some((part, row.get(6)?)))
}

/// The fields that are checked in an event without a checksum.
#[derive(Deserialize)]
struct Head {
    seq: u64,
    #[serde(rename = "type")]
    _kind: IgnoredAny,
}

/// Whether lines without a checksum are at least events with these numbers.
fn is_log(batch: &Batch) -> bool {
    batch.events().all(|(seq, line)| {
        let text = std::str::from_utf8(line).ok();
        text.is_some_and(|text| serde_json::from_str(text).is_ok_and(|head: Head| head.seq == seq))
    })
}
