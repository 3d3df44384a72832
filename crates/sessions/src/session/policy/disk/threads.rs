//! Threads of their own for calls that may hang, as on a network file system that is gone: each call has
//! a time limit, and the thread that waits for it holds nobody else up.

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

/// A disk that works answers within this.
const QUICK: Duration = Duration::from_millis(1);

/// How many calls may be waited for at once; further ones get no answer.
const THREADS: usize = 32;

/// How many threads may hang beside them. One file system holds [few](crate::path_walk), so this is many of them.
const LEFT: usize = 256;

/// What a thread does. It says when it can take more work, which is before it answers, and passes on
/// whether somebody still waits.
type Work = Box<dyn FnOnce(&dyn Fn(&Stage)) + Send>;

/// How far a call is. It changes only under the lock of the pool.
#[derive(Default)]
struct Stage {
    is_over: AtomicBool,
    /// Nobody waits for it any more.
    is_left: AtomicBool,
}

/// The threads of this process.
static POOL: Pool = Pool::new(THREADS, LEFT);

/// What a call answers about a path, if it does so in time. It gets the path, and the end of it with all
/// links followed.
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

/// A number of threads, of which some wait for work.
struct Pool {
    most: usize,
    most_left: usize,
    threads: Mutex<Threads>,
}

struct Threads {
    idle: Vec<SyncSender<Work>>,
    /// All of them.
    count: usize,
    /// Those whose call hangs.
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
            // Nobody may wait any more.
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

    /// Gives the place of a call that hangs to another.
    fn leave(&self, stage: &Stage) {
        let mut threads = self.threads();
        if !stage.is_over.load(Ordering::Relaxed) && threads.left < self.most_left {
            stage.is_left.store(true, Ordering::Relaxed);
            threads.left += 1;
        }
    }

    /// A thread that waits for work; a new one, if all have some.
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
            stage.is_over.store(true, Ordering::Relaxed);
            if stage.is_left.load(Ordering::Relaxed) {
                threads.left = threads.left.saturating_sub(1);
            }
            // Another took its place while it hung.
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

/// Waits so that the other tasks of this thread go on elsewhere.
fn aside<T>(wait: impl FnOnce() -> T) -> T {
    match Handle::try_current().map(|runtime| runtime.runtime_flavor()) {
        Ok(RuntimeFlavor::MultiThread) => tokio::task::block_in_place(wait),
        Ok(_) | Err(_) => wait(),
    }
}

#[cfg(test)]
mod tests;
