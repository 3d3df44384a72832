//! agentwire's own program, when it is started again: as a keeper, as the demo agent, as a relay.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file that a process runs, even if it was replaced or deleted since. A process that we start has the
/// same one until it executes another program, so a keeper can start it by this name too.
const RUNNING: &str = "/proc/self/exe";

/// What the kernel appends to the name of a deleted file.
const GONE: &[u8] = b" (deleted)";

/// The running program, for this process and its keepers only: for any other process, the name means
/// another program. An upgrade does not change it. Without `/proc`, its path.
pub fn own_program() -> Option<PathBuf> {
    let running = PathBuf::from(RUNNING);
    if fs::metadata(&running).is_ok() { Some(running) } else { std::env::current_exe().ok() }
}

/// The path of a program that may be [`own_program`], for other processes. After an upgrade, the newer
/// version is there.
pub fn own_path(program: &Path) -> io::Result<PathBuf> {
    if program != Path::new(RUNNING) {
        return program.canonicalize();
    }
    let path = fs::read_link(program)?;
    let kept = path.as_os_str().as_bytes().strip_suffix(GONE).map(OsStr::from_bytes);
    let path = match kept {
        Some(kept) if !path.exists() => PathBuf::from(kept),
        Some(_) | None => path,
    };
    if path.exists() {
        return Ok(path);
    }
    let why = format!("{} was removed; install it there again", path.display());
    Err(io::Error::new(io::ErrorKind::NotFound, why))
}

/// Gives a process that was started as `/proc/self/exe` its usual name in `ps` and `pgrep`.
pub fn keep_name() {
    let is_other = Path::new(RUNNING).file_name().map(OsStr::as_bytes)
        == Some(rustix::thread::name().unwrap_or_default().as_bytes());
    if is_other {
        let _ = rustix::thread::set_name(c"agentwire");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_has_a_name_of_its_own_and_one_for_others() {
        let own = own_program().unwrap();
        assert_eq!(own_path(&own).unwrap(), std::env::current_exe().unwrap());
        let shell = Path::new("/bin/sh");
        assert_eq!(own_path(shell).unwrap(), shell.canonicalize().unwrap());
    }
}
