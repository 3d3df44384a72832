//! Lines to stdout: buffered while there is more to write, flushed before every wait.

use std::io::{self, Write as _};

use agentwire_protocol::json::{write_line, write_value};
use serde_json::Value;

use crate::print;

/// How many bytes are buffered.
const FULL: usize = 64 << 10;

#[derive(Default)]
pub(super) struct Output {
    buffer: Vec<u8>,
}

impl Output {
    pub(super) fn line(&mut self, line: &Value) -> io::Result<()> {
        write_line(line, &mut self.buffer).map_err(io::Error::other)?;
        self.flush_if_full()
    }

    /// Writes these bytes and a line end.
    pub(super) fn raw(&mut self, line: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        self.flush_if_full()
    }

    /// Writes a line from a template, with a text and an id. For deltas, of which there may be a
    /// million.
    pub(super) fn framed(&mut self, frame: &Frame, text: &str, id: &str) -> io::Result<()> {
        self.buffer.extend_from_slice(frame.head.as_bytes());
        write_value(text, &mut self.buffer).map_err(io::Error::other)?;
        self.buffer.extend_from_slice(frame.middle.as_bytes());
        self.buffer.extend_from_slice(id.as_bytes());
        self.raw(b"\"}")
    }

    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.buffer.is_empty() {
            return Ok(());
        }
        let mut stdout = print::stdout();
        stdout.write_all(&self.buffer)?;
        stdout.flush()?;
        self.buffer.clear();
        self.buffer.shrink_to(2 * FULL);
        Ok(())
    }

    fn flush_if_full(&mut self) -> io::Result<()> {
        if self.buffer.len() >= FULL { self.flush() } else { Ok(()) }
    }
}

/// The parts of a line around its text and its id.
pub(super) struct Frame {
    pub(super) head: String,
    pub(super) middle: String,
}
