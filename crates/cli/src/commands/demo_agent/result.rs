//! The end of a turn, and its result line.

use serde_json::{Value, json};

use super::agent::{Agent, Halt, InterruptCause};
use super::json::JsonFields as _;
use super::usage::{Models, model_usage, sum};

/// How a turn ended.
pub(super) enum Ending {
    Done,
    /// A hook blocked the prompt.
    Blocked(String),
    Cut(InterruptCause),
    Failed(String),
    MaxTurns,
    Budget,
    /// A hook stopped the turn.
    Hook(String),
}

impl Agent {
    /// Writes the rest and the result.
    pub(super) fn end_turn(&mut self, ending: &Ending) -> Result<(), Halt> {
        self.open_turn()?;
        match ending {
            Ending::Done | Ending::MaxTurns | Ending::Budget => {}
            Ending::Blocked(reason) => {
                let what = format!("UserPromptSubmit operation blocked by hook:\n{reason}");
                self.inform(&what, "hook_blocked")?;
            }
            Ending::Hook(reason) => {
                self.inform(&format!("Stopped by hook: {reason}"), "hook_stopped")?;
            }
            Ending::Cut(cut) => self.report_interrupt(*cut)?,
            Ending::Failed(message) => self.say_failed(message)?,
        }
        // Ends everything that is still open.
        self.cut_message()?;
        let Some(turn) = self.turn.as_ref() else { return Ok(()) };
        let spent = turn.models.clone();
        let line = self.result(ending, &spent);
        self.emit(line)?;
        self.results += 1;
        self.turn = None;
        self.remember(|memory| memory.spend(&spent));
        Ok(())
    }

    fn report_interrupt(&mut self, cut: InterruptCause) -> Result<(), Halt> {
        self.cut_block()?;
        let in_tool = self.turn.as_ref().is_some_and(|turn| turn.cut_in_tool);
        match cut {
            InterruptCause::User | InterruptCause::End if in_tool => {
                self.add_user_text("[Request interrupted by user for tool use]", false)
            }
            InterruptCause::User | InterruptCause::End => {
                self.add_user_text("[Request interrupted by user]", false)
            }
            InterruptCause::Prompt => Ok(()),
        }
    }

    /// Like a failed call of the model.
    fn say_failed(&mut self, message: &str) -> Result<(), Halt> {
        self.cut_message()?;
        let id = self.session.ids.uuid().to_string();
        self.emit_said(json!({
            "type": "assistant",
            "message": {
                "id": id,
                "type": "message",
                "role": "assistant",
                "model": "<synthetic>",
                "content": [{ "type": "text", "text": message }],
                "stop_reason": "stop_sequence",
                "stop_sequence": "",
                "usage": { "input_tokens": 0, "output_tokens": 0 },
            },
            "error": "server_error",
            "is_api_error_message": true,
            "api_error_status": 500,
            "api_error_type": "api_error",
        }))
    }

    fn result(&mut self, ending: &Ending, spent: &Models) -> Value {
        let said = std::mem::take(&mut self.active.current().last_text);
        let in_tool = self.turn.as_ref().is_some_and(|turn| turn.cut_in_tool);
        let aborted = if in_tool { "aborted_tools" } else { "aborted_streaming" };
        let (subtype, reason) = match ending {
            Ending::Done | Ending::Blocked(_) => ("success", "completed"),
            Ending::Hook(_) => ("success", "hook_stopped"),
            Ending::Failed(_) => ("success", "api_error"),
            Ending::Cut(InterruptCause::Prompt) => ("success", aborted),
            Ending::Cut(InterruptCause::User | InterruptCause::End) => {
                ("error_during_execution", aborted)
            }
            Ending::MaxTurns => ("error_max_turns", "max_turns"),
            Ending::Budget => ("error_max_budget_usd", "budget_exhausted"),
        };
        let mut line = json!({
            "type": "result",
            "subtype": subtype,
            "total_cost_usd": self.cost_usd(),
            "usage": sum(spent).to_json(),
            "modelUsage": model_usage(&self.spent()),
            "model_usage_since_last_result": model_usage(spent),
            "terminal_reason": reason,
            "result_index": self.results,
            "queued_turn_count": self.prompts.len(),
        });
        let mut put = |key: &str, value: Value| line.set(key, value);
        let (most_turns, budget) = (self.flags.max_turns, self.flags.max_budget_usd);
        let is_error = match ending {
            Ending::Done | Ending::Hook(_) | Ending::Cut(InterruptCause::Prompt) => {
                let structured = self.turn.as_ref().and_then(|turn| turn.structured.clone());
                let text = structured.as_ref().map_or(said, Value::to_string);
                put("result", json!(text));
                put("api_error_status", Value::Null);
                if let Some(structured) = structured {
                    put("structured_output", structured);
                }
                false
            }
            Ending::Blocked(text) => {
                put("result", json!(text));
                false
            }
            Ending::Failed(text) => {
                put("result", json!(text));
                put("api_error_status", json!(500));
                put("api_error_type", json!("api_error"));
                true
            }
            Ending::Cut(InterruptCause::User | InterruptCause::End) => {
                put("errors", json!(["[ede_diagnostic] the turn was interrupted"]));
                true
            }
            Ending::MaxTurns => {
                let most = most_turns.unwrap_or_default();
                put("errors", json!([format!("Reached maximum number of turns ({most})")]));
                true
            }
            Ending::Budget => {
                let budget = budget.unwrap_or_default();
                put("errors", json!([format!("Reached maximum budget (${budget})")]));
                true
            }
        };
        put("is_error", json!(is_error));
        self.failed = is_error;
        if let Some(turn) = &self.turn {
            let elapsed = u64::try_from(turn.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
            put("duration_ms", json!(elapsed));
            put("duration_api_ms", json!(elapsed));
            let blocked = matches!(ending, Ending::Blocked(_));
            put(
                "num_turns",
                json!(if blocked || turn.is_context { 0 } else { 1 + turn.lines_to_model }),
            );
            put("permission_denials", json!(turn.denials));
            put("stop_reason", json!(turn.stop_reason));
            if let Some(uuid) = &turn.uuid {
                put("user_message_uuid", json!(uuid));
                put("user_message_uuids", json!([uuid]));
            }
        }
        line
    }
}
