//! A connection that is closed when it is idle for too long, and that holds its place among the clients as
//! long as it is open, whatever its protocol.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use agentwire_sessions::budget::Pool;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::metrics::ConnectionGuard;
use super::websocket_budget::WebSocketBudget;

/// How long a connection may neither read nor write a byte.
pub(super) const IDLE: Duration = Duration::from_secs(75);

/// How long a client may read nothing while other readers wait for the memory that it holds. It can
/// reconnect and continue from the log.
const STUCK: Duration = Duration::from_secs(2);

/// How long a client may keep sending after its last response, and how many bytes.
const CLOSE_TIME: Duration = Duration::from_secs(2);
const LAST_BYTES: usize = 1 << 20;

/// What a connection holds: a place among the clients, and a token that the server waits for when it stops.
pub(super) struct ConnectionHold {
    _place: OwnedSemaphorePermit,
    _token: TaskTrackerToken,
    _connected: ConnectionGuard,
    /// The pool that other readers may wait for.
    readers: Pool,
}

impl ConnectionHold {
    pub(super) fn new(
        place: OwnedSemaphorePermit,
        token: TaskTrackerToken,
        connected: ConnectionGuard,
        readers: Pool,
    ) -> Self {
        Self { _place: place, _token: token, _connected: connected, readers }
    }
}

pub(super) struct IdleTimeout<S> {
    inner: S,
    until: Pin<Box<Sleep>>,
    /// How many bytes are still read and discarded after everything is written.
    last: Option<usize>,
    budget: WebSocketBudget,
    /// When to check next whether a client that reads nothing blocks others.
    stuck: Option<Pin<Box<Sleep>>>,
    hold: ConnectionHold,
}

impl<S> IdleTimeout<S> {
    pub(super) fn new(inner: S, hold: ConnectionHold, budget: WebSocketBudget) -> Self {
        let until = Box::pin(tokio::time::sleep(IDLE));
        Self { inner, until, last: None, budget, stuck: None, hold }
    }

    /// Records that the client read something, or fails if it read nothing for too long.
    fn watch_write<T>(
        &mut self,
        poll: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.stuck = None;
            return self.watch(poll, context);
        }
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(STUCK)));
        while stuck.as_mut().poll(context).is_ready() {
            if self.hold.readers.waiting() > 0 {
                return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
            }
            stuck.as_mut().reset(Instant::now() + STUCK);
        }
        self.watch(poll, context)
    }

    /// Records progress, or fails if there was none for too long.
    fn watch<T>(
        &mut self,
        poll: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if poll.is_ready() {
            self.until.as_mut().reset(Instant::now() + IDLE);
            return poll;
        }
        self.wait(context).map(Err)
    }

    fn wait(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        self.until.as_mut().poll(context).map(|()| io::ErrorKind::TimedOut.into())
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for IdleTimeout<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = &mut *self;
        // While there is no room for input, the client is not the one that is slow.
        std::task::ready!(this.budget.poll_room(context))?;
        let before = buffer.filled().len();
        let poll = Pin::new(&mut this.inner).poll_read(context, buffer);
        this.budget.read(buffer.filled().get(before..).unwrap_or_default());
        if poll.is_pending() && this.budget.poll_stalled(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        this.watch(poll, context)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for IdleTimeout<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let poll = Pin::new(&mut this.inner).poll_write(context, bytes);
        this.watch_write(poll, context)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        match Pin::new(&mut this.inner).poll_flush(context) {
            // Flushing alone is not progress.
            Poll::Ready(done) => Poll::Ready(done),
            Poll::Pending => this.wait(context).map(Err),
        }
    }

    /// Closing a connection while the client still sends can discard the response. So whatever the client
    /// sends is read and discarded for a short time.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = &mut *self;
        if this.last.is_none() {
            std::task::ready!(Pin::new(&mut this.inner).poll_shutdown(context))?;
            this.until.as_mut().reset(Instant::now() + CLOSE_TIME);
        }
        let mut left = this.last.unwrap_or(LAST_BYTES);
        let mut bytes = [0; 4096];
        while left > 0 {
            this.last = Some(left);
            let mut rest = ReadBuf::new(&mut bytes);
            match Pin::new(&mut this.inner).poll_read(context, &mut rest) {
                Poll::Ready(Ok(())) if !rest.filled().is_empty() => {
                    left = left.saturating_sub(rest.filled().len());
                }
                Poll::Ready(_) => break,
                Poll::Pending => return this.wait(context).map(|_| Ok(())),
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        let poll = Pin::new(&mut this.inner).poll_write_vectored(context, slices);
        this.watch_write(poll, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }
}
