//! Copies the write-ahead log back into the database on its own thread, so that no append waits for it, and
//! makes room in the log's file before appends need it.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::{Connection, TransactionBehavior};

use super::{Writer, connect, lock};
use crate::store::StoreError;

/// How many pages the log has when it is copied.
const PAGES: i32 = 4000;

/// The length of a page in the log, with its header.
const FRAME: u64 = 4096 + 24;

/// How much longer than its contents the log's file is made, up to what stays of it when it restarts.
const RESERVE: u64 = 4;

/// How many pages the log has when room is first made. Short commands do not get that far.
const FIRST_RESERVE: i32 = 64;

/// Room is made in steps of this length, so that appends wait only for one.
const STEP: usize = 1 << 20;

/// No room is made on a disk that has less than this left.
const SCARCE: u64 = 1 << 30;

#[derive(Debug, Default)]
pub(super) struct CheckpointSignal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    copy: bool,
    /// How long the log's file should be.
    reserve: Option<u64>,
    end: bool,
}

/// The thread. It ends when this is dropped.
#[derive(Debug)]
pub(super) struct CheckpointThread {
    signal: Arc<CheckpointSignal>,
    thread: Option<JoinHandle<()>>,
}

/// Watches each commit of the writing connection, and requests a copy when the log is long. With this hook,
/// SQLite no longer copies by itself within a commit.
pub(super) fn watch(writer: &mut Connection) -> Result<Arc<CheckpointSignal>, rusqlite::Error> {
    let signal = Arc::new(CheckpointSignal::default());
    let shared = Arc::clone(&signal);
    let mut reserved = 0;
    writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
        if pages >= PAGES {
            shared.notify(|state| state.copy = true);
        }
        let used = FRAME * u64::try_from(pages).unwrap_or(0);
        if pages >= FIRST_RESERVE && reserved < connect::LOG_KEPT && 2 * used > reserved {
            reserved = connect::LOG_KEPT.min(RESERVE * used);
            shared.notify(|state| state.reserve = Some(reserved));
        }
        Ok(())
    }))?;
    Ok(signal)
}

impl CheckpointThread {
    pub(super) fn start(
        signal: Arc<CheckpointSignal>,
        connection: Connection,
        log: Option<File>,
        writer: Arc<Mutex<Writer>>,
    ) -> Result<Self, StoreError> {
        let shared = Arc::clone(&signal);
        let thread = thread::Builder::new()
            .name("copying".to_owned())
            .spawn(move || shared.run(&connection, log.as_ref(), &writer))
            .map_err(|error| StoreError::Failed(format!("failed to start a thread: {error}")))?;
        Ok(Self { signal, thread: Some(thread) })
    }
}

impl Drop for CheckpointThread {
    fn drop(&mut self) {
        self.signal.notify(|state| state.end = true);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl CheckpointSignal {
    fn notify(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state());
        self.changed.notify_one();
    }

    /// What fails here is harmless: the events are durable, and a later commit asks for a copy again.
    fn run(&self, connection: &Connection, log: Option<&File>, writer: &Mutex<Writer>) {
        while let Some((is_copy, reserve)) = self.next() {
            if let (Some(log), Some(length)) = (log, reserve)
                && let Err(error) = self.make_room(log, length, writer)
            {
                tracing::debug!(%error, "failed to make room in the store's write-ahead log");
            }
            if !is_copy {
                continue;
            }
            // The first copy takes long. The second copies only what was added meanwhile, so that almost
            // nothing is left.
            copy(connection);
            copy(connection);
            // Once everything is copied the log restarts, and nothing may be added in between.
            let mut writer = lock(writer);
            copy(&writer.connection);
            writer.limit_log();
        }
    }

    /// Makes the log's file longer, with zeros, which SQLite takes for the end of the log. A commit that
    /// makes a file longer must also write what the file system knows about the file, and takes longer.
    fn make_room(&self, log: &File, length: u64, writer: &Mutex<Writer>) -> io::Result<()> {
        let zeros = vec![0; STEP];
        while !self.state().end && has_space(log)? && lengthen(log, length, &zeros, writer)? {
            // Not in a commit.
            log.sync_data()?;
        }
        Ok(())
    }

    /// Waits for something to do: whether to copy, and how long the log's file should be. `None` if the
    /// thread must end.
    fn next(&self) -> Option<(bool, Option<u64>)> {
        let is_idle = |state: &mut State| !state.copy && state.reserve.is_none() && !state.end;
        let mut state =
            self.changed.wait_while(self.state(), is_idle).unwrap_or_else(PoisonError::into_inner);
        let work = (std::mem::take(&mut state.copy), state.reserve.take());
        (!state.end).then_some(work)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Copies what can be copied without waiting.
fn copy(connection: &Connection) {
    let copied = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
    if let Err(error) = copied {
        tracing::debug!(%error, "failed to copy the store's write-ahead log");
    }
}

/// Makes the file one step longer. Returns whether it did.
fn lengthen(log: &File, length: u64, zeros: &[u8], writer: &Mutex<Writer>) -> io::Result<bool> {
    let mut writer = lock(writer);
    writer.connection.busy_timeout(Duration::ZERO).map_err(io::Error::other)?;
    // While this exists, nothing in any process adds to the log.
    let held = writer.connection.transaction_with_behavior(TransactionBehavior::Immediate);
    let lengthened = match &held {
        Ok(_) => log.metadata().and_then(|data| {
            let is_short = data.len() > 0 && data.len() < length;
            if is_short {
                log.write_all_at(zeros, data.len())?;
            }
            Ok(is_short)
        }),
        Err(_) => Ok(false),
    };
    drop(held);
    let _ = writer.connection.busy_timeout(connect::BUSY_TIMEOUT);
    lengthened
}

fn has_space(log: &File) -> io::Result<bool> {
    let disk = rustix::fs::fstatvfs(log)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize) >= SCARCE)
}
