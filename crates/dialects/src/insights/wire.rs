//! The wire format: one envelope in both directions, and the error codes.

use agentwire_protocol::{ErrorCode, GatewayError, Json, strict};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A message from the client. Its `id` is ignored and not sent back.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: String,
    payload: Option<Json<'static>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    pub(super) prompt: String,
    pub(super) cwd: Option<String>,
    pub(super) allowed_tools: Option<Vec<String>>,
    pub(super) permission_mode: Option<String>,
    pub(super) model: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    pub(super) session_id: String,
    pub(super) agent_id: Option<String>,
    pub(super) text: String,
}

/// `session.kill` and `session.interrupt`: a message that stops something is never refused for its form.
#[derive(Debug, Deserialize)]
struct SessionRef {
    session_id: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ModeChange {
    pub(super) session_id: String,
    pub(super) permission_mode: String,
}

/// `permission.response`.
#[derive(Debug, Deserialize)]
pub(super) struct Permission {
    pub(super) session_id: String,
    pub(super) permission_id: String,
    pub(super) approved: bool,
}

/// An approval: unknown fields are refused, since their effect is not known.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Approval {
    #[serde(rename = "session_id")]
    _session_id: String,
    #[serde(rename = "permission_id")]
    _permission_id: String,
    #[serde(rename = "approved")]
    _approved: bool,
}

/// What a client wants of a session that exists.
#[derive(Debug)]
pub(super) enum SessionOp {
    Input(Input),
    Kill,
    Interrupt,
    Mode(ModeChange),
    Permit(Permission),
}

impl SessionOp {
    /// The error code if it fails.
    pub(super) fn code(&self) -> Code {
        match self {
            Self::Input(_) => Code::InputFailed,
            Self::Kill => Code::HandlerError,
            Self::Interrupt => Code::InterruptFailed,
            Self::Mode(_) => Code::PermissionModeChangeFailed,
            Self::Permit(_) => Code::PermissionResponseFailed,
        }
    }
}

impl Message {
    /// The session that the message names, and what it wants of it; `None` for any other message.
    pub(super) fn wanted(&self) -> Result<Option<(String, SessionOp)>, Failure> {
        Ok(Some(match self.kind.as_str() {
            "user.input" => {
                let input: Input = self.payload()?;
                (input.session_id.clone(), SessionOp::Input(input))
            }
            "session.kill" => (self.payload::<SessionRef>()?.session_id, SessionOp::Kill),
            "session.interrupt" => (self.payload::<SessionRef>()?.session_id, SessionOp::Interrupt),
            "permission_mode.change" => {
                let change: ModeChange = self.payload()?;
                (change.session_id.clone(), SessionOp::Mode(change))
            }
            "permission.response" => {
                let answer = Permission::read(self)?;
                (answer.session_id.clone(), SessionOp::Permit(answer))
            }
            _ => return Ok(None),
        }))
    }

    pub(super) fn read(text: &str) -> Result<Self, Failure> {
        let value = Json::parse(text).map_err(|error| {
            Failure::new(Code::InvalidJson, format!("the message is not JSON: {error}"))
        })?;
        object(&value, "the message")
    }

    pub(super) fn payload<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        let payload = self.payload.as_ref();
        let payload = payload.ok_or_else(|| Failure::invalid("the message needs a payload"))?;
        object(payload, "the payload")
    }
}

impl Permission {
    /// Reads an answer. A denial may have any other fields.
    fn read(message: &Message) -> Result<Self, Failure> {
        let answer: Self = message.payload()?;
        if answer.approved {
            message.payload::<Approval>()?;
        }
        Ok(answer)
    }
}

/// Reads a struct from an object; serde would also accept an array.
fn object<T: DeserializeOwned>(value: &Json<'_>, what: &str) -> Result<T, Failure> {
    if !value.get().starts_with('{') {
        return Err(Failure::invalid(format!("{what} must be an object")));
    }
    strict::read(value.get())
        .map_err(|error| Failure::invalid(format!("failed to read {what}: {error}")))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Code {
    InvalidJson,
    InvalidMessage,
    HandlerError,
    SessionCreateFailed,
    SessionNotFound,
    InputFailed,
    InterruptFailed,
    PermissionModeChangeFailed,
    PermissionResponseFailed,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidMessage, message)
    }

    /// The gateway refused; `wanted` is the code for what the client wanted.
    pub(super) fn of(wanted: Code, error: GatewayError) -> Self {
        let code = match error.code {
            ErrorCode::SessionNotFound => Code::SessionNotFound,
            ErrorCode::InvalidJson
            | ErrorCode::InvalidMessage
            | ErrorCode::UnknownMethod
            | ErrorCode::Unauthorized
            | ErrorCode::Forbidden
            | ErrorCode::AgentUnavailable
            | ErrorCode::StartFailed
            | ErrorCode::AgentFailed
            | ErrorCode::RequestNotFound
            | ErrorCode::RequestSettled
            | ErrorCode::Timeout
            | ErrorCode::Unsupported
            | ErrorCode::Overloaded
            | ErrorCode::StorageFull
            | ErrorCode::Conflict
            | ErrorCode::Internal => wanted,
        };
        Self { code, message: error.message }
    }
}

#[derive(Serialize)]
pub(super) struct Frame<P: Serialize> {
    #[serde(rename = "type")]
    kind: &'static str,
    payload: P,
}

pub(super) fn frame(kind: &'static str, payload: impl Serialize) -> Json<'static> {
    Json::of(&Frame { kind, payload })
}

pub(super) fn error(
    session_id: Option<&str>,
    agent_id: Option<&str>,
    failure: &Failure,
) -> Json<'static> {
    #[derive(Serialize)]
    struct Payload<'p> {
        session_id: Option<&'p str>,
        agent_id: Option<&'p str>,
        message: &'p str,
        code: Code,
    }
    let Failure { code, message } = failure;
    frame("error", Payload { session_id, agent_id, message, code: *code })
}
