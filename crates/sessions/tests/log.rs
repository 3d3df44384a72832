//! What the log promises: durable before visible, history and live without seam, nobody waits for
//! a slow reader, nothing is lost when there is no room.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that finds something else has failed"
)]

mod stores;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::thread;
use std::time::Duration;

use agentwire_protocol::SessionState;
use agentwire_sessions::log::{Cursor, EventLog, LogWriter};
use agentwire_sessions::owner::Owner;
use agentwire_sessions::store::memory::Memory;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Append, Batch, Store, StoreError};
use bytes::Bytes;
use stores::gate::{Gate, Stop};
use stores::{Chance, append, change, id, line, of_batch, record, sqlite};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinSet, yield_now};
use tokio::time::timeout;

/// Long enough for any machine; a test that needs it has failed.
const LONG: Duration = Duration::from_secs(60);

async fn next(cursor: &mut Cursor) -> Option<Batch> {
    timeout(LONG, cursor.next()).await.expect("no deadlock").unwrap()
}

/// One look at a future.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|context| {
        Poll::Ready(match Pin::new(&mut *future).poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// One look at what comes next, by a caller that then gives up.
async fn glance(cursor: &mut Cursor) -> Option<Option<Batch>> {
    poll_once(&mut pin!(cursor.next())).await.map(Result::unwrap)
}

fn check(session: &str, batch: &Batch, position: u64) -> u64 {
    assert_eq!(batch.first, position + 1);
    let mut last = position;
    for (seq, text) in batch.events() {
        assert_eq!(seq, last + 1);
        assert_eq!(text, line(session, seq).as_bytes());
        last = seq;
    }
    assert_eq!(last, batch.last());
    last
}

/// Reads to the end and gives the last event.
async fn read_out(cursor: &mut Cursor, session: &str) -> u64 {
    let mut position = cursor.position();
    while let Some(batch) = next(cursor).await {
        position = check(session, &batch, position);
        assert_eq!(cursor.position(), position);
    }
    position
}

/// Adds events in batches of chance sizes and ends the session.
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

/// A session whose owner failed is read on until somebody has told its end.
async fn ends_when_told(store: Arc<dyn Store>, owner: &str) {
    let log = EventLog::new(Arc::clone(&store));
    let writer = log.open(id("a"), 0);
    let owned = |state, last| record("a", state, Some(owner), last);
    let first = Append { record: owned(SessionState::Working, 1), ..append("a", 1, 1) };
    writer.submit(first).await.unwrap();
    let mut cursor = log.cursor(&id("a"), 0);
    assert_eq!(next(&mut cursor).await.map(|batch| batch.last()), Some(1));
    drop(writer);
    // What is handed over later is done later.
    log.open(id("b"), 0).submit(append("b", 1, 1)).await.unwrap();
    let end = Append { record: owned(SessionState::Ended, 2), ..append("a", 2, 1) };
    store.append(&[&end]).unwrap();
    assert_eq!(next(&mut cursor).await.map(|batch| batch.last()), Some(2));
    assert_eq!(next(&mut cursor).await, None);
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
            // Each joins where it left, or somewhere before, until it has seen the end.
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
    // Whoever hands it over writes it, and is held up here.
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

/// Readers see nothing of an append before whoever is told of it, and whoever is told finds it there.
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
            let submitted = writer.submit_telling(append("a", last + 1, 1), move |result| {
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
        let refused = writer.submit_telling(append("b", 1, 1), |result| {
            tell.send(result.map_err(Clone::clone)).unwrap();
        });
        assert_eq!(told.await.unwrap(), refused.await);
    }
}

/// Whoever writes waits for the disk, and nobody else: not even on the runtime's only thread.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn a_disk_that_hangs_keeps_no_thread_from_the_others() {
    for gate in [Gate::new, Gate::at_once] {
        let (store, _directory) = sqlite();
        let gate = gate(store);
        let log = EventLog::new(gate.clone());
        let (writer, other) = (log.open(id("a"), 0), log.open(id("b"), 0));
        other.submit(append("b", 1, 3)).await.unwrap();
        gate.stop_at(&[Stop::Before]);
        let writing = tokio::spawn(async move { writer.submit(append("a", 1, 1)).await });
        gate.stopped(Stop::Before).await;
        let readers = (0..100).map(|_| {
            let log = log.clone();
            tokio::spawn(async move {
                // From memory, and from the store.
                let mut cursor = log.cursor(&id("b"), 0);
                check("b", &next(&mut cursor).await.unwrap(), 0);
                log.ask(|store| store.read(&id("b"), 0, 1)).await.unwrap()
            })
        });
        for reading in readers.collect::<Vec<_>>() {
            let read = timeout(LONG, reading).await.expect("it is served").unwrap();
            assert_eq!(read, [stores::batch("b", 1, 3)]);
        }
        assert!(!writing.is_finished());
        gate.stop_at(&[]);
        writing.await.unwrap().unwrap();
    }
}

/// A disk that hangs for those who read takes no more than some of the threads that may block.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn readers_that_hang_leave_threads_to_the_others() {
    let log = EventLog::new(Arc::new(Memory::new()));
    let (holding, held) = watch::channel(());
    let hanging = (0..1000).map(|_| {
        let (log, mut held) = (log.clone(), held.clone());
        tokio::spawn(async move {
            log.ask(move |_| {
                // Until whoever holds it is gone.
                let _ = Handle::current().block_on(held.changed());
                Ok(())
            })
            .await
        })
    });
    let hanging: Vec<_> = hanging.collect();
    // Writing goes on, and so does all else that may block.
    let writer = log.open(id("a"), 0);
    timeout(LONG, writer.submit(append("a", 1, 1))).await.expect("it is kept").unwrap();
    let keys = log.change(|store| store.forget_key("none"));
    timeout(LONG, keys).await.expect("it is done").unwrap();
    timeout(LONG, tokio::task::spawn_blocking(|| ())).await.expect("a thread").unwrap();
    drop(holding);
    for asked in hanging {
        asked.await.unwrap().unwrap();
    }
}

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
    // What is long is never written at once.
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
    // Whoever does not wait takes nothing back.
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
        // Reads go on.
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
async fn cursors_end_with_the_session_and_go_on_when_it_is_opened_again() {
    let (sqlite, _directory) = sqlite();
    for store in [sqlite, Arc::new(Memory::new())] {
        let log = EventLog::new(store);
        let writer = log.open(id("a"), 0);
        let mut cursor = log.cursor(&id("a"), 0);
        let reading = tokio::spawn(async move { read_out(&mut cursor, "a").await });
        writer.submit(append("a", 1, 2)).await.unwrap();
        // Dropped at once: the last events come before the end all the same.
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
    // These and the end of their session gather.
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

fn bytes_batch(first: u64, mut text: Vec<u8>) -> Batch {
    text.push(b'\n');
    Batch { first, count: 1, lines: text.into() }
}

#[tokio::test]
async fn readers_that_keep_up_never_touch_the_store() {
    let (store, _directory) = sqlite();
    let gate = Gate::new(store);
    let log = EventLog::new(gate.clone());
    let writer = log.open(id("a"), 0);
    let mut cursor = log.cursor(&id("a"), 0);
    for first in 1..=200 {
        let committed = writer.submit(append("a", first, 1));
        check("a", &next(&mut cursor).await.unwrap(), first - 1);
        committed.await.unwrap();
    }
    assert_eq!(gate.reads.load(Ordering::Relaxed), 0);
}

/// Bytes that count how many of them there are.
struct Counted(Vec<u8>, Arc<AtomicUsize>);

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.fetch_sub(self.0.len(), Ordering::Relaxed);
    }
}

#[tokio::test]
async fn a_reader_that_stops_holds_nobody_up_and_no_memory() {
    let (store, _directory) = sqlite();
    let log = EventLog::new(store);
    let writer = log.open(id("a"), 0);
    let held = Arc::new(AtomicUsize::new(0));
    let batch = |first| {
        let mut text = vec![b'x'; 40_000];
        text[..20].copy_from_slice(format!("{first:020}").as_bytes());
        text.push(b'\n');
        held.fetch_add(text.len(), Ordering::Relaxed);
        Batch { first, count: 1, lines: Bytes::from_owner(Counted(text, held.clone())) }
    };
    let mut stalled = log.cursor(&id("a"), 0);
    let mut healthy = log.cursor(&id("a"), 0);
    let mut most = 0;
    for first in 1..=1_000 {
        writer.submit(of_batch("a", batch(first))).await.unwrap();
        if first == 1 {
            assert_eq!(next(&mut stalled).await.unwrap().first, 1);
        }
        assert_eq!(next(&mut healthy).await.unwrap().first, first);
        most = most.max(held.load(Ordering::Relaxed));
    }
    assert!(most <= 256 * 1024 + 100_000, "{most} bytes held");
    for first in 2..=1_000 {
        let batch = next(&mut stalled).await.unwrap();
        assert_eq!(batch.first, first);
        assert!(batch.lines.starts_with(format!("{first:020}").as_bytes()));
    }
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
    // Its end is written by whoever closes it; who reads writes nothing.
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
