//! The log: what sessions append becomes durable, then visible, and is read with cursors.

mod changes;
mod cursor;
mod live;
mod resume_watch;
mod store_access;
mod writer;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::thread;

use agentwire_protocol::SessionId;
use tokio::sync::oneshot;

pub(crate) use self::changes::Changes;
pub use self::cursor::Cursor;
pub(crate) use self::cursor::MUCH_READ;
use self::live::Live;
use self::writer::{AppendNotify, PendingAppend, Shared};
use crate::budget::Budget;
use crate::metrics::Metrics;
use crate::store::{Append, Store, StoreError};

/// The log of all sessions of this process; clones share it.
///
/// There is one writer at a time. A small append that comes alone is written by the caller, while another
/// thread takes over the tasks of the caller's thread. Everything else is written by the log's thread: it
/// takes what all sessions have submitted since the last commit and stores it in one transaction. Only then
/// do cursors see it.
///
/// Nothing here grows without bound. A session submits one append at a time and waits for it, so the queue
/// holds at most one per session. A transaction takes 64 MiB of them. Of the durable events, 256 KiB per
/// session (or its last batch) and 32 MiB in total stay in memory for readers that keep up.
#[derive(Clone)]
pub struct EventLog {
    shared: Arc<Shared>,
    /// The thread ends when the last of these is dropped.
    _close_on_drop: Arc<CloseOnDrop>,
}

struct CloseOnDrop(Arc<Shared>);

/// Appends to the log of one session, which is live here until this is dropped.
pub struct LogWriter {
    log: EventLog,
    live: Arc<Live>,
}

/// Resolves when the append is durable, and visible to every read from then on.
///
/// Waits while the store is full or busy; see [`EventLog::stuck`]. Dropping it does not undo the append.
#[derive(Debug)]
#[must_use = "an append is not durable before this resolves"]
pub struct Committed(oneshot::Receiver<Result<(), StoreError>>);

impl EventLog {
    /// A log in this store. Starts the thread that writes.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::within(store, Budget::default())
    }

    /// The same with a given budget, which bounds large events on their way to readers.
    pub fn within(store: Arc<dyn Store>, budget: Budget) -> Self {
        let shared = Arc::new(Shared::new(store, budget));
        let log = Self { _close_on_drop: Arc::new(CloseOnDrop(Arc::clone(&shared))), shared };
        let shared = Arc::clone(&log.shared);
        let started =
            thread::Builder::new().name("log".to_owned()).spawn(move || writer::run(&shared));
        match started {
            Ok(thread) => log.shared.started(thread),
            Err(_) => log.shared.end(),
        }
        log
    }

    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// The budget for everything large in this process.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.shared.metrics
    }

    /// Which sessions have changed.
    pub(crate) fn changes(&self) -> &Changes {
        &self.shared.changes
    }

    /// Why the store accepts no appends now, if so. Submitted appends are retried until it does.
    pub fn stuck(&self) -> Option<StoreError> {
        self.shared.stuck()
    }

    /// Makes a session live here; `last` is its last event so far. This process must own it.
    pub fn open(&self, session: SessionId, last: u64) -> LogWriter {
        let live = Arc::new(Live::new(session, last));
        self.shared.open(&live);
        LogWriter { log: self.clone(), live }
    }

    /// Reads a session's events after `after`. The session may be live here, run in another process, or
    /// have ended.
    pub fn cursor(&self, session: &SessionId, after: u64) -> Cursor {
        Cursor::new(self.clone(), session.clone(), after)
    }

    /// Waits until a session runs again: it is live here, or has events after `after`, perhaps from another
    /// process.
    pub async fn opened(&self, session: &SessionId, after: u64) {
        tokio::select! {
            () = self.shared.opened(session) => {}
            () = resume_watch::wait_for_resume(&self.shared, session, after) => {}
        }
    }

    /// Accepts no more appends, and returns when those submitted are durable and the thread has ended. If
    /// the store accepts none, they are tried once more and then fail with the store's error.
    pub async fn shutdown(&self) {
        self.shared.close();
        self.shared.ended().await;
    }
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl LogWriter {
    /// Submits the next events. A session can have one append in progress; a second one is refused.
    pub fn submit(&self, append: Append) -> Committed {
        self.submit_with(append, |_| ())
    }

    /// The same. `on_result` is called with the result, after this resolves and before a cursor returns any
    /// of the events. Anyone it notifies finds the events in the log. It must not wait for anything, nor read
    /// the log.
    pub fn submit_with(
        &self,
        append: Append,
        on_result: impl FnOnce(Result<(), &StoreError>) + Send + 'static,
    ) -> Committed {
        let on_result = Box::new(on_result);
        let (done, committed) = oneshot::channel();
        let refused = |why| {
            StoreError::Failed(format!("failed to append to session {}: {why}", self.live.session))
        };
        if append.record.summary.id != self.live.session {
            AppendNotify { on_result, done }
                .refuse(&refused("the record belongs to another session"));
        } else if self.live.under_way.swap(true, Ordering::AcqRel) {
            AppendNotify { on_result, done }.refuse(&refused("its last append is not durable yet"));
        } else {
            // A refused job is dropped, and its future with it.
            let live = Arc::clone(&self.live);
            self.log.shared.append(Box::new(PendingAppend {
                live,
                append,
                notify: AppendNotify { on_result, done },
            }));
        }
        Committed(committed)
    }
}

impl Drop for LogWriter {
    fn drop(&mut self) {
        self.log.shared.close_session(&self.live);
    }
}

impl Future for Committed {
    type Output = Result<(), StoreError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context).map(|answer| {
            answer.unwrap_or_else(|_| {
                Err(StoreError::Failed("failed to append: the log was shut down".to_owned()))
            })
        })
    }
}

impl fmt::Debug for EventLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EventLog").field("stuck", &self.stuck()).finish_non_exhaustive()
    }
}

impl fmt::Debug for LogWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogWriter").field("session", &self.live.session).finish_non_exhaustive()
    }
}
