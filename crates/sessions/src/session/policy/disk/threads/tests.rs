//! Calls that hang, and who goes on meanwhile.

use std::sync::mpsc;
use std::time::Duration;

use super::Pool;

/// Long enough for any call that does not hang.
const LONG: Duration = Duration::from_secs(60);

#[test]
fn a_call_that_hangs_gets_no_answer_and_holds_up_no_other() {
    static POOL: Pool = Pool::new(3);
    let mut held = Vec::new();
    for _ in 0..3 {
        assert_eq!(POOL.answer(|| 1, LONG), Some(1));
        let (release, hangs) = mpsc::sync_channel::<()>(1);
        let (over, ended) = mpsc::sync_channel(1);
        let call = move || {
            let _ = hangs.recv();
            over.send(()).unwrap();
        };
        assert_eq!(POOL.answer(call, Duration::ZERO), None);
        held.push((release, ended));
    }
    // All hang: no more threads are made, and nobody waits.
    assert_eq!(POOL.answer(|| 1, LONG), None);
    for (release, ended) in held {
        drop(release);
        ended.recv().unwrap();
    }
    // They are used again as soon as each has put itself back.
    while POOL.idle.lock().unwrap().waiting.len() < 3 {
        std::thread::yield_now();
    }
    assert_eq!(POOL.answer(|| 1, LONG), Some(1));
    assert_eq!(POOL.idle.lock().unwrap().threads, 3);
}

#[test]
fn other_tasks_go_on_while_one_waits() {
    static POOL: Pool = Pool::new(1);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build().unwrap();
    let (release, hangs) = mpsc::sync_channel(1);
    let waits = runtime.spawn(async move { POOL.answer(move || hangs.recv().unwrap(), LONG) });
    // On the one thread of this runtime, this runs only if the other task does not hold it.
    runtime.spawn(async move { release.send(7).unwrap() });
    assert_eq!(runtime.block_on(waits).unwrap(), Some(7));
}
