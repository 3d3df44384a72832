//! State, usage, errors, and lines that are none of the rest.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::session::AgentInfo;
use crate::json::{Json, Text};
use crate::usage::TokenUsage;

/// Any change of state that is none of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusChanged<'a> {
    /// What changed.
    pub status: Status,
    /// In words: the text, the new value or the name of what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'a>>,
    /// What the agent says of itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<AgentInfo<'a>>,
    /// The agent's own data of the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json<'a>>,
}

impl<'a> StatusChanged<'a> {
    /// A change of this sort, with nothing more to say.
    pub fn new(status: Status) -> Self {
        Self { status, message: None, info: None, details: None }
    }

    /// With words.
    pub fn message(mut self, message: impl Into<Option<Text<'a>>>) -> Self {
        self.message = message.into();
        self
    }

    /// With the agent's own data.
    pub fn details(mut self, details: impl Into<Option<Json<'a>>>) -> Self {
        self.details = details.into();
        self
    }

    /// With what the agent says of itself.
    pub fn info(mut self, info: AgentInfo<'a>) -> Self {
        self.info = Some(info);
        self
    }
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// The agent is ready and says what it is (`info`).
    Ready,
    /// It works.
    Working,
    /// It waits for a prompt.
    Idle,
    /// It waits for an answer.
    Waiting,
    /// It took in a message of the user (`message`).
    Prompted,
    /// A message waits in the agent's queue, or left it.
    Queue,
    /// It shortens its context.
    Compacting,
    /// Its context is shorter now.
    Compacted,
    /// A call of the model failed and is tried again.
    Retrying,
    /// The limits of the account.
    RateLimit,
    /// The model changed (`message`).
    Model,
    /// The permission mode changed (`message`).
    Mode,
    /// The agent's own session id changed (`message`).
    Session,
    /// The session's title changed (`message`).
    Title,
    /// Its commands, skills or options changed.
    Commands,
    /// An MCP server changed.
    McpServer,
    /// A hook ran.
    Hook,
    /// A background task changed.
    Task,
    /// The turn's diff so far.
    Diff,
    /// Sign-in changed.
    Account,
    /// It proposes a next prompt (`message`).
    Suggestion,
    /// It says something to the user that is no answer (`message`).
    Notice,
    /// It warns (`message`).
    Warning,
}

/// Tokens or money spent so far; for display. Sums are taken over turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageReported<'a> {
    /// What the last call of the model used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// What the session used so far, as the agent counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<TokenUsage>,
    /// What the session cost so far, as the agent counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_cost_usd: Option<f64>,
    /// Which model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text<'a>>,
    /// Tokens now in the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_used: Option<u64>,
    /// How many the context can hold.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// The agent's id of the message that used them: one message is counted once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Text<'a>>,
}

/// Something went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEvent<'a> {
    /// In words.
    pub message: Text<'a>,
    /// The agent's own name of the error, or one of ours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Text<'a>>,
    /// Whether the agent tries again by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub will_retry: Option<bool>,
    /// The agent's own data of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json<'a>>,
}

impl<'a> ErrorEvent<'a> {
    /// An error in words.
    pub fn new(message: impl Into<Text<'a>>) -> Self {
        Self { message: message.into(), code: None, will_retry: None, details: None }
    }
}

/// A line that says nothing a unified event could carry, kept in `native`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Other<'a> {
    /// The agent's own name of the message, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text<'a>>,
}

impl<'a> Other<'a> {
    /// A message of this name.
    pub fn named(name: impl Into<Text<'a>>) -> Self {
        Self { name: Some(name.into()) }
    }
}
