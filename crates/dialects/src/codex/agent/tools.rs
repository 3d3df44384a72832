//! Tool calls of both wires: each starts once and ends once.

use std::borrow::Cow;

use agentwire_protocol::Text;
use agentwire_protocol::event::{
    Status, StatusChanged, ToolCompleted, ToolFailed, ToolFailure, ToolStarted,
};

use super::Translator;
use super::call_effects::CallEffect;
use crate::json::Value;
use crate::tape::{Agent, Out};

#[derive(Debug, Default)]
pub(super) struct ToolState {
    /// The exact `changes` of a file change.
    pub(super) changes: Option<String>,
    pub(super) mcp: Option<McpCall>,
    /// The output so far, if it grows.
    pub(super) said: String,
    /// What its items say that it does, oldest first; empty in a recording.
    pub(super) effects: Vec<CallEffect>,
    /// A request about it was denied.
    pub(super) is_refused: bool,
    /// The message with which it was declined.
    pub(super) denial: Option<String>,
    /// Whether the specification's late command or query was reported.
    pub(super) titled: bool,
}

#[derive(Debug)]
pub(super) struct McpCall {
    pub(super) server: String,
    pub(super) tool: String,
    /// Its exact arguments, if they are an object.
    pub(super) arguments: Option<String>,
}

impl McpCall {
    /// Whether these are its arguments, regardless of formatting.
    pub(super) fn has_arguments(&self, arguments: Option<&str>) -> bool {
        let read = |json: Option<&str>| match json.map(serde_json::from_str) {
            None | Some(Ok(serde_json::Value::Null)) => Some(serde_json::json!({})),
            Some(read) => read.ok(),
        };
        let arguments = read(arguments);
        arguments.is_some() && arguments == read(self.arguments.as_deref())
    }
}

pub(super) enum ToolEnd<'a> {
    Completed(ToolCompleted<'a>),
    Failed(ToolFailure, Text<'a>),
}

impl Translator {
    /// Starts a call, unless it has started before.
    pub(super) fn start_tool(
        &mut self,
        out: &mut Out<'_>,
        agent: &Agent<'_>,
        started: ToolStarted<'_>,
        called: ToolState,
    ) {
        let id = started.tool_id.decode().into_owned();
        if !self.seen.has(&id) && self.seen.add(&id) && self.ledger.tools.open(&id, agent, called) {
            if agent.parent.is_none() {
                self.ledger.ensure_turn(out);
            }
            out.emit_as(agent, started);
        }
    }

    /// Ends a call. Returns `None` if it ended before or never started; then this is the end of a task that
    /// continued in the background (`real-app-interrupt-background-terminals`).
    pub(super) fn end_tool(
        &mut self,
        out: &mut Out<'_>,
        agent: &Agent<'_>,
        id: &str,
        end: ToolEnd<'_>,
    ) -> Option<ToolState> {
        let Some(mut tool) = self.ledger.tools.close(id) else {
            let message = Text::from(format!("{id} ended after its turn"));
            let details = match end {
                ToolEnd::Completed(completed) => {
                    if completed.success || completed.exit_code.is_some() {
                        out.ran(id, true);
                    }
                    completed.result
                }
                ToolEnd::Failed(..) => None,
            };
            out.emit_as(agent, StatusChanged::new(Status::Task).message(message).details(details));
            return None;
        };
        let tool_id = Text::from(id);
        let denial = tool.memo.denial.take().map(Text::from);
        match end {
            ToolEnd::Completed(completed) => {
                out.emit_as(&tool.agent, ToolCompleted { tool_id, ..completed });
            }
            ToolEnd::Failed(reason, error) => {
                let error = denial.filter(|_| reason == ToolFailure::Denied).unwrap_or(error);
                out.emit_as(&tool.agent, ToolFailed { tool_id, error, reason, result: None });
            }
        }
        Some(tool.memo)
    }
}

/// A completed call with only this field.
pub(super) fn completed<'a>(success: bool) -> ToolCompleted<'a> {
    ToolCompleted::new("", success)
}

pub(super) fn command_end<'a>(
    status: Option<&str>,
    exit_code: Option<i64>,
    result: Option<agentwire_protocol::Json<'a>>,
) -> ToolEnd<'a> {
    if status == Some("declined") {
        return ToolEnd::Failed(ToolFailure::Denied, Text::from("the command was declined"));
    }
    let success = exit_code.map_or(status != Some("failed"), |code| code == 0);
    let error = match exit_code {
        _ if success => None,
        Some(code) => Some(Text::from(format!("exit code {code}"))),
        None => Some(Text::from("the command failed")),
    };
    ToolEnd::Completed(ToolCompleted { exit_code, result, error, ..completed(success) })
}

/// The end of an MCP tool call. One that fails with a result did run and reports an error; one that Codex
/// refuses to run has only a message (`real-exec-mcp-approval-needed`).
pub(super) fn mcp_end<'a>(
    status: Option<&str>,
    result: Option<Value<'a>>,
    structured: &str,
    error: Option<Text<'a>>,
) -> ToolEnd<'a> {
    let content = result.map(|result| result.get("content").unwrap_or(result).json());
    let success = status != Some("failed") && error.is_none();
    if let Some(error) = error.as_ref().filter(|error| refused(&error.decode())) {
        return ToolEnd::Failed(ToolFailure::Denied, error.clone());
    }
    let error = match error {
        None if !success => {
            let text = result.and_then(first_text);
            Some(text.map_or(Text::from("the tool failed"), Text::new))
        }
        error => error,
    };
    let structured = result.and_then(|result| result.get(structured)).map(Value::json);
    ToolEnd::Completed(ToolCompleted { result: content, structured, error, ..completed(success) })
}

fn refused(error: &str) -> bool {
    error.contains("requires approval") || error.contains("rejected MCP tool call")
}

fn first_text(result: Value<'_>) -> Option<Cow<'_, str>> {
    result.get("content")?.items().find_map(|block| block.get("text")?.string())
}
