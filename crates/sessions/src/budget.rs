//! One budget of bytes for everything large that this process holds in memory: agents' lines, clients'
//! messages, pages, and events on their way to readers.
//!
//! Each task with something large in memory holds a share. If there is none left, the task waits in turn.
//! While it waits, it holds no other share that it would release only afterwards, so no two tasks can wait
//! for each other. Small data needs no share. Agents, clients and readers each have a part of the budget: a
//! client that sends or reads slowly does not stop agents from working.

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::metrics::{Counter, Gauge};

/// Default size of the budget.
pub const IN_FLIGHT: usize = 384 << 20;

/// Minimum size of the budget: with less, large data would be too slow.
pub const LEAST: usize = 48 << 20;

/// Anything longer needs a share.
pub const SMALL: usize = 1 << 20;

/// How many times its length a message takes while it is processed: as written, as parsed, and as the
/// events that it becomes.
pub const WORK: usize = 4;

/// How many times their length events take on their way to a reader: once as they are, once framed.
pub const READ: usize = 2;

/// Shares are counted in units of this many bytes.
const UNIT: usize = 1 << 10;

/// The budget; clones share it.
#[derive(Clone, Debug)]
pub struct Budget {
    /// For data from agents, until it is durable. Each pool has a third of the budget.
    pub work: Pool,
    /// For data from clients, until it is processed.
    pub clients: Pool,
    /// For events on their way to readers.
    pub read: Pool,
}

/// A part of the budget; clones share it.
#[derive(Clone, Debug)]
pub struct Pool {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    units: u32,
    free: Arc<Semaphore>,
    used: Gauge,
    waiting: Gauge,
    waits: Counter,
    refusals: Counter,
}

/// A share of a pool, until it is dropped.
#[derive(Debug)]
pub struct Share {
    pool: Pool,
    permit: OwnedSemaphorePermit,
}

/// Bytes that hold a share as long as any part of them is in use.
struct BudgetedBytes {
    bytes: Bytes,
    _share: Share,
}

impl Budget {
    pub fn new(bytes: usize) -> Self {
        let third = bytes.max(LEAST) / 3;
        let pool = || Pool::new(third);
        Self { work: pool(), clients: pool(), read: pool() }
    }
}

impl Pool {
    fn new(bytes: usize) -> Self {
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX);
        let units = units.min(u32::try_from(Semaphore::MAX_PERMITS).unwrap_or(u32::MAX));
        Self {
            shared: Arc::new(Shared {
                units,
                free: Arc::new(Semaphore::new(units as usize)),
                used: Gauge::default(),
                waiting: Gauge::default(),
                waits: Counter::default(),
                refusals: Counter::default(),
            }),
        }
    }

    /// Waits in turn for a share of `bytes` bytes. A request for more than the pool gets the whole pool.
    pub async fn take(&self, bytes: usize) -> Share {
        let units = self.units(bytes);
        if let Ok(permit) = Arc::clone(&self.shared.free).try_acquire_many_owned(units) {
            return self.share(permit);
        }
        self.shared.waits.add(1);
        let _waiting = Waiter::new(self);
        match Arc::clone(&self.shared.free).acquire_many_owned(units).await {
            Ok(permit) => self.share(permit),
            // The semaphore is never closed.
            Err(_) => std::future::pending().await,
        }
    }

    /// The same, but gives up after `longest`.
    pub async fn take_within(&self, bytes: usize, longest: Duration) -> Option<Share> {
        let share = tokio::time::timeout(longest, self.take(bytes)).await.ok();
        if share.is_none() {
            self.shared.refusals.add(1);
        }
        share
    }

    /// A share, if one is available now.
    pub fn take_now(&self, bytes: usize) -> Option<Share> {
        let permit = self.permit(self.units(bytes))?;
        Some(self.share(permit))
    }

    fn units(&self, bytes: usize) -> u32 {
        u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.shared.units)
    }

    fn permit(&self, units: u32) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.shared.free).try_acquire_many_owned(units).ok()
    }

    fn share(&self, permit: OwnedSemaphorePermit) -> Share {
        let share = Share { pool: self.clone(), permit };
        self.shared.used.add(share.bytes());
        share
    }

    pub fn total(&self) -> usize {
        self.shared.units as usize * UNIT
    }

    pub fn used(&self) -> i64 {
        self.shared.used.get()
    }

    /// Waits while holding a share. Returns `None` if it takes longer than `longest` and others wait for a
    /// share.
    pub async fn unless_wanted<T>(
        &self,
        longest: Duration,
        waiting: impl Future<Output = T>,
    ) -> Option<T> {
        tokio::pin!(waiting);
        loop {
            match tokio::time::timeout(longest, &mut waiting).await {
                Ok(done) => return Some(done),
                Err(_) if self.waiting() > 0 => return None,
                Err(_) => {}
            }
        }
    }

    /// How many tasks wait for a share now.
    pub fn waiting(&self) -> i64 {
        self.shared.waiting.get()
    }

    /// How often a task had to wait.
    pub fn waits(&self) -> u64 {
        self.shared.waits.get()
    }

    /// How often a task waited too long.
    pub fn refusals(&self) -> u64 {
        self.shared.refusals.get()
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(IN_FLIGHT)
    }
}

impl Share {
    fn bytes(&self) -> i64 {
        i64::try_from(self.permit.num_permits() * UNIT).unwrap_or(i64::MAX)
    }

    /// Grows the share to `bytes` bytes in total, if they are available. Does not wait, because others may
    /// wait for what this share holds.
    pub fn grow(&mut self, bytes: usize) -> bool {
        let held = u32::try_from(self.permit.num_permits()).unwrap_or(u32::MAX);
        let more = self.pool.units(bytes).saturating_sub(held);
        let Some(permit) = self.pool.permit(more) else {
            self.pool.shared.refusals.add(1);
            return false;
        };
        let before = self.bytes();
        self.permit.merge(permit);
        self.pool.shared.used.add(self.bytes() - before);
        true
    }

    /// Keeps the share as long as these bytes are in use, in whole or in part.
    pub fn hold(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(BudgetedBytes { bytes, _share: self })
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.shared.used.add(-self.bytes());
    }
}

impl AsRef<[u8]> for BudgetedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Counts a waiting task until dropped, however the wait ends.
struct Waiter<'p>(&'p Pool);

impl<'p> Waiter<'p> {
    fn new(pool: &'p Pool) -> Self {
        pool.shared.waiting.add(1);
        Self(pool)
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.shared.waiting.add(-1);
    }
}
