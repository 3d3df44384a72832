//! Durable before visible: readers see every event once and in order, and none before it is stored.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;

use agentwire_protocol::SessionState;
use agentwire_sessions::log::{EventLog, LogWriter};
use agentwire_sessions::store::memory::Memory;
use tokio::sync::oneshot;
use tokio::task::{JoinSet, yield_now};

use crate::stores::gate::{Gate, Stop};
use crate::stores::{Chance, append, change, id, record, sqlite};
use crate::{check, glance, next, poll_once, read_out};

/// Appends events in batches of random sizes and ends the session.
async fn write(writer: LogWriter, session: &str, total: u64, seed: u64) {
    let mut chance = Chance(seed);
    let mut last = 0;
    while last < total {
        let count = (chance.below(12) + 1).min(total - last);
        writer.submit(append(session, last + 1, count)).await.unwrap();
        last += count;
    }
    let ended = change(record(session, SessionState::Ended, None, last));
    writer.submit(ended).await.unwrap();
}

async fn churn(gate: Arc<Gate>) {
    const SESSIONS: [&str; 4] = ["a", "b", "c", "d"];
    const EVENTS: u64 = 3_000;
    let log = EventLog::new(gate.clone());
    let mut tasks = JoinSet::new();
    for (seed, session) in (1..).zip(SESSIONS) {
        let writer = log.open(id(session), 0);
        tasks.spawn(async move {
            write(writer, session, EVENTS, seed).await;
            EVENTS
        });
    }
    for reader in 0..40_u64 {
        let (log, gate) = (log.clone(), gate.clone());
        tasks.spawn(async move {
            let mut chance = Chance(reader + 99);
            let session = SESSIONS[reader as usize % SESSIONS.len()];
            let mut position = 0;
            // Each reader joins where it left off, or somewhere before, until it has seen the end.
            loop {
                position -= chance.below(position.min(100) + 1);
                let mut cursor = log.cursor(&id(session), position);
                let mut stay = chance.below(60) + 1;
                while stay > 0 {
                    if chance.below(3) == 0
                        && let Some(batch) = glance(&mut cursor).await
                    {
                        let Some(batch) = batch else { return position };
                        position = check(session, &batch, position);
                    }
                    let Some(batch) = next(&mut cursor).await else {
                        return position;
                    };
                    assert!(gate.durable(&id(session)) >= batch.last(), "not durable yet");
                    position = check(session, &batch, position);
                    stay -= 1;
                }
            }
        });
    }
    while let Some(last) = tasks.join_next().await {
        assert_eq!(last.unwrap(), EVENTS);
    }
    for session in SESSIONS {
        let last = read_out(&mut log.cursor(&id(session), 0), session).await;
        assert_eq!(last, EVENTS);
    }
    log.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_come_and_go_see_every_event_once_in_order_sqlite() {
    let (store, _directory) = sqlite();
    churn(Gate::new(store)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_come_and_go_see_every_event_once_in_order_at_once() {
    let (store, _directory) = sqlite();
    let gate = Gate::at_once(store);
    churn(gate.clone()).await;
    let taken = gate.taken_at_once.load(Ordering::Relaxed);
    assert!(taken > 0 && taken < gate.groups.lock().unwrap().len(), "{taken} at once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_come_and_go_see_every_event_once_in_order_memory() {
    churn(Gate::new(Arc::new(Memory::new()))).await;
}

#[tokio::test]
async fn nothing_is_visible_before_the_append_has_returned() {
    let (store, _directory) = sqlite();
    let gate = Gate::new(store);
    let log = EventLog::new(gate.clone());
    let writer = log.open(id("a"), 0);
    let mut early = log.cursor(&id("a"), 0);
    for first in 1..=20 {
        gate.stop_at(&[Stop::Before, Stop::After]);
        let mut committed = pin!(writer.submit(append("a", first, 1)));
        for (stop, left) in [(Stop::Before, &[Stop::After][..]), (Stop::After, &[])] {
            gate.stopped(stop).await;
            let mut late = log.cursor(&id("a"), first - 1);
            for _ in 0..10 {
                assert_eq!(glance(&mut early).await, None);
                assert_eq!(glance(&mut late).await, None);
                assert!(poll_once(&mut committed).await.is_none());
                yield_now().await;
            }
            gate.stop_at(left);
        }
        committed.await.unwrap();
        let batch = next(&mut early).await.unwrap();
        check("a", &batch, first - 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_at_once_is_visible_when_it_is_durable() {
    let (store, _directory) = sqlite();
    let gate = Gate::at_once(store);
    let log = EventLog::new(gate.clone());
    let (first, second) = (log.open(id("a"), 0), log.open(id("b"), 0));
    let mut of_first = log.cursor(&id("a"), 0);
    let mut of_second = log.cursor(&id("b"), 0);
    gate.stop_at(&[Stop::After]);
    // The caller writes it, and is held up here.
    let writing = thread::spawn(move || (first.submit(append("a", 1, 1)), first));
    gate.stopped(Stop::After).await;
    let mut waiting = pin!(second.submit(append("b", 1, 1)));
    for _ in 0..10 {
        assert_eq!(glance(&mut of_first).await, None);
        assert_eq!(glance(&mut of_second).await, None);
        assert!(poll_once(&mut waiting).await.is_none());
        yield_now().await;
    }
    gate.stop_at(&[]);
    let (committed, _first) = writing.join().unwrap();
    committed.await.unwrap();
    waiting.await.unwrap();
    check("a", &next(&mut of_first).await.unwrap(), 0);
    check("b", &next(&mut of_second).await.unwrap(), 0);
}

/// Readers see nothing of an append before those notified of it, and those notified find it in the log.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_told_of_an_append_is_neither_late_nor_early() {
    for gate in [Gate::new, Gate::at_once] {
        let (store, _directory) = sqlite();
        let log = EventLog::new(gate(store));
        let writer = log.open(id("a"), 0);
        for last in 0..200 {
            let (mut reader, mut finder) = (log.cursor(&id("a"), last), log.cursor(&id("a"), last));
            let ((tell, mut told), (call, called)) = (oneshot::channel(), oneshot::channel());
            let reading =
                tokio::spawn(async move { (next(&mut reader).await, told.try_recv().is_ok()) });
            let finding = tokio::spawn(async move {
                called.await.unwrap();
                glance(&mut finder).await
            });
            let submitted = writer.submit_with(append("a", last + 1, 1), move |result| {
                call.send(()).unwrap();
                thread::yield_now();
                tell.send(result.is_ok()).unwrap();
            });
            let (batch, was_told) = reading.await.unwrap();
            assert!(was_told);
            check("a", &batch.unwrap(), last);
            check("a", &finding.await.unwrap().expect("it is there").unwrap(), last);
            submitted.await.unwrap();
        }
        let (tell, told) = oneshot::channel();
        let refused = writer.submit_with(append("b", 1, 1), |result| {
            tell.send(result.map_err(Clone::clone)).unwrap();
        });
        assert_eq!(told.await.unwrap(), refused.await);
    }
}
