//! Holds a line that is too long to stay in memory until it ends.
//!
//! An agent may start a long line and never end it, on its stdout or on the way to an MCP server, and many
//! agents may do so at once. The received part of such a line waits in an unnamed file: it uses no memory
//! and blocks nobody. Once the line is complete, its reader takes a share of the budget and reads it back.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use agentwire_dialects::tape::LINE_LIMIT;

/// A line whose start is in a file.
#[derive(Debug)]
pub(crate) struct LongLine {
    file: Option<File>,
    length: usize,
    /// What is not in the file yet, because the disk had no room.
    unwritten: Vec<u8>,
    /// Its end has arrived.
    is_complete: bool,
    /// It is not stored, only counted.
    is_lost: bool,
    /// What arrived after its end.
    rest: Vec<u8>,
}

impl LongLine {
    pub(crate) fn new(beginning: Vec<u8>) -> Self {
        Self {
            file: None,
            length: beginning.len(),
            unwritten: beginning,
            is_complete: false,
            is_lost: false,
            rest: Vec::new(),
        }
    }

    /// Adds the next bytes. If the line grows too long to be stored, returns its length so far and all of
    /// `bytes`.
    pub(crate) fn push<'b>(&mut self, bytes: &'b [u8]) -> Option<(u64, &'b [u8])> {
        let end = memchr::memchr(b'\n', bytes);
        let (line, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
        if !self.is_lost {
            if self.length + line.len() > LINE_LIMIT {
                return Some((self.length as u64, bytes));
            }
            self.unwritten.extend_from_slice(line);
        }
        self.length += line.len();
        self.is_complete = end.is_some();
        self.rest = rest.get(1..).unwrap_or_default().to_vec();
        None
    }

    /// Writes what is not in the file yet. May block on the disk.
    pub(crate) fn write(&mut self, directory: &Path) -> io::Result<()> {
        if self.is_lost {
            return Ok(());
        }
        let file = match self.file.take() {
            Some(file) => file,
            // A store that keeps nothing may have no directory.
            None => tempfile::tempfile_in(directory).or_else(|_| tempfile::tempfile())?,
        };
        let file = self.file.insert(file);
        // A partial write is repeated.
        file.seek(io::SeekFrom::Start((self.length - self.unwritten.len()) as u64))?;
        file.write_all(&self.unwritten)?;
        self.unwritten = Vec::new();
        Ok(())
    }

    /// Whether something is not in the file yet. Nothing more may be read before it is.
    pub(crate) fn is_stuck(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Drops the line, including what still arrives: from here on it is only counted.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
        self.file = None;
        self.unwritten = Vec::new();
    }

    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// How many bytes [`Self::take`] returns.
    pub(crate) fn kept(&self) -> usize {
        if self.is_lost { 0 } else { self.length }
    }

    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest)
    }

    /// The line. May block on the disk.
    pub(crate) fn take(mut self) -> io::Result<Vec<u8>> {
        if self.is_lost {
            let why = "there was no room on the disk";
            return Err(io::Error::new(io::ErrorKind::StorageFull, why));
        }
        let mut line = Vec::new();
        line.try_reserve_exact(self.length)?;
        if let Some(file) = &mut self.file {
            file.rewind()?;
            file.take((self.length - self.unwritten.len()) as u64).read_to_end(&mut line)?;
        }
        line.append(&mut self.unwritten);
        if line.len() != self.length {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(line)
    }
}
