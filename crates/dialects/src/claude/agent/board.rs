//! The board's events: the rows of the specification's table. The board says everything in a
//! `payload`, gives its tool calls no id, and has no word for the beginning and the good end of a
//! turn.

use agentwire_protocol::Text;
use agentwire_protocol::event::{
    FileChangeType, FileChanged, SessionEndReason, TextChunk, ToolCompleted, ToolStarted,
    TurnFailure,
};

use super::Translator;
use super::tools::{ToolCall, tool_kind};
use crate::claude::wire::{BoardLine, BoardPayload};
use crate::json::Value;
use crate::tape::{Agent, Out};

/// What of the board is open.
#[derive(Debug, Default)]
pub(super) struct Board {
    actions: u64,
    /// Tools that run: their name and the id we gave the call.
    running: Vec<(String, String)>,
    in_use: bool,
}

impl Board {
    pub(super) fn is_in_use(&self) -> bool {
        self.in_use
    }
}

/// The names of the board's lines; `error` is a name of others too.
pub(super) const TYPES: [&str; 7] =
    ["plan", "log", "diff", "action", "toolResult", "error", "cancelled"];

/// Whether this is a line of the board.
pub(in crate::claude) fn is_board(message: Value<'_>) -> bool {
    message.get("payload").is_some_and(Value::is_object)
        && message.get("type").is_some_and(|name| TYPES.iter().any(|known| name.is(known)))
}

impl Translator {
    pub(super) fn board(&mut self, name: &str, line: BoardLine<'_>, out: &mut Out<'_>) {
        let payload = line.payload.unwrap_or_default();
        self.board.in_use = true;
        self.ensure_turn(out);
        match name {
            "diff" => {
                let Some(file_path) = payload.file else { return };
                out.emit(FileChanged {
                    file_path,
                    change_type: FileChangeType::Modified,
                    diff: payload.diff,
                    before: None,
                    after: None,
                    moved_to: None,
                    tool_id: None,
                });
            }
            "action" => self.board_action(payload, out),
            "toolResult" => self.board_result(payload, out),
            "error" => {
                let error = payload.message.unwrap_or(Text::from("the session failed"));
                self.ledger.fail_turn(out, TurnFailure::Error, error.clone());
                out.end(SessionEndReason::Failed, Some(error));
            }
            "cancelled" => {
                self.ledger.fail_turn(out, TurnFailure::Interrupted, Text::from("cancelled"));
                out.end(SessionEndReason::Cancelled, None);
            }
            _ => {
                let Some(content) = payload.message.or(payload.line) else { return };
                out.emit(TextChunk { content, is_complete: true, block_id: None });
            }
        }
    }

    fn board_action(&mut self, payload: BoardPayload<'_>, out: &mut Out<'_>) {
        let Some(tool) = payload.tool else { return };
        self.board.actions += 1;
        let id = format!("tool_{}", self.board.actions);
        self.ledger.open_tool(&id, &Agent::main(), ToolCall::default());
        out.emit(ToolStarted {
            tool_id: Text::from(id.as_str()),
            tool_name: Text::from(&*tool),
            arguments: payload.args.filter(|args| args.is_object()).map(Value::json),
            kind: tool_kind(&tool),
            title: None,
            server: None,
        });
        self.board.running.push((tool.into_owned(), id));
    }

    /// The result belongs to the latest call of that tool.
    fn board_result(&mut self, payload: BoardPayload<'_>, out: &mut Out<'_>) {
        let tool = payload.tool.unwrap_or_default();
        let Some(at) = self.board.running.iter().rposition(|(name, _)| *name == tool) else {
            return;
        };
        let (_, id) = self.board.running.remove(at);
        if self.ledger.close_tool(&id).is_none() {
            return;
        }
        let success = payload.success != Some(false);
        out.emit(ToolCompleted {
            tool_id: Text::from(id),
            success,
            error: if success { None } else { payload.output.and_then(Value::to) },
            result: payload.output.map(Value::json),
            exit_code: None,
            duration_ms: None,
            structured: None,
        });
    }
}
