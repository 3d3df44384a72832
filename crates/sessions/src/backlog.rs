//! Bytes for a reader that may be slow: a little stays in memory, the rest waits in unnamed files. A slow
//! reader costs no memory, however long it takes.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::PathBuf;

use crate::blocking::blocking;
use crate::budget::SMALL;

/// How many bytes are read back at once.
const PIECE: usize = 256 << 10;

/// Maximum length of a file. More bytes go into another file; each file is dropped once it is read.
const FILE: u64 = 16 << 20;

/// Bytes that wait to be written, in order.
#[derive(Debug)]
pub(crate) struct Backlog {
    directory: PathBuf,
    /// Written first.
    front: Vec<u8>,
    /// How many bytes of `front` are written.
    written: usize,
    /// Written after `front`.
    files: VecDeque<BacklogFile>,
    /// Written last: bytes that did not fit on the disk.
    tail: Vec<u8>,
}

#[derive(Debug)]
struct BacklogFile {
    file: File,
    length: u64,
    read: u64,
}

impl Backlog {
    pub(crate) fn new(directory: PathBuf) -> Self {
        let (front, tail) = (Vec::new(), Vec::new());
        Self { directory, front, written: 0, files: VecDeque::new(), tail }
    }

    pub(crate) fn len(&self) -> usize {
        let files: u64 = self.files.iter().map(|file| file.length - file.read).sum();
        let files = usize::try_from(files).unwrap_or(usize::MAX);
        (self.front.len() - self.written).saturating_add(files).saturating_add(self.tail.len())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds bytes. May wait for the disk, but does not block other tasks.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        if self.files.is_empty() && self.tail.is_empty() && self.len() + bytes.len() <= SMALL {
            return self.front.extend_from_slice(bytes);
        }
        self.tail.extend_from_slice(bytes);
        // If the disk is full, the next push tries again.
        if let Err(error) = blocking(|| self.keep()) {
            tracing::warn!(%error, "failed to move queued bytes to disk; they stay in memory");
        }
    }

    /// Moves the tail from memory to a file.
    fn keep(&mut self) -> io::Result<()> {
        if self.files.back().is_none_or(|file| file.length >= FILE) {
            // With the in-memory store, the directory may not exist.
            let file = tempfile::tempfile_in(&self.directory).or_else(|_| tempfile::tempfile())?;
            self.files.push_back(BacklogFile { file, length: 0, read: 0 });
        }
        if let Some(file) = self.files.back_mut() {
            file.file.write_all_at(&self.tail, file.length)?;
            file.length += self.tail.len() as u64;
            self.tail = Vec::new();
        }
        Ok(())
    }

    /// The bytes to write next; empty if nothing waits.
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
        while let Some(file) = self.files.front_mut() {
            let left = usize::try_from(file.length - file.read).unwrap_or(usize::MAX);
            let mut piece = vec![0; left.min(PIECE)];
            file.file.read_exact_at(&mut piece, file.read)?;
            file.read += piece.len() as u64;
            if file.read == file.length {
                self.files.pop_front();
            }
            if !piece.is_empty() {
                return Ok(piece);
            }
        }
        Ok(std::mem::take(&mut self.tail))
    }

    /// Marks `count` bytes of [`Self::next`] as written.
    pub(crate) fn advance(&mut self, count: usize) {
        self.written = (self.written + count).min(self.front.len());
        if self.written == self.front.len() {
            self.front = Vec::new();
            self.written = 0;
        }
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::new(std::mem::take(&mut self.directory));
    }

    #[cfg(test)]
    fn in_memory(&self) -> usize {
        self.front.capacity() + self.tail.capacity()
    }
}
