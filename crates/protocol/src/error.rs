//! The gateway's error type and its closed list of codes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Json;

/// Why a call was refused. Each front maps every code to its own specification's codes with an exhaustive
/// match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ErrorCode {
    /// The text is not JSON.
    InvalidJson,
    /// Valid JSON, but not a message of this protocol, or a field is out of range.
    InvalidMessage,
    /// No such method or command.
    UnknownMethod,
    /// No valid token.
    Unauthorized,
    /// The token is valid but does not allow this.
    Forbidden,
    /// No such session.
    SessionNotFound,
    /// The agent's program is not installed or does not start.
    AgentUnavailable,
    /// The session could not be started.
    StartFailed,
    /// The agent ran and failed.
    AgentFailed,
    /// No such request.
    RequestNotFound,
    /// The request has already been settled.
    RequestSettled,
    /// No answer in time.
    Timeout,
    /// The agent does not support this; the message says what.
    Unsupported,
    /// Too much at once; try again later.
    Overloaded,
    /// No space left to store events.
    StorageFull,
    /// The call conflicts with the current state.
    Conflict,
    /// A bug or fault in agentwire.
    Internal,
}

impl ErrorCode {
    /// Every code, in the order of the contract.
    pub const ALL: [Self; 17] = [
        Self::InvalidJson,
        Self::InvalidMessage,
        Self::UnknownMethod,
        Self::Unauthorized,
        Self::Forbidden,
        Self::SessionNotFound,
        Self::AgentUnavailable,
        Self::StartFailed,
        Self::AgentFailed,
        Self::RequestNotFound,
        Self::RequestSettled,
        Self::Timeout,
        Self::Unsupported,
        Self::Overloaded,
        Self::StorageFull,
        Self::Conflict,
        Self::Internal,
    ];

    /// The code with that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// The code on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InvalidJson => "invalidJson",
            Self::InvalidMessage => "invalidMessage",
            Self::UnknownMethod => "unknownMethod",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::SessionNotFound => "sessionNotFound",
            Self::AgentUnavailable => "agentUnavailable",
            Self::StartFailed => "startFailed",
            Self::AgentFailed => "agentFailed",
            Self::RequestNotFound => "requestNotFound",
            Self::RequestSettled => "requestSettled",
            Self::Timeout => "timeout",
            Self::Unsupported => "unsupported",
            Self::Overloaded => "overloaded",
            Self::StorageFull => "storageFull",
            Self::Conflict => "conflict",
            Self::Internal => "internal",
        }
    }
}

/// A refused call: the kind of error, a message for people, and details for programs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayError {
    /// The kind of error.
    pub code: ErrorCode,
    /// What happened and, where possible, what to do next.
    pub message: String,
    /// Further details, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json<'static>>,
}

impl GatewayError {
    /// An error with this code. A very long message is shortened.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: bounded(message.into()), details: None }
    }

    /// The message, a field or an option of it is not valid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidMessage, message)
    }

    /// Whether the command did not reach the session, because it has ended, runs elsewhere or has no space
    /// to write. This says nothing about earlier commands.
    pub fn is_unheard(&self) -> bool {
        let unheard = [ErrorCode::SessionNotFound, ErrorCode::Conflict, ErrorCode::StorageFull];
        unheard.contains(&self.code)
    }

    /// The agent does not support `what`. Unsupported options are refused, never silently dropped.
    pub fn unsupported(agent: &str, what: impl fmt::Display) -> Self {
        Self::new(ErrorCode::Unsupported, format!("{agent} does not support {what}"))
    }
}

/// The longest message, in bytes. Messages quote the client's input, which must not be returned in full.
const LONGEST: usize = 4096;

/// The text. If it is too long, its start and its end, with the number of bytes left out between them.
pub(crate) fn bounded(text: String) -> String {
    if text.len() <= LONGEST {
        return text;
    }
    let (start, end) = (cut_at(&text, LONGEST / 2), cut_at(&text, text.len() - LONGEST / 4));
    let left_out = end - start;
    let (start, end) = (text.get(..start), text.get(end..));
    let (start, end) = (start.unwrap_or_default(), end.unwrap_or_default());
    format!("{start}… ({left_out} bytes left out) …{end}")
}

/// The last char boundary at or before `at`.
fn cut_at(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}

impl fmt::Display for GatewayError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.message)
    }
}

impl std::error::Error for GatewayError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_message_keeps_its_start_and_its_end() {
        let message = format!("field {}: it is wrong", "ä".repeat(1_000_000));
        let error = GatewayError::new(ErrorCode::InvalidMessage, message);
        assert!(error.message.len() < LONGEST, "{}", error.message.len());
        assert!(error.message.starts_with("field ä") && error.message.ends_with("ä: it is wrong"));
        assert!(error.message.contains("bytes left out"));
        let message = "x".repeat(LONGEST);
        assert_eq!(GatewayError::new(ErrorCode::InvalidMessage, message.clone()).message, message);
    }
}
