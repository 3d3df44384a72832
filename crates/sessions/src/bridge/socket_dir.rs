//! Where a session's socket is: its own directory, which only this user can enter.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use crate::private_dir::{PrivateDirectory, remove_stale};

const PREFIX: &str = "agentwire-mcp-";

/// A socket path may have 107 bytes; the rest of ours takes about 30 of them.
const BASE_LIMIT: usize = 70;

/// The directory and its socket. Dropping it removes both.
#[derive(Debug)]
pub(super) struct SocketDir {
    socket: PathBuf,
    _directory: PrivateDirectory,
}

impl SocketDir {
    pub(super) fn new() -> io::Result<Self> {
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        let fits = |path: &PathBuf| {
            path.is_absolute() && path.is_dir() && path.as_os_str().len() <= BASE_LIMIT
        };
        let base = [runtime, Some(std::env::temp_dir())].into_iter().flatten().find(fits);
        Self::within(&base.unwrap_or_else(|| PathBuf::from("/tmp")))
    }

    fn within(base: &Path) -> io::Result<Self> {
        remove_stale(base, PREFIX);
        let directory = PrivateDirectory::new(base, PREFIX)?;
        Ok(Self { socket: directory.path().join("s"), _directory: directory })
    }

    pub(super) fn socket(&self) -> &Path {
        &self.socket
    }

    pub(super) fn listen(&self) -> io::Result<UnixListener> {
        let listener = UnixListener::bind(&self.socket)?;
        fs::set_permissions(&self.socket, Permissions::from_mode(0o600))?;
        listener.set_nonblocking(true)?;
        Ok(listener)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use super::*;

    #[test]
    fn a_place_is_private_and_gone_with_its_owner() {
        let base = tempfile::tempdir().expect("a directory");
        let socket_dir = SocketDir::within(base.path()).expect("a directory");
        let listener = socket_dir.listen().expect("a listener");
        let mode = fs::metadata(socket_dir.socket()).expect("a file").mode() & 0o777;
        assert_eq!(mode, 0o600);
        drop((listener, socket_dir));
        assert_eq!(fs::read_dir(base.path()).expect("a directory").count(), 0);
    }
}
