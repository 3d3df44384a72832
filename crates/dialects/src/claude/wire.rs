//! Field names of stream-json, the control protocol and the board. Real names come first; if the
//! specification has another name for the same thing, both are read.

use std::borrow::Cow;

use agentwire_protocol::{Json, Text};

use crate::json::{Value, wire};

wire! {
    /// `system/init`
    struct Init {
        session_id: Text<'d> = "session_id",
        cwd: Text<'d> = "cwd",
        model: Text<'d> = "model",
        permission_mode: Text<'d> = "permissionMode",
        version: Text<'d> = "claude_code_version",
        tools: Json<'d> = "tools",
        mcp_servers: Json<'d> = "mcp_servers",
        slash_commands: Json<'d> = "slash_commands",
        agents: Json<'d> = "agents",
        capabilities: Json<'d> = "capabilities",
        user_message_uuids: Vec<Cow<'d, str>> = "user_message_uuids",
    }

    /// `system/status`
    struct StatusLine {
        status: Cow<'d, str> = "status",
        message: Text<'d> = "message",
        permission_mode: Text<'d> = "permissionMode",
        compact_result: Cow<'d, str> = "compact_result",
    }

    /// `system/api_retry`
    struct ApiRetry {
        error: Text<'d> = "error",
        error_status: u64 = "error_status",
        attempt: u64 = "attempt",
        max_retries: u64 = "max_retries",
        retry_delay_ms: f64 = "retry_delay_ms",
    }

    /// `system/task_…`
    struct Task {
        task_id: Cow<'d, str> = "task_id",
        tool_use_id: Cow<'d, str> = "tool_use_id",
        task_type: Cow<'d, str> = "task_type",
        status: Cow<'d, str> = "status",
        summary: Text<'d> = "summary",
        description: Text<'d> = "description",
        patch: TaskPatch<'d> = "patch",
        usage: TaskUsage<'d> = "usage",
    }

    struct TaskPatch {
        status: Cow<'d, str> = "status",
        error: Text<'d> = "error",
    }

    struct TaskUsage {
        total_tokens: u64 = "total_tokens",
        duration_ms: u64 = "duration_ms",
    }

    /// `assistant`
    struct Assistant {
        message: Message<'d> = "message",
        parent_tool_use_id: Cow<'d, str> = "parent_tool_use_id",
        agent_id: Cow<'d, str> = "agent_id",
        subagent_type: Text<'d> = "subagent_type",
        task_description: Text<'d> = "task_description",
        error: Text<'d> = "error",
        is_api_error_message: bool = "is_api_error_message",
        tool_use_meta: Value<'d> = "tool_use_meta",
    }

    /// A message of the model API. The specification puts `error` in here.
    struct Message {
        id: Cow<'d, str> = "id",
        model: Text<'d> = "model",
        content: Value<'d> = "content",
        usage: Usage<'d> = "usage",
        error: Text<'d> = "error",
    }

    struct Block {
        kind: Cow<'d, str> = "type",
        text: Text<'d> = "text",
        thinking: Text<'d> = "thinking",
        signature: Text<'d> = "signature",
        data: Text<'d> = "data",
        id: Cow<'d, str> = "id",
        name: Cow<'d, str> = "name",
        server_name: Text<'d> = "server_name",
        input: Value<'d> = "input",
        tool_use_id: Cow<'d, str> = "tool_use_id",
        content: Value<'d> = "content",
        is_error: bool = "is_error",
    }

    /// Tokens of a message or of a turn.
    struct Usage {
        input_tokens: u64 = "input_tokens",
        output_tokens: u64 = "output_tokens",
        cache_read: u64 = "cache_read_input_tokens",
        cache_creation: u64 = "cache_creation_input_tokens",
        details: UsageDetails<'d> = "output_tokens_details",
    }

    struct UsageDetails {
        thinking_tokens: u64 = "thinking_tokens",
    }

    struct ModelTotals {
        input_tokens: u64 = "inputTokens",
        output_tokens: u64 = "outputTokens",
        cache_read: u64 = "cacheReadInputTokens",
        cache_creation: u64 = "cacheCreationInputTokens",
        thinking_tokens: u64 = "thinkingTokens",
        cost_usd: f64 = "costUSD",
    }

    /// `stream_event`
    struct StreamLine {
        event: StreamEvent<'d> = "event",
        parent_tool_use_id: Cow<'d, str> = "parent_tool_use_id",
    }

    /// An event of the model API. Most are deltas, so fields that only other events have are read when
    /// needed.
    struct StreamEvent {
        kind: Cow<'d, str> = "type",
        index: u64 = "index",
        message: Value<'d> = "message",
        content_block: Value<'d> = "content_block",
        delta: Value<'d> = "delta",
        usage: Value<'d> = "usage",
        error: Value<'d> = "error",
    }

    struct Delta {
        kind: Cow<'d, str> = "type",
        text: Text<'d> = "text",
        thinking: Text<'d> = "thinking",
    }

    /// `user`
    struct User {
        message: UserMessage<'d> = "message",
        parent_tool_use_id: Cow<'d, str> = "parent_tool_use_id",
        agent_id: Cow<'d, str> = "agent_id",
        subagent_type: Text<'d> = "subagent_type",
        task_description: Text<'d> = "task_description",
        tool_use_result: Value<'d> = "tool_use_result",
        tool_result_meta: Value<'d> = "tool_result_meta",
        is_synthetic: bool = "isSynthetic",
    }

    struct UserMessage {
        content: Value<'d> = "content",
    }

    /// Reported next to a tool's result.
    struct ResultMeta {
        non_execution_kind: Cow<'d, str> = "non_execution_kind",
        decision: Decision<'d> = "permission_decision",
    }

    /// How it was decided whether the tool may run.
    struct Decision {
        decision: Cow<'d, str> = "decision",
        source: Cow<'d, str> = "source",
    }

    /// The result of a file tool.
    struct FileResult {
        kind: Cow<'d, str> = "type",
        file_path: Text<'d> = "filePath",
        content: Text<'d> = "content",
        original_file: Text<'d> = "originalFile",
        original_contents: Text<'d> = "originalFileContents",
        patch: Value<'d> = "structuredPatch",
        notebook_path: Text<'d> = "notebook_path",
        notebook_before: Text<'d> = "original_file",
        notebook_after: Text<'d> = "updated_file",
        error: Cow<'d, str> = "error",
    }

    /// One hunk of `structuredPatch`.
    struct Hunk {
        old_start: u64 = "oldStart",
        old_lines: u64 = "oldLines",
        new_start: u64 = "newStart",
        new_lines: u64 = "newLines",
        lines: Vec<Cow<'d, str>> = "lines",
    }

    /// The result of a subagent.
    struct AgentResult {
        status: Cow<'d, str> = "status",
        agent_id: Text<'d> = "agentId",
        content: Value<'d> = "content",
        duration_ms: u64 = "totalDurationMs",
        total_tokens: u64 = "totalTokens",
        usage: Usage<'d> = "usage",
    }

    /// `result`
    struct Outcome {
        subtype: Cow<'d, str> = "subtype",
        is_error: bool = "is_error",
        terminal_reason: Cow<'d, str> = "terminal_reason",
        result: Text<'d> = "result",
        errors: Vec<Cow<'d, str>> = "errors",
        api_error_type: Text<'d> = "api_error_type",
        stop_reason: Text<'d> = "stop_reason",
        duration_ms: u64 = "duration_ms",
        total_cost_usd: f64 = "total_cost_usd",
        usage: Usage<'d> = "usage",
        model_usage: Value<'d> = "modelUsage",
        since_last: Value<'d> = "model_usage_since_last_result",
        structured_output: Json<'d> = "structured_output",
        denials: Value<'d> = "permission_denials",
    }

    /// `control_request`
    struct ControlRequest {
        request_id: Text<'d> = "request_id",
        request: Value<'d> = "request",
    }

    /// The `request` of a `control_request`.
    struct ControlRequestBody {
        subtype: Text<'d> = "subtype",
        tool_name: Text<'d> = "tool_name",
        input: Value<'d> = "input",
        tool_use_id: Cow<'d, str> = "tool_use_id",
        agent_id: Cow<'d, str> = "agent_id",
        suggestions: Json<'d> = "permission_suggestions",
        blocked_path: Text<'d> = "blocked_path",
        title: Text<'d> = "title",
        description: Text<'d> = "description",
        display_name: Text<'d> = "display_name",
        decision_reason: Text<'d> = "decision_reason",
        decision_reason_type: Cow<'d, str> = "decision_reason_type",
        server_name: Text<'d> = "server_name",
        message: Value<'d> = "message",
        mcp_server_name: Text<'d> = "mcp_server_name",
        requested_schema: Json<'d> = "requested_schema",
        elicitation_id: Cow<'d, str> = "elicitation_id",
        callback_id: Text<'d> = "callback_id",
    }

    /// `callback.request`, from the specification
    struct CallbackRequest {
        id: Text<'d> = "id",
        session_id: Cow<'d, str> = "session_id",
        payload: CallbackPayload<'d> = "payload",
    }

    /// The `payload` of a `callback.request`.
    struct CallbackPayload {
        kind: Cow<'d, str> = "callback_type",
        tool_name: Text<'d> = "tool_name",
        tool_input: Value<'d> = "tool_input",
        tool_use_id: Cow<'d, str> = "tool_use_id",
        suggestions: Json<'d> = "suggestions",
        blocked_path: Text<'d> = "blocked_path",
        hook_event: Text<'d> = "hook_event",
        hook_input: Value<'d> = "hook_input",
    }

    /// One question of AskUserQuestion.
    struct AskedQuestion {
        question: Text<'d> = "question",
        header: Text<'d> = "header",
        options: Vec<AskedOption<'d>> = "options",
        multi_select: bool = "multiSelect",
    }

    struct AskedOption {
        label: Text<'d> = "label",
        description: Text<'d> = "description",
    }

    /// `control_response`
    struct ControlResponse {
        response: Response<'d> = "response",
    }

    /// The answer to one of our requests, or the echo of one of our answers.
    struct Response {
        subtype: Cow<'d, str> = "subtype",
        request_id: Cow<'d, str> = "request_id",
        response: Value<'d> = "response",
        error: Text<'d> = "error",
        error_code: Text<'d> = "error_code",
        pending_permissions: Value<'d> = "pending_permission_requests",
        pending_dialogs: Value<'d> = "pending_user_dialog_requests",
    }

    /// The answer to `initialize`.
    struct InitializeResult {
        commands: Json<'d> = "commands",
        agents: Json<'d> = "agents",
        models: Json<'d> = "models",
        account: Json<'d> = "account",
        version: Text<'d> = "claude_code_version",
        permission_mode: Text<'d> = "current_permission_mode",
        capabilities: Json<'d> = "capabilities",
    }

    /// The echo of an answer to a permission request.
    struct Echo {
        behavior: Cow<'d, str> = "behavior",
        message: Text<'d> = "message",
        updated_input: Json<'d> = "updatedInput",
    }

    /// `tool_progress`
    struct Progress {
        tool_use_id: Cow<'d, str> = "tool_use_id",
        parent_tool_use_id: Cow<'d, str> = "parent_tool_use_id",
        elapsed_time_seconds: f64 = "elapsed_time_seconds",
    }

    /// `command_lifecycle`
    struct Lifecycle {
        command_uuid: Cow<'d, str> = "command_uuid",
        state: Text<'d> = "state",
    }

    /// An error object of the model API.
    struct Failure {
        kind: Text<'d> = "type",
        message: Text<'d> = "message",
    }

    struct BoardLine {
        payload: BoardPayload<'d> = "payload",
    }

    /// The fields of all board lines.
    struct BoardPayload {
        message: Text<'d> = "message",
        line: Text<'d> = "line",
        file: Text<'d> = "file",
        diff: Text<'d> = "diff",
        tool: Cow<'d, str> = "tool",
        args: Value<'d> = "args",
        success: bool = "success",
        output: Value<'d> = "output",
    }
}
