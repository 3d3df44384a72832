//! The messages of ACP version 1, and the lines that we write.

use std::borrow::Cow;

use agentwire_protocol::event::ToolKind;
use agentwire_protocol::{Json, Text};
use serde::Serialize;

use crate::json::{Value, wire};

wire! {
    /// A JSON-RPC message: a request or notification of the agent, or its response.
    struct Message {
        jsonrpc: Value<'d> = "jsonrpc",
        id: Value<'d> = "id",
        method: Cow<'d, str> = "method",
        params: Value<'d> = "params",
        result: Value<'d> = "result",
        error: Value<'d> = "error",
    }

    /// `session/update`
    struct Notification {
        session_id: Cow<'d, str> = "sessionId",
        update: Value<'d> = "update",
    }

    /// `user_message_chunk`, `agent_message_chunk`, `agent_thought_chunk`, `compaction_summary_chunk`
    struct Chunk {
        content: Value<'d> = "content",
        message_id: Cow<'d, str> = "messageId",
        meta: Meta<'d> = "_meta",
    }

    /// A content block; of `text` only the text is read.
    struct Block {
        kind: Cow<'d, str> = "type",
        text: Value<'d> = "text",
    }

    /// `tool_call`, `tool_call_update`, and the `toolCall` of a permission request
    struct ToolCall {
        id: Cow<'d, str> = "toolCallId",
        title: Text<'d> = "title",
        name: Text<'d> = "name",
        kind: Cow<'d, str> = "kind",
        status: Cow<'d, str> = "status",
        content: Value<'d> = "content",
        locations: Value<'d> = "locations",
        raw_input: Value<'d> = "rawInput",
        raw_output: Value<'d> = "rawOutput",
        meta: Meta<'d> = "_meta",
    }

    /// `_meta` of a chunk or a call
    struct Meta {
        claude: ClaudeMeta<'d> = "claudeCode",
    }

    /// What claude-agent-acp reports about subagents
    struct ClaudeMeta {
        tool_name: Cow<'d, str> = "toolName",
        spawned_by: Cow<'d, str> = "parentToolUseId",
        response: SpawnResponse<'d> = "toolResponse",
    }

    /// `toolResponse` of a call that ran a subagent
    struct SpawnResponse {
        status: Cow<'d, str> = "status",
        agent_id: Cow<'d, str> = "agentId",
        total_tokens: u64 = "totalTokens",
        duration_ms: u64 = "totalDurationMs",
    }

    /// One piece of a tool call's `content`
    struct ToolContentItem {
        kind: Cow<'d, str> = "type",
        content: Value<'d> = "content",
        path: Value<'d> = "path",
        old_text: Value<'d> = "oldText",
        new_text: Value<'d> = "newText",
        terminal_id: Value<'d> = "terminalId",
        meta: Value<'d> = "_meta",
    }

    /// `usage_update`
    struct Usage {
        used: u64 = "used",
        size: u64 = "size",
        cost: Cost<'d> = "cost",
    }

    /// What a session cost so far
    struct Cost {
        amount: f64 = "amount",
        currency: Cow<'d, str> = "currency",
    }

    /// `notice`
    struct Notice {
        severity: Cow<'d, str> = "severity",
        title: Text<'d> = "title",
        description: Cow<'d, str> = "description",
    }

    /// The result of `initialize`
    struct InitializeResult {
        version: u64 = "protocolVersion",
        capabilities: Value<'d> = "agentCapabilities",
        info: Value<'d> = "agentInfo",
        auth_methods: Value<'d> = "authMethods",
    }

    /// The result of `session/new`, `session/load`, `session/resume`, `session/set_config_option`.
    /// `models` is Gemini's.
    struct SessionResult {
        session_id: Text<'d> = "sessionId",
        modes: Value<'d> = "modes",
        models: Value<'d> = "models",
        options: Value<'d> = "configOptions",
    }

    /// One setting in `configOptions`
    struct ConfigOption {
        id: Text<'d> = "id",
        category: Cow<'d, str> = "category",
        current: Text<'d> = "currentValue",
        options: Value<'d> = "options",
    }

    /// The result of `session/prompt`
    struct PromptResult {
        stop_reason: Cow<'d, str> = "stopReason",
        usage: Tokens<'d> = "usage",
        meta: Value<'d> = "_meta",
    }

    /// `_meta.quota` of a prompt's result, and each of its `model_usage`
    struct Quota {
        model: Text<'d> = "model",
        tokens: Tokens<'d> = "token_count",
        models: Vec<Quota<'d>> = "model_usage",
    }

    /// Tokens: Gemini's names, then those of the protocol's drafts
    struct Tokens {
        gemini_input: u64 = "input_tokens",
        gemini_output: u64 = "output_tokens",
        input: u64 = "inputTokens",
        output: u64 = "outputTokens",
        cache_read: u64 = "cachedReadTokens",
        cached_input: u64 = "cachedInputTokens",
        cache_written: u64 = "cachedWriteTokens",
        thought: u64 = "thoughtTokens",
        reasoning: u64 = "reasoningOutputTokens",
        total: u64 = "totalTokens",
    }

    /// A JSON-RPC error. The code is any integer; Gemini uses HTTP status codes.
    struct Failure {
        code: i64 = "code",
        message: Cow<'d, str> = "message",
        data: Value<'d> = "data",
    }

    /// `session/request_permission`
    struct Permission {
        session_id: Cow<'d, str> = "sessionId",
        tool_call: Value<'d> = "toolCall",
        options: Vec<Offered<'d>> = "options",
    }

    /// An answer that a permission request offers
    struct Offered {
        id: Text<'d> = "optionId",
        name: Text<'d> = "name",
        kind: Cow<'d, str> = "kind",
    }

    /// `elicitation/create`
    struct Elicitation {
        tool_call_id: Cow<'d, str> = "toolCallId",
        mode: Cow<'d, str> = "mode",
        message: Text<'d> = "message",
        schema: Value<'d> = "requestedSchema",
        id: Cow<'d, str> = "elicitationId",
        url: Text<'d> = "url",
    }
}

pub(super) fn request(id: u64, method: &str, params: &impl Serialize) -> String {
    line(&Request { jsonrpc: "2.0", id: Some(id), method, params })
}

pub(super) fn notification(method: &str, params: &impl Serialize) -> String {
    line(&Request { jsonrpc: "2.0", id: None, method, params })
}

pub(super) fn response(id: &Json<'_>, result: &impl Serialize) -> String {
    line(&Response { jsonrpc: "2.0", id, result: Some(result), error: None })
}

pub(super) fn refusal(id: &Json<'_>, code: i64, message: &str) -> String {
    line(&Response::<()> { jsonrpc: "2.0", id, result: None, error: Some(Error { code, message }) })
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<u64>,
    method: &'a str,
    params: &'a P,
}

#[derive(Serialize)]
struct Response<'a, R> {
    jsonrpc: &'static str,
    id: &'a Json<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<&'a R>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Error<'a>>,
}

#[derive(Serialize)]
struct Error<'a> {
    code: i64,
    message: &'a str,
}

fn line(message: &impl Serialize) -> String {
    Json::of(message).into_text()
}

/// The kind that a word means. `other` and unknown words give `None`.
pub(super) fn kind(word: &str) -> Option<ToolKind> {
    Some(match word {
        "read" => ToolKind::Read,
        "edit" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "move" => ToolKind::Move,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "think" => ToolKind::Think,
        "fetch" => ToolKind::Fetch,
        "switch_mode" => ToolKind::SwitchMode,
        _ => return None,
    })
}
