//! Copies the write-ahead log back into the database on its own thread, so that no append waits for it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use rusqlite::Connection;

use super::{Writer, lock};
use crate::store::StoreError;

/// How many pages the log has when it is copied.
const PAGES: i32 = 4000;

#[derive(Debug, Default)]
pub(super) struct CheckpointSignal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    copy: bool,
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
    writer.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
        if pages >= PAGES {
            shared.notify(|state| state.copy = true);
        }
        Ok(())
    }))?;
    Ok(signal)
}

impl CheckpointThread {
    pub(super) fn start(
        signal: Arc<CheckpointSignal>,
        connection: Connection,
        writer: Arc<Mutex<Writer>>,
    ) -> Result<Self, StoreError> {
        let shared = Arc::clone(&signal);
        let thread = thread::Builder::new()
            .name("copying".to_owned())
            .spawn(move || shared.run(&connection, &writer))
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

    /// A failed copy is harmless: the events are durable, and the next commit asks again.
    fn run(&self, connection: &Connection, writer: &Mutex<Writer>) {
        while self.next() {
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

    /// Waits until a copy is requested; returns false if the thread must end.
    fn next(&self) -> bool {
        let mut state = self
            .changed
            .wait_while(self.state(), |state| !state.copy && !state.end)
            .unwrap_or_else(PoisonError::into_inner);
        state.copy = false;
        !state.end
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
