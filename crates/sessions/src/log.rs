//! The log: what sessions add becomes durable, then visible, and is read with cursors.

mod blocking;
mod cursor;
mod live;
mod resumes;
mod writer;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::thread;

use agentwire_protocol::SessionId;
use tokio::sync::oneshot;

pub use self::cursor::Cursor;
pub(crate) use self::cursor::MUCH_READ;
use self::live::Live;
use self::writer::{Pending, Shared, Told};
use crate::budget::Budget;
use crate::metrics::Figures;
use crate::store::{Append, Store, StoreError};

/// The log of all sessions of this process; clones are the same log.
///
/// One writes at a time. Little that comes alone is written by whoever hands it over, while the other
/// tasks of its thread go on on another; everything else by a thread of the log, which takes what all
/// sessions have handed over since the last commit and keeps it in one transaction. Only then it is shown to cursors. Nothing here grows without bound: a
/// session hands over one append at a time and waits for it, so that the queue holds at most one
/// for each session; a transaction takes 64 MiB of them; and of what is durable 256 KiB for each
/// session (or its last batch) and 32 MiB in all stay in memory for readers that keep up.
#[derive(Clone)]
pub struct EventLog {
    shared: Arc<Shared>,
    /// The thread ends when the last of these is dropped.
    _used: Arc<Used>,
}

struct Used(Arc<Shared>);

/// Adds to the log of one session, which is live here until this is dropped.
pub struct LogWriter {
    log: EventLog,
    live: Arc<Live>,
}

/// Resolves when what was handed over is durable, and visible to whoever reads from then on.
///
/// While the store has no room or is busy this waits; see [`EventLog::stuck`]. Dropping it takes
/// nothing back.
#[derive(Debug)]
#[must_use = "an append is not durable before this resolves"]
pub struct Committed(oneshot::Receiver<Result<(), StoreError>>);

impl EventLog {
    /// A log that is kept in that store. Starts the thread that writes.
    pub fn new(store: Arc<dyn Store>) -> Self {
        Self::within(store, Budget::default())
    }

    /// The same; what is large and on its way to readers is taken from that budget.
    pub fn within(store: Arc<dyn Store>, budget: Budget) -> Self {
        let shared = Arc::new(Shared::new(store, budget));
        let log = Self { _used: Arc::new(Used(Arc::clone(&shared))), shared };
        let shared = Arc::clone(&log.shared);
        let started =
            thread::Builder::new().name("log".to_owned()).spawn(move || writer::run(&shared));
        match started {
            Ok(thread) => log.shared.started(thread),
            Err(_) => log.shared.end(),
        }
        log
    }

    /// Where it is kept.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.shared.store
    }

    /// What everything large in this process is taken from.
    pub fn budget(&self) -> &Budget {
        &self.shared.budget
    }

    /// What the engine counts of itself.
    pub fn figures(&self) -> &Arc<Figures> {
        &self.shared.figures
    }

    /// Why the store takes no appends now, if it does not. What was handed over is kept and tried
    /// again until it does.
    pub fn stuck(&self) -> Option<StoreError> {
        self.shared.stuck()
    }

    /// Makes a session live here; `last` is its last event so far. This process must own it.
    pub fn open(&self, session: SessionId, last: u64) -> LogWriter {
        let live = Arc::new(Live::new(session, last));
        self.shared.open(&live);
        LogWriter { log: self.clone(), live }
    }

    /// Reads a session's events after `after`: one that is live here, one that another process
    /// runs, or one that has ended.
    pub fn cursor(&self, session: &SessionId, after: u64) -> Cursor {
        Cursor::new(self.clone(), session.clone(), after)
    }

    /// Waits until a session runs again: it is live here, or has events after that one, which may be
    /// another process's.
    pub async fn opened(&self, session: &SessionId, after: u64) {
        tokio::select! {
            () = self.shared.opened(session) => {}
            () = resumes::gone_on(&self.shared, session, after) => {}
        }
    }

    /// Takes no more appends, and returns when those handed over are durable and the thread has
    /// ended. If the store takes none they are tried once more and then given up with its error.
    pub async fn shutdown(&self) {
        self.shared.close();
        self.shared.ended().await;
    }
}

impl Drop for Used {
    fn drop(&mut self) {
        self.0.close();
    }
}

impl LogWriter {
    /// Hands over the next events. A session has one append under way at a time: a second one is
    /// refused.
    pub fn submit(&self, append: Append) -> Committed {
        self.submit_telling(append, |_| ())
    }

    /// The same; `told` hears what came of it after this resolves and before a cursor gives any of it. Whom it
    /// tells finds the events there. It must not wait for anything, nor read the log.
    pub fn submit_telling(
        &self,
        append: Append,
        told: impl FnOnce(Result<(), &StoreError>) + Send + 'static,
    ) -> Committed {
        let told = Box::new(told);
        let (done, committed) = oneshot::channel();
        let refused = |why| {
            StoreError::Failed(format!("failed to append to session {}: {why}", self.live.session))
        };
        if append.record.summary.id != self.live.session {
            Told { told, done }.refuse(&refused("the record is another session's"));
        } else if self.live.under_way.swap(true, Ordering::AcqRel) {
            Told { told, done }.refuse(&refused("its last append is not durable yet"));
        } else {
            // A job that is refused is dropped, and its future with it.
            let live = Arc::clone(&self.live);
            self.log.shared.append(Box::new(Pending { live, append, told: Told { told, done } }));
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
