//! What clients' MCP servers say to one relay, until it has taken it.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

use crate::backlog::Backlog;
use crate::blocking::blocking;

/// Lines that wait; clones are the same.
#[derive(Clone)]
pub(super) struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// There is more, or never will be again.
    wanted: Notify,
}

struct State {
    lines: Backlog,
    is_closed: bool,
}

impl Outbox {
    pub(super) fn new(directory: PathBuf) -> Self {
        let state = State { lines: Backlog::new(directory), is_closed: false };
        Self { shared: Arc::new(Shared { state: Mutex::new(state), wanted: Notify::new() }) }
    }

    /// Adds a line.
    pub(super) fn push(&self, line: &str) {
        let mut state = self.state();
        state.lines.push(line.as_bytes());
        state.lines.push(b"\n");
        drop(state);
        self.shared.wanted.notify_one();
    }

    /// How many bytes wait.
    pub(super) fn waiting(&self) -> usize {
        self.state().lines.len()
    }

    /// There will be no more.
    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.shared.wanted.notify_one();
    }

    /// Writes all that comes, until there will be no more.
    pub(super) async fn write_to(&self, mut write: impl AsyncWrite + Unpin) -> io::Result<()> {
        loop {
            let wanted = self.shared.wanted.notified();
            // Somebody who has it may wait for the disk.
            let (next, is_closed) = blocking(|| self.take())?;
            match next.is_empty() {
                false => write.write_all(&next).await?,
                true if is_closed => return Ok(()),
                true => wanted.await,
            }
        }
    }

    fn take(&self) -> io::Result<(Vec<u8>, bool)> {
        let mut state = self.state();
        let next = state.lines.next()?.to_vec();
        state.lines.advance(next.len());
        Ok((next, state.is_closed))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
