//! The messages of `codex app-server`.

use std::borrow::Cow;

use agentwire_protocol::{Json, Text};

use crate::json::{Value, wire};

wire! {
    /// Any line: a notification, a request of the server, or the response to one of ours.
    struct Line {
        kind: Cow<'d, str> = "type",
        method: Cow<'d, str> = "method",
        id: Value<'d> = "id",
        params: Value<'d> = "params",
        result: Value<'d> = "result",
        error: Value<'d> = "error",
    }

    /// The `error` of a response
    struct Refusal {
        code: i64 = "code",
        message: Text<'d> = "message",
        data: Json<'d> = "data",
    }

    /// Result of `initialize`
    struct InitializeResult {
        user_agent: Cow<'d, str> = "userAgent",
    }

    /// Result of `thread/start`, `thread/resume` and `thread/fork`
    struct ThreadResult {
        thread: Thread<'d> = "thread",
        model: Text<'d> = "model",
        cwd: Text<'d> = "cwd",
        approval_policy: Text<'d> = "approvalPolicy",
        effort: Text<'d> = "reasoningEffort",
        collaboration: Collaboration<'d> = "collaborationMode",
    }

    struct Settings {
        approval_policy: Text<'d> = "approvalPolicy",
        effort: Text<'d> = "effort",
        collaboration: Collaboration<'d> = "collaborationMode",
    }

    struct Collaboration {
        mode: Cow<'d, str> = "mode",
    }

    struct Thread {
        id: Cow<'d, str> = "id",
        model: Text<'d> = "model",
        cwd: Text<'d> = "cwd",
        cli_version: Text<'d> = "cliVersion",
        parent_thread_id: Cow<'d, str> = "parentThreadId",
        agent_nickname: Text<'d> = "agentNickname",
    }

    struct Turn {
        id: Cow<'d, str> = "id",
        root_turn_id: Cow<'d, str> = "rootTurnId",
        status: Cow<'d, str> = "status",
        error: Failure<'d> = "error",
        duration_ms: u64 = "durationMs",
        items: Value<'d> = "items",
    }

    /// Why a turn or a model call failed
    struct Failure {
        message: Text<'d> = "message",
        info: Value<'d> = "codexErrorInfo",
        additional_details: Value<'d> = "additionalDetails",
        misalignment: Value<'d> = "misalignment",
    }

    /// Parameters of most notifications
    struct Notification {
        thread_id: Cow<'d, str> = "threadId",
        turn_id: Cow<'d, str> = "turnId",
        thread: Value<'d> = "thread",
        turn: Turn<'d> = "turn",
        item: Value<'d> = "item",
        status: Value<'d> = "status",
        error: Value<'d> = "error",
        will_retry: bool = "willRetry",
        message: Text<'d> = "message",
        summary: Text<'d> = "summary",
        details: Json<'d> = "details",
        name: Text<'d> = "name",
        thread_name: Text<'d> = "threadName",
        thread_settings: Value<'d> = "threadSettings",
        token_usage: TokenUsage<'d> = "tokenUsage",
        rate_limits: Json<'d> = "rateLimits",
        request_id: Value<'d> = "requestId",
        explanation: Text<'d> = "explanation",
        plan: Value<'d> = "plan",
        diff: Text<'d> = "diff",
        to_model: Text<'d> = "toModel",
        run: Value<'d> = "run",
        review: Value<'d> = "review",
    }

    /// Parameters of a delta: the hot path reads nothing else.
    struct Delta {
        thread_id: Cow<'d, str> = "threadId",
        turn_id: Cow<'d, str> = "turnId",
        item_id: Cow<'d, str> = "itemId",
        delta: Value<'d> = "delta",
        summary_index: u64 = "summaryIndex",
        content_index: u64 = "contentIndex",
        message: Text<'d> = "message",
        stdin: Text<'d> = "stdin",
        changes: Value<'d> = "changes",
    }

    struct TokenUsage {
        total: Tokens<'d> = "total",
        last: Tokens<'d> = "last",
        model_context_window: u64 = "modelContextWindow",
    }

    /// Tokens of one model call, or of a thread
    struct Tokens {
        total_tokens: u64 = "totalTokens",
        input_tokens: u64 = "inputTokens",
        cached_input_tokens: u64 = "cachedInputTokens",
        cache_write_input_tokens: u64 = "cacheWriteInputTokens",
        output_tokens: u64 = "outputTokens",
        reasoning_output_tokens: u64 = "reasoningOutputTokens",
    }

    /// One step of `turn/plan/updated`
    struct Step {
        step: Text<'d> = "step",
        status: Cow<'d, str> = "status",
    }

    struct Item {
        kind: Cow<'d, str> = "type",
        id: Cow<'d, str> = "id",
        status: Cow<'d, str> = "status",
        text: Value<'d> = "text",
        summary: Value<'d> = "summary",
        content: Value<'d> = "content",
        command: Text<'d> = "command",
        source: Cow<'d, str> = "source",
        aggregated_output: Json<'d> = "aggregatedOutput",
        exit_code: i64 = "exitCode",
        duration_ms: u64 = "durationMs",
        changes: Value<'d> = "changes",
        server: Cow<'d, str> = "server",
        tool: Cow<'d, str> = "tool",
        namespace: Text<'d> = "namespace",
        arguments: Value<'d> = "arguments",
        result: Value<'d> = "result",
        error: Failure<'d> = "error",
        content_items: Json<'d> = "contentItems",
        success: bool = "success",
        receiver_thread_ids: Vec<Cow<'d, str>> = "receiverThreadIds",
        prompt: Text<'d> = "prompt",
        agents_states: Value<'d> = "agentsStates",
        query: Text<'d> = "query",
        review: Text<'d> = "review",
        fragments: Json<'d> = "fragments",
        agent_thread_id: Cow<'d, str> = "agentThreadId",
        agent_path: Text<'d> = "agentPath",
        activity: Text<'d> = "kind",
        call_id: Cow<'d, str> = "callId",
        output: Text<'d> = "output",
    }

    /// One file of a `fileChange`: `diff` is the whole text of a file that was added or deleted.
    struct Change {
        path: Text<'d> = "path",
        kind: ChangeKind<'d> = "kind",
        diff: Text<'d> = "diff",
    }

    struct ChangeKind {
        kind: Cow<'d, str> = "type",
        move_path: Text<'d> = "move_path",
    }

    /// Parameters of a request of the server
    struct RequestParams {
        thread_id: Cow<'d, str> = "threadId",
        conversation_id: Cow<'d, str> = "conversationId",
        turn_id: Cow<'d, str> = "turnId",
        item_id: Cow<'d, str> = "itemId",
        call_id: Cow<'d, str> = "callId",
        command: Value<'d> = "command",
        reason: Text<'d> = "reason",
        grant_root: Text<'d> = "grantRoot",
        available_decisions: Value<'d> = "availableDecisions",
        permissions: Json<'d> = "permissions",
        server_name: Cow<'d, str> = "serverName",
        message: Text<'d> = "message",
        requested_schema: Value<'d> = "requestedSchema",
        url: Text<'d> = "url",
        meta: Value<'d> = "_meta",
        questions: Value<'d> = "questions",
        tool: Text<'d> = "tool",
        arguments: Json<'d> = "arguments",
    }

    /// `_meta` of an elicitation that asks for an MCP call
    struct ApprovalMeta {
        kind: Cow<'d, str> = "codex_approval_kind",
        tool_description: Text<'d> = "tool_description",
        tool_params: Json<'d> = "tool_params",
    }

    /// A question of `item/tool/requestUserInput`
    struct Question {
        id: Cow<'d, str> = "id",
        header: Text<'d> = "header",
        question: Cow<'d, str> = "question",
        is_secret: bool = "isSecret",
        options: Value<'d> = "options",
    }

    /// An option of a question
    struct Choice {
        label: Text<'d> = "label",
        description: Text<'d> = "description",
    }
}
