//! Which processes run sessions: each holds a lock that is released when it ends, however it ends.
//!
//! A pid would not work: it may belong to another program by the time someone checks.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process;

use uuid::Uuid;

/// This process as the owner of sessions in a data directory, until it is dropped.
#[derive(Debug)]
pub struct Owner {
    name: String,
    path: PathBuf,
    _lock: File,
}

impl Owner {
    /// Makes this process an owner, under a name that was never used before.
    pub fn claim(data_dir: &Path) -> io::Result<Self> {
        let directory = data_dir.join("owners");
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        remove_stale(&directory);
        loop {
            let name = Uuid::new_v4().to_string();
            // The file gets its final name only when it is locked, so no one can find it unlocked and think
            // we are dead.
            let unlocked = directory.join(format!("{name}.new"));
            let path = path(data_dir, &name);
            let mut lock =
                OpenOptions::new().write(true).create_new(true).mode(0o600).open(&unlocked)?;
            lock.lock()?;
            // This fails on a full disk. The lock is what counts.
            let _ = writeln!(lock, "{}", process::id());
            match fs::rename(&unlocked, &path) {
                Ok(()) => return Ok(Self { name, path, _lock: lock }),
                // Another process removed it before it was locked.
                Err(error) if error.kind() == ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// The name, as stored in the records of its sessions.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

/// Whether the process with this name still runs. If in doubt it counts as running, so its sessions are
/// left alone.
pub fn is_alive(data_dir: &Path, name: &str) -> bool {
    // The name comes from a record; it must not lead outside the directory.
    Uuid::try_parse(name).is_ok_and(|_| is_locked(&path(data_dir, name)))
}

/// The process with this name, according to its lock file.
pub fn pid(data_dir: &Path, name: &str) -> Option<u32> {
    Uuid::try_parse(name).ok()?;
    fs::read_to_string(path(data_dir, name)).ok()?.trim().parse().ok()
}

fn path(data_dir: &Path, name: &str) -> PathBuf {
    data_dir.join("owners").join(format!("{name}.lock"))
}

/// Whether the lock is held; the file is removed if it is not.
fn is_locked(path: &Path) -> bool {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) => return error.kind() != ErrorKind::NotFound,
    };
    // Shared, so that two checks at once do not take each other for the owner.
    match file.try_lock_shared() {
        Ok(()) => {
            let _ = fs::remove_file(path);
            false
        }
        Err(TryLockError::WouldBlock | TryLockError::Error(_)) => true,
    }
}

fn remove_stale(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else {
        return;
    };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "lock" || extension == "new") {
            is_locked(&path);
        }
    }
}
