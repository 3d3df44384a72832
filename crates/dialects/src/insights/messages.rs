//! The server's messages: the payload of each, with all of its fields.

use agentwire_protocol::{Json, SessionId, Text, TokenUsage};
use serde::Serialize;

use super::wire::frame;

/// The message about one agent of a session.
pub(super) fn of_agent(
    kind: &'static str,
    session_id: &str,
    agent_id: &str,
    fields: impl Serialize,
) -> Json<'static> {
    #[derive(Serialize)]
    struct Payload<'p, F> {
        session_id: &'p str,
        agent_id: &'p str,
        #[serde(flatten)]
        fields: F,
    }
    frame(kind, Payload { session_id, agent_id, fields })
}

#[derive(Serialize)]
pub(super) struct Created<'p> {
    pub(super) session_id: &'p SessionId,
}

#[derive(Serialize)]
pub(super) struct Spawned<'p> {
    pub(super) parent_id: Option<&'p str>,
    pub(super) label: &'p str,
    pub(super) task_description: Option<&'p str>,
}

#[derive(Serialize)]
pub(super) struct Output<'p> {
    pub(super) content: &'p Text<'p>,
    pub(super) content_type: &'static str,
}

#[derive(Serialize)]
pub(super) struct ToolUseMessage<'p> {
    pub(super) tool_name: &'p str,
    pub(super) tool_input: &'p Json<'p>,
    pub(super) tool_use_id: &'p str,
    pub(super) model: Option<&'p str>,
}

#[derive(Serialize)]
pub(super) struct ToolResult<'p> {
    pub(super) tool_use_id: &'p str,
    pub(super) result: &'p str,
    pub(super) is_error: bool,
}

#[derive(Serialize)]
pub(super) struct Completed<'p> {
    pub(super) result: Option<&'p Text<'p>>,
    pub(super) usage: Usage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum AgentState {
    /// Not reported yet.
    #[serde(skip)]
    New,
    Working,
    WaitingTool,
    WaitingUser,
    Completed,
    Error,
}

#[derive(Serialize)]
pub(super) struct Status {
    pub(super) status: AgentState,
}

#[derive(Serialize)]
pub(super) struct TurnEnded<'p> {
    pub(super) session_id: &'p str,
    pub(super) total_usage: Usage,
}

#[derive(Serialize)]
pub(super) struct Mode<'p> {
    pub(super) session_id: &'p str,
    pub(super) permission_mode: &'p str,
}

#[derive(Serialize)]
pub(super) struct Permission<'p> {
    pub(super) permission_id: &'p Text<'p>,
    pub(super) tool_name: &'p str,
    pub(super) tool_input: &'p Json<'p>,
    pub(super) tool_use_id: &'p Text<'p>,
}

#[derive(Serialize)]
pub(super) struct Question<'p> {
    pub(super) question_id: &'p str,
    pub(super) question: &'p Text<'p>,
    pub(super) options: Vec<Choice<'p>>,
}

#[derive(Serialize)]
pub(super) struct Choice<'p> {
    pub(super) label: &'p Text<'p>,
    pub(super) description: Option<&'p Text<'p>>,
}

#[derive(Serialize)]
pub(super) struct Usage {
    input_tokens: u64,
    output_tokens: u64,
    cache_read_tokens: u64,
    cache_creation_tokens: u64,
    cost_usd: f64,
}

impl Usage {
    pub(super) fn new(usage: &TokenUsage, cost_usd: f64) -> Self {
        Self {
            input_tokens: usage.fresh_tokens(),
            output_tokens: usage.output_tokens,
            cache_read_tokens: usage.cached_tokens.unwrap_or(0),
            cache_creation_tokens: usage.cache_creation_tokens.unwrap_or(0),
            cost_usd,
        }
    }
}
