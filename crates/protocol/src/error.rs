//! The errors of the gateway: one type, one closed list of codes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Json;

/// Why a call was refused. Fronts map each code to their own specification's by an exhaustive match.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ErrorCode {
    /// The text is not JSON.
    InvalidJson,
    /// JSON, but not a message of this protocol, or a field out of its bounds.
    InvalidMessage,
    /// No such method or command.
    UnknownMethod,
    /// No valid token.
    Unauthorized,
    /// A valid token that may not do this.
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
    /// The request was settled before.
    RequestSettled,
    /// No answer in time.
    Timeout,
    /// This agent cannot do that; the message names what.
    Unsupported,
    /// Too much at once; try again later.
    Overloaded,
    /// No room to store events.
    StorageFull,
    /// The call contradicts the present state.
    Conflict,
    /// A fault of agentwire's own.
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

    /// The code of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.as_str() == name)
    }

    /// The code as it stands on the wire.
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

/// A refused call: what kind of refusal, in words, and anything that helps a program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GatewayError {
    /// The kind of error.
    pub code: ErrorCode,
    /// In words, and what to do next where that can be said.
    pub message: String,
    /// Anything more, for programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json<'static>>,
}

impl GatewayError {
    /// An error of this code.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: bounded(message.into()), details: None }
    }

    /// Whether the session could not hear the command: it is over, runs elsewhere, or has no room to write.
    /// What it has heard before is another matter.
    pub fn is_unheard(&self) -> bool {
        let unheard = [ErrorCode::SessionNotFound, ErrorCode::Conflict, ErrorCode::StorageFull];
        unheard.contains(&self.code)
    }

    /// The agent cannot do `what`; never dropped silently.
    pub fn unsupported(agent: &str, what: &str) -> Self {
        Self::new(ErrorCode::Unsupported, format!("{agent} cannot take {what}"))
    }
}

/// The longest message. What a client says comes back in it, and must not come back whole.
const LONGEST: usize = 4096;

/// The text, or its start and its end with what was left out between them.
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

/// The last place up to this one where a text can be cut.
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
