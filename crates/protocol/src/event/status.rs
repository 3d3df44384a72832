//! State, usage, errors, and lines that fit no other event.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::session::AgentInfo;
use crate::json::{Json, Text};
use crate::usage::TokenUsage;

/// Any other change of state.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct StatusChanged<'a> {
    /// What changed.
    pub status: Status,
    /// A text for people: a message, the new value, or the name of what changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'a>>,
    /// What the agent reports about itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<AgentInfo<'a>>,
    /// The agent's own data for the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json<'a>>,
}

impl<'a> StatusChanged<'a> {
    /// A change with no further fields.
    pub fn new(status: Status) -> Self {
        Self { status, message: None, info: None, details: None }
    }

    /// Sets the message.
    pub fn message(mut self, message: impl Into<Option<Text<'a>>>) -> Self {
        self.message = message.into();
        self
    }

    /// Sets the agent's own data.
    pub fn details(mut self, details: impl Into<Option<Json<'a>>>) -> Self {
        self.details = details.into();
        self
    }

    /// Sets what the agent reports about itself.
    pub fn info(mut self, info: AgentInfo<'a>) -> Self {
        self.info = Some(info);
        self
    }
}

/// What changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Status {
    /// The agent is ready and describes itself (`info`).
    Ready,
    /// The agent is working.
    Working,
    /// The agent waits for a prompt.
    Idle,
    /// The agent waits for an answer.
    Waiting,
    /// The agent received a message of the user (`message`).
    Prompted,
    /// A message entered or left the agent's queue.
    Queue,
    /// The agent is compacting its context.
    Compacting,
    /// The agent compacted its context.
    Compacted,
    /// A call to the model failed and is retried.
    Retrying,
    /// The account's rate limits.
    RateLimit,
    /// The model changed (`message`).
    Model,
    /// The permission mode changed (`message`).
    Mode,
    /// The agent's own session id changed (`message`).
    Session,
    /// The session's title changed (`message`).
    Title,
    /// The agent's commands, skills or options changed.
    Commands,
    /// The state of an MCP server changed.
    McpServer,
    /// A hook ran.
    Hook,
    /// A background task changed.
    Task,
    /// The diff of the turn so far.
    Diff,
    /// The sign-in state changed.
    Account,
    /// The agent suggests a next prompt (`message`).
    Suggestion,
    /// A notice to the user that is not part of the answer (`message`).
    Notice,
    /// A warning (`message`).
    Warning,
}

/// Tokens or money spent so far, for display. Totals are computed from the turns.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageReported<'a> {
    /// Tokens used by the last call to the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// Tokens used by the session so far, as counted by the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<TokenUsage>,
    /// Cost of the session so far, as counted by the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total_cost_usd: Option<f64>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text<'a>>,
    /// Tokens currently in the context.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_used: Option<u64>,
    /// The size of the context window, in tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub context_size: Option<u64>,
    /// The agent's id of the message that used the tokens. Each message is counted once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Text<'a>>,
}

/// Something went wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ErrorEvent<'a> {
    /// What went wrong.
    pub message: Text<'a>,
    /// The agent's own name for the error, or one of agentwire's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<Text<'a>>,
    /// Whether the agent retries on its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub will_retry: Option<bool>,
    /// The agent's own data for the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Json<'a>>,
}

impl<'a> ErrorEvent<'a> {
    /// An error with only a message.
    pub fn new(message: impl Into<Text<'a>>) -> Self {
        Self { message: message.into(), code: None, will_retry: None, details: None }
    }
}

/// A line that no other event type can represent; it is in `native`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Other<'a> {
    /// The agent's own name for the message, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text<'a>>,
}

impl<'a> Other<'a> {
    /// A message with this name.
    pub fn named(name: impl Into<Text<'a>>) -> Self {
        Self { name: Some(name.into()) }
    }
}
