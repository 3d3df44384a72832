//! Threads that run sessions, apart from the threads that serve clients.
//!
//! A session writes a small append itself, and its thread waits for the disk meanwhile
//! (`docs/decisions/0021-lanes.md`). Clients, sockets and `/healthz` are on other threads, so they do not
//! wait. A lane has one thread: if a session wakes one of its own tasks, no other thread has to wake up.

use std::cell::Cell;
use std::future::Future;
use std::panic::catch_unwind;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{io, thread};

use tokio::runtime::{Builder, Handle, Runtime, RuntimeFlavor};
use tokio::task::JoinHandle;

#[cfg(test)]
mod tests;

/// Enough for the disk, to which one session writes at a time; each lane is a thread that costs memory.
const MOST: usize = 8;

thread_local! {
    static IS_LANE: Cell<bool> = const { Cell::new(false) };
}

/// Made when the first session starts, so that commands without sessions have none.
#[derive(Debug)]
pub(crate) struct Lanes {
    lanes: Vec<OnceLock<Option<Runtime>>>,
    next: AtomicUsize,
}

impl Lanes {
    pub(crate) fn new() -> Self {
        Self::of(thread::available_parallelism().map_or(1, usize::from).min(MOST))
    }

    fn of(count: usize) -> Self {
        Self { lanes: (0..count).map(|_| OnceLock::new()).collect(), next: AtomicUsize::new(0) }
    }

    /// Runs a session in the next lane. On a runtime with a single thread, as in tests and small programs,
    /// it runs there; so it does if there is no room for another thread.
    pub(crate) fn spawn<F>(&self, session: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send + 'static> + Send + 'static,
    {
        let is_small = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        let next = self.next.fetch_add(1, Ordering::Relaxed) % self.lanes.len();
        let lane = self.lanes.get(next).filter(|_| !is_small);
        match lane.and_then(|lane| lane.get_or_init(|| start().ok()).as_ref()) {
            Some(lane) => lane.spawn(session),
            None => tokio::spawn(session),
        }
    }
}

impl Drop for Lanes {
    fn drop(&mut self) {
        // Their sessions have ended. A runtime must not be dropped by a task without this.
        for lane in self.lanes.drain(..).filter_map(OnceLock::into_inner).flatten() {
            lane.shutdown_background();
        }
    }
}

/// Whether this thread belongs to a lane, and so may wait for the disk with all its tasks.
pub(crate) fn is_lane() -> bool {
    IS_LANE.get()
}

fn start() -> io::Result<Runtime> {
    // One worker, not a runtime of a single thread: long work can leave its tasks to another thread.
    let build = || {
        Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("sessions")
            .on_thread_start(|| IS_LANE.set(true))
            .enable_all()
            .build()
    };
    // It panics if the system has no thread left.
    catch_unwind(build).unwrap_or_else(|_| Err(io::Error::other("no thread is left")))
}
