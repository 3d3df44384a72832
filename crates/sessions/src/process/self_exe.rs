//! agentwire itself, when it is started once more: as a keeper, as the demo agent, as a relay.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The file that a process runs, even if it was replaced or deleted since. A process that we start has the
/// same one until it becomes another program, so a keeper too can start it by this name.
const RUNNING: &str = "/proc/self/exe";

/// What the kernel adds to the name of a file that is gone.
const GONE: &[u8] = b" (deleted)";

/// The program that runs now, for this process and its keepers alone: to any other, the name means another.
/// An upgrade does not change it. Where there is no `/proc`, its path.
pub fn own_program() -> Option<PathBuf> {
    let running = PathBuf::from(RUNNING);
    if fs::metadata(&running).is_ok() { Some(running) } else { std::env::current_exe().ok() }
}

/// The path of a program that may be [`own_program`], for other processes. After an upgrade the newer
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

/// Gives a process that was started by that name its own, as `ps` and `pgrep` show it.
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
