//! A line that is too long to be held in memory until it ends.
//!
//! An agent may begin a long line and never end it, on its stdout or on the way to an MCP server, and many
//! may do so at once. What has come of such a line waits in a file without a name: it costs no memory and
//! keeps nobody from working. Once it is whole, whoever reads it takes a share of the budget for it, and
//! reads it back.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, Write as _};
use std::path::Path;

use agentwire_dialects::tape::LINE_LIMIT;

/// A line whose beginning is in a file.
#[derive(Debug)]
pub(crate) struct LongLine {
    file: Option<File>,
    /// How long it is so far.
    length: usize,
    /// What is not in the file yet: the disk had no room for it.
    unwritten: Vec<u8>,
    /// Its end has come.
    is_whole: bool,
    /// It is not kept, only counted.
    is_lost: bool,
    /// What came after its end.
    rest: Vec<u8>,
}

impl LongLine {
    /// A line that begins so.
    pub(crate) fn new(beginning: Vec<u8>) -> Self {
        Self {
            file: None,
            length: beginning.len(),
            unwritten: beginning,
            is_whole: false,
            is_lost: false,
            rest: Vec::new(),
        }
    }

    /// Takes what comes next. Gives it back if the line grows too long to be kept: how long it is so far,
    /// and what belongs to it and comes after it.
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
        self.is_whole = end.is_some();
        self.rest = rest.get(1..).unwrap_or_default().to_vec();
        None
    }

    /// Writes what is not in the file yet. It may wait for the disk.
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
        // What was half written is written again.
        file.seek(io::SeekFrom::Start((self.length - self.unwritten.len()) as u64))?;
        file.write_all(&self.unwritten)?;
        self.unwritten = Vec::new();
        Ok(())
    }

    /// Whether something is not in the file: nothing more may be read before it is.
    pub(crate) fn is_stuck(&self) -> bool {
        !self.unwritten.is_empty()
    }

    /// Gives up what has come of it, and what comes: from here on it is only counted.
    pub(crate) fn lose(&mut self) {
        self.is_lost = true;
        self.file = None;
        self.unwritten = Vec::new();
    }

    /// Whether its end has come.
    pub(crate) fn is_whole(&self) -> bool {
        self.is_whole
    }

    pub(crate) fn length(&self) -> usize {
        self.length
    }

    /// How many bytes of it there are to take.
    pub(crate) fn kept(&self) -> usize {
        if self.is_lost { 0 } else { self.length }
    }

    /// Takes what came after it.
    pub(crate) fn take_rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.rest)
    }

    /// The line. It may wait for the disk.
    pub(crate) fn take(mut self) -> io::Result<Vec<u8>> {
        if self.is_lost {
            let why = "there was no room for it on the disk";
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
