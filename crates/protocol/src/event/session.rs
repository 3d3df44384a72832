//! Start and end of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{Json, Text};
use crate::session::{AgentType, SessionConfig};

/// The session started.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionStarted<'a> {
    /// The agent.
    pub agent_type: AgentType,
    /// The requested config, and what is known of the actual one.
    #[serde(default)]
    pub config: SessionConfig,
    /// What the agent reports about itself, if it did so before this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub info: Option<AgentInfo<'a>>,
    /// The session whose conversation was copied to start this one: its id in agentwire, or the agent's own
    /// id if it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forked_from: Option<Text<'a>>,
}

/// What an agent reports about itself when it is ready.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentInfo<'a> {
    /// The agent's own session id, which it needs to resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_session_id: Option<Text<'a>>,
    /// The version of the agent's program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<Text<'a>>,
    /// The model in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Text<'a>>,
    /// The agent's own name for its permission mode.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<Text<'a>>,
    /// The working directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Text<'a>>,
    /// The agent's list of tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tools: Option<Json<'a>>,
    /// The agent's list of MCP servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<Json<'a>>,
    /// The agent's list of commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Json<'a>>,
    /// The agent's list of subagent kinds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<Json<'a>>,
    /// The agent's list of models.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub models: Option<Json<'a>>,
    /// The agent's list of modes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub modes: Option<Json<'a>>,
    /// The capabilities that the agent reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Json<'a>>,
    /// The account that the agent reports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<Json<'a>>,
}

/// The session ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionEnded<'a> {
    /// Why it ended.
    pub reason: SessionEndReason,
    /// What went wrong, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Text<'a>>,
}

/// Why a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionEndReason {
    /// It ended normally.
    Completed,
    /// An error ended it.
    Failed,
    /// Someone stopped it.
    Cancelled,
    /// It ran out of time.
    Timeout,
}

impl SessionEndReason {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
            Self::Timeout => "timeout",
        }
    }
}
