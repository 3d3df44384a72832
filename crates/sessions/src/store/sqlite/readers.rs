//! A few connections that read while another writes.

use std::path::Path;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::connect;

/// More readers wait until a connection is free.
const COUNT: usize = 4;

/// They are opened with the store: later, an agent may have moved a directory above it, and the path could
/// lead to a database of the agent's.
#[derive(Debug)]
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    freed: Condvar,
}

struct BorrowedConnection<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Readers {
    pub(super) fn open(path: &Path) -> Result<Self, rusqlite::Error> {
        let connections: Result<_, _> = (0..COUNT).map(|_| connect::reader(path)).collect();
        Ok(Self { idle: Mutex::new(connections?), freed: Condvar::new() })
    }

    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error> {
        let lent = self.lend();
        match &lent.connection {
            Some(connection) => read(connection),
            // Cannot happen: `lend` waits until a connection is free.
            None => Err(rusqlite::Error::InvalidQuery),
        }
    }

    fn lend(&self) -> BorrowedConnection<'_> {
        let idle = self.freed.wait_while(self.idle(), |idle| idle.is_empty());
        let mut idle = idle.unwrap_or_else(PoisonError::into_inner);
        BorrowedConnection { readers: self, connection: idle.pop() }
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BorrowedConnection<'_> {
    fn drop(&mut self) {
        self.readers.idle().extend(self.connection.take());
        self.readers.freed.notify_one();
    }
}
