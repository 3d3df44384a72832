//! The life of a tool call.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{Json, Text};

/// A tool was called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolStarted<'a> {
    /// The call's id, unique within the session.
    pub tool_id: Text<'a>,
    /// The agent's name of the tool; of an MCP tool, the tool's own name.
    pub tool_name: Text<'a>,
    /// What it is called with; an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json<'a>>,
    /// What sort of tool it is.
    #[serde(default)]
    pub kind: ToolKind,
    /// A line to show, where the agent has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text<'a>>,
    /// The MCP server that has the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Text<'a>>,
}

/// What sort of tool it is, over all agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolKind {
    /// Reads files.
    Read,
    /// Changes files.
    Edit,
    /// Deletes files.
    Delete,
    /// Moves files.
    Move,
    /// Looks for something in files.
    Search,
    /// Runs a command.
    Execute,
    /// Reads from a network.
    Fetch,
    /// Thinks, plans or keeps a list.
    Think,
    /// Starts or speaks to a subagent.
    Agent,
    /// Asks the user.
    Question,
    /// A tool of an MCP server.
    Mcp,
    /// Changes the agent's mode.
    SwitchMode,
    /// Anything else.
    #[default]
    Other,
}

/// Output or progress of a running tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolProgress<'a> {
    /// The call.
    pub tool_id: Text<'a>,
    /// The next piece of its output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Text<'a>>,
    /// How far it is, from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub progress: Option<f64>,
    /// What it does now, in words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'a>>,
    /// How long it has run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
}

/// The tool ran to its end.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCompleted<'a> {
    /// The call.
    pub tool_id: Text<'a>,
    /// Whether it did what it should.
    pub success: bool,
    /// What it gave, as the agent has it: a string, content blocks or an object; images included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json<'a>>,
    /// What went wrong, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Text<'a>>,
    /// The exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// How long it took, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The result in the agent's structured form, where it has two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Json<'a>>,
}

/// The tool did not run, or was cut off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolFailed<'a> {
    /// The call.
    pub tool_id: Text<'a>,
    /// Why, in words.
    pub error: Text<'a>,
    /// Of which kind it was.
    pub reason: ToolFailure,
    /// What the agent was told, where that is more than the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json<'a>>,
}

/// Why a tool did not run to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolFailure {
    /// Permission was refused.
    Denied,
    /// It was interrupted, or its turn ended without a result.
    Interrupted,
    /// No such tool, or arguments it does not take.
    Invalid,
}
