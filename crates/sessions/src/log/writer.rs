//! The thread that writes, and the state it shares with sessions and readers.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use std::{iter, mem};

use agentwire_protocol::{SessionId, SessionState};
use tokio::sync::{oneshot, watch};

use super::changes::Changes;
use super::live::{Live, Tails};
use super::resume_watch::ResumeWatch;
use super::store_access::StorePermits;
use crate::blocking::{blocking, may_wait};
use crate::budget::Budget;
use crate::lanes;
use crate::metrics::Metrics;
use crate::store::{Append, Store, StoreError};

/// Approximate size of a transaction; the rest waits for the next one.
const GROUP_BYTES: usize = 64 * 1024 * 1024;

/// Longer appends are left to the thread, so that the session can continue reading meanwhile.
const AT_ONCE: i64 = 16 * 1024;

/// If the last commit took longer, the thread writes the next one: the disk takes so long that two thread
/// switches do not matter, and sessions should not wait for it.
const SLOW: Duration = Duration::from_millis(5);

/// How long to wait before a failed append is tried again: at first, and at most.
const RETRY: (Duration, Duration) = (Duration::from_millis(10), Duration::from_millis(500));

pub(super) struct Shared {
    pub(super) store: Arc<dyn Store>,
    pub(super) metrics: Arc<Metrics>,
    state: Mutex<State>,
    changed: Condvar,
    tails: Mutex<Tails>,
    stuck: Mutex<Option<StoreError>>,
    /// The last commit was [`SLOW`].
    is_slow: AtomicBool,
    ended: watch::Sender<bool>,
    /// How many sessions became live here so far.
    opened: watch::Sender<u64>,
    pub(super) resume_watch: ResumeWatch,
    pub(super) changes: Changes,
    pub(super) store_permits: StorePermits,
    pub(super) budget: Budget,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    live: HashMap<SessionId, Arc<Live>>,
    /// A session writes directly, and the thread waits.
    at_once: bool,
    /// The thread is writing.
    writing: bool,
    /// No more appends are accepted.
    closing: bool,
    /// The thread takes no more jobs.
    ended: bool,
}

pub(super) enum Job {
    Append(Box<PendingAppend>),
    /// The session is no longer live here.
    Close(Arc<Live>),
}

/// The appends of one transaction.
type Group = VecDeque<Box<PendingAppend>>;

pub(super) struct PendingAppend {
    pub(super) live: Arc<Live>,
    pub(super) append: Append,
    pub(super) notify: AppendNotify,
}

type OnResult = dyn FnOnce(Result<(), &StoreError>) + Send;

/// Who is notified of an append's result.
pub(super) struct AppendNotify {
    /// Others; called before the events become visible.
    pub(super) on_result: Box<OnResult>,
    /// The submitter; notified before `on_result`.
    pub(super) done: oneshot::Sender<Result<(), StoreError>>,
}

/// Ends the log when dropped: however the thread ends, nobody is left waiting for it.
struct End<'a>(&'a Shared);

/// While this exists, a session writes directly.
struct AtOnce<'a>(&'a Shared);

/// Writes until the log is closed and everything submitted is done.
pub(super) fn run(shared: &Shared) {
    let _end = End(shared);
    while let Some((group, closed)) = shared.take() {
        shared.commit(group);
        // After the appends: readers see a session's last events before its end.
        for live in closed {
            lock(&shared.tails).forget(&live);
            shared.ended_here(&live);
        }
        lock(&shared.state).writing = false;
    }
}

impl Shared {
    pub(super) fn new(store: Arc<dyn Store>, budget: Budget) -> Self {
        Self {
            store,
            metrics: Arc::default(),
            state: Mutex::default(),
            changed: Condvar::new(),
            tails: Mutex::default(),
            stuck: Mutex::default(),
            is_slow: AtomicBool::new(false),
            ended: watch::Sender::new(false),
            opened: watch::Sender::new(0),
            resume_watch: ResumeWatch::default(),
            changes: Changes::default(),
            store_permits: StorePermits::default(),
            budget,
            thread: Mutex::default(),
        }
    }

    pub(super) fn started(&self, thread: JoinHandle<()>) {
        *lock(&self.thread) = Some(thread);
    }

    pub(super) fn stuck(&self) -> Option<StoreError> {
        lock(&self.stuck).clone()
    }

    pub(super) fn open(&self, live: &Arc<Live>) {
        let mut state = lock(&self.state);
        if state.ended {
            live.end();
        } else {
            state.live.insert(live.session.clone(), Arc::clone(live));
            drop(state);
            self.opened.send_modify(|count| *count += 1);
        }
    }

    pub(super) async fn opened(&self, session: &SessionId) {
        let mut opened = self.opened.subscribe();
        while self.live(session).is_none() {
            // The sender is in `self`, so this cannot fail.
            let _ = opened.changed().await;
        }
    }

    pub(super) fn live(&self, session: &SessionId) -> Option<Arc<Live>> {
        lock(&self.state).live.get(session).cloned()
    }

    /// Queues an append, or writes it directly if it is small and the log is idle. An append after the log
    /// is closed is dropped.
    pub(super) fn append(&self, pending: Box<PendingAppend>) {
        let mut state = lock(&self.state);
        if state.closing {
            return;
        }
        self.metrics.queue_appends.add(1);
        self.metrics.queue_bytes.add(pending.bytes());
        let is_idle = state.jobs.is_empty() && !state.writing && !state.at_once;
        let is_slow = self.is_slow.load(Ordering::Relaxed);
        if !is_idle || is_slow || pending.bytes() > AT_ONCE || !may_wait() {
            state.jobs.push_back(Job::Append(pending));
            drop(state);
            return self.changed.notify_one();
        }
        state.at_once = true;
        drop(state);
        let turn = AtOnce(self);
        if let Some(left) = in_place(|| self.append_at_once(pending)) {
            lock(&self.state).jobs.push_back(Job::Append(left));
        }
        drop(turn);
    }

    /// Writes one append without the thread, which saves two thread switches when little happens. Returns
    /// the append if it was not written: that would take longer than the disk itself, or it failed.
    fn append_at_once(&self, pending: Box<PendingAppend>) -> Option<Box<PendingAppend>> {
        let begun = Instant::now();
        match self.store.append_at_once(&pending.append) {
            None | Some(Err(_)) => Some(pending),
            Some(Ok(())) => {
                self.committed_in(begun.elapsed());
                let count = pending.append.batch.as_ref().map_or(0, |batch| batch.count);
                self.metrics.commit_events.observe(count);
                self.leave(&pending);
                pending.publish(&mut lock(&self.tails), &self.changes);
                None
            }
        }
    }

    fn committed_in(&self, time: Duration) {
        self.metrics.commit_time.observe_time(time);
        self.is_slow.store(time > SLOW, Ordering::Relaxed);
    }

    /// Marks the session as no longer live here.
    pub(super) fn close_session(&self, live: &Arc<Live>) {
        let mut state = lock(&self.state);
        if state.ended {
            return live.end();
        }
        state.jobs.push_back(Job::Close(Arc::clone(live)));
        drop(state);
        self.changed.notify_one();
    }

    /// Accepts no more appends; the thread ends when it has done the others.
    pub(super) fn close(&self) {
        lock(&self.state).closing = true;
        self.changed.notify_one();
    }

    pub(super) fn has_ended(&self) -> bool {
        *self.ended.borrow()
    }

    pub(super) async fn ended(&self) {
        // The sender is in `self`, so this cannot fail.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
        let thread = lock(&self.thread).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }

    /// The thread has ended: nothing is live here any more, and queued appends are refused.
    pub(super) fn end(&self) {
        let mut state = lock(&self.state);
        state.closing = true;
        state.ended = true;
        let jobs = mem::take(&mut state.jobs);
        let sessions = mem::take(&mut state.live);
        drop(state);
        for live in sessions.values() {
            live.end();
        }
        for job in jobs {
            match job {
                Job::Append(pending) => self.leave(&pending),
                Job::Close(live) => live.end(),
            }
        }
        self.ended.send_replace(true);
    }

    /// Counts an append as no longer queued.
    fn leave(&self, pending: &PendingAppend) {
        self.metrics.queue_appends.add(-1);
        self.metrics.queue_bytes.add(-pending.bytes());
    }

    fn ended_here(&self, live: &Arc<Live>) {
        let mut state = lock(&self.state);
        // It may have been opened again since.
        if state.live.get(&live.session).is_some_and(|now| Arc::ptr_eq(now, live)) {
            state.live.remove(&live.session);
        }
        drop(state);
        live.end();
    }

    /// The queued jobs; `None` when the log is closed and all are done.
    fn take(&self) -> Option<(Group, Vec<Arc<Live>>)> {
        let mut state = self
            .changed
            .wait_while(lock(&self.state), |state| {
                state.at_once || (state.jobs.is_empty() && !state.closing)
            })
            .unwrap_or_else(PoisonError::into_inner);
        state.writing = true;
        let mut group = VecDeque::new();
        let mut closed = Vec::new();
        let mut bytes = 0;
        while bytes < GROUP_BYTES
            && let Some(job) = state.jobs.pop_front()
        {
            match job {
                Job::Append(pending) => {
                    bytes += pending.append.batch.as_ref().map_or(0, |b| b.lines.len());
                    group.push_back(pending);
                }
                Job::Close(live) => closed.push(live),
            }
        }
        (!group.is_empty() || !closed.is_empty()).then_some((group, closed))
    }

    /// Writes a group, however long the store is full or busy; only closing the log ends that.
    fn commit(&self, mut group: Group) {
        let (mut delay, longest) = RETRY;
        while let Err((error, left)) = self.attempt(group) {
            group = left;
            *lock(&self.stuck) = Some(error.clone());
            if lock(&self.state).closing {
                for pending in group {
                    self.leave(&pending);
                    pending.refuse(&error);
                }
                return;
            }
            let state = lock(&self.state);
            drop(self.changed.wait_timeout_while(state, delay, |state| !state.closing));
            delay = (delay * 2).min(longest);
        }
    }

    /// Tries to write a group. Returns what may be tried again.
    fn attempt(&self, mut group: Group) -> Result<(), (StoreError, Group)> {
        let appends: Vec<&Append> = group.iter().map(|pending| &pending.append).collect();
        if appends.is_empty() {
            return Ok(());
        }
        let begun = Instant::now();
        let kept = self.store.append(&appends);
        match &kept {
            Ok(()) => {
                self.committed_in(begun.elapsed());
                let batches = appends.iter().filter_map(|append| append.batch.as_ref());
                self.metrics.commit_events.observe(batches.map(|batch| batch.count).sum());
            }
            Err(_) => self.metrics.commit_failures.add(1),
        }
        if !matches!(kept, Err(StoreError::Full(_) | StoreError::Busy(_))) {
            *lock(&self.stuck) = None;
        }
        match kept {
            Ok(()) => {
                for pending in group {
                    self.leave(&pending);
                    pending.publish(&mut lock(&self.tails), &self.changes);
                }
                Ok(())
            }
            Err(error @ (StoreError::Full(_) | StoreError::Busy(_))) => Err((error, group)),
            Err(error @ (StoreError::Conflict(_) | StoreError::Failed(_))) => {
                if group.len() == 1 {
                    for pending in group {
                        self.leave(&pending);
                        pending.refuse(&error);
                    }
                    return Ok(());
                }
                // One append is at fault; the others must still be written.
                while let Some(pending) = group.pop_front() {
                    let alone = iter::once(pending).collect();
                    if let Err((error, mut left)) = self.attempt(alone) {
                        left.append(&mut group);
                        return Err((error, left));
                    }
                }
                Ok(())
            }
        }
    }
}

impl PendingAppend {
    fn bytes(&self) -> i64 {
        let bytes = self.append.batch.as_ref().map_or(0, |batch| batch.lines.len());
        i64::try_from(bytes).unwrap_or(i64::MAX)
    }

    fn publish(self, tails: &mut Tails, changes: &Changes) {
        let state = self.append.record.summary.state;
        let Self { live, append, notify: AppendNotify { on_result, done } } = self;
        tails.publish(&live, append.batch, state == SessionState::Ended, || {
            // The submitter is notified first, unless it is gone.
            live.under_way.store(false, Ordering::Release);
            let _ = done.send(Ok(()));
            on_result(Ok(()));
        });
        changes.mark(&live.session);
        if state == SessionState::Idle {
            tails.idle(&live);
        }
    }

    fn refuse(self, error: &StoreError) {
        self.live.under_way.store(false, Ordering::Release);
        self.notify.refuse(error);
    }
}

impl AppendNotify {
    pub(super) fn refuse(self, error: &StoreError) {
        let _ = self.done.send(Err(error.clone()));
        (self.on_result)(Err(error));
    }
}

impl Drop for AtOnce<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.at_once = false;
        let is_wanted = !state.jobs.is_empty() || state.closing;
        drop(state);
        if is_wanted {
            self.0.changed.notify_one();
        }
    }
}

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Waits for the disk. Tasks of listeners go on meanwhile; a lane's own tasks wait too.
fn in_place<T>(work: impl FnOnce() -> T) -> T {
    if lanes::is_lane() { work() } else { blocking(work) }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
