//! What only shows with direct access to the connection: no room, a lock, an interrupted delete.

use agentwire_protocol::{
    AgentType, SessionConfig, SessionId, SessionState, SessionSummary, TokenUsage,
};
use tempfile::TempDir;

use super::*;
use crate::store::Open;

fn store() -> (Sqlite, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Sqlite::open(directory.path()).unwrap(), directory)
}

/// One event of this size, of bytes that no compression makes smaller.
fn append(first: u64, size: usize) -> Append {
    let mut state = first;
    let noise = std::iter::repeat_with(|| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let byte = (state >> 56) as u8;
        if byte == b'\n' { 0 } else { byte }
    });
    let mut lines: Vec<u8> = noise.take(size).collect();
    lines.push(b'\n');
    Append {
        batch: Some(Batch { first, count: 1, lines: lines.into() }),
        record: Record {
            summary: SessionSummary {
                id: "a".into(),
                agent_type: AgentType::Demo,
                state: SessionState::Idle,
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
                created_at: String::new(),
                updated_at: String::new(),
                last_seq: first,
                turns: 0,
                last_turn: None,
                usage: TokenUsage::default(),
                cost_usd: None,
                open_requests: 0,
                pinned: false,
                tags: Vec::new(),
            },
            owner: None,
            config: SessionConfig::default(),
            open: Open::default(),
            client: None,
            unfit: None,
            unkept: Vec::new(),
            native_since: None,
            first_prompt: None,
        },
        keys: Vec::new(),
    }
}

fn set_room(store: &Sqlite, pages: u32) {
    let writer = store.writer();
    let set = writer.connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()));
    set.unwrap();
}

#[test]
fn without_room_nothing_is_kept_and_with_room_it_goes_on() {
    let (store, _directory) = store();
    store.append(&[&append(1, 100)]).unwrap();
    set_room(&store, 40);
    for _ in 0..3 {
        let error = store.append(&[&append(2, 1_000_000)]);
        assert!(matches!(error, Err(StoreError::Full(_))), "{error:?}");
    }
    let session = SessionId::from("a");
    assert_eq!(store.read(&session, 0, usize::MAX).unwrap().len(), 1);
    assert_eq!(store.session(&session).unwrap().unwrap().summary.last_seq, 1);
    store.append(&[&append(2, 1_000)]).unwrap();
    set_room(&store, 4_000);
    store.append(&[&append(3, 1_000_000)]).unwrap();
    let kept = store.read(&session, 0, usize::MAX).unwrap();
    assert_eq!(kept.last().map(Batch::last), Some(3));
}

#[test]
fn a_lock_is_waited_for_and_then_busy() {
    let (store, directory) = store();
    let other = Sqlite::open(directory.path()).unwrap();
    store.writer().connection.busy_timeout(Duration::from_millis(10)).unwrap();
    let mut holder = other.writer();
    let held = holder.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let error = store.append(&[&append(1, 1)]);
    assert!(matches!(error, Err(StoreError::Busy(_))), "{error:?}");
    // Reads continue meanwhile.
    assert_eq!(store.read(&"a".into(), 0, 1).unwrap(), []);
    drop(held);
    store.append(&[&append(1, 1)]).unwrap();
}

#[test]
fn at_once_nobody_is_waited_for() {
    let (store, directory) = store();
    assert_eq!(store.append_at_once(&append(1, 100)), Some(Ok(())));
    let other = Sqlite::open(directory.path()).unwrap();
    let mut other = other.writer();
    let taken = other.connection.transaction_with_behavior(TransactionBehavior::Immediate).unwrap();
    let busy = store.append_at_once(&append(2, 100));
    assert!(matches!(busy, Some(Err(StoreError::Busy(_)))), "{busy:?}");
    taken.rollback().unwrap();
    let held = store.writer();
    assert_eq!(store.append_at_once(&append(2, 100)), None);
    drop(held);
    assert_eq!(store.append_at_once(&append(2, 100)), Some(Ok(())));
    let kept = store.read(&SessionId::from("a"), 0, usize::MAX).unwrap();
    assert_eq!(kept.last().map(Batch::last), Some(2));
}

#[test]
fn the_log_is_copied_beside_the_appends_and_begins_anew() {
    let (store, _directory) = store();
    store.append(&[&append(1, 100)]).unwrap();
    let before = restarts(&store);
    for first in 2..=21 {
        store.append(&[&append(first, 1 << 20)]).unwrap();
    }
    let begun = Instant::now();
    for first in 22.. {
        store.append(&[&append(first, 100)]).unwrap();
        if restarts(&store) > before {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the log keeps growing");
    }
}

/// How often the log has restarted, as its header says.
fn restarts(store: &Sqlite) -> u32 {
    let log = std::fs::read(connect::log_path(&store.path)).unwrap();
    u32::from_be_bytes(*log[12..].first_chunk().unwrap())
}

#[test]
#[expect(clippy::print_stderr, reason = "says why a test is skipped")]
fn room_in_the_log_is_made_before_it_is_needed_and_is_not_read_as_events() {
    let (store, directory) = store();
    let disk = rustix::fs::statvfs(directory.path()).unwrap();
    if disk.f_bavail * disk.f_frsize < 2 << 30 {
        eprintln!("skipped: no room is made on a disk that is almost full");
        return;
    }
    let log = connect::log_path(&store.path);
    let mut last = 0;
    let begun = Instant::now();
    // Each adds less than 64 KiB to the log, so only what makes room adds a step.
    let mut length = connect::length(&log);
    loop {
        last += 1;
        store.append(&[&append(last, 1_000)]).unwrap();
        let before = std::mem::replace(&mut length, connect::length(&log));
        if length > before + (1 << 19) {
            break;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the log gets no room");
    }
    // Another process reads what was appended, and continues.
    let other = Sqlite::open(directory.path()).unwrap();
    other.append(&[&append(last + 1, 1_000)]).unwrap();
    store.append(&[&append(last + 2, 1_000)]).unwrap();
    let copy = tempfile::tempdir().unwrap();
    // As after a crash: the index of the log is made again from its file.
    for name in ["agentwire.db", "agentwire.db-wal"] {
        std::fs::copy(directory.path().join(name), copy.path().join(name)).unwrap();
    }
    for directory in [directory.path(), copy.path()] {
        let store = Sqlite::open(directory).unwrap();
        let kept = store.read(&SessionId::from("a"), 0, usize::MAX).unwrap();
        assert_eq!(kept.len() as u64, last + 2);
        assert!(store.check(&mut |_, _| ()).unwrap().damage.is_empty());
    }
}

#[test]
fn a_delete_that_was_cut_off_is_ended_by_the_next() {
    let (store, directory) = store();
    for first in 1..=300 {
        store.append(&[&append(first, 5_000)]).unwrap();
    }
    let session = SessionId::from("a");
    let doomed =
        store.writer().change("delete", |transaction| Ok(rows::doom(transaction, &session)?));
    doomed.unwrap();
    drop(store);
    let store = Sqlite::open(directory.path()).unwrap();
    assert_eq!(store.session(&session).unwrap(), None);
    let before = store.status().unwrap();
    store.append(&[&append(1, 1)]).unwrap();
    store.delete(&[]).unwrap();
    assert_eq!(store.read(&session, 0, usize::MAX).unwrap().len(), 1);
    // Their space is used again.
    assert!(store.status().unwrap().free_bytes > 1_500_000);
    for first in 2..=280 {
        store.append(&[&append(first, 5_000)]).unwrap();
    }
    assert_eq!(store.status().unwrap().bytes, before.bytes);
}

/// Waits until a log that is too long was restarted, or could not be, and returns its next limit.
fn tried(store: &Sqlite) -> u64 {
    let begun = Instant::now();
    loop {
        let limit = store.writer().log_limit;
        if limit > 0 {
            return limit;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the log is not restarted");
        thread::yield_now();
    }
}

#[test]
fn the_log_begins_anew_although_there_are_readers() {
    let (store, directory) = store();
    store.writer().log_limit = 0;
    store.append(&[&append(1, 20_000_000)]).unwrap();
    tried(&store);
    // A reader holds an old state: the restart fails, and nothing is lost by trying.
    let old = connect::reader(&directory.path().join("agentwire.db")).unwrap();
    old.execute_batch("BEGIN; SELECT count(*) FROM sessions").unwrap();
    store.writer().log_limit = 0;
    store.append(&[&append(2, 20_000_000)]).unwrap();
    assert!(tried(&store) > LOG_LIMIT);
    drop(old);
    store.writer().log_limit = 0;
    store.append(&[&append(3, 20_000_000)]).unwrap();
    assert_eq!(tried(&store), LOG_LIMIT);
    let long = store.status().unwrap().log_bytes;
    assert!(long > connect::LOG_KEPT, "{long}");
    store.append(&[&append(4, 1)]).unwrap();
    let short = store.status().unwrap().log_bytes;
    assert!(short <= connect::LOG_KEPT, "{short}");
    let kept = store.read(&"a".into(), 0, usize::MAX).unwrap();
    assert_eq!(kept.len(), 4);
}

#[test]
fn a_database_behind_a_link_is_opened() {
    let (store, real) = store();
    store.append(&[&append(1, 1)]).unwrap();
    drop(store);
    let linked = tempfile::tempdir().unwrap();
    let name = "agentwire.db";
    std::os::unix::fs::symlink(real.path().join(name), linked.path().join(name)).unwrap();
    let store = Sqlite::open(linked.path()).unwrap();
    store.append(&[&append(2, 1)]).unwrap();
    assert_eq!(store.read(&"a".into(), 0, usize::MAX).unwrap().len(), 2);
}
