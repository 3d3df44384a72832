//! Calls that hang, and what continues meanwhile.

use std::sync::mpsc;
use std::time::Duration;

use super::Pool;

/// Long enough for any call that does not hang.
const LONG: Duration = Duration::from_secs(60);

/// A call that hangs until it is released, and reports when it has ended.
fn hang(pool: &'static Pool) -> (mpsc::SyncSender<()>, mpsc::Receiver<()>) {
    let (release, hangs) = mpsc::sync_channel::<()>(1);
    let (over, ended) = mpsc::sync_channel(1);
    let call = move || {
        let _ = hangs.recv();
        over.send(()).unwrap();
    };
    assert_eq!(pool.answer(call, Duration::ZERO), None);
    (release, ended)
}

#[test]
fn calls_that_hang_get_no_answer_and_hold_up_no_other() {
    static POOL: Pool = Pool::new(2, 3);
    let mut held = Vec::new();
    for _ in 0..4 {
        held.push(hang(&POOL));
        assert_eq!(POOL.answer(|| 1, LONG), Some(1));
    }
    held.push(hang(&POOL));
    // The maximum number hangs: no more threads are created, and no caller waits.
    assert_eq!(POOL.answer(|| 1, LONG), None);
    assert_eq!(POOL.threads().count, 5);
    for (release, ended) in held {
        drop(release);
        ended.recv().unwrap();
    }
    // Of the threads that return, only as many stay as are needed.
    while POOL.threads().left > 0 || POOL.threads().idle.len() < 2 {
        std::thread::yield_now();
    }
    assert_eq!(POOL.answer(|| 1, LONG), Some(1));
    assert_eq!(POOL.threads().count, 2);
}

#[test]
fn other_tasks_go_on_while_one_waits() {
    static POOL: Pool = Pool::new(1, 1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (release, hangs) = mpsc::sync_channel(1);
    let waits = runtime.spawn(async move { POOL.answer(move || hangs.recv().unwrap(), LONG) });
    // On the only thread of this runtime, this runs only if the other task does not block it.
    runtime.spawn(async move { release.send(7).unwrap() });
    assert_eq!(runtime.block_on(waits).unwrap(), Some(7));
}
