//! What can go wrong: in the gateway, in the agent, and on the way to them.

mod agent_failure;

use std::fmt;

use agentwire_protocol::{AgentType, ErrorCode, GatewayError, Json};

/// The kinds of errors that the specification knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AgentErrorType {
    /// The gateway or the agent cannot be reached, or the connection broke.
    ConnectionFailed,
    /// No valid token, or the agent is not signed in.
    AuthenticationFailed,
    /// No such session.
    SessionNotFound,
    /// Somebody or something does not allow it.
    PermissionDenied,
    /// The agent, or a tool of it, ran and failed.
    ToolExecutionFailed,
    /// No answer in time.
    Timeout,
    /// What was said is not understood, or does not fit the present state.
    ProtocolError,
    /// Anything else.
    Unknown,
}

impl AgentErrorType {
    /// The name as the specification has it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConnectionFailed => "connectionFailed",
            Self::AuthenticationFailed => "authenticationFailed",
            Self::SessionNotFound => "sessionNotFound",
            Self::PermissionDenied => "permissionDenied",
            Self::ToolExecutionFailed => "toolExecutionFailed",
            Self::Timeout => "timeout",
            Self::ProtocolError => "protocolError",
            Self::Unknown => "unknown",
        }
    }
}

impl From<ErrorCode> for AgentErrorType {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::InvalidJson
            | ErrorCode::InvalidMessage
            | ErrorCode::UnknownMethod
            | ErrorCode::RequestNotFound
            | ErrorCode::RequestSettled
            | ErrorCode::Unsupported
            | ErrorCode::Conflict => Self::ProtocolError,
            ErrorCode::Unauthorized => Self::AuthenticationFailed,
            ErrorCode::Forbidden => Self::PermissionDenied,
            ErrorCode::SessionNotFound => Self::SessionNotFound,
            ErrorCode::AgentUnavailable | ErrorCode::StartFailed | ErrorCode::Overloaded => {
                Self::ConnectionFailed
            }
            ErrorCode::AgentFailed => Self::ToolExecutionFailed,
            ErrorCode::Timeout => Self::Timeout,
            ErrorCode::StorageFull | ErrorCode::Internal => Self::Unknown,
        }
    }
}

impl fmt::Display for AgentErrorType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Events that a reader cannot have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// They were never shown, though they were asked for twice.
    Skipped {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
    /// They were read before, and the log does not have them: it is another log, or one that was cut.
    /// What comes next has their numbers.
    Forgotten {
        /// The first of them.
        from: u64,
        /// The last of them.
        to: u64,
    },
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped { from, to } => write!(f, "events {from} to {to} are not to be had"),
            Self::Forgotten { from, to } => write!(
                f,
                "the log does not have events {from} to {to}, which were read before: it is another \
                 log"
            ),
        }
    }
}

/// Why something failed.
#[derive(Clone, PartialEq)]
pub struct AgentError {
    told: Box<ReportedError>,
}

#[derive(Clone, Debug, PartialEq)]
struct ReportedError {
    kind: AgentErrorType,
    message: String,
    code: Option<ErrorCode>,
    native: Option<String>,
    agent: Option<AgentType>,
    details: Option<Json<'static>>,
    gap: Option<Gap>,
    is_retryable: bool,
    /// No gateway was there who could have heard anything.
    is_unreachable: bool,
    /// A gateway said it, if by a code that is not known here.
    is_refusal: bool,
}

impl AgentError {
    /// An error of that kind. The same will fail again.
    pub fn new(kind: AgentErrorType, message: impl Into<String>) -> Self {
        let told = ReportedError {
            kind,
            message: message.into(),
            code: None,
            native: None,
            agent: None,
            details: None,
            gap: None,
            is_retryable: false,
            is_unreachable: false,
            is_refusal: false,
        };
        Self { told: Box::new(told) }
    }

    /// The way to the gateway failed: where it leads, and why in the words of whoever said so. The same
    /// may succeed later.
    pub fn broken(to: impl fmt::Display, why: impl fmt::Display) -> Self {
        let message = format!("failed to speak to {to}: {why}");
        Self::new(AgentErrorType::ConnectionFailed, message).with_native(why).retryable()
    }

    /// Nothing takes connections there. The same may succeed later.
    pub fn unreachable(to: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self::nobody(format!("failed to reach {to}: {why}")).with_native(why)
    }

    /// Nobody is there, in these words. The same may succeed later.
    pub(crate) fn nobody(message: String) -> Self {
        Self::new(AgentErrorType::ConnectionFailed, message).unheard()
    }

    /// No gateway has heard anything. The same may succeed later, if one was there before.
    pub(crate) fn unheard(mut self) -> Self {
        self.told.is_unreachable = true;
        self.retryable()
    }

    /// No answer came in time.
    pub fn timed_out(to: impl fmt::Display, seconds: u64) -> Self {
        let message = format!("{to} did not answer within {seconds} s");
        Self::new(AgentErrorType::Timeout, message).retryable()
    }

    /// Something that was given cannot be used: an address, a token, a request.
    pub fn invalid(message: impl Into<String>) -> Self {
        GatewayError::new(ErrorCode::InvalidMessage, message).into()
    }

    /// With what the other side said itself.
    pub fn with_native(mut self, native: impl fmt::Display) -> Self {
        self.told.native = Some(native.to_string());
        self
    }

    /// Of that agent.
    pub fn with_agent(mut self, agent: AgentType) -> Self {
        self.told.agent.get_or_insert(agent);
        self
    }

    /// The same may succeed later.
    pub fn retryable(mut self) -> Self {
        self.told.is_retryable = true;
        self
    }

    /// What kind of error.
    pub fn kind(&self) -> AgentErrorType {
        self.told.kind
    }

    /// In words, and what to do next where that can be said.
    pub fn message(&self) -> &str {
        &self.told.message
    }

    /// The error in the words of the agent, or of whatever failed on the way.
    pub fn native_error(&self) -> Option<&str> {
        self.told.native.as_deref()
    }

    /// The agent that it is about.
    pub fn agent_type(&self) -> Option<AgentType> {
        self.told.agent
    }

    /// The gateway's code, if it was the gateway that refused.
    pub fn code(&self) -> Option<ErrorCode> {
        self.told.code
    }

    /// Anything more from the gateway, for programs.
    pub fn details(&self) -> Option<&Json<'static>> {
        self.told.details.as_ref()
    }

    /// Which events are missing, if that is the error. The stream that told it goes on after it.
    pub fn gap(&self) -> Option<Gap> {
        self.told.gap
    }

    /// Whether the same may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.told.is_retryable
    }

    /// Whether no gateway was there who could have heard anything.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.told.is_unreachable
    }

    /// Whether a gateway said it.
    pub(crate) fn is_refusal(&self) -> bool {
        self.told.code.is_some() || self.told.is_refusal
    }
}

fn is_retryable(code: ErrorCode) -> bool {
    match code {
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
    }
}

impl From<GatewayError> for AgentError {
    fn from(error: GatewayError) -> Self {
        let GatewayError { code, message, details } = error;
        let mut told = Self::new(code.into(), message);
        (told.told.code, told.told.details) = (Some(code), details);
        told.told.is_retryable = is_retryable(code);
        told
    }
}

/// A gateway's refusal, as it stands on a line.
#[cfg(any(feature = "http", feature = "stdio"))]
#[derive(serde::Deserialize)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) details: Option<Json<'static>>,
}

/// A code that is not known here is a newer gateway's.
#[cfg(any(feature = "http", feature = "stdio"))]
impl From<Refusal> for AgentError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message, details } = refusal;
        if let Some(code) = ErrorCode::named(&code) {
            return GatewayError { details, ..GatewayError::new(code, message) }.into();
        }
        let mut error = Self::new(AgentErrorType::Unknown, message).with_native(code);
        (error.told.details, error.told.is_refusal) = (details, true);
        error
    }
}

/// Events that cannot be had.
impl From<Gap> for AgentError {
    fn from(gap: Gap) -> Self {
        let mut error = Self::new(AgentErrorType::ProtocolError, gap.to_string());
        error.told.gap = Some(gap);
        error
    }
}

/// What a front would tell its client.
impl From<AgentError> for GatewayError {
    fn from(error: AgentError) -> Self {
        let ReportedError { code, message, details, .. } = *error.told;
        Self { details, ..Self::new(code.unwrap_or(ErrorCode::Internal), message) }
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.told.message)
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AgentError");
        shown.field("kind", &self.told.kind).field("message", &self.told.message);
        if let Some(code) = self.told.code {
            shown.field("code", &code);
        }
        if let Some(agent) = self.told.agent {
            shown.field("agent", &agent);
        }
        if let Some(native) = &self.told.native {
            shown.field("native", native);
        }
        if let Some(gap) = self.told.gap {
            shown.field("gap", &gap);
        }
        shown.finish_non_exhaustive()
    }
}

impl std::error::Error for AgentError {}

#[cfg(test)]
mod tests {
    use super::*;

    /// The specification's list, and no code without a kind.
    #[test]
    fn every_code_has_a_kind_and_is_told_with_its_words() {
        for code in ErrorCode::ALL {
            let refused =
                GatewayError { details: Some(Json::EMPTY), ..GatewayError::new(code, "no") };
            let error = AgentError::from(refused.clone());
            assert_eq!((error.code(), error.message()), (Some(code), "no"));
            assert_eq!(error.kind(), AgentErrorType::from(code));
            assert_eq!(GatewayError::from(error), refused);
        }
    }

    #[cfg(any(feature = "http", feature = "stdio"))]
    #[test]
    fn a_code_that_is_not_known_is_kept_with_its_words() {
        let told = r#"{"code":"quotaSpent","message":"come back","details":{"day":2},"more":1}"#;
        let error = AgentError::from(serde_json::from_str::<Refusal>(told).unwrap());
        assert_eq!((error.kind(), error.code()), (AgentErrorType::Unknown, None));
        assert_eq!((error.message(), error.native_error()), ("come back", Some("quotaSpent")));
        assert_eq!(error.details().map(Json::get), Some(r#"{"day":2}"#));
        assert!(error.is_refusal() && !error.is_retryable());
    }

    #[test]
    fn what_broke_is_kept_in_its_own_words() {
        let error = AgentError::broken("the server at x", "reset by peer");
        assert!(error.is_retryable());
        assert_eq!(error.native_error(), Some("reset by peer"));
        assert_eq!(error.to_string(), "failed to speak to the server at x: reset by peer");
        assert!(!AgentError::invalid("x").is_retryable());
        assert_eq!(std::mem::size_of::<AgentError>(), std::mem::size_of::<usize>());
    }
}
