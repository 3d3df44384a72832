//! A directory that is held open, so that it can be used whatever its name leads to.
//!
//! An agent that can rename a directory above ours could put its own in that place. What agentwire reads
//! and writes while agents run therefore goes through the open handle.

use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

/// Flags to hold a file open without reading or writing it.
#[cfg(target_os = "linux")]
pub(crate) const HELD: OFlags = OFlags::PATH;
#[cfg(not(target_os = "linux"))]
pub(crate) const HELD: OFlags = OFlags::RDONLY;

#[derive(Clone, Debug)]
pub struct HeldDir {
    name: PathBuf,
    path: PathBuf,
    held: Arc<File>,
}

impl HeldDir {
    /// Opens a directory that exists.
    pub fn open(name: &Path) -> io::Result<Self> {
        let name = std::path::absolute(name)?;
        // Opening a pipe or a device could block.
        if !fs::metadata(&name)?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        let flags = HELD | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let held = File::from(rustix::fs::open(&name, flags, Mode::empty())?);
        // Not every system lets a process reach what it holds open by path. There, the name must do.
        let path = Path::new("/proc/self/fd").join(held.as_raw_fd().to_string());
        let found = held.metadata()?;
        let is_same = |path: &Path| {
            fs::metadata(path).is_ok_and(|other| identity(&other) == identity(&found))
        };
        let path = if is_same(&path) { path } else { name.clone() };
        Ok(Self { name, path, held: Arc::new(held) })
    }

    /// The name that it was opened by: for messages, and for other processes.
    pub fn name(&self) -> &Path {
        &self.name
    }

    /// A path that leads here whatever was renamed. Only this process can use it, as long as this value
    /// exists.
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn metadata(&self) -> io::Result<fs::Metadata> {
        self.held.metadata()
    }

    /// Whether the name still leads here.
    pub(crate) fn is_at_its_name(&self) -> bool {
        let found = (fs::metadata(&self.name), self.held.metadata());
        matches!(found, (Ok(named), Ok(held)) if identity(&named) == identity(&held))
    }

    /// Whether it was deleted.
    pub(crate) fn is_deleted(&self) -> bool {
        self.held.metadata().map_or(true, |held| held.nlink() == 0)
    }
}

impl AsFd for HeldDir {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.held.as_fd()
    }
}

/// What identifies a file: device and inode. While it is held open, no other file can have the same.
fn identity(found: &fs::Metadata) -> (u64, u64) {
    (found.dev(), found.ino())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_used_by_its_handle_whatever_its_name_leads_to() {
        let root = tempfile::tempdir().expect("a directory");
        let path = |name: &str| root.path().join(name);
        fs::create_dir_all(path("above/own")).expect("a directory");
        let held = HeldDir::open(&path("above/own")).expect("a handle");
        assert!(held.is_at_its_name() && !held.is_deleted());
        fs::write(held.path().join("file"), "ours").expect("a file");
        fs::rename(path("above"), path("away")).expect("it moves");
        assert!(!held.is_at_its_name());
        fs::create_dir_all(path("above/own")).expect("a directory");
        fs::write(path("above/own/file"), "forged").expect("a file");
        assert!(!held.is_at_its_name());
        if cfg!(target_os = "linux") {
            assert_eq!(fs::read_to_string(held.path().join("file")).expect("a file"), "ours");
        }
        fs::remove_dir_all(path("away")).expect("it goes");
        assert!(held.is_deleted());
        assert!(HeldDir::open(&path("above/own/file")).is_err());
    }
}
