//! The messages as they appear on the wire.

use std::collections::BTreeMap;

use agentwire_protocol::{Json, Text};
use serde::Serialize;

/// `system/init`
#[derive(Serialize)]
#[serde(tag = "type", rename = "system")]
pub(super) struct Init<'a> {
    pub(super) subtype: &'static str,
    pub(super) cwd: &'a str,
    pub(super) session_id: &'a str,
    pub(super) tools: &'a [String],
    pub(super) mcp_servers: Vec<Server<'a>>,
    pub(super) model: &'a str,
    #[serde(rename = "permissionMode")]
    pub(super) permission_mode: &'a str,
    pub(super) slash_commands: &'a [String],
    #[serde(rename = "apiKeySource")]
    pub(super) api_key_source: &'static str,
    pub(super) claude_code_version: &'static str,
    pub(super) output_style: &'static str,
    pub(super) agents: &'a [String],
    pub(super) skills: [&'static str; 0],
    pub(super) plugins: [&'static str; 0],
    pub(super) uuid: String,
}

/// An MCP server in `system/init`.
#[derive(Serialize)]
pub(super) struct Server<'a> {
    pub(super) name: &'a str,
    pub(super) status: &'a str,
}

/// `system` with another subtype.
#[derive(Serialize)]
#[serde(tag = "type", rename = "system")]
pub(super) struct System<'a, T> {
    pub(super) subtype: &'static str,
    #[serde(flatten)]
    pub(super) fields: T,
    pub(super) session_id: &'a str,
    pub(super) uuid: String,
}

/// `system/compact_boundary`
#[derive(Serialize)]
pub(super) struct CompactBoundary {
    pub(super) compact_metadata: CompactMetadata,
}

#[derive(Serialize)]
pub(super) struct CompactMetadata {
    pub(super) trigger: &'static str,
    pub(super) pre_tokens: u64,
}

/// `system/status`
#[derive(Default, Serialize)]
pub(super) struct StatusLine {
    pub(super) status: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) compact_result: Option<&'static str>,
    #[serde(rename = "permissionMode", skip_serializing_if = "Option::is_none")]
    pub(super) permission_mode: Option<&'static str>,
}

/// `system/task_notification`
#[derive(Serialize)]
pub(super) struct TaskNotification<'a> {
    pub(super) task_id: &'a str,
    pub(super) tool_use_id: &'a str,
    pub(super) status: &'static str,
    pub(super) output_file: &'static str,
    pub(super) summary: &'a str,
}

/// `system/informational`
#[derive(Serialize)]
pub(super) struct Informational<'a> {
    pub(super) content: &'a str,
    pub(super) level: &'static str,
}

/// `system/api_retry`
#[derive(Serialize)]
pub(super) struct Retry {
    pub(super) attempt: u64,
    pub(super) max_retries: u64,
    pub(super) retry_delay_ms: u64,
    pub(super) error_status: Option<u64>,
    pub(super) error: &'static str,
}

/// `rate_limit_event`
#[derive(Serialize)]
#[serde(tag = "type", rename = "rate_limit_event")]
pub(super) struct RateLimit<'a> {
    pub(super) rate_limit_info: &'a Json<'a>,
    pub(super) uuid: String,
    pub(super) session_id: &'a str,
}

/// `assistant`
#[derive(Serialize)]
#[serde(tag = "type", rename = "assistant")]
pub(super) struct Assistant<'a> {
    pub(super) message: Message<'a>,
    pub(super) parent_tool_use_id: Option<&'a str>,
    pub(super) session_id: &'a str,
    pub(super) uuid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) error: Option<&'static str>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) is_api_error_message: bool,
}

#[derive(Serialize)]
pub(super) struct Message<'a> {
    pub(super) id: &'a str,
    pub(super) r#type: &'static str,
    pub(super) role: &'static str,
    pub(super) model: &'a str,
    pub(super) content: &'a [Block<'a>],
    pub(super) stop_reason: Option<&'a str>,
    pub(super) stop_sequence: Option<&'a str>,
    pub(super) usage: Usage,
}

impl<'a> Message<'a> {
    /// A message that is not complete.
    pub(super) fn new(id: &'a str, model: &'a str, content: &'a [Block<'a>]) -> Self {
        Self {
            id,
            r#type: "message",
            role: "assistant",
            model,
            content,
            stop_reason: None,
            stop_sequence: None,
            usage: Usage::default(),
        }
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Block<'a> {
    Text { text: &'a str },
    Thinking { thinking: &'a str, signature: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: &'a Json<'a> },
}

/// Tokens as Claude counts them: cached input is counted next to the rest of the input, not in it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct Usage {
    pub(super) input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
    pub(super) cache_read_input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) server_tool_use: ServerToolUse,
    pub(super) service_tier: ServiceTier,
}

/// Tools that the model API runs itself: none are reported to us.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(super) struct ServerToolUse {
    web_search_requests: u64,
    web_fetch_requests: u64,
}

#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ServiceTier {
    #[default]
    Standard,
}

/// `user`
#[derive(Serialize)]
#[serde(tag = "type", rename = "user")]
pub(super) struct User<'a> {
    pub(super) message: UserMessage<'a>,
    pub(super) parent_tool_use_id: Option<&'a str>,
    pub(super) session_id: &'a str,
    pub(super) uuid: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_use_result: Option<&'a Json<'a>>,
}

#[derive(Serialize)]
pub(super) struct UserMessage<'a> {
    pub(super) role: &'static str,
    pub(super) content: [UserBlock<'a>; 1],
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum UserBlock<'a> {
    Text { text: &'a str },
    ToolResult { tool_use_id: &'a str, content: &'a Json<'a>, is_error: bool },
}

/// `stream_event`
#[derive(Serialize)]
#[serde(tag = "type", rename = "stream_event")]
pub(super) struct StreamEvent<'a> {
    pub(super) event: ModelEvent<'a>,
    pub(super) session_id: &'a str,
    pub(super) parent_tool_use_id: Option<&'a str>,
    pub(super) uuid: String,
}

/// An event of the model API.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ModelEvent<'a> {
    MessageStart { message: Message<'a> },
    ContentBlockStart { index: u64, content_block: Block<'a> },
    ContentBlockDelta { index: u64, delta: Delta<'a> },
    ContentBlockStop { index: u64 },
    MessageDelta { delta: Stop, usage: Usage },
    MessageStop {},
}

#[derive(Serialize)]
#[serde(tag = "type")]
pub(super) enum Delta<'a> {
    #[serde(rename = "text_delta")]
    Text { text: &'a Text<'a> },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: &'a Text<'a> },
    #[serde(rename = "signature_delta")]
    Signature { signature: &'a Text<'a> },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: &'a str },
}

#[derive(Serialize)]
pub(super) struct Stop {
    pub(super) stop_reason: &'static str,
    pub(super) stop_sequence: Option<&'static str>,
}

/// `result`
#[derive(Serialize)]
#[serde(tag = "type", rename = "result")]
pub(super) struct Outcome<'a> {
    pub(super) subtype: &'static str,
    pub(super) is_error: bool,
    pub(super) duration_ms: u64,
    pub(super) duration_api_ms: u64,
    pub(super) num_turns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) errors: Option<[&'a str; 1]>,
    pub(super) stop_reason: Option<&'a str>,
    pub(super) session_id: &'a str,
    pub(super) total_cost_usd: f64,
    pub(super) usage: Usage,
    #[serde(rename = "modelUsage")]
    pub(super) model_usage: &'a BTreeMap<String, ModelTotals>,
    pub(super) permission_denials: &'a Json<'a>,
    pub(super) terminal_reason: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) structured_output: Option<&'a Json<'a>>,
    pub(super) uuid: String,
}

/// What one model used in all turns.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ModelTotals {
    pub(super) input_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) cache_read_input_tokens: u64,
    pub(super) cache_creation_input_tokens: u64,
    pub(super) web_search_requests: u64,
    #[serde(rename = "costUSD")]
    pub(super) cost_usd: f64,
    pub(super) context_window: u64,
    pub(super) max_output_tokens: u64,
}

#[derive(Serialize)]
pub(super) struct Denial<'a> {
    pub(super) tool_name: &'a str,
    pub(super) tool_use_id: &'a str,
    pub(super) tool_input: &'a Json<'a>,
}
