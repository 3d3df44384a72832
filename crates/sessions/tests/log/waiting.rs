//! Who waits for whom: a disk that hangs and a reader that stops hold up no one else.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentwire_sessions::log::EventLog;
use agentwire_sessions::store::Batch;
use agentwire_sessions::store::memory::Memory;
use bytes::Bytes;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

use crate::stores::gate::{Gate, Stop};
use crate::stores::{append, id, of_batch, sqlite};
use crate::{LONG, check, next, stores};

/// The writer waits for the disk, and no one else does: not even on the runtime's only thread.
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
                log.read_store(|store| store.read(&id("b"), 0, 1)).await.unwrap()
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

/// With several threads, the one that waits for the disk leaves everything else to the others: tasks that it
/// was about to run, sockets, timers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_disk_that_hangs_keeps_no_task_sockets_or_timers_waiting() {
    for _ in 0..200 {
        let (store, _directory) = sqlite();
        let gate = Gate::at_once(store);
        let log = EventLog::new(gate.clone());
        let writer = log.open(id("a"), 0);
        gate.stop_at(&[Stop::Before]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let echo = tokio::spawn(async move {
            let (mut socket, _) = listener.accept().await.unwrap();
            let mut byte = [0];
            while socket.read_exact(&mut byte).await.is_ok() {
                socket.write_all(&byte).await.unwrap();
            }
        });
        let mut socket = TcpStream::connect(address).await.unwrap();
        let (wake, woken) = oneshot::channel();
        let waiting = tokio::spawn(woken);
        let writing = tokio::spawn(async move {
            let queued: Vec<_> = (0..3).map(|_| tokio::spawn(async {})).collect();
            // The task that this wakes is the next one of this thread, which then waits for the disk.
            let _ = wake.send(());
            let committed = writer.submit(append("a", 1, 1));
            (committed.await, queued)
        });
        gate.stopped(Stop::Before).await;
        timeout(LONG, waiting).await.expect("it runs").unwrap().unwrap();
        for byte in 0..3 {
            timeout(LONG, async {
                socket.write_all(&[byte]).await.unwrap();
                assert_eq!(socket.read_u8().await.unwrap(), byte);
                sleep(Duration::from_millis(1)).await;
            })
            .await
            .expect("sockets and timers work");
        }
        assert!(!writing.is_finished());
        gate.stop_at(&[]);
        writing.await.unwrap().0.unwrap();
        drop(socket);
        echo.await.unwrap();
    }
}

/// A disk that hangs for readers takes only some of the threads that may block.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn readers_that_hang_leave_threads_to_the_others() {
    let log = EventLog::new(Arc::new(Memory::new()));
    let (holding, held) = watch::channel(());
    let hanging = (0..1000).map(|_| {
        let (log, mut held) = (log.clone(), held.clone());
        tokio::spawn(async move {
            log.read_store(move |_| {
                // Until the holder is gone.
                let _ = Handle::current().block_on(held.changed());
                Ok(())
            })
            .await
        })
    });
    let hanging: Vec<_> = hanging.collect();
    // Writing continues, and so does everything else that may block.
    let writer = log.open(id("a"), 0);
    timeout(LONG, writer.submit(append("a", 1, 1))).await.expect("it is kept").unwrap();
    let keys = log.write_store(|store| store.forget_key("none"));
    timeout(LONG, keys).await.expect("it is done").unwrap();
    timeout(LONG, tokio::task::spawn_blocking(|| ())).await.expect("a thread").unwrap();
    drop(holding);
    for asked in hanging {
        asked.await.unwrap().unwrap();
    }
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

/// Bytes that count how many of them exist.
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
