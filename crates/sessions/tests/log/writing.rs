//! Submitted appends: what becomes one transaction, what is refused, and what is tried again.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use agentwire_sessions::log::EventLog;
use agentwire_sessions::store::memory::Memory;
use agentwire_sessions::store::{Append, StoreError};
use tokio::time::timeout;

use crate::stores::gate::{Gate, Stop};
use crate::stores::{append, id, sqlite};
use crate::{LONG, bytes_batch, check, glance, next, poll_once, read_out};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_cannot_be_written_at_once_is_left_to_the_thread() {
    let (store, _directory) = sqlite();
    let gate = Gate::at_once(store);
    let log = EventLog::new(gate.clone());
    let writer = log.open(id("a"), 0);
    gate.refuse(Some(StoreError::Full("no room".to_owned())));
    let mut committed = pin!(writer.submit(append("a", 1, 1)));
    gate.refused(3).await;
    assert!(poll_once(&mut committed).await.is_none());
    gate.refuse(None);
    committed.await.unwrap();
    // A long append is never written directly by the caller.
    let taken = gate.taken_at_once.load(Ordering::Relaxed);
    assert_eq!(taken, 1);
    let long = Append { batch: Some(bytes_batch(2, vec![b'x'; 100 << 10])), ..append("a", 2, 1) };
    writer.submit(long).await.unwrap();
    assert_eq!(gate.taken_at_once.load(Ordering::Relaxed), taken);
}

#[tokio::test]
async fn what_gathers_while_a_commit_runs_is_one_transaction() {
    let gate = Gate::new(Arc::new(Memory::new()));
    let log = EventLog::new(gate.clone());
    let names: Vec<String> = (0..20).map(|name| format!("s{name}")).collect();
    let writers: Vec<_> = names.iter().map(|name| log.open(id(name), 0)).collect();
    gate.stop_at(&[Stop::Before]);
    let first = writers[0].submit(append("s0", 1, 1));
    gate.stopped(Stop::Before).await;
    let rest: Vec<_> =
        (1..20).map(|place| writers[place].submit(append(&names[place], 1, 2))).collect();
    gate.stop_at(&[]);
    first.await.unwrap();
    for committed in rest {
        committed.await.unwrap();
    }
    assert_eq!(*gate.groups.lock().unwrap(), [1, 19]);
}

#[tokio::test]
async fn one_that_cannot_be_kept_does_not_harm_the_others() {
    let (store, _directory) = sqlite();
    let gate = Gate::new(store);
    let log = EventLog::new(gate.clone());
    let writers = ["a", "b", "c"].map(|name| log.open(id(name), 0));
    gate.stop_at(&[Stop::Before]);
    let first = writers[0].submit(append("a", 1, 1));
    gate.stopped(Stop::Before).await;
    let good = writers[1].submit(append("b", 1, 3));
    let bad = writers[2].submit(append("c", 7, 3));
    gate.stop_at(&[]);
    first.await.unwrap();
    good.await.unwrap();
    assert!(matches!(bad.await, Err(StoreError::Conflict(_))));
    assert_eq!(log.stuck(), None);
    writers[2].submit(append("c", 1, 1)).await.unwrap();
    let mut cursor = log.cursor(&id("c"), 0);
    check("c", &next(&mut cursor).await.unwrap(), 0);
}

#[tokio::test]
async fn a_session_has_one_append_under_way() {
    let gate = Gate::new(Arc::new(Memory::new()));
    let log = EventLog::new(gate.clone());
    let writer = log.open(id("a"), 0);
    gate.stop_at(&[Stop::Before]);
    let first = writer.submit(append("a", 1, 1));
    let second = writer.submit(append("a", 2, 1)).await;
    assert!(matches!(second, Err(StoreError::Failed(_))), "{second:?}");
    let other = log.open(id("b"), 0).submit(append("c", 1, 1)).await;
    assert!(matches!(other, Err(StoreError::Failed(_))), "{other:?}");
    gate.stop_at(&[]);
    first.await.unwrap();
    writer.submit(append("a", 2, 1)).await.unwrap();
    // Dropping the future does not undo the append.
    drop(writer.submit(append("a", 3, 1)));
    let mut cursor = log.cursor(&id("a"), 2);
    check("a", &next(&mut cursor).await.unwrap(), 2);
}

#[tokio::test]
async fn without_room_all_is_kept_and_tried_again() {
    let (store, _directory) = sqlite();
    let gate = Gate::new(store);
    let log = EventLog::new(gate.clone());
    let (a, b) = (log.open(id("a"), 0), log.open(id("b"), 0));
    a.submit(append("a", 1, 5)).await.unwrap();
    for (round, full) in
        [StoreError::Full("no room".to_owned()), StoreError::Busy("locked".to_owned())]
            .into_iter()
            .enumerate()
    {
        let round = round as u64;
        assert_eq!(log.stuck(), None);
        gate.refuse(Some(full.clone()));
        let seen = *gate.refused.borrow();
        let mut first = pin!(a.submit(append("a", 6 + round, 1)));
        gate.refused(seen + 2).await;
        let second = b.submit(append("b", 1 + round * 2, 2));
        gate.refused(seen + 4).await;
        assert_eq!(log.stuck(), Some(full));
        assert!(poll_once(&mut first).await.is_none());
        // Reads continue.
        let mut cursor = log.cursor(&id("a"), 0);
        check("a", &next(&mut cursor).await.unwrap(), 0);
        gate.refuse(None);
        first.await.unwrap();
        second.await.unwrap();
    }
    assert_eq!(log.stuck(), None);
    drop((a, b));
    assert_eq!(read_out(&mut log.cursor(&id("a"), 0), "a").await, 7);
    assert_eq!(read_out(&mut log.cursor(&id("b"), 0), "b").await, 4);
}

#[tokio::test]
async fn shutting_down_keeps_what_was_handed_over() {
    let (store, _directory) = sqlite();
    let gate = Gate::new(store);
    let log = EventLog::new(gate.clone());
    let writers = ["a", "b", "c"].map(|name| log.open(id(name), 0));
    let mut cursor = log.cursor(&id("b"), 0);
    assert_eq!(glance(&mut cursor).await, None);
    gate.stop_at(&[Stop::Before]);
    let first = writers[0].submit(append("a", 1, 1));
    gate.stopped(Stop::Before).await;
    let second = writers[1].submit(append("b", 1, 2));
    let mut shutdown = Box::pin(log.shutdown());
    assert!(poll_once(&mut shutdown).await.is_none());
    let late = writers[2].submit(append("c", 1, 1)).await;
    assert!(matches!(late, Err(StoreError::Failed(_))), "{late:?}");
    gate.stop_at(&[]);
    timeout(LONG, shutdown).await.unwrap();
    first.await.unwrap();
    second.await.unwrap();
    assert_eq!(read_out(&mut cursor, "b").await, 2);
    assert_eq!(read_out(&mut log.cursor(&id("a"), 0), "a").await, 1);
    let _late = log.open(id("d"), 0);
    assert_eq!(next(&mut log.cursor(&id("d"), 0)).await, None);
    log.shutdown().await;
}

#[tokio::test]
async fn shutting_down_without_room_gives_up_and_says_so() {
    let gate = Gate::new(Arc::new(Memory::new()));
    let log = EventLog::new(gate.clone());
    let writer = log.open(id("a"), 0);
    let full = StoreError::Full("no room".to_owned());
    gate.refuse(Some(full.clone()));
    let committed = writer.submit(append("a", 1, 1));
    gate.refused(1).await;
    timeout(LONG, log.shutdown()).await.unwrap();
    assert_eq!(committed.await, Err(full));
    assert_eq!(next(&mut log.cursor(&id("a"), 0)).await, None);
}
