//! The policy's view of the disk: where a path leads, what is there, and what a small file contains. If the
//! disk does not respond in time, the answer is unknown, and whatever is not certain asks.

mod threads;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fs::File;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

/// How many different paths one decision looks up. A call that names more asks.
const LOOKUP_LIMIT: usize = 4096;

/// The disk as the policy sees it: [`OnDisk`], except in tests.
pub trait Disk {
    /// Where a path leads with all links followed, whether or not its end exists; `None` if that cannot be
    /// found out in time.
    fn resolve(&self, path: &Path) -> Option<PathBuf>;

    /// What is there, with links followed; `None` if that cannot be found out in time. A link that leads
    /// nowhere is something: programs may accept the link itself.
    fn kind(&self, path: &Path) -> Option<Kind>;

    /// The contents of a file; `None` if it cannot be read or has more than `limit` bytes.
    fn read(&self, path: &Path, limit: usize) -> Option<Vec<u8>>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Missing,
    File,
    Directory,
    /// A pipe, a device, a socket, a link that leads nowhere, or something that cannot be inspected.
    Other,
}

/// A function that follows links acts as a disk that contains nothing.
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

#[derive(Clone, Copy, Debug)]
pub struct OnDisk;

impl Disk for OnDisk {
    fn resolve(&self, path: &Path) -> Option<PathBuf> {
        // A dangling link is followed too: writing through it creates the file that it names.
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
        Err(error) if !is_missing(&error) => Kind::Other,
        Err(_) => match std::fs::symlink_metadata(path) {
            Err(error) if is_missing(&error) => Kind::Missing,
            Ok(_) | Err(_) => Kind::Other,
        },
    }
}

fn is_missing(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory)
}

fn read(path: &Path, limit: usize) -> Option<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    if kind(path) != Kind::File {
        return None;
    }
    let mut contents = Vec::new();
    let most = u64::try_from(limit).ok()?.saturating_add(1);
    File::open(path).ok()?.take(most).read_to_end(&mut contents).ok()?;
    (contents.len() <= limit).then_some(contents)
}

/// A disk that resolves each path once per decision, and limits the number of paths.
pub(super) struct Lookups<'a> {
    disk: &'a dyn Disk,
    resolved: RefCell<HashMap<PathBuf, PathBuf>>,
    is_ended: Cell<bool>,
}

impl<'a> Lookups<'a> {
    pub(super) fn new(disk: &'a dyn Disk) -> Self {
        Self { disk, resolved: RefCell::default(), is_ended: Cell::new(false) }
    }

    /// Whether there were too many paths, or the disk did not respond. Then nothing is certain.
    pub(super) fn are_over(&self) -> bool {
        self.is_ended.get()
    }

    /// Where a path leads. Once [`Self::are_over`], nothing more is looked up.
    pub(super) fn resolve(&self, path: &Path) -> PathBuf {
        if let Some(known) = self.resolved.borrow().get(path) {
            return known.clone();
        }
        let is_room = !self.is_ended.get() && self.resolved.borrow().len() < LOOKUP_LIMIT;
        let Some(found) = is_room.then(|| self.disk.resolve(path)).flatten() else {
            self.is_ended.set(true);
            return PathBuf::from("/");
        };
        self.resolved.borrow_mut().insert(path.to_path_buf(), found.clone());
        found
    }

    pub(super) fn kind(&self, path: &Path) -> Kind {
        let kind = if self.is_ended.get() { None } else { self.disk.kind(path) };
        self.is_ended.set(kind.is_none());
        kind.unwrap_or(Kind::Other)
    }

    pub(super) fn read(&self, path: &Path, limit: usize) -> Option<Vec<u8>> {
        if self.is_ended.get() { None } else { self.disk.read(path, limit) }
    }
}
