//! Connections that have not shown a token yet. Their number is limited: the oldest one makes room for the
//! next, so that a client with a token can always connect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// All of them, in the order in which they connected.
#[derive(Debug)]
pub(super) struct Guests {
    limit: usize,
    waiting: Mutex<Connections>,
}

#[derive(Debug, Default)]
struct Connections {
    count: u64,
    guests: BTreeMap<u64, CancellationToken>,
}

/// One of them, until it is authenticated or closed.
#[derive(Clone, Debug)]
pub(super) struct Guest {
    entry: Arc<Entry>,
}

#[derive(Debug)]
struct Entry {
    all: Arc<Guests>,
    number: u64,
    dismissed: CancellationToken,
}

impl Guests {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, waiting: Mutex::default() })
    }

    /// Adds a connection. If there are too many, the oldest is disconnected.
    pub(super) fn enter(self: &Arc<Self>) -> Guest {
        let dismissed = CancellationToken::new();
        let number = {
            let mut waiting = self.waiting();
            waiting.count += 1;
            let number = waiting.count;
            waiting.guests.insert(number, dismissed.clone());
            number
        };
        if self.waiting().guests.len() > self.limit {
            self.dismiss_oldest();
        }
        Guest { entry: Arc::new(Entry { all: Arc::clone(self), number, dismissed }) }
    }

    /// Disconnects the oldest; false if there is none.
    pub(super) fn dismiss_oldest(&self) -> bool {
        let oldest = self.waiting().guests.pop_first();
        oldest.is_some_and(|(_, dismissed)| {
            dismissed.cancel();
            true
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Connections> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Guest {
    /// It has shown a token, so it stays.
    pub(super) fn known(&self) {
        self.entry.leave();
    }

    /// Waits until it is disconnected.
    pub(super) async fn dismissed(&self) {
        self.entry.dismissed.cancelled().await;
    }
}

impl Entry {
    fn leave(&self) {
        self.all.waiting().guests.remove(&self.number);
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_nobody_knows_goes_first() {
        let guests = Guests::new(2);
        let is_gone = |guest: &Guest| guest.entry.dismissed.is_cancelled();
        let (first, second) = (guests.enter(), guests.enter());
        first.known();
        let third = guests.enter();
        assert!(!is_gone(&first) && !is_gone(&second) && !is_gone(&third));
        let fourth = guests.enter();
        assert!(!is_gone(&first) && is_gone(&second) && !is_gone(&third));
        drop(third);
        assert!(guests.dismiss_oldest() && is_gone(&fourth));
        assert!(!guests.dismiss_oldest() && !is_gone(&first));
    }
}
