//! Events of the board, from the table in the specification. The board puts everything in a `payload`,
//! gives its tool calls no id, and has no message for the start or the successful end of a turn.

use std::collections::VecDeque;

use agentwire_protocol::Text;
use agentwire_protocol::event::{
    FileChangeType, FileChanged, SessionEndReason, TextChunk, ToolCompleted, ToolStarted,
    TurnFailure,
};

use super::Translator;
use super::tools::{ToolState, tool_kind};
use crate::claude::wire::{BoardLine, BoardPayload};
use crate::json::Value;
use crate::tape::{Agent, Out};

/// How many calls may run at once; beyond that, the oldest are forgotten.
const LIMIT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Board {
    /// How many calls were given an id.
    calls: u64,
    /// Running tools, oldest first: the name, and the id that we gave the call.
    running: VecDeque<(String, String)>,
    /// The running turn is the board's.
    has_turn: bool,
    /// The board reported how the session ended.
    ended: bool,
}

impl Board {
    pub(super) fn has_turn(&self) -> bool {
        self.has_turn
    }

    /// A turn starts. It is not the board's, unless the board itself reports it next.
    pub(super) fn turn_is_others(&mut self) {
        self.has_turn = false;
    }

    /// More work has arrived.
    pub(super) fn reopen(&mut self) {
        self.ended = false;
    }

    /// Another process may follow. Its calls get other ids.
    pub(super) fn process_ended(&mut self) {
        *self = Self { calls: self.calls, ..Self::default() };
    }
}

/// The types of the board's lines. Others use `error` too.
pub(super) const TYPES: [&str; 7] =
    ["plan", "log", "diff", "action", "toolResult", "error", "cancelled"];

pub(in crate::claude) fn is_board(message: Value<'_>) -> bool {
    message.get("payload").is_some_and(Value::is_object)
        && message.get("type").is_some_and(|name| TYPES.iter().any(|known| name.is(known)))
}

impl Translator {
    /// A line that lacks what its type requires reports nothing and starts nothing.
    pub(super) fn board(&mut self, name: &str, line: BoardLine<'_>, out: &mut Out<'_>) {
        if self.board.ended {
            return;
        }
        let payload = line.payload.unwrap_or_default();
        match name {
            "diff" => {
                let Some(file_path) = payload.file else { return };
                self.board_turn(out);
                let changed = FileChanged::new(file_path, FileChangeType::Modified);
                out.emit(FileChanged { diff: payload.diff, ..changed });
            }
            "action" => {
                let Some(tool) = payload.tool else { return };
                let id = self.board_call(&tool, payload.args, out);
                if self.board.running.len() >= LIMIT {
                    self.board.running.pop_front();
                }
                self.board.running.push_back((tool.into_owned(), id));
            }
            "toolResult" => self.board_result(payload, out),
            "error" => {
                let error = payload.message.unwrap_or(Text::from("the session failed"));
                self.board_ends(SessionEndReason::Failed, Some(error.to_string()));
                self.board_turn(out);
                self.ledger.fail_turn(out, TurnFailure::Error, error);
            }
            "cancelled" => {
                self.board_ends(SessionEndReason::Cancelled, None);
                self.board_turn(out);
                self.ledger.fail_turn(out, TurnFailure::Interrupted, Text::from("cancelled"));
            }
            _ => {
                let Some(content) = payload.message.or(payload.line) else { return };
                self.board_turn(out);
                out.emit(TextChunk { content, is_complete: true, block_id: None });
            }
        }
    }

    /// Later lines start no turn.
    fn board_ends(&mut self, reason: SessionEndReason, error: Option<String>) {
        self.board.ended = true;
        self.ending = Some((reason, error));
    }

    fn board_turn(&mut self, out: &mut Out<'_>) {
        if !self.ledger.turn_is_open() {
            self.ensure_turn(out);
            self.board.has_turn = true;
        }
    }

    /// Opens a call and returns the id made for it.
    fn board_call(&mut self, tool: &str, args: Option<Value<'_>>, out: &mut Out<'_>) -> String {
        self.board_turn(out);
        let id = loop {
            self.board.calls += 1;
            let id = format!("tool_{}", self.board.calls);
            if self.mark_reported(&id) {
                break id;
            }
        };
        self.ledger.tools.open(&id, &Agent::main(), ToolState::default());
        out.emit(ToolStarted {
            arguments: args.filter(|args| args.is_object()).map(Value::json),
            ..ToolStarted::new(id.as_str(), tool, tool_kind(tool))
        });
        id
    }

    /// The result belongs to the oldest running call of that tool. If none is running, the call was not
    /// reported and is reported now.
    fn board_result(&mut self, payload: BoardPayload<'_>, out: &mut Out<'_>) {
        let Some(tool) = payload.tool else { return };
        let id = self.board_running(&tool).unwrap_or_else(|| self.board_call(&tool, None, out));
        self.ledger.tools.close(&id);
        let success = payload.success != Some(false);
        out.emit(ToolCompleted {
            error: if success { None } else { payload.output.and_then(Value::to) },
            result: payload.output.map(Value::json),
            ..ToolCompleted::new(id, success)
        });
    }

    /// The oldest running call of that tool. Calls that were closed by the end of their turn are forgotten.
    fn board_running(&mut self, tool: &str) -> Option<String> {
        loop {
            let at = self.board.running.iter().position(|(name, _)| name == tool)?;
            let (_, id) = self.board.running.remove(at)?;
            if self.ledger.tools.get(&id).is_some() {
                return Some(id);
            }
        }
    }
}
