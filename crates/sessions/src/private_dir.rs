//! Directories that only this user can enter, while they are in use. `remove_stale` removes those of a
//! gateway that was killed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;

/// Such a directory. Dropping it removes it with its contents.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    /// Held while the directory is in use.
    lock: Option<File>,
}

impl PrivateDirectory {
    /// Creates one in `base`, with a name that starts with `prefix`.
    pub fn new(base: &Path, prefix: &str) -> io::Result<Self> {
        let name = Uuid::new_v4().simple().to_string();
        let name = name.get(..12).unwrap_or(&name);
        // The directory gets its final name only when it is locked, so no one can find it unlocked and take
        // it for stale.
        let unlocked = base.join(format!(".{prefix}{name}"));
        DirBuilder::new().mode(0o700).create(&unlocked)?;
        let path = base.join(format!("{prefix}{name}"));
        let lock = File::open(&unlocked).and_then(|lock| {
            lock.lock()?;
            fs::rename(&unlocked, &path)?;
            Ok(lock)
        });
        let lock = lock.inspect_err(|_| drop(fs::remove_dir(&unlocked)))?;
        Ok(Self { path, lock: Some(lock) })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Leaves the directory in place and returns its lock: without the lock it is stale.
    pub fn keep(mut self) -> Option<File> {
        self.lock.take()
    }
}

impl Drop for PrivateDirectory {
    fn drop(&mut self) {
        if self.lock.is_some() {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

/// Removes the directories with this prefix that are no longer in use.
pub(crate) fn remove_stale(base: &Path, prefix: &str) {
    remove_unused(base, prefix, |_| true);
}

/// The same, but only those for which `is_stale` returns true.
pub fn remove_unused(base: &Path, prefix: &str, is_stale: impl Fn(&Path) -> bool) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(prefix))
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        let Some(lock) = File::open(entry.path()).ok().filter(|_| is_ours) else { continue };
        if lock.try_lock().is_ok() && is_stale(&entry.path()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_gateway_left_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().expect("a directory");
        let stale = base.path().join("a-0");
        fs::create_dir(&stale).expect("a directory");
        fs::write(stale.join("secret"), "").expect("a file");
        let other = base.path().join("other");
        fs::create_dir(&other).expect("a directory");
        std::os::unix::fs::symlink(&other, base.path().join("a-1")).expect("a link");
        let first = PrivateDirectory::new(base.path(), "a-").expect("a directory");
        let second = PrivateDirectory::new(base.path(), "a-").expect("a directory");
        remove_stale(base.path(), "a-");
        assert!(!stale.exists() && other.exists());
        assert!(first.path().exists() && second.path().exists());
        let mode = fs::metadata(first.path()).expect("a directory").mode() & 0o777;
        assert_eq!(mode, 0o700);
        fs::write(first.path().join("file"), "").expect("a file");
        let gone = first.path().to_owned();
        drop(first);
        assert!(!gone.exists() && second.path().exists());
    }
}
