//! The messages of stream-json: real ones first, then the specification's.

use std::borrow::Cow;

use agentwire_protocol::{Json, Text};

use crate::json::{Value, wire};

wire! {
    /// `init`
    struct Init {
        session_id: Text<'d> = "session_id",
        model: Text<'d> = "model",
    }

    /// `message`
    struct Message {
        role: Cow<'d, str> = "role",
        content: Text<'d> = "content",
        delta: bool = "delta",
    }

    /// `tool_use`
    struct ToolUse {
        tool_name: Text<'d> = "tool_name",
        tool_id: Cow<'d, str> = "tool_id",
        parameters: Value<'d> = "parameters",
    }

    /// `tool_result`
    struct ToolResult {
        tool_id: Cow<'d, str> = "tool_id",
        status: Cow<'d, str> = "status",
        output: Json<'d> = "output",
        error: Failure<'d> = "error",
    }

    /// `error`: real ones have `severity` and are not terminal; the specification's have `error`.
    struct Error {
        severity: Cow<'d, str> = "severity",
        message: Text<'d> = "message",
        error: Failure<'d> = "error",
    }

    /// `result`
    struct Outcome {
        status: Cow<'d, str> = "status",
        error: Failure<'d> = "error",
        stats: Stats<'d> = "stats",
    }

    /// An error object. The specification says `code`, the program `type`.
    struct Failure {
        kind: Text<'d> = "type",
        code: Text<'d> = "code",
        message: Text<'d> = "message",
    }

    /// `stats`, of a run or of one model. The specification says `cache_tokens`, the program `cached`.
    struct Stats {
        total_tokens: u64 = "total_tokens",
        input_tokens: u64 = "input_tokens",
        output_tokens: u64 = "output_tokens",
        cached: u64 = "cached",
        cache_tokens: u64 = "cache_tokens",
        thought_tokens: u64 = "thought_tokens",
        duration_ms: u64 = "duration_ms",
        models: Value<'d> = "models",
    }

    /// `content`, the specification's
    struct Content {
        value: Text<'d> = "value",
    }

    /// `tool_call`, the specification's
    struct ToolCall {
        name: Text<'d> = "name",
        args: Value<'d> = "args",
    }
}
