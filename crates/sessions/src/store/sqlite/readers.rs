//! A few connections that read while another writes.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use rusqlite::Connection;

use super::connect;

/// More readers wait until a connection is free.
const MOST: usize = 4;

#[derive(Debug)]
pub(super) struct Readers {
    path: PathBuf,
    pool: Mutex<Pool>,
    freed: Condvar,
}

#[derive(Debug, Default)]
struct Pool {
    idle: Vec<Connection>,
    lent: usize,
}

struct BorrowedConnection<'a> {
    readers: &'a Readers,
    connection: Option<Connection>,
}

impl Readers {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, pool: Mutex::default(), freed: Condvar::new() }
    }

    pub(super) fn with<T>(
        &self,
        read: impl FnOnce(&Connection) -> Result<T, rusqlite::Error>,
    ) -> Result<T, rusqlite::Error> {
        let mut lent = self.lend();
        let connection = match lent.connection.take() {
            Some(connection) => connection,
            None => connect::reader(&self.path)?,
        };
        read(lent.connection.insert(connection))
    }

    fn lend(&self) -> BorrowedConnection<'_> {
        let mut pool = self
            .freed
            .wait_while(self.pool(), |pool| pool.lent >= MOST)
            .unwrap_or_else(PoisonError::into_inner);
        pool.lent += 1;
        BorrowedConnection { readers: self, connection: pool.idle.pop() }
    }

    fn pool(&self) -> MutexGuard<'_, Pool> {
        self.pool.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for BorrowedConnection<'_> {
    fn drop(&mut self) {
        let mut pool = self.readers.pool();
        pool.lent -= 1;
        pool.idle.extend(self.connection.take());
        self.readers.freed.notify_one();
    }
}
