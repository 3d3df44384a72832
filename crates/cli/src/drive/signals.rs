//! The signals that a session reacts to.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaughtSignal {
    /// SIGINT
    Interrupt,
    /// SIGTERM, SIGHUP
    Terminate,
    /// SIGCONT: another program may have used the terminal.
    Continue,
    /// SIGWINCH: the terminal has another size.
    Resize,
}

/// Catches signals. Their default actions stay off for the rest of the process.
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

    /// Waits for a signal that ends the program.
    pub(crate) async fn end(&mut self) {
        while matches!(self.next().await, CaughtSignal::Continue | CaughtSignal::Resize) {}
    }

    pub(super) async fn next(&mut self) -> CaughtSignal {
        tokio::select! {
            _ = self.interrupt.recv() => CaughtSignal::Interrupt,
            _ = self.terminate.recv() => CaughtSignal::Terminate,
            _ = self.hangup.recv() => CaughtSignal::Terminate,
            _ = self.proceed.recv() => CaughtSignal::Continue,
            _ = self.resize.recv() => CaughtSignal::Resize,
        }
    }
}
