//! The terminal's keyboard: keys one at a time while somebody is asked, and as it was ever after.

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

use crate::view::ask::Reading;

/// The longest line that is read.
const LINE_LIMIT: usize = 64 << 10;

/// The keyboard. It is put back to what it was when this is dropped.
pub(crate) struct Terminal {
    keyboard: Receiver,
    before: Termios,
    reading: Option<Reading>,
    line: Vec<u8>,
}

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    Key(char),
    Line(String),
    /// There is no terminal any more.
    Gone,
}

impl Terminal {
    /// The keyboard, if there is one. A file of its own, so that what is set on it is not set on the
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
        // Not a pipe, but read like one: when there is something.
        let keyboard = Receiver::from_file_unchecked(keyboard).ok()?;
        Some(Self { keyboard, before, reading: None, line: Vec::new() })
    }

    /// Reads like this from now on. What was typed before it was asked for is thrown away, so that
    /// nobody answers what they have not seen.
    pub(crate) fn read_as(&mut self, reading: Reading) -> io::Result<()> {
        let mut modes = self.before.clone();
        modes.input_modes |= InputModes::ICRNL;
        // The keys that interrupt go on to interrupt.
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

    /// Puts it back to what it was.
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
                Some(Reading::Keys) => {
                    if let Some(key) = key(read) {
                        return Typed::Key(key);
                    }
                }
                // The key that ends a file gives the line as far as it is.
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

/// The key that was pressed. Several at once are no key but a paste, or the code of a key that means
/// nothing here; only an Enter right after a key is let pass.
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
