//! The wire format: one envelope in both directions, and the error codes.

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::front::Outbox;

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: String,
    pub(super) id: Option<String>,
    pub(super) session_id: Option<String>,
    payload: Option<Json<'static>>,
}

impl Message {
    /// A message that needs no payload may leave it out.
    pub(super) fn payload<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        read_object(self.payload.as_ref().map_or("{}", Json::get), "payload")
    }
}

/// The sender of a message, as far as it can be read.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Sender {
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub(super) id: Option<String>,
    #[serde(default, deserialize_with = "text_or_nothing")]
    pub(super) session_id: Option<String>,
}

fn text_or_nothing<'de, D: serde::Deserializer<'de>>(from: D) -> Result<Option<String>, D::Error> {
    Ok(Json::deserialize(from)?.read().ok())
}

/// A message that stops a session, whatever else is wrong with it.
#[derive(Deserialize)]
struct StopMessage {
    #[serde(rename = "type")]
    kind: String,
    session_id: String,
}

pub(super) fn message(text: &str) -> Result<Message, (Sender, Failure)> {
    read_object(text, "the message").or_else(|failure| {
        let sender: Sender = read_object(text, "").unwrap_or_default();
        match read_object::<StopMessage>(text, "") {
            // A message that stops a session is never refused for its form.
            Ok(StopMessage { kind, session_id })
                if matches!(kind.as_str(), "session.interrupt" | "session.kill") =>
            {
                Ok(Message { kind, id: sender.id, session_id: Some(session_id), payload: None })
            }
            Ok(_) | Err(_) => Err((sender, failure)),
        }
    })
}

/// Reads a struct from an object; serde would also accept an array.
fn read_object<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Failure> {
    let invalid =
        |why: &dyn std::fmt::Display| Failure::invalid(format!("failed to read {what}: {why}"));
    let is_object = text.trim_start().starts_with('{');
    match serde_json::from_str(text) {
        Ok(value) if is_object => Ok(value),
        Err(error) if is_object || !error.is_data() => Err(invalid(&error)),
        Ok(_) | Err(_) => Err(invalid(&"it must be an object")),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub(super) enum Code {
    InvalidMessage,
    SessionNotFound,
    SessionCreateFailed,
    CallbackTimeout,
    CallbackNotFound,
    QueryMethodFailed,
    SdkError,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Json<'static>>,
}

/// What the client wanted when the gateway refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RefusedAction {
    Session,
    /// A prompt, an interrupt or the end of a session.
    Turn,
    Answer,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidMessage, message)
    }

    /// The gateway's refusal on this wire; `details.code` is the gateway's code.
    pub(super) fn of(wanted: RefusedAction, error: GatewayError) -> Self {
        let unable = match wanted {
            RefusedAction::Session => Code::SessionCreateFailed,
            RefusedAction::Turn | RefusedAction::Answer => Code::SdkError,
        };
        let code = match (error.code, wanted) {
            // The message itself is well formed; the session cannot be created.
            (ErrorCode::InvalidJson | ErrorCode::InvalidMessage, RefusedAction::Session) => unable,
            (ErrorCode::InvalidJson | ErrorCode::InvalidMessage, _) => Code::InvalidMessage,
            // The callback is still open and can be answered in another way.
            (ErrorCode::Unsupported, RefusedAction::Answer) => Code::InvalidMessage,
            (
                ErrorCode::SessionNotFound
                | ErrorCode::Conflict
                | ErrorCode::RequestNotFound
                | ErrorCode::RequestSettled,
                RefusedAction::Answer,
            ) => Code::CallbackNotFound,
            (ErrorCode::SessionNotFound, RefusedAction::Turn) => Code::SessionNotFound,
            (
                ErrorCode::UnknownMethod
                | ErrorCode::Unauthorized
                | ErrorCode::Forbidden
                | ErrorCode::SessionNotFound
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
                | ErrorCode::Internal,
                _,
            ) => unable,
        };
        #[derive(Serialize)]
        struct Details {
            code: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            details: Option<Json<'static>>,
        }
        let details = Details { code: error.code.as_str(), details: error.details };
        Self { code, message: error.message, details: Some(Json::of(&details)) }
    }
}

#[derive(Serialize)]
struct Frame<'f, T: Serialize> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'f str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'f str>,
    payload: T,
}

pub(super) fn send(
    kind: &'static str,
    id: Option<&str>,
    session_id: Option<&str>,
    payload: impl Serialize,
    out: &mut Outbox,
) {
    out.send_json(&Frame { kind, id, session_id, payload });
}

pub(super) fn refuse(
    id: Option<&str>,
    session_id: Option<&str>,
    failure: &Failure,
    out: &mut Outbox,
) {
    send("error", id, session_id, failure, out);
}

#[derive(Serialize)]
pub(super) struct Empty {}
