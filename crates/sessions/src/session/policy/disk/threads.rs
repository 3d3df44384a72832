//! Separate threads for calls that may hang, as on a network file system that is gone. Each call has a time
//! limit, and a thread that hangs blocks nothing else.

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

use crate::path_walk::reach;

/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(2);

/// A working disk responds within this time.
const QUICK: Duration = Duration::from_millis(1);

/// How many calls may be waited for at once. Further ones get no answer.
const THREADS: usize = 32;

/// How many more threads may hang. One file system holds [few](crate::path_walk), so this is enough for
/// many of them.
const LEFT: usize = 256;

/// The work of a thread. Before it answers, it calls the function to report that the thread is free and
/// whether its caller still waits.
type Work = Box<dyn FnOnce(&dyn Fn(&Stage)) + Send>;

/// The stage of a call. It changes only under the lock of the pool.
#[derive(Default)]
struct Stage {
    is_ended: AtomicBool,
    /// The caller no longer waits.
    is_left: AtomicBool,
}

static POOL: Pool = Pool::new(THREADS, LEFT);

/// Runs a call about a path and returns its answer, if it comes in time. The call gets the path, and where
/// the path ends with all links followed.
pub(super) fn in_time<T: Send + 'static>(
    path: &Path,
    call: impl FnOnce(&Path, PathBuf) -> T + Send + 'static,
) -> Option<T> {
    let path = path.to_path_buf();
    let call = move || {
        let mut reached = reach(&path, LIMIT)?;
        let end = std::mem::take(&mut reached.path);
        Some(call(&path, end))
    };
    POOL.answer(call, LIMIT).flatten()
}

/// A set of threads, some of which wait for work.
struct Pool {
    most: usize,
    most_left: usize,
    threads: Mutex<Threads>,
}

struct Threads {
    idle: Vec<SyncSender<Work>>,
    count: usize,
    /// Threads whose call hangs.
    left: usize,
}

impl Threads {
    fn under_way(&self) -> usize {
        self.count.saturating_sub(self.left)
    }
}

impl Pool {
    const fn new(most: usize, most_left: usize) -> Self {
        let threads = Threads { idle: Vec::new(), count: 0, left: 0 };
        Self { most, most_left, threads: Mutex::new(threads) }
    }

    fn threads(&self) -> MutexGuard<'_, Threads> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer<T: Send + 'static>(
        &'static self,
        call: impl FnOnce() -> T + Send + 'static,
        limit: Duration,
    ) -> Option<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        let stage = Arc::new(Stage::default());
        let own = Arc::clone(&stage);
        let work: Work = Box::new(move |is_free| {
            let result = call();
            is_free(&own);
            // The caller may no longer wait.
            let _ = answer.send(result);
        });
        self.thread()?.send(work).ok()?;
        match answered.recv_timeout(QUICK) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => {
                let answer = aside(|| answered.recv_timeout(limit).ok());
                if answer.is_none() {
                    self.leave(&stage);
                }
                answer
            }
        }
    }

    /// Gives the slot of a hanging call to another.
    fn leave(&self, stage: &Stage) {
        let mut threads = self.threads();
        if !stage.is_ended.load(Ordering::Relaxed) && threads.left < self.most_left {
            stage.is_left.store(true, Ordering::Relaxed);
            threads.left += 1;
        }
    }

    /// An idle thread, or a new one if all are busy.
    fn thread(&'static self) -> Option<SyncSender<Work>> {
        let mut threads = self.threads();
        if let Some(thread) = threads.idle.pop() {
            return Some(thread);
        }
        if threads.under_way() >= self.most {
            return None;
        }
        let (sender, work) = mpsc::sync_channel(1);
        let own = sender.clone();
        let started = thread::Builder::new().name("policy-disk".to_owned());
        started.spawn(move || self.run(&own, &work)).ok()?;
        threads.count += 1;
        Some(sender)
    }

    fn run(&self, own: &SyncSender<Work>, work: &Receiver<Work>) {
        let goes_on = Cell::new(true);
        let is_free = |stage: &Stage| {
            let mut threads = self.threads();
            stage.is_ended.store(true, Ordering::Relaxed);
            if stage.is_left.load(Ordering::Relaxed) {
                threads.left = threads.left.saturating_sub(1);
            }
            // Another thread took its slot while it hung.
            if threads.under_way() > self.most {
                threads.count -= 1;
                goes_on.set(false);
            } else {
                threads.idle.push(own.clone());
            }
        };
        while goes_on.get()
            && let Ok(work) = work.recv()
        {
            work(&is_free);
        }
    }
}

/// Waits in such a way that the other tasks of this thread continue elsewhere.
fn aside<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        Ok(_) | Err(_) => wait(),
    }
}

#[cfg(test)]
mod tests;
