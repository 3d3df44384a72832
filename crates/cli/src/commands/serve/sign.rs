//! `server.json`, by which other verbs find the server. Who wrote it holds a lock on it while it lives: a
//! token is never sent to whoever has the address, or the pid, of a server that is gone. Of several servers
//! the first is found; when it ends, another is.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

const NAME: &str = "server.json";

/// The server is found by it until this is dropped.
pub(super) struct Sign {
    directory: PathBuf,
    up: Arc<Mutex<Option<File>>>,
}

enum Put {
    /// It is up, for as long as the file is locked.
    Up(File),
    /// Another server's is.
    Behind(File),
}

impl Sign {
    /// Puts it up, or waits with it until the server that is found there is gone.
    pub(super) fn put_up(directory: &Path, told: String) -> io::Result<Self> {
        let sign = Self { directory: directory.to_owned(), up: Arc::default() };
        match put(directory, &told)? {
            Put::Up(file) => *lock(&sign.up) = Some(file),
            Put::Behind(other) => {
                tracing::warn!(
                    "other commands find another server with this data directory; reach this one with --url"
                );
                let (directory, up) = (directory.to_owned(), Arc::downgrade(&sign.up));
                // The wait has no end but that of the other server, or of this process.
                thread::Builder::new()
                    .name("sign".to_owned())
                    .spawn(move || follow(other, &directory, &told, &up))?;
            }
        }
        Ok(sign)
    }
}

impl Drop for Sign {
    fn drop(&mut self) {
        let Some(file) = lock(&self.up).take() else { return };
        let _turn = turn(&self.directory);
        let place = self.directory.join(NAME);
        let inode = |found: io::Result<fs::Metadata>| found.ok().map(|found| found.ino());
        if inode(fs::metadata(&place)) == inode(file.metadata()) {
            let _ = fs::remove_file(&place);
        }
    }
}

/// Puts the sign up when no other server's is there.
fn follow(mut other: File, directory: &Path, told: &str, up: &Weak<Mutex<Option<File>>>) {
    while other.lock_shared().is_ok() {
        let Some(up) = up.upgrade() else { return };
        let mut up = lock(&up);
        match put(directory, told) {
            Ok(Put::Up(file)) => {
                *up = Some(file);
                return;
            }
            Ok(Put::Behind(next)) => other = next,
            Err(error) => {
                tracing::warn!(%error, "other commands cannot find this server; reach it with --url");
                return;
            }
        }
    }
}

fn put(directory: &Path, told: &str) -> io::Result<Put> {
    let _turn = turn(directory)?;
    let place = directory.join(NAME);
    if let Ok(other) = File::open(&place)
        && matches!(other.try_lock_shared(), Err(TryLockError::WouldBlock))
    {
        return Ok(Put::Behind(other));
    }
    // It gets its name when it is locked and whole.
    let beside = directory.join("server.json.new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.lock()?;
    file.write_all(told.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, &place)?;
    Ok(Put::Up(file))
}

/// Servers look and write one after the other.
fn turn(directory: &Path) -> io::Result<File> {
    let turn = File::open(directory)?;
    turn.lock()?;
    Ok(turn)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn the_first_is_found_and_then_the_next() {
        let place = tempfile::tempdir().unwrap();
        let told = || fs::read_to_string(place.path().join(NAME)).ok();
        let put = |text: &str| Sign::put_up(place.path(), text.to_owned()).unwrap();
        // What a server that was killed left.
        fs::write(place.path().join(NAME), "stale").unwrap();
        let first = put("first");
        let second = put("second");
        assert_eq!(told().as_deref(), Some("first"));
        drop(put("third"));
        assert_eq!(told().as_deref(), Some("first"));
        drop(first);
        let begun = Instant::now();
        while told().as_deref() != Some("second") {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", told());
            thread::yield_now();
        }
        drop(second);
        assert_eq!(told(), None);
    }
}
