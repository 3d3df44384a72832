//! `server.json`, by which other verbs find the server. The server that wrote it holds a lock on
//! it, so a token is never sent to a process that reuses the address or pid of a dead server. With
//! several servers, the first one is found; when it ends, the next one takes over.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

const NAME: &str = "server.json";

/// The server can be found until this is dropped.
pub(super) struct ServerFile {
    directory: PathBuf,
    up: Arc<Mutex<Option<File>>>,
}

enum Placed {
    /// Our file is in place while this lock is held.
    Ours(File),
    /// Another server's file is in place.
    Other(File),
}

impl ServerFile {
    /// Writes the file, now or when the server that owns it is gone.
    pub(super) fn publish(directory: &Path, content: String) -> io::Result<Self> {
        let server_file = Self { directory: directory.to_owned(), up: Arc::default() };
        match put(directory, &content)? {
            Placed::Ours(file) => *lock(&server_file.up) = Some(file),
            Placed::Other(other) => {
                tracing::warn!(
                    "other commands find another server with this data directory; reach this one with --url"
                );
                let (directory, up) = (directory.to_owned(), Arc::downgrade(&server_file.up));
                // The wait ends with the other server, or with this process.
                thread::Builder::new()
                    .name("server-file".to_owned())
                    .spawn(move || follow(other, &directory, &content, &up))?;
            }
        }
        Ok(server_file)
    }
}

impl Drop for ServerFile {
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

/// Writes the file when no other server owns it.
fn follow(mut other: File, directory: &Path, content: &str, up: &Weak<Mutex<Option<File>>>) {
    while other.lock_shared().is_ok() {
        let Some(up) = up.upgrade() else { return };
        let mut up = lock(&up);
        match put(directory, content) {
            Ok(Placed::Ours(file)) => {
                *up = Some(file);
                return;
            }
            Ok(Placed::Other(next)) => other = next,
            Err(error) => {
                tracing::warn!(%error, "other commands cannot find this server; reach it with --url");
                return;
            }
        }
    }
}

fn put(directory: &Path, content: &str) -> io::Result<Placed> {
    let _turn = turn(directory)?;
    let place = directory.join(NAME);
    if let Ok(other) = File::open(&place)
        && matches!(other.try_lock_shared(), Err(TryLockError::WouldBlock))
    {
        return Ok(Placed::Other(other));
    }
    // The file gets its name once it is locked and complete.
    let beside = directory.join("server.json.new");
    let mut file =
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside)?;
    file.lock()?;
    file.write_all(content.as_bytes())?;
    file.sync_all()?;
    fs::rename(&beside, &place)?;
    Ok(Placed::Ours(file))
}

/// Serialises servers that look and write.
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
        let content = || fs::read_to_string(place.path().join(NAME)).ok();
        let put = |text: &str| ServerFile::publish(place.path(), text.to_owned()).unwrap();
        // The file of a killed server.
        fs::write(place.path().join(NAME), "stale").unwrap();
        let first = put("first");
        let second = put("second");
        assert_eq!(content().as_deref(), Some("first"));
        drop(put("third"));
        assert_eq!(content().as_deref(), Some("first"));
        drop(first);
        let begun = Instant::now();
        while content().as_deref() != Some("second") {
            assert!(begun.elapsed() < Duration::from_secs(60), "{:?}", content());
            thread::yield_now();
        }
        drop(second);
        assert_eq!(content(), None);
    }
}
