//! What is to be written to somebody who may not read: little of it is in memory, the rest waits in files
//! without names. So it costs no memory, however long that takes.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use crate::blocking::blocking;
use crate::budget::SMALL;

/// How much is read back at once.
const PIECE: usize = 256 << 10;

/// What is longer goes on in a further file: each is given up once it is read.
const FILE: u64 = 16 << 20;

/// Bytes that wait to be written, in order.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// Where the files are.
    directory: PathBuf,
    /// What comes first.
    front: Vec<u8>,
    /// How much of it is written.
    written: usize,
    /// What comes then.
    files: VecDeque<Part>,
    /// What comes last: the disk had no room for it.
    tail: Vec<u8>,
}

/// A part of it in a file.
#[derive(Debug)]
struct Part {
    file: File,
    length: u64,
    read: u64,
}

impl Backlog {
    pub(crate) fn new(directory: PathBuf) -> Self {
        let (front, tail) = (Vec::new(), Vec::new());
        Self { directory, front, written: 0, files: VecDeque::new(), tail }
    }

    /// How many bytes wait.
    pub(crate) fn len(&self) -> usize {
        let files: u64 = self.files.iter().map(|part| part.length - part.read).sum();
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        (self.front.len() - self.written).saturating_add(files).saturating_add(self.tail.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds bytes. It may wait for the disk, but keeps no other task waiting.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.files.is_empty() && self.tail.is_empty() && self.len() + bytes.len() <= SMALL {
            return self.front.extend_from_slice(bytes);
        }
        self.tail.extend_from_slice(bytes);
        // A disk that has no room is tried again with the next bytes.
        if let Err(error) = blocking(|| self.keep()) {
            tracing::warn!(%error, "what waits for an agent stays in memory");
        }
    }

    /// Brings the last bytes out of memory.
    fn keep(&mut self) -> io::Result<()> {
        if self.files.back().is_none_or(|part| part.length >= FILE) {
            // A store that keeps nothing may have no directory.
            let file = tempfile::tempfile_in(&self.directory).or_else(|_| tempfile::tempfile())?;
            self.files.push_back(Part { file, length: 0, read: 0 });
        }
        if let Some(part) = self.files.back_mut() {
            part.file.write_all_at(&self.tail, part.length)?;
            part.length += self.tail.len() as u64;
            self.tail = Vec::new();
        }
        Ok(())
    }

    /// What is to be written next; nothing if nothing waits.
    pub(crate) fn next(&mut self) -> io::Result<&[u8]> {
        if self.written == self.front.len() {
            self.written = 0;
            self.front = match self.files.is_empty() {
                true => std::mem::take(&mut self.tail),
                false => blocking(|| self.read_back())?,
            };
        }
        Ok(self.front.get(self.written..).unwrap_or_default())
    }

    fn read_back(&mut self) -> io::Result<Vec<u8>> {
        while let Some(part) = self.files.front_mut() {
            let left = usize::try_from(part.length - part.read).unwrap_or(usize::MAX);
            let mut piece = vec![0; left.min(PIECE)];
            part.file.read_exact_at(&mut piece, part.read)?;
            part.read += piece.len() as u64;
            if part.read == part.length {
                self.files.pop_front();
            }
            if !piece.is_empty() {
                return Ok(piece);
            }
        }
        Ok(std::mem::take(&mut self.tail))
    }

    /// So many bytes of the next are written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written = (self.written + count).min(self.front.len());
        if self.written == self.front.len() {
            self.front = Vec::new();
            self.written = 0;
        }
    }

    /// Gives up all that waits.
    pub(crate) fn clear(&mut self) {
        *self = Self::new(std::mem::take(&mut self.directory));
    }

    /// How many bytes of it are in memory.
    #[cfg(test)]
    fn in_memory(&self) -> usize {
        self.front.capacity() + self.tail.capacity()
    }
}
