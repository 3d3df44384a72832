//! The messages of `codex exec --json`: real ones first, then the specification's.

use std::borrow::Cow;

use agentwire_protocol::Text;

use crate::json::{Value, wire};

wire! {
    /// Any line. The fields of an item are in `item`; in the specification they are next to `item_type`.
    struct Line {
        thread_id: Cow<'d, str> = "thread_id",
        item: Value<'d> = "item",
        item_type: Cow<'d, str> = "item_type",
        usage: Usage<'d> = "usage",
        error: Failure<'d> = "error",
        message: Cow<'d, str> = "message",
    }

    /// What a thread has used since it started.
    struct Usage {
        input_tokens: u64 = "input_tokens",
        cached_input_tokens: u64 = "cached_input_tokens",
        cache_write_input_tokens: u64 = "cache_write_input_tokens",
        output_tokens: u64 = "output_tokens",
        reasoning_output_tokens: u64 = "reasoning_output_tokens",
    }

    /// `error` of a turn or of an MCP call
    struct Failure {
        message: Text<'d> = "message",
    }

    struct Item {
        id: Cow<'d, str> = "id",
        kind: Cow<'d, str> = "type",
        status: Cow<'d, str> = "status",
        text: Value<'d> = "text",
        content: Value<'d> = "content",
        command: Value<'d> = "command",
        command_line: Text<'d> = "command_line",
        aggregated_output: Value<'d> = "aggregated_output",
        exit_code: i64 = "exit_code",
        changes: Value<'d> = "changes",
        server: Text<'d> = "server",
        tool: Text<'d> = "tool",
        arguments: Value<'d> = "arguments",
        result: Value<'d> = "result",
        error: Failure<'d> = "error",
        tool_name: Text<'d> = "tool_name",
        tool_input: Value<'d> = "tool_input",
        tool_result: Value<'d> = "tool_result",
        sender_thread_id: Cow<'d, str> = "sender_thread_id",
        receiver_thread_ids: Vec<Cow<'d, str>> = "receiver_thread_ids",
        prompt: Text<'d> = "prompt",
        agents_states: Value<'d> = "agents_states",
        query: Text<'d> = "query",
        items: Value<'d> = "items",
        message: Text<'d> = "message",
    }

    /// One file of a `file_change`
    struct Change {
        path: Text<'d> = "path",
        kind: Cow<'d, str> = "kind",
        before: Text<'d> = "before",
        after: Text<'d> = "after",
    }

    /// One entry of a `todo_list`
    struct Todo {
        text: Text<'d> = "text",
        completed: bool = "completed",
    }
}
