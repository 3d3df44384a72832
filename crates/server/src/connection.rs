//! A client's connection as the pump sees it: messages in and out, both bounded in bytes.

use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use agentwire_sessions::budget::{self, Pool, Share};
use bytes::Bytes;
use futures_util::future::{BoxFuture, Fuse, FusedFuture as _, FutureExt as _};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinHandle;

/// The longest line that a client may send.
pub const LINE_LIMIT: usize = 64 << 20;

const CHUNK: usize = 64 << 10;

#[derive(Debug)]
pub(crate) enum Incoming {
    /// A line without its line end, and its budget share if it is large. The last line may have had no line
    /// end.
    Line(Bytes, Option<Share>),
    /// A line that is too long, and its length in bytes.
    Overlong(u64),
}

pub struct Connection {
    /// The client's messages, one at a time; the client waits in the meantime.
    pub(crate) incoming: mpsc::Receiver<Incoming>,
    pub(crate) outgoing: Outgoing,
    reader: JoinHandle<()>,
    /// Writes the output. The task that adds output polls this afterwards, so that no event needs another
    /// task to wake up.
    pub(crate) writer: Fuse<BoxFuture<'static, ()>>,
}

impl Connection {
    /// A connection of lines, such as stdin and stdout. It has one client, which may hold one line of any
    /// length without a share of the pool: the line that it is sending. Once a large line is complete, it
    /// waits for its share.
    pub fn lines(
        read: impl AsyncRead + Send + Unpin + 'static,
        write: impl AsyncWrite + Send + Unpin + 'static,
        pool: Pool,
    ) -> Self {
        let (sender, incoming) = mpsc::channel(1);
        let outgoing = Outgoing::default();
        let reader = tokio::spawn(read_lines(read, sender, pool));
        let writer = write_bytes(write, outgoing.clone());
        Self::of(incoming, outgoing, reader, writer)
    }

    /// A connection of messages. The writer takes lines; each line is a message.
    pub(crate) fn of(
        incoming: mpsc::Receiver<Incoming>,
        outgoing: Outgoing,
        reader: JoinHandle<()>,
        writer: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        Self { incoming, outgoing, reader, writer: writer.boxed().fuse() }
    }

    /// Waits until everything is written, or cannot be. If the farewell has a text, the client must also be
    /// able to read it: closing a connection with unread input can discard the last output.
    pub(crate) async fn finish(&mut self, farewell: Farewell) {
        let has_text = !farewell.text.is_empty();
        if !has_text {
            self.reader.abort();
        }
        self.outgoing.close(farewell);
        if !self.writer.is_terminated() {
            (&mut self.writer).await;
        }
        while has_text && self.incoming.recv().await.is_some() {}
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
    }
}

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Farewell {
    pub(crate) is_error: bool,
    pub(crate) text: &'static str,
}

async fn read_lines(mut read: impl AsyncRead + Unpin, sender: mpsc::Sender<Incoming>, pool: Pool) {
    let mut chunk = vec![0; CHUNK];
    let mut line = Vec::new();
    let mut overlong = 0_u64;
    loop {
        let count = match read.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(count) => count,
        };
        let mut bytes = chunk.get(..count).unwrap_or_default();
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (head, rest) = bytes.split_at(end);
            append(head, &mut line, &mut overlong);
            bytes = rest.get(1..).unwrap_or_default();
            let finished = finished(&mut line, &mut overlong, &pool).await;
            if sender.send(finished).await.is_err() {
                return;
            }
        }
        append(bytes, &mut line, &mut overlong);
    }
    if !line.is_empty() || overlong > 0 {
        let _ = sender.send(finished(&mut line, &mut overlong, &pool).await).await;
    }
}

fn append(bytes: &[u8], line: &mut Vec<u8>, overlong: &mut u64) {
    if *overlong > 0 || line.len() + bytes.len() > LINE_LIMIT {
        *overlong += (line.len() + bytes.len()) as u64;
        *line = Vec::new();
    } else {
        line.extend_from_slice(bytes);
    }
}

async fn finished(line: &mut Vec<u8>, overlong: &mut u64, pool: &Pool) -> Incoming {
    if let bytes @ 1.. = std::mem::take(overlong) {
        return Incoming::Overlong(bytes);
    }
    let line = std::mem::take(line);
    let share = match line.len() > budget::SMALL {
        true => Some(pool.take(line.len().saturating_mul(budget::WORK)).await),
        false => None,
    };
    Incoming::Line(line.into(), share)
}

/// Output for a client, until the client has read it.
#[derive(Clone, Default)]
pub(crate) struct Outgoing {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    /// Something was written, or the output has failed.
    moved: Notify,
    /// The output has failed.
    failed: Notify,
    /// Grows whenever the client has taken something, be it part of a piece.
    progress: AtomicU64,
}

#[derive(Default)]
struct State {
    /// Complete lines, in order.
    pieces: Vec<Bytes>,
    /// The last piece, to which lines are appended.
    last: Vec<u8>,
    /// The number of bytes in all pieces, including those being written.
    waiting: usize,
    /// Events that hold a budget share until the output made from them is written.
    held: Vec<Bytes>,
    /// No more output will be added.
    is_closed: bool,
    farewell: Farewell,
    /// The client no longer reads.
    is_broken: bool,
}

impl Outgoing {
    pub(crate) fn push(&self, line: &[u8]) {
        self.add(line.len() + 1, |state| {
            state.last.extend_from_slice(line);
            state.last.push(b'\n');
        });
    }

    /// Adds complete lines without copying them; other clients may share them.
    pub(crate) fn pass(&self, lines: Bytes) {
        self.add(lines.len(), |state| {
            state.close_piece();
            state.pieces.push(lines);
        });
    }

    fn add(&self, bytes: usize, add: impl FnOnce(&mut State)) {
        let mut state = self.state();
        if state.is_broken {
            return;
        }
        state.waiting += bytes;
        add(&mut state);
    }

    /// Holds these events, and their budget share, until everything that waits now is written.
    pub(crate) fn hold(&self, events: &Bytes) {
        let mut state = self.state();
        if events.len() > budget::SMALL && state.waiting > 0 {
            state.held.push(events.clone());
        }
    }

    /// How many bytes the client has not read yet.
    pub(crate) fn waiting(&self) -> usize {
        self.state().waiting
    }

    pub(crate) fn is_broken(&self) -> bool {
        self.state().is_broken
    }

    /// Waits until fewer than `bytes` wait, or the client no longer reads.
    pub(crate) async fn below(&self, bytes: usize) {
        loop {
            let moved = self.shared.moved.notified();
            if self.is_broken() || self.waiting() < bytes {
                return;
            }
            moved.await;
        }
    }

    /// Waits until the client no longer reads.
    pub(crate) async fn broken(&self) {
        // Separate from `moved`: who waits here does not wake for every write.
        let failed = self.shared.failed.notified();
        if !self.is_broken() {
            failed.await;
        }
    }

    fn close(&self, farewell: Farewell) {
        let mut state = self.state();
        (state.is_closed, state.farewell) = (true, farewell);
    }

    pub(crate) fn farewell(&self) -> Farewell {
        self.state().farewell
    }

    /// The next complete lines to write, or nothing once the output is closed and written. The caller
    /// reports each written piece with [`Self::written`].
    ///
    /// Nothing wakes this up: it must be polled after output was added, as [`Connection::writer`] is.
    pub(crate) async fn take(&self) -> Option<Vec<Bytes>> {
        std::future::poll_fn(|_| {
            let mut state = self.state();
            state.close_piece();
            match state.pieces.is_empty() {
                false => Poll::Ready(Some(std::mem::take(&mut state.pieces))),
                true if state.is_closed => Poll::Ready(None),
                true => Poll::Pending,
            }
        })
        .await
    }

    /// The client has taken something.
    pub(crate) fn advance(&self) {
        self.shared.progress.fetch_add(1, Ordering::Relaxed);
    }

    /// Two results that differ show that the client has taken something in between.
    pub(crate) fn progress(&self) -> u64 {
        self.shared.progress.load(Ordering::Relaxed)
    }

    /// The client has read this many bytes.
    pub(crate) fn written(&self, bytes: usize) {
        let mut state = self.state();
        state.waiting = state.waiting.saturating_sub(bytes);
        let held = if state.waiting == 0 { std::mem::take(&mut state.held) } else { Vec::new() };
        drop(state);
        drop(held);
        self.shared.moved.notify_waiters();
    }

    /// The client no longer reads.
    pub(crate) fn fail(&self) {
        let mut state = self.state();
        *state = State { is_broken: true, is_closed: state.is_closed, ..State::default() };
        drop(state);
        self.shared.failed.notify_waiters();
        self.shared.moved.notify_waiters();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn close_piece(&mut self) {
        if !self.last.is_empty() {
            self.pieces.push(std::mem::take(&mut self.last).into());
        }
    }
}

async fn write_bytes(mut write: impl AsyncWrite + Unpin, outgoing: Outgoing) {
    while let Some(pieces) = outgoing.take().await {
        for bytes in pieces {
            if let Err(error) = write_all(&mut write, &bytes, &outgoing).await {
                tracing::debug!(%error, "the client stopped reading");
                return outgoing.fail();
            }
            outgoing.written(bytes.len());
        }
    }
    let _ = write.shutdown().await;
}

async fn write_all(
    write: &mut (impl AsyncWrite + Unpin),
    mut bytes: &[u8],
    outgoing: &Outgoing,
) -> io::Result<()> {
    while !bytes.is_empty() {
        let count = write.write(bytes).await?;
        if count == 0 {
            return Err(io::ErrorKind::WriteZero.into());
        }
        bytes = bytes.get(count..).unwrap_or_default();
        outgoing.advance();
    }
    write.flush().await
}
