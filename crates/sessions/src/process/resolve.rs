//! Finds an agent's program, but never one that the working directory could have supplied.

use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ResolveError {
    NotFound(String),
    /// Found, but only inside the working directory.
    Inside(PathBuf),
    /// Found, but it is this very program.
    Itself(PathBuf),
    Relative(String),
    /// No executable file at this path.
    NotExecutable(PathBuf),
}

impl fmt::Display for ResolveError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(program) => write!(f, "failed to find {program} on PATH"),
            Self::Inside(path) => {
                write!(f, "failed to trust {}: it is inside the working directory", path.display())
            }
            Self::Itself(path) => write!(
                f,
                "failed to find another {} on PATH: {} is agentwire itself",
                path.file_name().unwrap_or_default().display(),
                path.display()
            ),
            Self::Relative(program) => {
                write!(f, "failed to use {program}: give a name on PATH or an absolute path")
            }
            Self::NotExecutable(path) => {
                write!(f, "failed to use {}: not an executable file", path.display())
            }
        }
    }
}

impl std::error::Error for ResolveError {}

/// The absolute path of a program. An absolute path is used as it is. A name is looked up on `path`.
/// Matches inside the working directory are skipped, unless that is the user's home or above it, where
/// everything is inside. This very program is skipped too: it may be installed under an agent's name.
pub fn resolve(
    program: &str,
    path: Option<&OsStr>,
    directory: &Path,
) -> Result<PathBuf, ResolveError> {
    let named = Path::new(program);
    if named.is_absolute() {
        return match is_executable(named) {
            true => Ok(named.to_owned()),
            false => Err(ResolveError::NotExecutable(named.to_owned())),
        };
    }
    if program.contains('/') || program.is_empty() {
        return Err(ResolveError::Relative(program.to_owned()));
    }
    let fence = real(directory);
    let fence = match std::env::home_dir() {
        Some(home) if real(&home).starts_with(&fence) => None,
        _ => Some(fence),
    };
    let own = fs::metadata("/proc/self/exe").ok();
    let is_own = |found: &Path| {
        let found = fs::metadata(found).ok();
        let identity = |file: &fs::Metadata| (file.dev(), file.ino());
        own.as_ref().map(identity).is_some_and(|own| found.as_ref().map(identity) == Some(own))
    };
    let mut inside = None;
    let mut itself = None;
    for entry in path.into_iter().flat_map(std::env::split_paths) {
        let candidate = entry.join(program);
        if !entry.is_absolute() || !is_executable(&candidate) {
            continue;
        }
        if is_own(&candidate) {
            itself.get_or_insert(candidate);
            continue;
        }
        match &fence {
            Some(fence)
                if real(&entry).starts_with(fence) || real(&candidate).starts_with(fence) =>
            {
                inside.get_or_insert(candidate);
            }
            _ => return Ok(candidate),
        }
    }
    let passed = itself.map(ResolveError::Itself).or(inside.map(ResolveError::Inside));
    Err(passed.unwrap_or_else(|| ResolveError::NotFound(program.to_owned())))
}

/// Without links, so that no link hides where something is.
fn real(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
}

fn is_executable(path: &Path) -> bool {
    path.is_file() && access(path, Access::EXEC_OK).is_ok()
}
