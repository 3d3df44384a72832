//! Why a process could not be started.

use std::fmt;
use std::io;
use std::path::PathBuf;

use agentwire_protocol::{ErrorCode, GatewayError};
use rustix::io::Errno;

#[derive(Debug)]
pub enum SpawnError {
    /// The program is missing, cannot be executed, or does not accept this many arguments.
    Program { program: PathBuf, error: io::Error },
    /// The working directory is missing or not accessible.
    Directory { directory: PathBuf, error: io::Error },
    /// A file that the process is started with cannot be written.
    File { file: PathBuf, error: io::Error },
    /// Something that any process needs is not available: descriptors, processes, a keeper.
    Gateway(io::Error),
}

impl SpawnError {
    pub fn code(&self) -> ErrorCode {
        let (error, code) = match self {
            Self::Program { error, .. } => {
                let unavailable = matches!(
                    error.kind(),
                    io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied
                ) || error.raw_os_error() == Some(Errno::NOEXEC.raw_os_error());
                let code =
                    if unavailable { ErrorCode::AgentUnavailable } else { ErrorCode::StartFailed };
                (error, code)
            }
            Self::Directory { error, .. } | Self::File { error, .. } => {
                (error, ErrorCode::StartFailed)
            }
            Self::Gateway(error) => (error, ErrorCode::Internal),
        };
        match Errno::from_io_error(error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::AGAIN | Errno::NOMEM) => {
                ErrorCode::Overloaded
            }
            _ => code,
        }
    }
}

impl fmt::Display for SpawnError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Program { program, error } => {
                write!(f, "failed to start {}: {error}", program.display())
            }
            Self::Directory { directory, error } => {
                write!(f, "failed to enter the directory {}: {error}", directory.display())
            }
            Self::File { file, error } => {
                write!(f, "failed to write {}: {error}", file.display())
            }
            Self::Gateway(error) => write!(f, "failed to prepare a process: {error}"),
        }
    }
}

impl std::error::Error for SpawnError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Program { error, .. }
            | Self::Directory { error, .. }
            | Self::File { error, .. }
            | Self::Gateway(error) => Some(error),
        }
    }
}

impl From<SpawnError> for GatewayError {
    fn from(error: SpawnError) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_system_has_no_room_for_may_be_tried_again() {
        for errno in [Errno::MFILE, Errno::NFILE, Errno::AGAIN, Errno::NOMEM] {
            let error = || io::Error::from_raw_os_error(errno.raw_os_error());
            let errors = [
                SpawnError::Program { program: "a".into(), error: error() },
                SpawnError::Directory { directory: "a".into(), error: error() },
                SpawnError::File { file: "a".into(), error: error() },
                SpawnError::Gateway(error()),
            ];
            for error in errors {
                assert_eq!(error.code(), ErrorCode::Overloaded, "{error}");
            }
        }
    }
}
