//! Signals, as far as they mean something to a session.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Caught {
    /// SIGINT: stop what you do.
    Interrupt,
    /// SIGTERM, SIGHUP: end.
    Terminate,
    /// SIGCONT: another program may have used the terminal.
    Continue,
    /// SIGWINCH: the terminal has another size.
    Resize,
}

/// The signals that are caught while this lives, and no longer act by themselves.
#[derive(Debug)]
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
    proceed: Signal,
    resize: Signal,
}

impl Signals {
    pub(crate) fn new() -> io::Result<Self> {
        let proceed = SignalKind::from_raw(rustix::process::Signal::CONT.as_raw());
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            proceed: signal(proceed)?,
            resize: signal(SignalKind::window_change())?,
        })
    }

    /// Waits until somebody wants the program to end.
    pub(crate) async fn end(&mut self) {
        while matches!(self.next().await, Caught::Continue | Caught::Resize) {}
    }

    pub(super) async fn next(&mut self) -> Caught {
        tokio::select! {
            _ = self.interrupt.recv() => Caught::Interrupt,
            _ = self.terminate.recv() => Caught::Terminate,
            _ = self.hangup.recv() => Caught::Terminate,
            _ = self.proceed.recv() => Caught::Continue,
            _ = self.resize.recv() => Caught::Resize,
        }
    }
}
