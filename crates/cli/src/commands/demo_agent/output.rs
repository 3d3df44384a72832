//! Lines to stdout: gathered while there is more to say, and never held back while waiting.

use std::io::{self, Write as _};

use agentwire_protocol::json::{write_line, write_value};
use serde_json::Value;

use crate::print;

/// How much is gathered before it is written.
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

    /// These bytes and the end of a line.
    pub(super) fn raw(&mut self, line: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(line);
        self.buffer.push(b'\n');
        self.flush_if_full()
    }

    /// A line that is the same each time but for a text and an id: the way of deltas, of which there
    /// may be a million.
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

/// What stands before and between the text and the id of a line.
pub(super) struct Frame {
    pub(super) head: String,
    pub(super) middle: String,
}
