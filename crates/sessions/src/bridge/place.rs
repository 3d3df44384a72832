//! Where a session's socket is: a directory of its own that only this user can enter, removed with
//! the session. Those of a gateway that was killed are removed by the next that makes one.

use std::fs::{self, DirBuilder, File, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use uuid::Uuid;

const PREFIX: &str = "agentwire-mcp-";

/// A socket's path has room for 107 bytes; the rest of ours takes some 30 of them.
const BASE_LIMIT: usize = 70;

/// The directory and its socket. Dropping it removes both.
#[derive(Debug)]
pub(super) struct Place {
    directory: PathBuf,
    socket: PathBuf,
    /// Held for as long as somebody uses the directory.
    _lock: File,
}

impl Place {
    /// Makes a new one.
    pub(super) fn new() -> io::Result<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let fits = |path: &PathBuf| {
            path.is_absolute() && path.is_dir() && path.as_os_str().len() <= BASE_LIMIT
        };
        let base = [runtime, Some(std::env::temp_dir())].into_iter().flatten().find(fits);
        Self::within(&base.unwrap_or_else(|| PathBuf::from("/tmp")))
    }

    fn within(base: &Path) -> io::Result<Self> {
        remove_stale(base);
        let name = Uuid::new_v4().simple().to_string();
        let name = name.get(..12).unwrap_or(&name);
        // It gets its name when it is locked: nobody may find it unlocked and take it for stale.
        let unlocked = base.join(format!(".{PREFIX}{name}"));
        DirBuilder::new().mode(0o700).create(&unlocked)?;
        let directory = base.join(format!("{PREFIX}{name}"));
        let lock = File::open(&unlocked).and_then(|lock| {
            lock.lock()?;
            fs::rename(&unlocked, &directory)?;
            Ok(lock)
        });
        let lock = lock.inspect_err(|_| drop(fs::remove_dir(&unlocked)))?;
        Ok(Self { socket: directory.join("s"), directory, _lock: lock })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    /// Listens there.
    pub(super) fn listen(&self) -> io::Result<UnixListener> {
        let listener = UnixListener::bind(&self.socket)?;
        fs::set_permissions(&self.socket, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
        let _ = fs::remove_dir(&self.directory);
    }
}

fn remove_stale(base: &Path) {
    let own = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(base).into_iter().flatten().flatten() {
        let is_ours = entry.file_name().to_str().is_some_and(|name| name.starts_with(PREFIX))
            && entry.metadata().is_ok_and(|found| found.is_dir() && found.uid() == own);
        if is_ours && File::open(entry.path()).is_ok_and(|lock| lock.try_lock().is_ok()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_private_and_gone_with_its_owner() {
        let base = tempfile::tempdir().expect("a directory");
        let place = Place::within(base.path()).expect("a place");
        let listener = place.listen().expect("a listener");
        let mode = |path: &Path| fs::metadata(path).expect("a file").mode() & 0o777;
        assert_eq!((mode(&place.directory), mode(place.socket())), (0o700, 0o600));
        drop((listener, place));
        assert_eq!(fs::read_dir(base.path()).expect("a directory").count(), 0);
    }

    #[test]
    fn what_a_killed_gateway_left_is_removed_and_nothing_else() {
        let base = tempfile::tempdir().expect("a directory");
        let stale = base.path().join(format!("{PREFIX}0"));
        fs::create_dir(&stale).expect("a directory");
        drop(UnixListener::bind(stale.join("s")).expect("a socket"));
        let other = base.path().join("other");
        fs::create_dir(&other).expect("a directory");
        std::os::unix::fs::symlink(&other, base.path().join(format!("{PREFIX}1"))).expect("a link");
        let first = Place::within(base.path()).expect("a place");
        let second = Place::within(base.path()).expect("a place");
        assert!(!stale.exists() && other.exists());
        assert!(first.directory.exists() && second.directory.exists());
    }
}
