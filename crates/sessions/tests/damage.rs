//! Damage stays local and is reported: what is not as it was written is never returned as an event, and
//! everything else can be read.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that finds something else has failed"
)]

mod stores;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use agentwire_protocol::{AgentType, SessionState};
use agentwire_sessions::store::gap::{Gap, GapReason};
use agentwire_sessions::store::sqlite::{Damage, ScanReport, Sqlite};
use agentwire_sessions::store::{Batch, Filter, Store, StoreError};
use rusqlite::types::Value;
use rusqlite::{Connection, params};
use serde_json::json;
use stores::{Chance, change, id, of_batch, record};
use tempfile::TempDir;

/// Sessions of the store, and how many batches of [`SIZE`] events each has.
const SESSIONS: [(&str, u64); 3] = [("one", 6), ("two", 4), ("three", 1)];

const SIZE: u64 = 3;

/// The batch of session `one` that has several parts.
const LARGE: u64 = 4;

/// The line of an event. Cached: it is needed often, and some are long.
fn event(session: &str, seq: u64) -> &'static str {
    static EVENTS: LazyLock<[Vec<String>; 3]> = LazyLock::new(|| {
        SESSIONS.map(|(session, batches)| {
            (1..=(batches + 1) * SIZE).map(|seq| line(session, seq)).collect()
        })
    });
    let index = SESSIONS.iter().position(|(name, _)| *name == session).unwrap();
    &EVENTS[index][seq as usize - 1]
}

fn line(session: &str, seq: u64) -> String {
    let padding = if (session, (seq - 1) / SIZE) == ("one", LARGE) { 400_000 } else { seq % 50 };
    json!({
        "id": format!("{session}-{seq}"),
        "sessionId": session,
        "seq": seq,
        "timestamp": "2026-01-02T03:04:05Z",
        "type": "textChunk",
        "content": "é".repeat(padding as usize),
        "isComplete": false,
        "agentId": "main",
    })
    .to_string()
}

fn batch(session: &str, number: u64) -> Batch {
    let first = number * SIZE + 1;
    let lines: String =
        (first..first + SIZE).map(|seq| event(session, seq).to_owned() + "\n").collect();
    Batch { first, count: SIZE, lines: lines.into() }
}

/// A store with sessions, and direct access to its file.
struct StoreFixture {
    directory: TempDir,
    store: Sqlite,
    file: Connection,
}

impl StoreFixture {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let store = Sqlite::open(directory.path()).unwrap();
        for (session, batches) in SESSIONS {
            for number in 0..batches {
                let mut append = of_batch(session, batch(session, number));
                append.keys = vec![(format!("{session}/{number}"), session.to_owned())];
                store.append(&[&append]).unwrap();
            }
            let ended = record(session, SessionState::Ended, None, batches * SIZE);
            store.append(&[&change(ended)]).unwrap();
        }
        let file = Connection::open(path(directory.path())).unwrap();
        Self { directory, store, file }
    }

    /// The same, written by a version of agentwire without checksums and compression.
    fn unchecked() -> Self {
        let fixture = Self::new();
        for (session, batches) in SESSIONS {
            for number in 0..batches {
                let Batch { first, lines, .. } = batch(session, number);
                for (part, lines) in (0..).zip(lines.chunks(1 << 20)) {
                    let changed = fixture.file.execute(
                        "UPDATE batches SET checksum = NULL, codec = 0, lines = ?4 WHERE part = ?3 \
                         AND first = ?2 AND session = (SELECT session FROM sessions WHERE id = ?1)",
                        params![session, first, part, lines],
                    );
                    assert_eq!(changed.unwrap(), 1);
                }
            }
        }
        fixture
    }

    fn execute(&self, statement: &str) {
        self.file.execute_batch(statement).unwrap();
    }

    /// Changes a batch, checks the result, and undoes the change.
    fn with_batch(&self, session: &str, number: u64, what: &str, value: &Value, look: impl Fn()) {
        let at = "session = (SELECT session FROM sessions WHERE id = ?1) AND first = ?2";
        let first = number * SIZE + 1;
        let row: i64 = self
            .file
            .query_row(
                &format!("SELECT rowid FROM batches WHERE {at} ORDER BY part DESC LIMIT 1"),
                params![session, first],
                |row| row.get(0),
            )
            .unwrap();
        let before: Value = self
            .file
            .query_row(&format!("SELECT {what} FROM batches WHERE rowid = ?1"), [row], |row| {
                row.get(0)
            })
            .unwrap();
        let set = format!("UPDATE batches SET {what} = ?2 WHERE rowid = ?1");
        if self.file.execute(&set, params![row, value]).is_ok() {
            look();
            self.file.execute(&set, params![row, before]).unwrap();
        }
    }

    fn blob(&self, session: &str, number: u64) -> Vec<u8> {
        self.file
            .query_row(
                "SELECT lines FROM batches WHERE session = (SELECT session FROM sessions \
                 WHERE id = ?1) AND first = ?2 ORDER BY part DESC LIMIT 1",
                params![session, number * SIZE + 1],
                |row| row.get(0),
            )
            .unwrap()
    }

    fn check(&self) -> ScanReport {
        self.store.check(&mut |_, _| ()).unwrap()
    }
}

fn path(directory: &Path) -> PathBuf {
    directory.join("agentwire.db")
}

/// All events of a session, read in pages of this size.
fn lines(store: &dyn Store, session: &str, after: u64, bytes: usize) -> Vec<String> {
    let mut position = after;
    let mut lines = Vec::new();
    loop {
        let page = store.read(&id(session), position, bytes).unwrap();
        if page.is_empty() {
            return lines;
        }
        for batch in &page {
            let batch = batch.after(position).expect("nothing before");
            assert_eq!(batch.first, position + 1, "a gap or a repetition");
            for (seq, line) in batch.events() {
                assert_eq!(seq, position + 1);
                lines.push(String::from_utf8(line.to_vec()).expect("text"));
                position = seq;
            }
            assert_eq!(batch.last(), position);
        }
    }
}

/// Checks that a session has all its events except these, that events in their place say so, and that this
/// is the same from wherever it is read.
fn check(store: &dyn Store, session: &str, gaps: &[(u64, u64, &str)]) {
    let (_, batches) = SESSIONS.into_iter().find(|(name, _)| *name == session).unwrap();
    let all = lines(store, session, 0, 1);
    assert_eq!(all.len() as u64, batches * SIZE, "{session}");
    for (seq, line) in (1..).zip(&all) {
        match gaps.iter().find(|(from, to, _)| (*from..=*to).contains(&seq)) {
            None => assert_eq!(*line, event(session, seq)),
            Some((from, to, why)) => {
                let value: serde_json::Value = serde_json::from_str(line).expect("JSON");
                assert_eq!(value["type"], "error", "{line}");
                assert_eq!(value["code"], *why, "{line}");
                assert_eq!(value["details"], json!({"from": from, "to": to}), "{line}");
                assert_eq!(value["seq"], seq);
                assert_eq!(value["sessionId"], session);
                assert!(value["message"].as_str().unwrap().contains(session), "{line}");
            }
        }
    }
    // The long one is read from fewer places.
    for after in (0..=all.len()).step_by(if session == "one" { 7 } else { 1 }) {
        assert!(lines(store, session, after as u64, usize::MAX) == all[after..], "after {after}");
    }
}

/// Checks that nothing is wrong with the other sessions.
fn check_others(store: &dyn Store, but: &str) {
    for (session, _) in SESSIONS.into_iter().filter(|(name, _)| *name != but) {
        check(store, session, &[]);
    }
}

fn events(session: &str, from: u64, to: u64, why: GapReason) -> Damage {
    Damage::Events(id(session), Gap { from, to, why })
}

#[test]
fn what_is_whole_is_found_whole() {
    for fixture in [StoreFixture::new(), StoreFixture::unchecked()] {
        check_others(&fixture.store, "");
        let checked = fixture.check();
        assert_eq!(checked, ScanReport { sessions: 3, events: 33, damage: Vec::new() });
    }
}

#[test]
fn a_flipped_bit_of_an_event_is_never_given_for_it() {
    let fixture = StoreFixture::new();
    let mut chance = Chance(7);
    for round in 0..60 {
        let (session, number) =
            [("one", round % 6), ("two", round % 4), ("three", 0)][round as usize % 3];
        let mut blob = fixture.blob(session, number);
        let at = chance.below(blob.len() as u64) as usize;
        blob[at] ^= 1 << chance.below(8);
        let (from, to) = (number * SIZE + 1, number * SIZE + SIZE);
        fixture.with_batch(session, number, "lines", &Value::Blob(blob), || {
            check(&fixture.store, session, &[(from, to, "damaged")]);
            if round % 10 == 0 {
                check_others(&fixture.store, session);
                assert_eq!(fixture.check().damage, [events(session, from, to, GapReason::Damaged)]);
            }
        });
    }
    check_others(&fixture.store, "");
}

/// Truncated, extended, emptied, of another type.
#[test]
fn a_blob_of_another_length_is_damaged() {
    let fixture = StoreFixture::new();
    for number in [0, LARGE, 5] {
        let blob = fixture.blob("one", number);
        let (from, to) = (number * SIZE + 1, number * SIZE + SIZE);
        let wrong = [
            Value::Blob(Vec::new()),
            Value::Blob(blob[..blob.len() / 2].to_vec()),
            Value::Blob([&blob[..], &blob[..]].concat()),
            Value::Blob(vec![b'\n'; 3 << 20]),
            Value::Text("{}\n".to_owned()),
            Value::Integer(1),
        ];
        for value in wrong {
            fixture.with_batch("one", number, "lines", &value, || {
                check(&fixture.store, "one", &[(from, to, "damaged")]);
                check_others(&fixture.store, "one");
            });
        }
    }
}

/// A size of 2^45 must not be believed before memory is reserved for it.
#[test]
fn a_wrong_number_is_damage_of_its_batch_alone() {
    let numbers = [0, -1, 1, 2, 5, 1 << 31, 1 << 45, i64::MAX, i64::MIN];
    let values = numbers.map(Value::Integer).into_iter();
    let values = values.chain([Value::Text("x".to_owned()), Value::Real(0.5), Value::Null]);
    for fixture in [StoreFixture::new(), StoreFixture::unchecked()] {
        let is_checked = fixture
            .file
            .query_row("SELECT count(checksum) FROM batches", (), |row| row.get::<_, i64>(0));
        let is_checked = is_checked.unwrap() > 0;
        for value in values.clone() {
            for what in ["count", "size", "part", "first", "codec"] {
                for number in [1, LARGE] {
                    let (from, to) = (number * SIZE + 1, number * SIZE + SIZE);
                    fixture.with_batch("one", number, what, &value, || {
                        let told = lines(&fixture.store, "one", 0, usize::MAX);
                        assert_eq!(told.len(), 18, "{what} {value:?}");
                        let is_same =
                            (1..).zip(&told).all(|(seq, line)| *line == event("one", seq));
                        // The value may equal the original.
                        assert!(is_same || told[from as usize - 1] != event("one", from));
                        for (seq, line) in (1..).zip(&told) {
                            let is_other = !(from..=to).contains(&seq);
                            assert!(!is_other || *line == event("one", seq), "{what} {value:?}");
                        }
                        check_others(&fixture.store, "one");
                    });
                }
            }
            if is_checked && value != Value::Null {
                fixture.with_batch("two", 1, "checksum", &value, || {
                    check(&fixture.store, "two", &[(4, 6, "damaged")]);
                });
            }
        }
    }
}

/// Without a checksum, the content is checked anyway: it must be text, and events with these numbers.
#[test]
fn an_old_batch_that_is_no_log_is_damaged() {
    let fixture = StoreFixture::unchecked();
    let blob = fixture.blob("two", 1);
    let text = String::from_utf8(blob.clone()).unwrap();
    let mut not_text = blob;
    not_text[30] = 0xff;
    let wrong = [
        not_text,
        text.replacen('\n', " ", 1).into_bytes(),
        text.replacen('{', "[", 1).into_bytes(),
        text.replacen("\"seq\":5", "\"seq\":6", 1).into_bytes(),
        text.trim_end().as_bytes().to_vec(),
    ];
    for blob in wrong {
        fixture.with_batch("two", 1, "lines", &Value::Blob(blob), || {
            check(&fixture.store, "two", &[(4, 6, "damaged")]);
            check_others(&fixture.store, "two");
        });
    }
}

#[test]
fn what_is_gone_is_missing() {
    let fixture = StoreFixture::new();
    let delete = |session: &str, numbers: &str| {
        fixture.execute(&format!(
            "DELETE FROM batches WHERE session = (SELECT session FROM sessions WHERE id = '{session}') \
             AND (first - 1) / {SIZE} IN ({numbers})"
        ));
    };
    delete("one", "1, 2, 5");
    delete("two", "0");
    delete("three", "0");
    check(&fixture.store, "one", &[(4, 9, "missing"), (16, 18, "missing")]);
    check(&fixture.store, "two", &[(1, 3, "missing")]);
    check(&fixture.store, "three", &[(1, 3, "missing")]);
    let checked = fixture.check();
    assert_eq!(checked.lost(), 15);
    assert_eq!(
        checked.damage,
        [
            events("one", 4, 9, GapReason::Missing),
            events("one", 16, 18, GapReason::Missing),
            events("two", 1, 3, GapReason::Missing),
            events("three", 1, 3, GapReason::Missing),
        ]
    );
    // It continues after them.
    let next = of_batch("one", batch("one", 6));
    fixture.store.append(&[&next]).unwrap();
    assert_eq!(lines(&fixture.store, "one", 18, 1).len(), 3);
}

#[test]
fn a_large_hole_is_given_in_pieces() {
    let fixture = StoreFixture::new();
    let mut huge = record("huge", SessionState::Working, None, 100_000);
    let text: String = (1..=100_000).map(|_| "{}\n").collect();
    let batch = Batch { first: 1, count: 100_000, lines: text.into() };
    fixture.store.append(&[&of_batch("huge", batch)]).unwrap();
    huge.summary.state = SessionState::Ended;
    fixture.execute("DELETE FROM batches WHERE count = 100000");
    let page = fixture.store.read(&id("huge"), 0, 1).unwrap();
    assert!(page.iter().map(|batch| batch.lines.len()).sum::<usize>() < 200_000);
    assert_eq!(lines(&fixture.store, "huge", 0, 1 << 20).len(), 100_000);
}

/// A record's text, its state and its number of events.
#[test]
fn a_damaged_record_harms_no_other_session() {
    let fixture = StoreFixture::new();
    let text: String = fixture
        .file
        .query_row("SELECT record FROM sessions WHERE id = 'two'", (), |row| row.get(0))
        .unwrap();
    let mut chance = Chance(3);
    let mut wrong: Vec<(&str, Value)> = (0..40)
        .map(|_| {
            let mut bytes = text.clone().into_bytes();
            let at = chance.below(bytes.len() as u64) as usize;
            bytes[at] ^= 1 << chance.below(7);
            ("record", Value::Text(String::from_utf8(bytes).expect("seven bits")))
        })
        .collect();
    wrong.extend([
        ("record", Value::Text(String::new())),
        ("record", Value::Text("{}".to_owned())),
        ("record", Value::Blob(vec![0xff; 100])),
        ("record", Value::Integer(7)),
        ("state", Value::Text("worked".to_owned())),
        ("last", Value::Integer(1 << 45)),
        ("last", Value::Integer(-1)),
        ("last", Value::Integer(2)),
        ("last", Value::Text("x".to_owned())),
    ]);
    for (what, value) in wrong {
        let before: Value = fixture
            .file
            .query_row(&format!("SELECT {what} FROM sessions WHERE id = 'two'"), (), |row| {
                row.get(0)
            })
            .unwrap();
        let set = format!("UPDATE sessions SET {what} = ?1 WHERE id = 'two'");
        fixture.file.execute(&set, [&value]).unwrap();
        let list = fixture.store.sessions(&Filter::default()).unwrap();
        assert_eq!(list.len(), 3, "{what} {value:?}");
        for shown in list {
            let is_damaged = shown.summary.id == id("two");
            assert_eq!(shown.unfit.is_some(), is_damaged, "{what} {value:?}");
            assert_eq!(fixture.store.session(&shown.summary.id).unwrap(), Some(shown.clone()));
            assert_eq!(shown.summary.state, SessionState::Ended);
            if is_damaged {
                assert_eq!(shown.summary.last_seq, 12);
                assert_eq!(shown.summary.updated_at, "2026-01-02T03:04:05Z");
                assert!(shown.summary.error.unwrap().starts_with("damaged record"));
            }
        }
        check_others(&fixture.store, "");
        assert_eq!(fixture.check().damage, [Damage::Record(id("two"))], "{what} {value:?}");
        // It can be deleted, but not resumed.
        assert!(!fixture.store.claim(&id("two"), Some("nobody"), "me").unwrap());
        fixture.file.execute(&set, [&before]).unwrap();
    }
    assert_eq!(fixture.check().damage, []);
}

#[test]
fn what_a_newer_version_wrote_is_shown_with_what_is_known() {
    let fixture = StoreFixture::new();
    let set = |column: &str, from: &str, to: &str| {
        // As an agentwire without checksums would write it.
        fixture.execute(&format!(
            "UPDATE sessions SET {column} record = replace('{{' || substr(record, 24), '{from}', '{to}') \
             WHERE id = 'two'"
        ));
    };
    set("state = 'parked', ", r#""state":"ended""#, r#""state":"parked""#);
    let shown = fixture.store.session(&id("two")).unwrap().unwrap();
    assert!(shown.unfit.unwrap().contains("parked"));
    assert_eq!(shown.summary.title.as_deref(), Some("a title"));
    assert_eq!(shown.summary.state, SessionState::Ended);
    assert_eq!(shown.summary.last_seq, 12);
    assert_eq!(shown.summary.agent_type, AgentType::Demo);
    for live in [false, true] {
        let list = fixture.store.sessions(&Filter { live, ..Filter::default() }).unwrap();
        assert_eq!(list.len(), if live { 1 } else { 3 });
    }
    let fixture = StoreFixture::new();
    fixture.execute(
        "UPDATE sessions SET record = replace('{' || substr(record, 24), '\"demo\"', '\"newest\"') \
         WHERE id = 'two'",
    );
    let shown = fixture.store.session(&id("two")).unwrap().unwrap();
    assert!(shown.unfit.unwrap().contains("newest"));
    assert_eq!(shown.summary.title.as_deref(), Some("a title"));
    check_others(&fixture.store, "");
}

#[test]
fn a_damaged_answer_is_not_given_and_counts() {
    let fixture = StoreFixture::new();
    fixture.execute("UPDATE keys SET answer = 'twp' WHERE key = 'two/1'");
    let error = fixture.store.remembered("two/1").unwrap_err();
    assert!(matches!(&error, StoreError::Failed(text) if text.contains("two/1")), "{error:?}");
    assert_eq!(fixture.store.remembered("two/2").unwrap().as_deref(), Some("two"));
    assert_eq!(fixture.store.remembered("none").unwrap(), None);
    assert_eq!(fixture.check().damage, [Damage::Key("two/1".to_owned())]);
}

/// The checksum of a row as version 2 wrote it.
fn checksum_2(numbers: [u64; 5], lines: &[u8]) -> u32 {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    crc32fast::hash(&[&bytes[..], lines].concat())
}

/// What older versions wrote is read as it is; only what is added has the new form.
#[test]
fn an_older_database_is_brought_up_to_date() {
    let schemas = [
        include_str!("../src/store/sqlite/schema_1.sql"),
        include_str!("../src/store/sqlite/schema_2.sql"),
    ];
    for version in [1, 2] {
        let directory = tempfile::tempdir().unwrap();
        let file = Connection::open(path(directory.path())).unwrap();
        file.execute_batch(&schemas[..version].concat()).unwrap();
        file.pragma_update(None, "user_version", version).unwrap();
        let old = serde_json::to_string(&record("two", SessionState::Ended, None, 3)).unwrap();
        file.execute(
            "INSERT INTO sessions (id, state, owner, last, record) \
             VALUES ('two', 'ended', NULL, 3, ?1)",
            [old],
        )
        .unwrap();
        let lines = batch("two", 0).lines;
        let size = lines.len() as u64;
        file.execute(
            "INSERT INTO batches (session, first, part, count, size, lines) \
             VALUES (1, 1, 0, 3, ?1, ?2)",
            params![size, &lines[..]],
        )
        .unwrap();
        file.execute("INSERT INTO keys (key, session, answer) VALUES ('k', 1, 'two')", ()).unwrap();
        if version == 2 {
            let checksum = checksum_2([1, 1, 0, 3, size], &lines);
            file.execute("UPDATE batches SET checksum = ?1", [checksum]).unwrap();
        }
        let store = Sqlite::open(directory.path()).unwrap();
        assert_eq!(store.read(&id("two"), 0, 1).unwrap(), [batch("two", 0)]);
        let kept = store.session(&id("two")).unwrap().unwrap();
        assert_eq!(kept, record("two", SessionState::Ended, None, 3));
        assert_eq!(store.remembered("k").unwrap().as_deref(), Some("two"));
        store.append(&[&of_batch("two", batch("two", 1))]).unwrap();
        assert_eq!(
            store.read(&id("two"), 0, usize::MAX).unwrap(),
            [0, 1].map(|it| batch("two", it))
        );
        let forms: Vec<(bool, u8)> = file
            .prepare("SELECT checksum IS NOT NULL, codec FROM batches ORDER BY first")
            .unwrap()
            .query_map((), |row| Ok((row.get(0)?, row.get(1)?)))
            .unwrap()
            .collect::<Result<_, _>>()
            .unwrap();
        assert_eq!(forms, [(version == 2, 0), (true, 1)]);
        assert_eq!(store.check(&mut |_, _| ()).unwrap().damage, []);
    }
}

/// For any byte of the file: what is read is what was written, or is reported as damaged, or is an error.
#[test]
fn wherever_the_file_is_damaged_nothing_false_is_read() {
    let fixture = StoreFixture::new();
    fixture.file.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |_| Ok(())).unwrap();
    let whole = fs::read(path(fixture.directory.path())).unwrap();
    let StoreFixture { directory, store, file } = fixture;
    drop((store, file));
    let mut chance = Chance(11);
    let (mut served, mut refused) = (0, 0);
    for round in 0..120 {
        let mut bytes = whole.clone();
        // Most of the file is one large batch; the rest is where damage hurts.
        let bound = if round % 3 == 0 { bytes.len() } else { bytes.len().min(60_000) };
        let at = chance.below(bound as u64) as usize;
        bytes[at] ^= 1 << chance.below(8);
        for beside in ["agentwire.db-wal", "agentwire.db-shm"] {
            let _ = fs::remove_file(directory.path().join(beside));
        }
        fs::write(path(directory.path()), bytes).unwrap();
        let Ok(store) = Sqlite::open(directory.path()) else {
            refused += 1;
            continue;
        };
        let _ = store.sessions(&Filter::default());
        let _ = store.check(&mut |_, _| ());
        for (session, batches) in SESSIONS {
            let mut position = 0;
            while position < batches * SIZE
                && let Ok(page) = store.read(&id(session), position, usize::MAX)
                && !page.is_empty()
            {
                for (seq, line) in page.iter().flat_map(|batch| batch.events()) {
                    assert_eq!(seq, position + 1, "byte {at}");
                    position = seq;
                    let text = std::str::from_utf8(line).expect("text");
                    if text == event(session, seq) {
                        served += 1;
                    } else {
                        let value: serde_json::Value = serde_json::from_str(text).expect("JSON");
                        assert_eq!(value["type"], "error", "byte {at}: {text:.200}");
                    }
                }
            }
        }
    }
    assert!(served > 2_000 && refused < 40, "{served} served, {refused} refused");
}
