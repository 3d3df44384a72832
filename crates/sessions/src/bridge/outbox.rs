//! Messages from clients' MCP servers to one relay, until it has read them.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::Notify;

use crate::backlog::Backlog;
use crate::blocking::blocking;

/// Lines that wait; clones share them.
#[derive(Clone)]
pub(super) struct Outbox {
    shared: Arc<Shared>,
}

struct Shared {
    state: Mutex<State>,
    /// There is more to write, or the outbox was closed.
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

    pub(super) fn close(&self) {
        self.state().is_closed = true;
        self.shared.wanted.notify_one();
    }

    /// Writes everything that is pushed, until the outbox is closed.
    pub(super) async fn write_to(&self, mut write: impl AsyncWrite + Unpin) -> io::Result<()> {
        loop {
            let wanted = self.shared.wanted.notified();
            // The lock's holder may be waiting for the disk.
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
