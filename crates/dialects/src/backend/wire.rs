//! The words of the wire: one envelope both ways, and the error codes.

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::front::Outbox;

/// What the client says.
#[derive(Debug, Deserialize)]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: String,
    #[serde(default)]
    pub(super) id: Option<String>,
    #[serde(default)]
    pub(super) session_id: Option<String>,
    #[serde(default)]
    payload: Option<Json<'static>>,
}

impl Message {
    /// What it carries. A message that needs nothing may leave it out.
    pub(super) fn payload<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        read_object(self.payload.as_ref().map_or("{}", Json::get), "payload")
    }
}

/// Who said a message, as far as that can be read.
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

/// What stops a session, whatever else is wrong with the message.
#[derive(Deserialize)]
struct Stopping {
    #[serde(rename = "type")]
    kind: String,
    session_id: String,
}

/// Reads a line.
pub(super) fn message(text: &str) -> Result<Message, (Sender, Failure)> {
    read_object(text, "the message").or_else(|failure| {
        let sender: Sender = read_object(text, "").unwrap_or_default();
        match read_object::<Stopping>(text, "") {
            // It is never refused for its form.
            Ok(Stopping { kind, session_id })
                if matches!(kind.as_str(), "session.interrupt" | "session.kill") =>
            {
                Ok(Message { kind, id: sender.id, session_id: Some(session_id), payload: None })
            }
            Ok(_) | Err(_) => Err((sender, failure)),
        }
    })
}

/// Reads a struct from an object; serde would take an array for one, too.
fn read_object<T: DeserializeOwned>(text: &str, what: &str) -> Result<T, Failure> {
    let invalid =
        |why: &dyn std::fmt::Display| Failure::invalid(format!("failed to read {what}: {why}"));
    match text.trim_start().starts_with(['[', '"']) {
        true => Err(invalid(&"it must be an object")),
        false => serde_json::from_str(text).map_err(|error| invalid(&error)),
    }
}

/// The specification's error codes.
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

/// Why something was not done.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Failure {
    pub(super) code: Code,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) details: Option<Json<'static>>,
}

/// What the client wanted when the gateway refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wanted {
    Session,
    /// A prompt, an interrupt or the end of a session.
    Turn,
    /// That its answer is taken.
    Answer,
}

impl Failure {
    pub(super) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), details: None }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self::new(Code::InvalidMessage, message)
    }

    /// The gateway's refusal in the words of this wire; `details.code` is the gateway's own.
    pub(super) fn of(wanted: Wanted, error: GatewayError) -> Self {
        let unable = match wanted {
            Wanted::Session => Code::SessionCreateFailed,
            Wanted::Turn | Wanted::Answer => Code::SdkError,
        };
        let code = match (error.code, wanted) {
            // What is asked for a session is well said, but cannot be had.
            (ErrorCode::InvalidJson | ErrorCode::InvalidMessage, Wanted::Session) => unable,
            (ErrorCode::InvalidJson | ErrorCode::InvalidMessage, _) => Code::InvalidMessage,
            // The callback still waits: it may be answered otherwise.
            (ErrorCode::Unsupported, Wanted::Answer) => Code::InvalidMessage,
            (
                ErrorCode::SessionNotFound
                | ErrorCode::Conflict
                | ErrorCode::RequestNotFound
                | ErrorCode::RequestSettled,
                Wanted::Answer,
            ) => Code::CallbackNotFound,
            (ErrorCode::SessionNotFound, Wanted::Turn) => Code::SessionNotFound,
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

/// What we say.
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

/// Says a message.
pub(super) fn say(
    kind: &'static str,
    id: Option<&str>,
    session_id: Option<&str>,
    payload: impl Serialize,
    out: &mut Outbox,
) {
    out.say_json(&Frame { kind, id, session_id, payload });
}

/// Says that something was not done.
pub(super) fn refuse(
    id: Option<&str>,
    session_id: Option<&str>,
    failure: &Failure,
    out: &mut Outbox,
) {
    say("error", id, session_id, failure, out);
}

/// Nothing to carry.
#[derive(Serialize)]
pub(super) struct Empty {}
