//! What a client may ask of a session.

mod inquiry;
mod shape;
mod write;

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, GatewayError};
use crate::id::RequestId;
use crate::json::Json;
use crate::session::{ApprovalMode, SessionRequest};
use crate::strict::{self, Fields, once};

pub use self::inquiry::{Frame, Inquiry, InquiryFrame};
pub use self::shape::CommandShape;

/// Marks one call, so that its reply finds the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call(pub u64);

/// What a client may ask of a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Begin a session.
    Start(Box<SessionRequest>),
    /// Read its events from a point on.
    Attach {
        /// The last event already seen.
        after: u64,
    },
    /// Work on this.
    Prompt(Prompt),
    /// Stop working on it; the session stays.
    Interrupt {
        /// Prompts that wait are given up too; else they stay.
        cancel_queued: bool,
    },
    /// End the session.
    Stop,
    /// End the session once its work is done: no more prompts come, and nobody is left to ask.
    Finish,
    /// Answer a request.
    Settle(Settlement),
    /// Change the model or the mode.
    Configure(Configure),
    /// Ask the agent for something.
    Query {
        /// What, such as `supportedModels`.
        method: String,
        /// With which arguments.
        args: Vec<Json<'static>>,
    },
    /// Put files back to what they were at a message.
    Rewind {
        /// The id under which the prompt was taken.
        message_id: String,
        /// Only tell what would change.
        dry_run: bool,
    },
}

impl Command {
    /// The name as it stands on the wire.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Start(_) => "start",
            Self::Attach { .. } => "attach",
            Self::Prompt(_) => "prompt",
            Self::Interrupt { .. } => "interrupt",
            Self::Stop => "stop",
            Self::Finish => "finish",
            Self::Settle(_) => "settle",
            Self::Configure(_) => "configure",
            Self::Query { .. } => "query",
            Self::Rewind { .. } => "rewind",
        }
    }
}

/// A prompt: text, and images beside it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prompt {
    /// The text.
    #[serde(rename = "prompt")]
    pub text: String,
    /// Images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The message whole, as Claude's content blocks, where it is more than text and images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Json<'static>>,
    /// The client's id of the message, a UUID; sent twice, it counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What happens if a turn runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Further fields of Claude's user message, in its own words: an object. To other agents they are
    /// hints, but for `shouldQuery: false`, which is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Json<'static>>,
}

impl Prompt {
    /// A prompt of text alone.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Whether the agent is to answer it, and not only to know it.
    pub fn wants_answer(&self) -> bool {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Native {
            #[serde(default)]
            should_query: Option<bool>,
        }
        let native = self.native.as_ref().and_then(|native| native.read::<Native>().ok());
        native.and_then(|native| native.should_query) != Some(false)
    }
}

impl From<&str> for Prompt {
    fn from(text: &str) -> Self {
        Self::text(text)
    }
}

impl From<String> for Prompt {
    fn from(text: String) -> Self {
        Self::text(text)
    }
}

/// What happens to a prompt if a turn runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// It waits for the turn to end.
    Queue,
    /// It joins the turn.
    Steer,
    /// It cuts the turn off.
    Now,
}

/// An image in base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// Such as `image/png`.
    pub media_type: String,
    /// The bytes in base64.
    pub data: String,
}

/// What to change in a running session. What is left out stays.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Configure {
    /// The model; `null` goes back to the one that the session was started with.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "or_null::<String>")]
    pub model: Option<Option<String>>,
    /// When to ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
    /// The agent's own name of a permission mode; wins over `approvalMode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// How many tokens of reasoning a step may take; `null` goes back to what the session was started
    /// with.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "or_null::<u32>")]
    pub max_thinking_tokens: Option<Option<u32>>,
}

/// Reads a field of which `null` says something else than its absence.
pub fn given<'de, T, D>(field: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Option::deserialize(field).map(Some)
}

/// The schema of such a field. Elsewhere `null` is as good as nothing.
fn or_null<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [generator.subschema_for::<T>(), { "type": "null" }] })
}

/// An answer to a request, as it stands on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settlement {
    /// Which request.
    pub request_id: RequestId,
    /// Allow or deny; may be left out where `answers` or `hookOutput` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<Behavior>,
    /// What to run in place of what was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Json<'static>>,
    /// Rules to add, from the request's suggestions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_permissions: Option<Json<'static>>,
    /// What the agent is told of a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Answers to questions, by question or by its id.
    #[serde(default, deserialize_with = "once", skip_serializing_if = "Option::is_none")]
    pub answers: Option<BTreeMap<String, Json<'static>>>,
    /// What a hook returns, or any other answer in the agent's own form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_output: Option<Json<'static>>,
    /// The digest of what was shown; if given, it must match, unless the answer denies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<String>,
    /// Whether the same is allowed from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
    /// With a denial: end the turn as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<bool>,
    /// Whoever should answer failed to: a hook is passed over, anything else is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Allow or deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Behavior {
    /// It may run.
    Allow,
    /// It may not.
    Deny,
}

/// For how long an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Remember {
    /// For this call.
    Once,
    /// For the session.
    Session,
}

/// What a settlement says.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// It may run.
    Allow {
        /// With this in place of what was shown.
        updated_input: Option<Json<'static>>,
        /// And these rules from now on.
        updated_permissions: Option<Json<'static>>,
        /// And its like from now on.
        always: bool,
    },
    /// It may not.
    Deny {
        /// What the agent is told.
        message: Option<String>,
        /// The turn ends as well.
        interrupt: bool,
        /// Its like is refused from now on.
        always: bool,
    },
    /// Answers to questions, by question or by its id.
    Answers(BTreeMap<String, Json<'static>>),
    /// What a hook returns.
    HookOutput(Json<'static>),
}

impl Settlement {
    /// An answer that allows.
    pub fn allow(request_id: impl Into<RequestId>) -> Self {
        Self::new(request_id, Some(Behavior::Allow))
    }

    /// An answer that denies.
    pub fn deny(request_id: impl Into<RequestId>, message: impl Into<String>) -> Self {
        Self { message: Some(message.into()), ..Self::new(request_id, Some(Behavior::Deny)) }
    }

    fn new(request_id: impl Into<RequestId>, behavior: Option<Behavior>) -> Self {
        Self {
            request_id: request_id.into(),
            behavior,
            updated_input: None,
            updated_permissions: None,
            message: None,
            answers: None,
            hook_output: None,
            input_digest: None,
            remember: None,
            interrupt: None,
            error: None,
        }
    }

    /// An answer that is not to be had.
    pub fn error(request_id: impl Into<RequestId>, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::new(request_id, None) }
    }

    /// An answer in the agent's own form.
    pub fn output(request_id: impl Into<RequestId>, output: Json<'static>) -> Self {
        Self { hook_output: Some(output), ..Self::new(request_id, None) }
    }

    /// Reads an answer. One that allows is refused by name for a field that it does not know; one that
    /// denies is never refused for its form: of that, what cannot be read is passed over.
    pub fn from_fields(mut fields: Fields) -> Result<Self, GatewayError> {
        let behavior = fields.get("behavior").and_then(|word| word.read::<String>().ok());
        if behavior.as_deref() == Some("deny") {
            fields.retain(|name, value| match name.as_str() {
                "requestId" | "behavior" => true,
                "message" | "inputDigest" => value.read::<String>().is_ok(),
                "interrupt" => value.read::<bool>().is_ok(),
                "remember" => value.read::<Remember>().is_ok(),
                _ => false,
            });
        }
        read(&Json::of(&fields))
    }

    /// What it says. Silence never allows: an answer that says nothing is refused.
    pub fn answer(&self) -> Result<Answer, GatewayError> {
        if self.behavior == Some(Behavior::Deny) {
            return Ok(Answer::Deny {
                message: self.message.clone(),
                interrupt: self.interrupt.unwrap_or(false),
                always: self.remember == Some(Remember::Session),
            });
        }
        if self.interrupt == Some(true) {
            let message = "interrupt: only an answer that denies ends the turn";
            return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
        }
        if let Some(error) = &self.error {
            let message = Some(error.clone());
            return Ok(Answer::Deny { message, interrupt: false, always: false });
        }
        if let Some(answers) = &self.answers {
            return Ok(Answer::Answers(answers.clone()));
        }
        if let Some(output) = &self.hook_output {
            return Ok(Answer::HookOutput(output.clone()));
        }
        match self.behavior {
            Some(_) => Ok(Answer::Allow {
                updated_input: self.updated_input.clone(),
                updated_permissions: self.updated_permissions.clone(),
                always: self.remember == Some(Remember::Session),
            }),
            None => Err(GatewayError::new(
                ErrorCode::InvalidMessage,
                "an answer needs behavior, answers or hookOutput",
            )),
        }
    }
}

/// One command of a client on a line: `{"id","command","sessionId"?, …}`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandFrame {
    /// The client's id of the call, given back in the reply.
    pub id: Option<Json<'static>>,
    /// The session; may be left out where the connection has one.
    pub session_id: Option<String>,
    /// What is asked.
    pub command: Command,
}

/// A frame that was refused. The reply carries its id, if it had one.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameError {
    /// The client's id of the call.
    pub id: Option<Json<'static>>,
    /// Why it was refused.
    pub error: GatewayError,
}

impl CommandFrame {
    /// Reads a frame: first its name, then the fields of that command. A field that the command does
    /// not have is refused by name.
    pub fn from_json(text: &str) -> Result<Self, FrameError> {
        Self::of(fields(text)?)
    }

    fn of(mut fields: Fields) -> Result<Self, FrameError> {
        let id = fields.remove("id");
        match Self::read(fields) {
            Ok((session_id, command)) => Ok(Self { id, session_id, command }),
            Err(error) => Err(FrameError { id, error }),
        }
    }

    fn read(mut fields: Fields) -> Result<(Option<String>, Command), GatewayError> {
        let name = fields.remove("command").unwrap_or(Json::trusted("null"));
        let name: String = name.read().map_err(|_| {
            let message = "failed to read the command: `command` must be its name";
            GatewayError::new(ErrorCode::InvalidMessage, message)
        })?;
        let session = fields.get("sessionId").map(Json::read::<Option<String>>);
        let session = session.transpose();
        let session =
            session.map_err(|error| unread(&format!("sessionId: {}", strict::words(&error))))?;
        let session = session.flatten();
        if name != "start" {
            fields.remove("sessionId");
        }
        if matches!(name.as_str(), "start" | "attach") {
            // Which events are shown is the connection's matter.
            fields.remove("profile");
        }
        if name == "start" {
            // As is what was said before.
            fields.remove("idempotencyKey");
        }
        if name == "settle" {
            return Ok((session, Command::Settle(Settlement::from_fields(fields)?)));
        }
        let fields = Json::of(&fields);
        let command = match name.as_str() {
            "start" => Command::Start(Box::new(SessionRequest::from_json(fields.get())?)),
            "attach" => Command::Attach { after: read::<AttachFields>(&fields)?.after },
            "prompt" => Command::Prompt(read(&fields)?),
            "interrupt" => {
                let InterruptFields { cancel_queued } = read(&fields)?;
                Command::Interrupt { cancel_queued }
            }
            // What stops is never refused for its form.
            "stop" => Command::Stop,
            "finish" => Command::Finish,
            "configure" => Command::Configure(read(&fields)?),
            "query" => {
                let fields: QueryFields = read(&fields)?;
                Command::Query { method: fields.method, args: fields.args }
            }
            "rewind" => {
                let fields: RewindFields = read(&fields)?;
                Command::Rewind { message_id: fields.message_id, dry_run: fields.dry_run }
            }
            unknown => {
                return Err(GatewayError::new(
                    ErrorCode::UnknownMethod,
                    format!("there is no command `{unknown}`"),
                ));
            }
        };
        Ok((session, command))
    }
}

fn read<T: serde::de::DeserializeOwned>(fields: &Json<'_>) -> Result<T, GatewayError> {
    strict::read(fields.get()).map_err(|what| unread(&what))
}

/// The fields of a line. What is no JSON is distinguished from JSON that is no command.
fn fields(text: &str) -> Result<Fields, FrameError> {
    let fields: Result<Fields, _> = serde_json::from_str(text);
    fields.map_err(|error| {
        let what = strict::words(&error);
        let error = match Json::parse(text) {
            Ok(_) => unread(&what),
            Err(_) => GatewayError { code: ErrorCode::InvalidJson, ..unread(&what) },
        };
        FrameError { id: None, error }
    })
}

fn unread(what: &str) -> GatewayError {
    let message = format!("failed to read the command: {what}");
    GatewayError::new(ErrorCode::InvalidMessage, message)
}

#[derive(JsonSchema)]
struct NoFields {}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AttachFields {
    /// The last event already seen.
    #[serde(default)]
    after: u64,
}

/// What becomes of the prompts that wait when a turn is stopped.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Interrupt")]
pub struct InterruptFields {
    /// Prompts that wait are given up too; else they stay.
    #[serde(default, deserialize_with = "is_true")]
    pub cancel_queued: bool,
}

/// Reads a field that anything but `true` leaves off.
fn is_true<'de, D: serde::Deserializer<'de>>(field: D) -> Result<bool, D::Error> {
    Json::deserialize(field).map(|field| field.get() == "true")
}

/// What to ask an agent for.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Query")]
pub struct QueryFields {
    /// What, such as `supportedModels`.
    pub method: String,
    /// With which arguments.
    #[serde(default)]
    pub args: Vec<Json<'static>>,
}

/// To which message files are put back.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Rewind")]
pub struct RewindFields {
    /// The id under which the prompt was taken.
    pub message_id: String,
    /// Only tell what would change.
    #[serde(default)]
    pub dry_run: bool,
}
