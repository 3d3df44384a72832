//! The output of a process, whose end nobody can delay.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, ReadBuf};
use tokio::net::unix::pipe;
use tokio::sync::watch;

use super::State;

/// A pipe that a process writes to. It ends when its last writer closes it, or when the process and its
/// tree have ended and everything they wrote is read. Another process that still holds the pipe is not
/// waited for.
pub struct Output {
    pipe: pipe::Receiver,
    silent: Option<Pin<Box<dyn Future<Output = ()> + Send + Sync>>>,
}

impl Output {
    pub(super) fn new(pipe: pipe::Receiver, mut state: watch::Receiver<State>) -> Self {
        let silent = async move {
            let _ = state.wait_for(|state| state.silent).await;
        };
        Self { pipe, silent: Some(Box::pin(silent)) }
    }

    /// Sets the size of the pipe, if the system allows it.
    pub fn widen(&self, bytes: usize) {
        let _ = rustix::pipe::fcntl_setpipe_size(&self.pipe, bytes);
    }
}

impl AsyncRead for Output {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if let Poll::Ready(result) = Pin::new(&mut self.pipe).poll_read(context, buffer) {
            return Poll::Ready(result);
        }
        if let Some(silent) = &mut self.silent {
            ready!(silent.as_mut().poll(context));
            self.silent = None;
        }
        // Everything written before the process went silent is in the pipe by now, but the event loop may
        // not have reported it. Only reading the pipe itself tells.
        match rustix::io::read(&self.pipe, buffer.initialize_unfilled()) {
            Ok(count) => {
                buffer.advance(count);
                Poll::Ready(Ok(()))
            }
            Err(rustix::io::Errno::AGAIN) => Poll::Ready(Ok(())),
            Err(error) => Poll::Ready(Err(error.into())),
        }
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Output").field(&self.pipe).finish()
    }
}
