//! The terminal's keyboard: single keys or lines while a question is open. Its modes are restored
//! afterwards.

use std::fs::OpenOptions;
use std::io::{self, IsTerminal as _};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt as _;

use rustix::fs::OFlags;
use rustix::termios::{
    InputModes, LocalModes, OptionalActions, QueueSelector, SpecialCodeIndex, Termios, tcflush,
    tcgetattr, tcsetattr, ttyname,
};
use tokio::net::unix::pipe::Receiver;

use crate::view::dialog::Reading;

const LINE_LIMIT: usize = 64 << 10;

/// The keyboard. Dropping it restores its modes.
pub(crate) struct Terminal {
    keyboard: Receiver,
    before: Termios,
    reading: Option<Reading>,
    line: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Key(char),
    Line(String),
    /// Input that is not a single key.
    Nothing,
    /// The terminal is gone.
    Gone,
}

impl Terminal {
    /// Opens the keyboard, if there is one. A separate file, so that its flags do not change the
    /// shell's.
    pub(crate) fn open() -> Option<Self> {
        let name = ttyname(io::stdin(), Vec::new()).ok();
        let path = name.filter(|_| io::stdin().is_terminal());
        let path = path.map_or_else(|| b"/dev/tty".to_vec(), std::ffi::CString::into_bytes);
        let flags = (OFlags::NONBLOCK | OFlags::NOCTTY).bits();
        let flags = i32::try_from(flags).ok()?;
        let open = OpenOptions::new()
            .read(true)
            .custom_flags(flags)
            .open(std::ffi::OsStr::from_bytes(&path));
        let keyboard = open.ok()?;
        let before = tcgetattr(&keyboard).ok()?;
        // Not a pipe, but it can be polled like one.
        let keyboard = Receiver::from_file_unchecked(keyboard).ok()?;
        Some(Self { keyboard, before, reading: None, line: Vec::new() })
    }

    /// Sets how to read. Discards earlier input, so that no one answers a question they have not
    /// seen.
    pub(crate) fn read_as(&mut self, reading: Reading) -> io::Result<()> {
        let mut modes = self.before.clone();
        modes.input_modes |= InputModes::ICRNL;
        // Ctrl-C still interrupts.
        modes.local_modes |= LocalModes::ISIG;
        match reading {
            Reading::Keys => {
                modes.local_modes -= LocalModes::ICANON | LocalModes::ECHO;
                modes.special_codes[SpecialCodeIndex::VMIN] = 1;
                modes.special_codes[SpecialCodeIndex::VTIME] = 0;
            }
            Reading::Line => modes.local_modes |= LocalModes::ICANON | LocalModes::ECHO,
            Reading::Secret => {
                modes.local_modes |= LocalModes::ICANON | LocalModes::ECHONL;
                modes.local_modes -= LocalModes::ECHO;
            }
        }
        self.reading = Some(reading);
        self.line.clear();
        tcsetattr(self.keyboard.as_fd(), OptionalActions::Now, &modes)?;
        Ok(tcflush(self.keyboard.as_fd(), QueueSelector::IFlush)?)
    }

    /// Restores the modes.
    pub(crate) fn rest(&mut self) {
        if self.reading.take().is_some() {
            let _ = tcsetattr(self.keyboard.as_fd(), OptionalActions::Now, &self.before);
        }
    }

    /// Waits for a key or a line.
    pub(crate) async fn typed(&mut self) -> Typed {
        let mut buffer = [0; 4096];
        loop {
            if self.keyboard.readable().await.is_err() {
                return Typed::Gone;
            }
            let read = match self.keyboard.try_read(&mut buffer) {
                Ok(read) => buffer.get(..read).unwrap_or_default(),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => continue,
                    _ => return Typed::Gone,
                },
            };
            match self.reading {
                Some(Reading::Keys) if read.is_empty() => return Typed::Gone,
                Some(Reading::Keys) => return key(read).map_or(Typed::Nothing, Typed::Key),
                // Ctrl-D submits the line so far.
                Some(Reading::Line | Reading::Secret) => {
                    self.line.extend_from_slice(read);
                    if read.is_empty() || read.ends_with(b"\n") || self.line.len() > LINE_LIMIT {
                        let line = std::mem::take(&mut self.line);
                        return Typed::Line(String::from_utf8_lossy(&line).into_owned());
                    }
                }
                None => {}
            }
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.rest();
    }
}

/// The pressed key. Several characters are a paste or the code of a special key, which mean nothing
/// here; only Enter right after a key is allowed.
fn key(read: &[u8]) -> Option<char> {
    let text = std::str::from_utf8(read).ok()?;
    let pressed = match text.trim_end_matches(['\r', '\n']) {
        "" => text.get(..1)?,
        pressed => pressed,
    };
    let mut chars = pressed.chars();
    let key = chars.next()?;
    chars.next().is_none().then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_key_is_a_key() {
        assert_eq!(key(b"y"), Some('y'));
        assert_eq!(key(b"y\n"), Some('y'));
        assert_eq!(key(b"\n"), Some('\n'));
        assert_eq!(key("é".as_bytes()), Some('é'));
        assert_eq!(key(b"yes"), None);
        assert_eq!(key(b"\x1b[A"), None);
        assert_eq!(key(b"\xff"), None);
        assert_eq!(key(b""), None);
    }
}
