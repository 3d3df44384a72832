//! [`AgentError`]: failures of the gateway, the agent, and the connection between them.

mod agent_failure;

use std::fmt;

use agentwire_protocol::{AgentType, ErrorCode, GatewayError, Json};

/// The error types of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AgentErrorType {
    /// The gateway or the agent cannot be reached, or the connection broke.
    ConnectionFailed,
    /// No valid token, or the agent is not signed in.
    AuthenticationFailed,
    /// There is no such session.
    SessionNotFound,
    /// A person, a rule or the sandbox does not allow it.
    PermissionDenied,
    /// The agent or one of its tools ran and failed.
    ToolExecutionFailed,
    /// There was no answer in time.
    Timeout,
    /// A message was not understood, or does not fit the current state.
    ProtocolError,
    /// Anything else.
    Unknown,
}

impl AgentErrorType {
    /// The name that the specification uses.
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

/// Events that a reader cannot get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gap {
    /// The gateway never sent these events, although they were requested twice.
    Skipped {
        /// The first missing event.
        from: u64,
        /// The last missing event.
        to: u64,
    },
    /// These events were read before, but the log no longer has them: it was truncated or replaced. The
    /// next events reuse their numbers.
    Forgotten {
        /// The first missing event.
        from: u64,
        /// The last missing event.
        to: u64,
    },
}

impl fmt::Display for Gap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Skipped { from, to } => write!(f, "events {from} to {to} are missing"),
            Self::Forgotten { from, to } => write!(
                f,
                "the log no longer has events {from} to {to}, which were read before: it was \
                 replaced or truncated"
            ),
        }
    }
}

/// Why a call, a stream or an agent failed.
///
/// ```rust,no_run
/// use agentwire_client::{AgentClient, AgentErrorType};
///
/// async fn attach(client: &AgentClient, id: &str) {
///     match client.attach(id).await {
///         Ok(session) => println!("{}", session.state().as_str()),
///         Err(error) if error.kind() == AgentErrorType::SessionNotFound => println!("no session"),
///         Err(error) if error.is_retryable() => println!("try again later: {error}"),
///         Err(error) => println!("{error}"),
///     }
/// }
/// ```
#[derive(Clone, PartialEq)]
pub struct AgentError {
    inner: Box<ReportedError>,
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
    /// No gateway received the call.
    is_unreachable: bool,
    /// The gateway itself refused, with a code that this version does not know.
    is_refusal: bool,
}

impl AgentError {
    /// An error of this type. It is not retryable.
    pub fn new(kind: AgentErrorType, message: impl Into<String>) -> Self {
        let inner = ReportedError {
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
        Self { inner: Box::new(inner) }
    }

    /// The connection to the gateway failed. `to` names the gateway and `why` gives the reason. The same
    /// call may succeed later.
    pub fn broken(to: impl fmt::Display, why: impl fmt::Display) -> Self {
        let message = format!("failed to communicate with {to}: {why}");
        Self::new(AgentErrorType::ConnectionFailed, message).with_native(why).retryable()
    }

    /// Nothing accepts connections at `to`. The same call may succeed later.
    pub fn unreachable(to: impl fmt::Display, why: impl fmt::Display) -> Self {
        Self::no_server(format!("failed to reach {to}: {why}")).with_native(why)
    }

    /// No server is there, with this message. The same call may succeed later.
    pub(crate) fn no_server(message: String) -> Self {
        Self::new(AgentErrorType::ConnectionFailed, message).not_received()
    }

    /// Marks the call as not received by any gateway. It may succeed later, if one was there before.
    pub(crate) fn not_received(mut self) -> Self {
        self.inner.is_unreachable = true;
        self.retryable()
    }

    /// There was no answer in time. The same call may succeed later.
    pub fn timed_out(to: impl fmt::Display, seconds: u64) -> Self {
        let message = format!("{to} did not answer within {seconds} s");
        Self::new(AgentErrorType::Timeout, message).retryable()
    }

    /// A value from the caller cannot be used: an address, a token, a request.
    pub fn invalid(message: impl Into<String>) -> Self {
        GatewayError::new(ErrorCode::InvalidMessage, message).into()
    }

    /// Adds the original message of the agent or of the connection.
    pub fn with_native(mut self, native: impl fmt::Display) -> Self {
        self.inner.native = Some(native.to_string());
        self
    }

    /// Adds the agent that the error is about, unless one is set.
    pub fn with_agent(mut self, agent: AgentType) -> Self {
        self.inner.agent.get_or_insert(agent);
        self
    }

    /// Marks the error as one that may not occur again later.
    pub fn retryable(mut self) -> Self {
        self.inner.is_retryable = true;
        self
    }

    /// The type of the error.
    pub fn kind(&self) -> AgentErrorType {
        self.inner.kind
    }

    /// The message for people, with advice where there is some.
    pub fn message(&self) -> &str {
        &self.inner.message
    }

    /// The original message of the agent, or of what failed on the way to it.
    pub fn native_error(&self) -> Option<&str> {
        self.inner.native.as_deref()
    }

    /// The agent that the error is about.
    pub fn agent_type(&self) -> Option<AgentType> {
        self.inner.agent
    }

    /// The gateway's error code, if the gateway refused.
    pub fn code(&self) -> Option<ErrorCode> {
        self.inner.code
    }

    /// More details from the gateway, for programs.
    pub fn details(&self) -> Option<&Json<'static>> {
        self.inner.details.as_ref()
    }

    /// The missing events, if that is the error. The stream that returned it continues after them.
    pub fn gap(&self) -> Option<Gap> {
        self.inner.gap
    }

    /// Whether the same call may succeed later.
    pub fn is_retryable(&self) -> bool {
        self.inner.is_retryable
    }

    /// Whether no gateway received the call.
    pub(crate) fn is_unreachable(&self) -> bool {
        self.inner.is_unreachable
    }

    /// Whether the gateway itself refused.
    pub(crate) fn is_refusal(&self) -> bool {
        self.inner.code.is_some() || self.inner.is_refusal
    }
}

fn is_retryable(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::Timeout | ErrorCode::Overloaded | ErrorCode::StorageFull | ErrorCode::Internal
    )
}

impl From<GatewayError> for AgentError {
    fn from(error: GatewayError) -> Self {
        let GatewayError { code, message, details } = error;
        let mut error = Self::new(code.into(), message);
        (error.inner.code, error.inner.details) = (Some(code), details);
        error.inner.is_retryable = is_retryable(code);
        error
    }
}

/// A gateway's refusal, as written on the wire.
#[cfg(any(feature = "http", feature = "stdio"))]
#[derive(serde::Deserialize)]
pub(crate) struct Refusal {
    pub(crate) code: String,
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) details: Option<Json<'static>>,
}

/// An unknown code comes from a newer gateway.
#[cfg(any(feature = "http", feature = "stdio"))]
impl From<Refusal> for AgentError {
    fn from(refusal: Refusal) -> Self {
        let Refusal { code, message, details } = refusal;
        if let Some(code) = ErrorCode::named(&code) {
            return GatewayError { details, ..GatewayError::new(code, message) }.into();
        }
        let mut error = Self::new(AgentErrorType::Unknown, message).with_native(code);
        (error.inner.details, error.inner.is_refusal) = (details, true);
        error
    }
}

impl From<Gap> for AgentError {
    fn from(gap: Gap) -> Self {
        let mut error = Self::new(AgentErrorType::ProtocolError, gap.to_string());
        error.inner.gap = Some(gap);
        error
    }
}

/// The error that a front sends to its client.
impl From<AgentError> for GatewayError {
    fn from(error: AgentError) -> Self {
        let ReportedError { code, message, details, .. } = *error.inner;
        Self { details, ..Self::new(code.unwrap_or(ErrorCode::Internal), message) }
    }
}

impl fmt::Display for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.inner.message)
    }
}

impl fmt::Debug for AgentError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("AgentError");
        shown.field("kind", &self.inner.kind).field("message", &self.inner.message);
        if let Some(code) = self.inner.code {
            shown.field("code", &code);
        }
        if let Some(agent) = self.inner.agent {
            shown.field("agent", &agent);
        }
        if let Some(native) = &self.inner.native {
            shown.field("native", native);
        }
        if let Some(gap) = self.inner.gap {
            shown.field("gap", &gap);
        }
        shown.finish_non_exhaustive()
    }
}

impl std::error::Error for AgentError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_has_a_type_and_keeps_its_message() {
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
    fn an_unknown_code_keeps_its_message() {
        let told = r#"{"code":"quotaSpent","message":"come back","details":{"day":2},"more":1}"#;
        let error = AgentError::from(serde_json::from_str::<Refusal>(told).unwrap());
        assert_eq!((error.kind(), error.code()), (AgentErrorType::Unknown, None));
        assert_eq!((error.message(), error.native_error()), ("come back", Some("quotaSpent")));
        assert_eq!(error.details().map(Json::get), Some(r#"{"day":2}"#));
        assert!(error.is_refusal() && !error.is_retryable());
    }

    #[test]
    fn a_broken_connection_keeps_its_reason() {
        let error = AgentError::broken("the server at x", "reset by peer");
        assert!(error.is_retryable());
        assert_eq!(error.native_error(), Some("reset by peer"));
        assert_eq!(error.to_string(), "failed to communicate with the server at x: reset by peer");
        assert!(!AgentError::invalid("x").is_retryable());
        assert_eq!(std::mem::size_of::<AgentError>(), std::mem::size_of::<usize>());
    }
}
