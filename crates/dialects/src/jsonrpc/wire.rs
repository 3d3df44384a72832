//! The wire format of JSON-RPC 2.0: messages and errors.

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use serde::de::Deserializer;
use serde::{Deserialize, Serialize};

const PARSE_ERROR: i32 = -32700;
/// JSON, but not a request.
const INVALID_REQUEST: i32 = -32600;

pub(super) enum Message {
    Call(MethodCall),
    /// A response. We send the client no requests, so it is ignored.
    Response,
    Invalid {
        id: Json<'static>,
        fault: Fault,
    },
}

/// A call, or a notification if it has no id.
pub(super) struct MethodCall {
    pub(super) id: Option<Json<'static>>,
    pub(super) method: String,
    /// An object.
    pub(super) params: Json<'static>,
}

/// Everything on one line.
pub(super) enum Line {
    One(Message),
    Batch(Vec<Message>),
}

/// The error object.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Fault {
    code: i32,
    message: String,
    data: Data,
}

#[derive(Clone, Debug, Serialize)]
struct Data {
    code: ErrorCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    details: Option<Json<'static>>,
}

#[derive(Serialize)]
pub(super) struct Notification<P: Serialize> {
    jsonrpc: &'static str,
    method: &'static str,
    params: P,
}

#[derive(Serialize)]
struct Response<'r> {
    jsonrpc: &'static str,
    id: &'r Json<'static>,
    #[serde(flatten)]
    outcome: Outcome<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum Outcome<'r> {
    Result(&'r Json<'r>),
    Error(&'r Fault),
}

#[derive(Deserialize)]
struct Envelope {
    #[serde(default, deserialize_with = "present")]
    jsonrpc: Option<Json<'static>>,
    #[serde(default, deserialize_with = "present")]
    id: Option<Json<'static>>,
    #[serde(default, deserialize_with = "present")]
    method: Option<Json<'static>>,
    #[serde(default, deserialize_with = "present")]
    params: Option<Json<'static>>,
    #[serde(default, deserialize_with = "present")]
    result: Option<Json<'static>>,
    #[serde(default, deserialize_with = "present")]
    error: Option<Json<'static>>,
}

/// `null` is not the same as absent.
fn present<'de, D: Deserializer<'de>>(value: D) -> Result<Option<Json<'static>>, D::Error> {
    Json::deserialize(value).map(Some)
}

pub(super) fn read(text: &str) -> Result<Line, Fault> {
    let not_json = |error: serde_json::Error| Fault {
        code: PARSE_ERROR,
        ..Fault::new(ErrorCode::InvalidJson, format!("the message is not JSON: {error}"))
    };
    let value = Json::parse(text).map_err(not_json)?;
    if !value.get().starts_with('[') {
        return Ok(Line::One(message(&value)));
    }
    let values: Vec<Json<'static>> = value.read().map_err(not_json)?;
    if values.is_empty() {
        return Err(Fault::invalid("the batch is empty"));
    }
    Ok(Line::Batch(values.iter().map(message).collect()))
}

fn message(value: &Json<'_>) -> Message {
    let invalid = |id: Option<Json<'static>>, what: &str| Message::Invalid {
        id: id.unwrap_or(Json::trusted("null")),
        fault: Fault::invalid(what),
    };
    if !value.get().starts_with('{') {
        return invalid(None, "a request must be an object");
    }
    let Ok(envelope) = value.read::<Envelope>() else {
        return invalid(None, "a request must have each of its members once");
    };
    let Envelope { jsonrpc, id, method, params, result, error } = envelope;
    if method.is_none() && (result.is_some() || error.is_some()) {
        return Message::Response;
    }
    let is_id = |id: &Json<'_>| {
        !matches!(id.get().as_bytes().first(), Some(b'{' | b'[' | b't' | b'f') | None)
    };
    if id.as_ref().is_some_and(|id| !is_id(id)) {
        return invalid(None, "an id must be a string, a number or null");
    }
    if jsonrpc.and_then(|version| version.read::<String>().ok()).as_deref() != Some("2.0") {
        return invalid(id, "`jsonrpc` must be \"2.0\"");
    }
    let Some(method) = method.and_then(|method| method.read::<String>().ok()) else {
        return invalid(id, "`method` must be a string");
    };
    let params = params.unwrap_or(Json::EMPTY);
    if !params.get().starts_with(['{', '[']) {
        return invalid(id, "`params` must be an object");
    }
    Message::Call(MethodCall { id, method, params })
}

impl Fault {
    fn new(code: ErrorCode, message: String) -> Self {
        Self::from(GatewayError::new(code, message))
    }

    pub(super) fn invalid(what: impl Into<String>) -> Self {
        Self { code: INVALID_REQUEST, ..Self::new(ErrorCode::InvalidMessage, what.into()) }
    }

    pub(super) fn not_text() -> Self {
        Self {
            code: PARSE_ERROR,
            ..Self::new(ErrorCode::InvalidJson, "the message is not UTF-8".to_owned())
        }
    }
}

impl From<GatewayError> for Fault {
    fn from(error: GatewayError) -> Self {
        let code = match error.code {
            ErrorCode::InvalidJson => PARSE_ERROR,
            ErrorCode::InvalidMessage => -32602,
            ErrorCode::UnknownMethod => -32601,
            ErrorCode::Internal => -32603,
            ErrorCode::Overloaded => -32001,
            ErrorCode::SessionNotFound => -32002,
            ErrorCode::AgentUnavailable => -32003,
            ErrorCode::RequestNotFound => -32004,
            ErrorCode::RequestSettled => -32005,
            ErrorCode::Unauthorized
            | ErrorCode::Forbidden
            | ErrorCode::StartFailed
            | ErrorCode::AgentFailed
            | ErrorCode::Timeout
            | ErrorCode::Unsupported
            | ErrorCode::StorageFull
            | ErrorCode::Conflict => -32000,
        };
        let data = Data { code: error.code, details: error.details };
        Self { code, message: error.message, data }
    }
}

impl<P: Serialize> Notification<P> {
    pub(super) fn new(method: &'static str, params: P) -> Self {
        Self { jsonrpc: "2.0", method, params }
    }
}

pub(super) fn response(
    id: &Json<'static>,
    outcome: &Result<Json<'static>, Fault>,
) -> Json<'static> {
    let outcome = match outcome {
        Ok(result) => Outcome::Result(result),
        Err(fault) => Outcome::Error(fault),
    };
    Json::of(&Response { jsonrpc: "2.0", id, outcome })
}
