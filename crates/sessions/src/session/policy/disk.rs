//! What the policy asks of the disk: where a path leads, what is there, and what a small file says.
//! A disk that does not answer in time tells nothing, and what is not certain asks.

mod threads;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// How many different paths one decision looks up. A call that names more asks.
const LOOKUP_LIMIT: usize = 4096;

/// The disk, as far as the policy looks at it: [`OnDisk`], except in tests.
pub trait Disk {
    /// Where a path leads with all links followed, whether or not its end exists; `None` if that
    /// cannot be told in time.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;

    /// What is there, with links followed; `None` if that cannot be told in time.
    fn kind(&self, path: &Path) -> Option<Kind>;

    /// The contents of a file; `None` if it cannot be read or has more than `limit` bytes.
    fn read(&self, path: &Path, limit: usize) -> Option<Vec<u8>>;
}

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing is there.
    Missing,
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A pipe, a device, a socket, or something that cannot be looked at.
    Other,
}

/// A function that follows links is a disk that holds nothing else.
impl<F: Fn(&Path) -> PathBuf> Disk for F {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        Some(self(path))
    }

    fn kind(&self, _: &Path) -> Option<Kind> {
        Some(Kind::Missing)
    }

    fn read(&self, _: &Path, _: usize) -> Option<Vec<u8>> {
        None
    }
}

/// The disk of this machine.
#[derive(Clone, Copy, Debug)]
pub struct OnDisk;

impl Disk for OnDisk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        // A link to nothing yet is followed too: what writes through it makes the file that it names.
        threads::in_time(path, |_, end| end)
    }

    fn kind(&self, path: &Path) -> Option<Kind> {
        threads::in_time(path, |path, _| kind(path))
    }

    fn read(&self, path: &Path, limit: usize) -> Option<Vec<u8>> {
        threads::in_time(path, move |path, _| read(path, limit))?
    }
}

fn kind(path: &Path) -> Kind {
    match std::fs::metadata(path) {
        Ok(found) if found.is_file() => Kind::File,
        Ok(found) if found.is_dir() => Kind::Directory,
        Ok(_) => Kind::Other,
        Err(error) => match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => Kind::Missing,
            _ => Kind::Other,
        },
    }
}

fn read(path: &Path, limit: usize) -> Option<Vec<u8>> {
    // To open a pipe would wait for its writer.
    if kind(path) != Kind::File {
        return None;
    }
    let mut contents = Vec::new();
    let most = u64::try_from(limit).ok()?.saturating_add(1);
    File::open(path).ok()?.take(most).read_to_end(&mut contents).ok()?;
    (contents.len() <= limit).then_some(contents)
}

/// A disk on which each path is followed once in a decision, and not too many of them.
pub(super) struct Lookups<'a> {
    disk: &'a dyn Disk,
    resolved: RefCell<HashMap<PathBuf, PathBuf>>,
    is_over: Cell<bool>,
}

impl<'a> Lookups<'a> {
    pub(super) fn new(disk: &'a dyn Disk) -> Self {
        Self { disk, resolved: RefCell::default(), is_over: Cell::new(false) }
    }

    /// Whether there were too many paths, or the disk did not answer: then nothing is certain.
    pub(super) fn are_over(&self) -> bool {
        self.is_over.get()
    }

    /// Where a path leads. Once it is over, nothing more is looked up.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        if let Some(known) = self.resolved.borrow().get(path) {
            return known.clone();
        }
        let is_room = !self.is_over.get() && self.resolved.borrow().len() < LOOKUP_LIMIT;
        let Some(found) = is_room.then(|| self.disk.resolve(path)).flatten() else {
            self.is_over.set(true);
            return PathBuf::from("/");
        };
        self.resolved.borrow_mut().insert(path.to_path_buf(), found.clone());
        found
    }

    /// What is there.
    pub(super) fn kind(&self, path: &Path) -> Kind {
        let kind = if self.is_over.get() { None } else { self.disk.kind(path) };
        self.is_over.set(kind.is_none());
        kind.unwrap_or(Kind::Other)
    }

    /// The contents of a file.
    pub(super) fn read(&self, path: &Path, limit: usize) -> Option<Vec<u8>> {
        if self.is_over.get() { None } else { self.disk.read(path, limit) }
    }
}
