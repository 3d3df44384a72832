//! Threads of their own for calls that may hang, as on a network file system that is gone: each call has
//! a time limit, and the thread that waits for it holds nobody else up.

use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Handle, RuntimeFlavor};

/// How long a call may take.
const LIMIT: Duration = Duration::from_secs(2);

/// A disk that works answers within this.
const QUICK: Duration = Duration::from_millis(1);

/// How many calls may hang at once; further ones get no answer.
const THREADS: usize = 32;

/// What a thread does. It says when it can take more work, which is before it answers.
type Work = Box<dyn FnOnce(&dyn Fn()) + Send>;

/// The threads of this process.
static POOL: Pool = Pool::new(THREADS);

/// What a call answers, if it does so in time.
pub(super) fn in_time<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    POOL.answer(call, LIMIT)
}

/// A number of threads, of which some wait for work.
struct Pool {
    most: usize,
    idle: Mutex<Idle>,
}

struct Idle {
    waiting: Vec<SyncSender<Work>>,
    threads: usize,
}

impl Pool {
    const fn new(most: usize) -> Self {
        Self { most, idle: Mutex::new(Idle { waiting: Vec::new(), threads: 0 }) }
    }

    fn answer<T: Send + 'static>(
        &'static self,
        call: impl FnOnce() -> T + Send + 'static,
        limit: Duration,
    ) -> Option<T> {
        let (answer, answered) = mpsc::sync_channel(1);
        let work: Work = Box::new(move |is_free| {
            let result = call();
            is_free();
            // Nobody may wait any more.
            let _ = answer.send(result);
        });
        self.thread()?.send(work).ok()?;
        match answered.recv_timeout(QUICK) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => aside(|| answered.recv_timeout(limit).ok()),
        }
    }

    /// A thread that waits for work; a new one, if all have some.
    fn thread(&'static self) -> Option<SyncSender<Work>> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = idle.waiting.pop() {
            return Some(thread);
        }
        if idle.threads >= self.most {
            return None;
        }
        let (sender, work) = mpsc::sync_channel(1);
        let own = sender.clone();
        let started = thread::Builder::new().name("policy-disk".to_owned());
        started.spawn(move || self.run(&own, &work)).ok()?;
        idle.threads += 1;
        Some(sender)
    }

    fn run(&self, own: &SyncSender<Work>, work: &Receiver<Work>) {
        let is_free = || {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            idle.waiting.push(own.clone());
        };
        while let Ok(work) = work.recv() {
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
