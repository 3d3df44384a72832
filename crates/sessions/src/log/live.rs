//! Sessions that are live here: the progress of each, and its latest events for readers that keep up.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::mem;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use agentwire_protocol::SessionId;
use tokio::sync::watch;

use crate::store::Batch;

/// How many bytes of one session stay in memory.
const OF_ONE: usize = 256 * 1024;

/// How many bytes stay of one that waits for its next prompt. A reader that is not as far reads the store.
const OF_IDLE: usize = 32 * 1024;

/// How many bytes of all sessions together stay in memory.
const OF_ALL: usize = 32 * 1024 * 1024;

#[derive(Debug)]
pub(super) struct Live {
    pub(super) session: SessionId,
    /// Whether an append was submitted and is not committed yet.
    pub(super) under_way: AtomicBool,
    pub(super) progress: watch::Sender<Progress>,
    tail: Mutex<Tail>,
}

/// The durable progress of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Progress {
    pub(super) last: u64,
    /// No more events come from here.
    pub(super) ended: bool,
    /// The last event is the session's end.
    pub(super) is_complete: bool,
}

/// The latest batches of a session, without a gap, and since when each has been durable.
#[derive(Debug, Default)]
struct Tail {
    batches: VecDeque<(Batch, Instant)>,
    bytes: usize,
    /// Its key in [`Tails::order`].
    used: u64,
}

/// All tails. Only the current writer changes them.
#[derive(Debug, Default)]
pub(super) struct Tails {
    bytes: usize,
    clock: u64,
    /// Sessions with a tail, the one that has been quiet the longest first.
    order: BTreeMap<u64, Arc<Live>>,
}

impl Live {
    pub(super) fn new(session: SessionId, last: u64) -> Self {
        Self {
            session,
            under_way: AtomicBool::new(false),
            progress: watch::Sender::new(Progress { last, ended: false, is_complete: false }),
            tail: Mutex::default(),
        }
    }

    /// The events after `seq`, if they are in memory, and since when they have been durable.
    pub(super) fn after(&self, seq: u64) -> Option<(Batch, Instant)> {
        let tail = self.tail();
        let place = tail.batches.partition_point(|(batch, _)| batch.last() <= seq);
        let (batch, since) = tail.batches.get(place)?;
        // If the batch starts later, the events between are only in the store.
        let batch = batch.after(seq).filter(|batch| batch.first == seq + 1)?;
        Some((batch, *since))
    }

    pub(super) fn end(&self) {
        self.progress.send_modify(|progress| progress.ended = true);
    }

    fn tail(&self) -> MutexGuard<'_, Tail> {
        self.tail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tail {
    fn push(&mut self, batch: Batch) {
        self.bytes += cost(&batch);
        self.batches.push_back((batch, Instant::now()));
        // The newest batch stays, however large: every reader that keeps up needs it next.
        self.shrink(OF_ONE, 1);
    }

    /// Drops the oldest batches until the rest fits, except for the newest `kept`.
    fn shrink(&mut self, limit: usize, kept: usize) {
        while self.bytes > limit
            && self.batches.len() > kept
            && let Some((batch, _)) = self.batches.pop_front()
        {
            self.bytes -= cost(&batch);
        }
    }
}

impl Tails {
    /// Makes durable events visible to the session's readers. Readers see none of them until `first` has
    /// run, and all of them right after it: they wait for that.
    pub(super) fn publish(
        &mut self,
        live: &Arc<Live>,
        batch: Option<Batch>,
        is_complete: bool,
        first: impl FnOnce(),
    ) {
        let last = batch.as_ref().map(Batch::last);
        if let Some(batch) = batch {
            self.keep(live, batch);
        }
        if last.is_none() && !is_complete {
            return first();
        }
        live.progress.send_modify(|progress| {
            first();
            progress.last = last.unwrap_or(progress.last);
            progress.is_complete |= is_complete;
        });
    }

    /// Drops a tail. Readers that are behind continue from the store.
    pub(super) fn forget(&mut self, live: &Live) {
        let tail = mem::take(&mut *live.tail());
        self.order.remove(&tail.used);
        self.bytes -= tail.bytes;
    }

    /// Drops most of an idle session's tail, or all of it: nobody knows how long it will be idle.
    pub(super) fn idle(&mut self, live: &Live) {
        let mut tail = live.tail();
        let before = tail.bytes;
        tail.shrink(OF_IDLE, 0);
        tail.batches.shrink_to_fit();
        self.bytes = self.bytes - before + tail.bytes;
    }

    fn keep(&mut self, live: &Arc<Live>, batch: Batch) {
        self.clock += 1;
        let mut tail = live.tail();
        let before = tail.bytes;
        tail.push(batch);
        let used = mem::replace(&mut tail.used, self.clock);
        self.bytes = self.bytes - before + tail.bytes;
        drop(tail);
        self.order.remove(&used);
        self.order.insert(self.clock, Arc::clone(live));
        while self.bytes > OF_ALL
            && let Some((_, quiet)) = self.order.pop_first()
        {
            self.forget(&quiet);
        }
    }
}

fn cost(batch: &Batch) -> usize {
    batch.lines.len() + size_of::<(Batch, Instant)>()
}
