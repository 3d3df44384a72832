//! What can go wrong: in the server, and on the way to it.

use std::fmt;
use std::path::PathBuf;

use agentwire_protocol::{ErrorCode, GatewayError};

/// Why something failed.
#[derive(Clone, Debug, PartialEq)]
pub enum Error {
    /// The server refused.
    Refused(GatewayError),
    /// No server has said where it is.
    NoServer {
        /// Where it would stand.
        place: PathBuf,
    },
    /// A server said where it is, and ended without a word.
    Gone {
        /// Where it stands.
        place: PathBuf,
        /// The process that it was.
        pid: u32,
    },
    /// An address, a token or a certificate that cannot be used.
    Invalid(String),
    /// Nothing takes connections there.
    Unreachable {
        /// The server's address.
        at: String,
        /// In words.
        why: String,
    },
    /// No answer came in time.
    TimedOut {
        /// The server's address.
        at: String,
        /// How long was waited.
        seconds: u64,
    },
    /// The connection broke, or what came is no answer of such a server.
    Broken {
        /// The server's address.
        at: String,
        /// In words.
        why: String,
    },
}

impl Error {
    /// The server's code, if it was the server that refused.
    pub fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Refused(error) => Some(error.code),
            Self::NoServer { .. }
            | Self::Gone { .. }
            | Self::Invalid(_)
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Broken { .. } => None,
        }
    }

    /// Whether the same may succeed later.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NoServer { .. }
            | Self::Gone { .. }
            | Self::Unreachable { .. }
            | Self::TimedOut { .. }
            | Self::Broken { .. } => true,
            Self::Invalid(_) => false,
            Self::Refused(error) => match error.code {
                ErrorCode::Timeout
                | ErrorCode::Overloaded
                | ErrorCode::StorageFull
                | ErrorCode::Internal => true,
                ErrorCode::InvalidJson
                | ErrorCode::InvalidMessage
                | ErrorCode::UnknownMethod
                | ErrorCode::Unauthorized
                | ErrorCode::Forbidden
                | ErrorCode::SessionNotFound
                | ErrorCode::AgentUnavailable
                | ErrorCode::StartFailed
                | ErrorCode::AgentFailed
                | ErrorCode::RequestNotFound
                | ErrorCode::RequestSettled
                | ErrorCode::Unsupported
                | ErrorCode::Conflict => false,
            },
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(error) => f.write_str(&error.message),
            Self::NoServer { .. } => {
                f.write_str("no server runs here; `agentwire serve` starts one")
            }
            Self::Gone { place, pid } => write!(
                f,
                "no server runs here: {} is of process {pid}, which is gone; `agentwire serve` \
                 starts one",
                place.display()
            ),
            Self::Invalid(why) => f.write_str(why),
            Self::Unreachable { at, why } => {
                write!(f, "failed to reach the server at {at}: {why}")
            }
            Self::TimedOut { at, seconds } => {
                write!(f, "the server at {at} did not answer within {seconds} s")
            }
            Self::Broken { at, why } => write!(f, "failed to speak to the server at {at}: {why}"),
        }
    }
}

impl std::error::Error for Error {}

impl From<GatewayError> for Error {
    fn from(error: GatewayError) -> Self {
        Self::Refused(error)
    }
}
