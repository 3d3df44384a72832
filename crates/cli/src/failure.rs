//! Why a command failed, and the exit code that says so.

use std::io;

use agentwire_protocol::{ErrorCode, GatewayError};
use agentwire_sessions::store::StoreError;

use crate::print;

#[derive(Debug)]
pub(crate) enum Failure {
    Io(io::Error),
    Gateway(GatewayError),
    /// The message is printed already.
    Exit(u8),
}

impl Failure {
    /// Prints the message on stderr.
    pub(crate) fn report(&self) {
        match self {
            Self::Io(error) => print::error(&error.to_string()),
            Self::Gateway(error) => print::error(&error.message),
            Self::Exit(_) => {}
        }
    }

    /// 1: failed. 2: wrong arguments. 3: the agent is not available.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Self::Io(_) => 1,
            Self::Exit(code) => *code,
            Self::Gateway(error) => match error.code {
                ErrorCode::AgentUnavailable => 3,
                ErrorCode::InvalidJson
                | ErrorCode::InvalidMessage
                | ErrorCode::UnknownMethod
                | ErrorCode::SessionNotFound
                | ErrorCode::Unsupported => 2,
                ErrorCode::Unauthorized
                | ErrorCode::Forbidden
                | ErrorCode::StartFailed
                | ErrorCode::AgentFailed
                | ErrorCode::RequestNotFound
                | ErrorCode::RequestSettled
                | ErrorCode::Timeout
                | ErrorCode::Overloaded
                | ErrorCode::StorageFull
                | ErrorCode::Conflict
                | ErrorCode::Internal => 1,
            },
        }
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<GatewayError> for Failure {
    fn from(error: GatewayError) -> Self {
        Self::Gateway(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Io(io::Error::other(error))
    }
}
