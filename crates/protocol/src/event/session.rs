//! A session's beginning and end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{Json, Text};
use crate::session::{AgentType, SessionConfig};

/// The session began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStarted<'a> {
    /// Which agent.
    pub agent_type: AgentType,
    /// What it was asked to run with, and what is known of what it runs with.
    #[serde(default)]
    pub config: SessionConfig,
    /// What the agent says of itself, where it spoke first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<AgentInfo<'a>>,
    /// The session whose conversation this one began with a copy of: its id here, or the agent's own
    /// where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Text<'a>>,
}

/// What an agent says of itself when it is ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentInfo<'a> {
    /// The agent's own id of the session, by which it resumes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_session_id: Option<Text<'a>>,
    /// The program's version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<Text<'a>>,
    /// The model in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text<'a>>,
    /// The agent's own name of its permission mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Text<'a>>,
    /// Where it works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Text<'a>>,
    /// Its tools, as it lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Json<'a>>,
    /// Its MCP servers, as it lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Json<'a>>,
    /// Its commands, as it lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Json<'a>>,
    /// The kinds of subagents it has, as it lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Json<'a>>,
    /// The models it offers, as it lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Json<'a>>,
    /// The modes it offers, as it lists them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<Json<'a>>,
    /// What it says it can do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Json<'a>>,
    /// Whose account it uses, as it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Json<'a>>,
}

/// The session is over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnded<'a> {
    /// How it ended.
    pub reason: SessionEndReason,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Text<'a>>,
}

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionEndReason {
    /// As it should.
    Completed,
    /// By an error.
    Failed,
    /// By somebody's wish.
    Cancelled,
    /// For want of time.
    Timeout,
}

impl SessionEndReason {
    /// The name as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }
}
