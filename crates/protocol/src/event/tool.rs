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
    /// The agent's name for the tool; for an MCP tool, the tool's own name.
    pub tool_name: Text<'a>,
    /// The arguments, an object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Json<'a>>,
    /// The kind of tool.
    #[serde(default)]
    pub kind: ToolKind,
    /// A title to show, if the agent has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<Text<'a>>,
    /// The MCP server that provides the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<Text<'a>>,
}

impl<'a> ToolStarted<'a> {
    /// A call with only these fields.
    pub fn new(
        tool_id: impl Into<Text<'a>>,
        tool_name: impl Into<Text<'a>>,
        kind: ToolKind,
    ) -> Self {
        let (tool_id, tool_name) = (tool_id.into(), tool_name.into());
        Self { tool_id, tool_name, arguments: None, kind, title: None, server: None }
    }
}

/// The kind of a tool, the same for all agents.
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
    /// Searches files.
    Search,
    /// Runs a command.
    Execute,
    /// Reads from a network.
    Fetch,
    /// Thinks, plans or maintains a list.
    Think,
    /// Starts or messages a subagent.
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
    /// The id of the call.
    pub tool_id: Text<'a>,
    /// The next piece of output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Text<'a>>,
    /// Progress from 0 to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1.0))]
    pub progress: Option<f64>,
    /// What the tool is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<Text<'a>>,
    /// How long it has been running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elapsed_ms: Option<u64>,
}

impl<'a> ToolProgress<'a> {
    /// Progress with only these fields.
    pub fn new(
        tool_id: impl Into<Text<'a>>,
        output: Option<Text<'a>>,
        message: Option<Text<'a>>,
    ) -> Self {
        Self { tool_id: tool_id.into(), output, progress: None, message, elapsed_ms: None }
    }
}

/// The tool finished.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolCompleted<'a> {
    /// The id of the call.
    pub tool_id: Text<'a>,
    /// Whether the tool succeeded.
    pub success: bool,
    /// The result as the agent has it: a string, content blocks or an object, including images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json<'a>>,
    /// What went wrong, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Text<'a>>,
    /// The exit code of a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i64>,
    /// How long it took, as reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The result in the agent's structured form, if it has both forms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured: Option<Json<'a>>,
}

impl<'a> ToolCompleted<'a> {
    /// A call with only these fields.
    pub fn new(tool_id: impl Into<Text<'a>>, success: bool) -> Self {
        Self {
            tool_id: tool_id.into(),
            success,
            result: None,
            error: None,
            exit_code: None,
            duration_ms: None,
            structured: None,
        }
    }
}

/// The tool did not run, or was interrupted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolFailed<'a> {
    /// The id of the call.
    pub tool_id: Text<'a>,
    /// Why, as text.
    pub error: Text<'a>,
    /// The kind of failure.
    pub reason: ToolFailure,
    /// What was reported to the agent, if that is more than the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Json<'a>>,
}

/// Why a tool did not finish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ToolFailure {
    /// Permission was refused.
    Denied,
    /// It was interrupted, or its turn ended without a result.
    Interrupted,
    /// The tool does not exist, or does not accept the arguments.
    Invalid,
}
