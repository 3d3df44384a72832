//! The commands that a client sends to a session.

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

/// Identifies one call, so that the reply reaches its caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Call(pub u64);

/// A command to a session.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// Start a session.
    Start(Box<SessionRequest>),
    /// Read the session's events from a given point.
    Attach {
        /// The last event already seen.
        after: u64,
    },
    /// Send a prompt.
    Prompt(Prompt),
    /// Stop the current turn; the session stays open.
    Interrupt {
        /// Also cancel the queued prompts; otherwise they stay queued.
        cancel_queued: bool,
    },
    /// End the session.
    Stop,
    /// End the session once its work is done: no more prompts will come, and no client is left to answer
    /// requests.
    Finish,
    /// Answer a request.
    Settle(Settlement),
    /// Change the model or the mode.
    Configure(Configure),
    /// Ask the agent for something.
    Query {
        /// The method, such as `supportedModels`.
        method: String,
        /// The arguments.
        args: Vec<Json<'static>>,
    },
    /// Restore files to their state at a message.
    Rewind {
        /// The `messageId` of the accepted prompt.
        message_id: String,
        /// Only report what would change.
        dry_run: bool,
    },
    /// List the prompts that wait for their turn.
    Queue,
    /// Cancel one of them.
    Cancel {
        /// The `messageId` of the accepted prompt.
        message_id: String,
    },
    /// Change the text of one of them.
    Edit {
        /// The `messageId` of the accepted prompt.
        message_id: String,
        /// The new text.
        text: String,
    },
}

impl Command {
    /// The name on the wire.
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
            Self::Queue => "queue",
            Self::Cancel { .. } => "cancel",
            Self::Edit { .. } => "edit",
        }
    }
}

/// A prompt: text, optionally with images.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Prompt {
    /// The text.
    #[serde(rename = "prompt")]
    pub text: String,
    /// Images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// The whole message as Claude's content blocks, if it has more than text and images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Json<'static>>,
    /// The client's id for the message, a UUID. A message sent twice counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<String>,
    /// What to do if a turn is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Further fields of Claude's user message, in Claude's format: an object. Other agents treat them as
    /// hints, except `shouldQuery: false`, which is refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native: Option<Json<'static>>,
}

impl Prompt {
    /// A prompt with only text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }

    /// Whether the agent should answer the prompt, not just add it to its context.
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

/// What to do with a prompt if a turn is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Delivery {
    /// Wait for the turn to end.
    Queue,
    /// Join the turn.
    Steer,
    /// Interrupt the turn.
    Now,
}

/// An image, encoded in base64.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Image {
    /// The media type, such as `image/png`.
    pub media_type: String,
    /// The image data, in base64.
    pub data: String,
}

/// Changes to a running session. Omitted fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Configure {
    /// The model; `null` restores the one that the session was started with.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "or_null::<String>")]
    pub model: Option<Option<String>>,
    /// When to ask for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
    /// The agent's own name for a permission mode; takes precedence over `approvalMode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// Limit on reasoning tokens per step; `null` restores the value that the session was started with.
    #[serde(deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "or_null::<u32>")]
    pub max_thinking_tokens: Option<Option<u32>>,
}

/// Reads a field for which `null` and absence mean different things.
pub fn given<'de, T, D>(field: D) -> Result<Option<Option<T>>, D::Error>
where
    T: Deserialize<'de>,
    D: serde::Deserializer<'de>,
{
    Option::deserialize(field).map(Some)
}

/// The schema of such a field. Everywhere else, `null` means the same as absence.
pub(crate) fn or_null<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    json_schema!({ "oneOf": [generator.subschema_for::<T>(), { "type": "null" }] })
}

/// An answer to a request, in its wire format.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settlement {
    /// The request to answer.
    pub request_id: RequestId,
    /// Allow or deny; may be omitted if `answers` or `hookOutput` is given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub behavior: Option<Behavior>,
    /// The input to run with, instead of the input that was shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_input: Option<Json<'static>>,
    /// Rules to add, from the request's suggestions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub updated_permissions: Option<Json<'static>>,
    /// The message to the agent for a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Answers to questions, keyed by question text or question id.
    #[serde(default, deserialize_with = "once", skip_serializing_if = "Option::is_none")]
    pub answers: Option<BTreeMap<String, Json<'static>>>,
    /// The output of a hook, or any other answer in the agent's own format.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_output: Option<Json<'static>>,
    /// The digest of the input that was shown. If given, it must match, unless the answer is a denial.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_digest: Option<String>,
    /// Whether to allow the same from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<Remember>,
    /// With a denial: also end the turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interrupt: Option<bool>,
    /// The answering side failed: a hook is skipped, anything else is denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Whether the call may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Behavior {
    /// The call may run.
    Allow,
    /// The call may not run.
    Deny,
}

/// How long an answer applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Remember {
    /// Only this call.
    Once,
    /// The rest of the session.
    Session,
}

/// The decision in a settlement.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The call may run.
    Allow {
        /// The input to run with, instead of the input that was shown.
        updated_input: Option<Json<'static>>,
        /// Rules that apply from now on.
        updated_permissions: Option<Json<'static>>,
        /// Also allow similar calls from now on.
        always: bool,
    },
    /// The call may not run.
    Deny {
        /// The message to the agent.
        message: Option<String>,
        /// Also end the turn.
        interrupt: bool,
        /// Also refuse similar calls from now on.
        always: bool,
    },
    /// Answers to questions, keyed by question text or question id.
    Answers(BTreeMap<String, Json<'static>>),
    /// The output of a hook.
    HookOutput(Json<'static>),
}

impl Settlement {
    /// An answer that allows the call.
    pub fn allow(request_id: impl Into<RequestId>) -> Self {
        Self::new(request_id, Some(Behavior::Allow))
    }

    /// An answer that denies the call.
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

    /// Reports that no answer could be produced.
    pub fn error(request_id: impl Into<RequestId>, error: impl Into<String>) -> Self {
        Self { error: Some(error.into()), ..Self::new(request_id, None) }
    }

    /// An answer in the agent's own format.
    pub fn output(request_id: impl Into<RequestId>, output: Json<'static>) -> Self {
        Self { hook_output: Some(output), ..Self::new(request_id, None) }
    }

    /// Reads an answer. One that allows is refused if it has an unknown field, and the error names the
    /// field. A denial is never refused for its form: fields that cannot be read are ignored.
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

    /// The decision. An empty answer is refused: silence never allows.
    pub fn answer(&self) -> Result<Answer, GatewayError> {
        if self.behavior == Some(Behavior::Deny) {
            return Ok(Answer::Deny {
                message: self.message.clone(),
                interrupt: self.interrupt.unwrap_or(false),
                always: self.remember == Some(Remember::Session),
            });
        }
        if self.interrupt == Some(true) {
            return Err(GatewayError::invalid("interrupt: only a denial can end the turn"));
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
            None => Err(GatewayError::invalid("an answer needs behavior, answers or hookOutput")),
        }
    }
}

/// One command line of a client: `{"id","command","sessionId"?, …}`.
#[derive(Clone, Debug, PartialEq)]
pub struct CommandFrame {
    /// The client's id for the call, returned in the reply.
    pub id: Option<Json<'static>>,
    /// The session; may be omitted if the connection has one.
    pub session_id: Option<String>,
    /// The command.
    pub command: Command,
}

/// A frame that was refused. The reply carries its id, if it had one.
#[derive(Clone, Debug, PartialEq)]
pub struct FrameError {
    /// The client's id for the call.
    pub id: Option<Json<'static>>,
    /// Why it was refused.
    pub error: GatewayError,
}

impl CommandFrame {
    /// Reads a frame: first its name, then the fields of that command. An unknown field is refused; the
    /// error names it.
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
            let message = "failed to read the command: `command` must be the name of a command";
            GatewayError::invalid(message)
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
            // The connection decides which events are shown.
            fields.remove("profile");
        }
        if name == "start" {
            // The connection also detects repeated starts.
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
            // A command that stops something is never refused for its form.
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
            "queue" => {
                read::<NoFurtherFields>(&fields)?;
                Command::Queue
            }
            "cancel" => Command::Cancel { message_id: read::<CancelFields>(&fields)?.message_id },
            "edit" => {
                let EditFields { message_id, prompt } = read(&fields)?;
                Command::Edit { message_id, text: prompt }
            }
            unknown => {
                return Err(GatewayError::new(
                    ErrorCode::UnknownMethod,
                    format!("unknown command `{unknown}`"),
                ));
            }
        };
        Ok((session, command))
    }
}

fn read<T: serde::de::DeserializeOwned>(fields: &Json<'_>) -> Result<T, GatewayError> {
    strict::read(fields.get()).map_err(|what| unread(&what))
}

/// Reads the fields of a line. Invalid JSON and valid JSON that is not a command get different error codes.
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
    GatewayError::invalid(format!("failed to read the command: {what}"))
}

#[derive(JsonSchema)]
struct NoFields {}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NoFurtherFields {}

/// A queued prompt to cancel. Further fields are ignored: what stops something is not refused for its form.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct CancelFields {
    /// The `messageId` of the accepted prompt.
    message_id: String,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct EditFields {
    /// The `messageId` of the accepted prompt.
    message_id: String,
    /// The new text; images stay as they are.
    prompt: String,
}

/// The new text of a queued prompt.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewText")]
pub struct NewText {
    /// The new text; images stay as they are.
    pub prompt: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AttachFields {
    /// The last event already seen.
    #[serde(default)]
    after: u64,
}

/// What to do with queued prompts when a turn is interrupted.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Interrupt")]
pub struct InterruptFields {
    /// Also cancel the queued prompts; otherwise they stay queued.
    #[serde(default, deserialize_with = "is_true")]
    pub cancel_queued: bool,
}

/// Reads a field that is off unless it is exactly `true`.
fn is_true<'de, D: serde::Deserializer<'de>>(field: D) -> Result<bool, D::Error> {
    Json::deserialize(field).map(|field| field.get() == "true")
}

/// A query to the agent.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Query")]
pub struct QueryFields {
    /// The method, such as `supportedModels`.
    pub method: String,
    /// The arguments.
    #[serde(default)]
    pub args: Vec<Json<'static>>,
}

/// The message whose file state is restored.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(rename = "Rewind")]
pub struct RewindFields {
    /// The `messageId` of the accepted prompt.
    pub message_id: String,
    /// Only report what would change.
    #[serde(default)]
    pub dry_run: bool,
}
