//! How cursors end: with the session, with its process, and never before its last events.

use std::sync::Arc;

use agentwire_protocol::SessionState;
use agentwire_sessions::log::EventLog;
use agentwire_sessions::owner::Owner;
use agentwire_sessions::store::memory::Memory;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Append, Store, StoreError};
use tokio::time::timeout;

use crate::stores::gate::{Gate, Stop};
use crate::stores::{append, id, of_batch, record, sqlite};
use crate::{LONG, bytes_batch, check, glance, next, read_out};

#[tokio::test]
async fn cursors_end_with_the_session_and_go_on_when_it_is_opened_again() {
    let (sqlite, _directory) = sqlite();
    for store in [sqlite, Arc::new(Memory::new())] {
        let log = EventLog::new(store);
        let writer = log.open(id("a"), 0);
        let mut cursor = log.cursor(&id("a"), 0);
        let reading = tokio::spawn(async move { read_out(&mut cursor, "a").await });
        writer.submit(append("a", 1, 2)).await.unwrap();
        // Dropped at once: the last events still come before the end.
        drop(writer.submit(append("a", 3, 2)));
        drop(writer);
        assert_eq!(timeout(LONG, reading).await.unwrap().unwrap(), 4);
        assert_eq!(read_out(&mut log.cursor(&id("a"), 2), "a").await, 4);
        let writer = log.open(id("a"), 4);
        let mut cursor = log.cursor(&id("a"), 1);
        check("a", &next(&mut cursor).await.unwrap(), 1);
        check("a", &next(&mut cursor).await.unwrap(), 2);
        assert_eq!(glance(&mut cursor).await, None);
        writer.submit(append("a", 5, 1)).await.unwrap();
        check("a", &next(&mut cursor).await.unwrap(), 4);
        drop(writer);
        assert_eq!(next(&mut cursor).await, None);
        assert_eq!(next(&mut cursor).await, None);
        assert_eq!(next(&mut log.cursor(&id("nobody"), 0)).await, None);
        assert_eq!(next(&mut log.cursor(&id("a"), 77)).await, None);
    }
}

#[tokio::test]
async fn the_last_events_come_before_the_end() {
    let gate = Gate::new(Arc::new(Memory::new()));
    let log = EventLog::new(gate.clone());
    let (a, b) = (log.open(id("a"), 0), log.open(id("b"), 0));
    let mut cursor = log.cursor(&id("b"), 0);
    gate.stop_at(&[Stop::Before]);
    let first = a.submit(append("a", 1, 1));
    gate.stopped(Stop::Before).await;
    // These and the end of their session are queued together.
    drop(b.submit(append("b", 1, 2)));
    drop(b);
    assert_eq!(glance(&mut cursor).await, None);
    gate.stop_at(&[Stop::After]);
    gate.stopped(Stop::After).await;
    gate.stop_at(&[Stop::Before]);
    first.await.unwrap();
    gate.stopped(Stop::Before).await;
    assert_eq!(glance(&mut cursor).await, None);
    gate.stop_at(&[]);
    assert_eq!(read_out(&mut cursor, "b").await, 2);
}

#[tokio::test]
async fn a_deleted_session_ends_its_cursors() {
    let (store, _directory) = sqlite();
    let log = EventLog::new(store);
    let writer = log.open(id("a"), 0);
    let big = vec![b'x'; 300_000];
    for first in 1..=3 {
        writer.submit(of_batch("a", bytes_batch(first, big.clone()))).await.unwrap();
    }
    log.store().delete(&[id("a")]).unwrap();
    assert_eq!(next(&mut log.cursor(&id("a"), 0)).await, None);
    let late = writer.submit(append("a", 4, 1)).await;
    assert!(matches!(late, Err(StoreError::Conflict(_))), "{late:?}");
}

/// A session whose owner failed is read until someone has written its end.
async fn ends_when_told(store: Arc<dyn Store>, owner: &str) {
    let log = EventLog::new(Arc::clone(&store));
    let writer = log.open(id("a"), 0);
    let owned = |state, last| record("a", state, Some(owner), last);
    let first = Append { record: owned(SessionState::Working, 1), ..append("a", 1, 1) };
    writer.submit(first).await.unwrap();
    let mut cursor = log.cursor(&id("a"), 0);
    assert_eq!(next(&mut cursor).await.map(|batch| batch.last()), Some(1));
    drop(writer);
    // What is submitted later is done later.
    log.open(id("b"), 0).submit(append("b", 1, 1)).await.unwrap();
    let end = Append { record: owned(SessionState::Ended, 2), ..append("a", 2, 1) };
    store.append(&[&end]).unwrap();
    assert_eq!(next(&mut cursor).await.map(|batch| batch.last()), Some(2));
    assert_eq!(next(&mut cursor).await, None);
}

fn owned(owner: &Owner, mut append: Append) -> Append {
    append.record.owner = Some(owner.name().to_owned());
    append
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_reads_a_session_that_failed_hears_of_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let owner = Owner::claim(directory.path()).unwrap();
    let store = Arc::new(Sqlite::open(directory.path()).unwrap());
    ends_when_told(store, owner.name()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_another_process_is_followed_to_its_end() {
    let directory = tempfile::tempdir().unwrap();
    let ours = EventLog::new(Arc::new(Sqlite::open(directory.path()).unwrap()));
    let theirs = EventLog::new(Arc::new(Sqlite::open(directory.path()).unwrap()));
    let owner = Owner::claim(directory.path()).unwrap();
    let writer = theirs.open(id("a"), 0);
    writer.submit(owned(&owner, append("a", 1, 3))).await.unwrap();
    let mut cursor = ours.cursor(&id("a"), 0);
    check("a", &next(&mut cursor).await.unwrap(), 0);
    for first in 4..=30 {
        assert_eq!(glance(&mut cursor).await, None);
        writer.submit(owned(&owner, append("a", first, 1))).await.unwrap();
        check("a", &next(&mut cursor).await.unwrap(), first - 1);
    }
    let mut last = append("a", 31, 1);
    last.record.summary.state = SessionState::Ended;
    writer.submit(last).await.unwrap();
    assert_eq!(read_out(&mut cursor, "a").await, 31);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_process_died_stops_and_can_be_taken_over() {
    let directory = tempfile::tempdir().unwrap();
    let ours = EventLog::new(Arc::new(Sqlite::open(directory.path()).unwrap()));
    let theirs = EventLog::new(Arc::new(Sqlite::open(directory.path()).unwrap()));
    let owner = Owner::claim(directory.path()).unwrap();
    let writer = theirs.open(id("a"), 0);
    writer.submit(owned(&owner, append("a", 1, 3))).await.unwrap();
    let mut cursor = ours.cursor(&id("a"), 0);
    check("a", &next(&mut cursor).await.unwrap(), 0);
    assert_eq!(glance(&mut cursor).await, None);
    drop(owner);
    // The process that closes it writes its end; a reader writes nothing.
    assert_eq!(next(&mut cursor).await, None);
    let record = ours.store().session(&id("a")).unwrap().unwrap();
    assert_eq!((record.summary.state, record.summary.last_seq), (SessionState::Working, 3));

    let owner = Owner::claim(directory.path()).unwrap();
    let dead = record.owner.as_deref();
    assert!(ours.store().claim(&id("a"), dead, owner.name()).unwrap());
    let writer = ours.open(id("a"), 3);
    writer.submit(owned(&owner, append("a", 4, 1))).await.unwrap();
    check("a", &next(&mut cursor).await.unwrap(), 3);
}
