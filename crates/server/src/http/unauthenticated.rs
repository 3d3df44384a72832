//! Connections that have not shown a token yet. Their number is limited: the oldest one makes room for the
//! next, so that a client with a token can always connect.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio_util::sync::CancellationToken;

/// All of them, in the order in which they connected.
#[derive(Debug)]
pub(super) struct UnauthenticatedConnections {
    limit: usize,
    registry: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    count: u64,
    connections: BTreeMap<u64, CancellationToken>,
}

/// One of them, until it is authenticated or closed.
#[derive(Clone, Debug)]
pub(super) struct UnauthenticatedConnection {
    registration: Arc<Registration>,
}

#[derive(Debug)]
struct Registration {
    all: Arc<UnauthenticatedConnections>,
    number: u64,
    disconnected: CancellationToken,
}

impl UnauthenticatedConnections {
    pub(super) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { limit, registry: Mutex::default() })
    }

    /// Adds a connection. If there are too many, the oldest is disconnected.
    pub(super) fn add(self: &Arc<Self>) -> UnauthenticatedConnection {
        let disconnected = CancellationToken::new();
        let number = {
            let mut registry = self.registry();
            registry.count += 1;
            let number = registry.count;
            registry.connections.insert(number, disconnected.clone());
            number
        };
        if self.registry().connections.len() > self.limit {
            self.disconnect_oldest();
        }
        UnauthenticatedConnection {
            registration: Arc::new(Registration { all: Arc::clone(self), number, disconnected }),
        }
    }

    /// Disconnects the oldest; false if there is none.
    pub(super) fn disconnect_oldest(&self) -> bool {
        let oldest = self.registry().connections.pop_first();
        oldest.is_some_and(|(_, disconnected)| {
            disconnected.cancel();
            true
        })
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl UnauthenticatedConnection {
    /// It has shown a token, so it stays.
    pub(super) fn authenticated(&self) {
        self.registration.remove();
    }

    /// Waits until it is disconnected.
    pub(super) async fn disconnected(&self) {
        self.registration.disconnected.cancelled().await;
    }
}

impl Registration {
    fn remove(&self) {
        self.all.registry().connections.remove(&self.number);
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.remove();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_that_nobody_knows_goes_first() {
        let all = UnauthenticatedConnections::new(2);
        let is_gone = |connection: &UnauthenticatedConnection| {
            connection.registration.disconnected.is_cancelled()
        };
        let (first, second) = (all.add(), all.add());
        first.authenticated();
        let third = all.add();
        assert!(!is_gone(&first) && !is_gone(&second) && !is_gone(&third));
        let fourth = all.add();
        assert!(!is_gone(&first) && is_gone(&second) && !is_gone(&third));
        drop(third);
        assert!(all.disconnect_oldest() && is_gone(&fourth));
        assert!(!all.disconnect_oldest() && !is_gone(&first));
    }
}
