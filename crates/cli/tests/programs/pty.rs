//! A pseudo-terminal: what a person sees and types.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::retry_on_intr;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};

/// How long anything may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Pty {
    keyboard: File,
    /// Kept open so that the terminal lives until all output is read.
    terminal: Option<OwnedFd>,
    child: Child,
    pub(crate) shown: String,
    seen: usize,
}

impl Pty {
    /// Starts a command with all three streams on the terminal.
    pub(crate) fn start(command: &mut Command) -> Self {
        Self::start_with(command, |command, terminal| {
            let copy = || Stdio::from(terminal.try_clone().expect("a descriptor"));
            command.stdin(copy()).stdout(copy()).stderr(copy());
        })
    }

    /// Starts a command whose streams `wire` connects.
    pub(crate) fn start_with(
        command: &mut Command,
        wire: impl FnOnce(&mut Command, &OwnedFd),
    ) -> Self {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let keyboard = openpt(flags).expect("a pseudo-terminal");
        grantpt(&keyboard).expect("access to it");
        unlockpt(&keyboard).expect("it unlocks");
        let name = ptsname(&keyboard, Vec::new()).expect("a name");
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
        let terminal =
            rustix::fs::open(&name, flags, rustix::fs::Mode::empty()).expect("a terminal");
        let size = Winsize { ws_row: 50, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&terminal, size).expect("a size");
        wire(command, &terminal);
        let child = command.spawn().expect("it starts");
        Self {
            keyboard: File::from(keyboard),
            terminal: Some(terminal),
            child,
            shown: String::new(),
            seen: 0,
        }
    }

    pub(crate) fn modes(&self) -> rustix::termios::LocalModes {
        let terminal = self.terminal.as_ref().expect("it is open");
        rustix::termios::tcgetattr(terminal).expect("modes").local_modes
    }

    /// Waits until `text` appears, after the text of the last call.
    pub(crate) fn expect(&mut self, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let new = &self.shown[self.seen..];
            if let Some(at) = new.find(text) {
                self.seen += at + text.len();
                return;
            }
            assert!(Instant::now() < deadline, "{text:?} is not shown: {:?}", self.shown);
            assert!(self.read(), "it ended before it showed {text:?}: {:?}", self.shown);
        }
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("a keyboard");
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Waits until it exits, and returns the exit code.
    pub(crate) fn end(&mut self) -> Option<i32> {
        let deadline = Instant::now() + PATIENCE;
        let status = loop {
            if let Some(status) = self.child.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < deadline, "it does not end: {:?}", self.shown);
            self.read();
        };
        self.terminal = None;
        while self.read() {}
        status.code()
    }

    /// Reads what arrives within 100 ms. Returns whether there may be more.
    fn read(&mut self) -> bool {
        let moment = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let mut polled = [PollFd::from_borrowed_fd(self.keyboard.as_fd(), PollFlags::IN)];
        // The children of other tests end too.
        let ready = retry_on_intr(|| poll(&mut polled, Some(&moment))).expect("poll");
        if ready == 0 {
            return self.terminal.is_some();
        }
        let mut buffer = [0; 8192];
        match self.keyboard.read(&mut buffer) {
            Ok(0) | Err(_) => false,
            Ok(read) => {
                self.shown.push_str(&String::from_utf8_lossy(&buffer[..read]));
                true
            }
        }
    }
}

impl Drop for Pty {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
