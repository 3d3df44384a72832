//! Drives Gemini: turns its lines into events.

mod stats;
mod tools;

use std::borrow::Cow;

use agentwire_protocol::command::Delivery;
use agentwire_protocol::event::{
    AgentFinished, AgentInfo, AgentOutcome, ErrorEvent, SessionEndReason, Status, StatusChanged,
    TextChunk, ToolCompleted, ToolFailed, ToolFailure, ToolStarted, TurnCompleted, TurnFailed,
    TurnFailure, TurnOrigin,
};
use agentwire_protocol::{Call, Command, GatewayError, Json, MAIN_AGENT, Prompt, Text};

pub(crate) use self::stats::api_error;
use self::stats::{models, usage};
use self::tools::{Called, changed, edit, not_run, plan, spawned};
pub(crate) use self::tools::{SPAWN, tool_kind};
use super::launch::approval_mode;
use super::wire::{
    Content, Error, Failure, Init, Message, Outcome, Stats, ToolCall, ToolResult, ToolUse,
};
use crate::agent::{AgentTranslator, Exit, Setup, refused_command, report_change};
use crate::images;
use crate::json::Value;
use crate::ledger::{Ledger, TurnInput, completed_turn, failed_turn};
use crate::recent_ids::RecentIds;
use crate::tape::{Action, Agent, Out, Signal};

const NAME: &str = "gemini with stream-json";

/// The error of a run that ends because Gemini is not signed in.
pub(super) const NOT_SIGNED_IN: &str = "gemini is not signed in";

#[derive(Debug, Default)]
pub(super) struct Translator {
    ledger: Ledger<Called, ()>,
    /// Text arrived and no closing chunk has followed yet. The wire does not mark the end of text.
    text_open: bool,
    started_tools: RecentIds,
    /// The specification's tool calls have no id, so they are counted.
    unnamed_tools: u64,
    /// The last error of the turn, for a failed `result` without its own.
    last_error: Option<LastError>,
    /// The message with which Gemini stopped the turn because the model repeats itself.
    loop_stop: Option<String>,
    first_model: Option<String>,
    is_running: bool,
    /// Whether this process has started the turn of its prompt.
    has_begun: bool,
}

/// An error that was reported before the turn's end.
#[derive(Debug)]
struct LastError {
    message: String,
    kind: Option<String>,
    /// The turn fails with it, whether or not a `result` says so.
    is_end: bool,
}

impl Translator {
    pub(super) fn new(setup: &Setup) -> Self {
        Self { first_model: setup.config.model.clone(), ..Self::default() }
    }
}

impl AgentTranslator for Translator {
    fn on_start(&mut self, _out: &mut Out<'_>) {
        self.is_running = true;
        self.has_begun = false;
        self.last_error = None;
        self.loop_stop = None;
    }

    fn on_line(&mut self, message: Value<'_>, out: &mut Out<'_>) {
        self.has_begun |= self.ledger.turn_is_open();
        let Some(name) = message.get("type").and_then(Value::string) else { return };
        match &*name {
            "init" => message.to().into_iter().for_each(|init| ready(init, out)),
            "message" => message.to().into_iter().for_each(|message| self.message(message, out)),
            "content" => message.to().into_iter().for_each(|content: Content<'_>| {
                if let Some(value) = content.value {
                    self.text(value, out);
                }
            }),
            "tool_use" => message.to().into_iter().for_each(|tool| self.tool_use(tool, out)),
            "tool_result" => {
                message.to().into_iter().for_each(|result| self.tool_result(result, out));
            }
            "tool_call" => message.to().into_iter().for_each(|call| self.tool_call(call, out)),
            "error" => message.to().into_iter().for_each(|error| self.error(error, out)),
            "retry" => out.emit(StatusChanged::new(Status::Retrying)),
            "result" => message.to().into_iter().for_each(|outcome| self.outcome(outcome, out)),
            _ => {}
        }
    }

    fn on_command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        match command {
            Command::Prompt(Prompt { delivery: Some(Delivery::Steer), .. }) => {
                return Err(GatewayError::unsupported(NAME, "delivery steer"));
            }
            // The prompt itself is the next process's stdin.
            Command::Prompt(prompt) => {
                images::check(prompt)?;
                if prompt.delivery == Some(Delivery::Now) && self.ledger.turn_is_open() {
                    out.act(Action::Signal(Signal::Interrupt));
                }
                self.ledger.prompt_sent(prompt);
            }
            Command::Interrupt { cancel_queued } => {
                if *cancel_queued {
                    // The first prompt belongs to the process until its turn has started.
                    let has_begun = self.has_begun || self.ledger.turn_is_open();
                    self.ledger.cancel_prompts(usize::from(self.is_running && !has_begun), out);
                }
                out.act(Action::Signal(Signal::Interrupt));
            }
            Command::Stop | Command::Finish => out.act(Action::Signal(Signal::Terminate)),
            // The next process is started with it.
            Command::Configure(change) if change.max_thinking_tokens.flatten().is_none() => {
                approval_mode(change.permission_mode.as_deref(), change.approval_mode)?;
                let model = change.model.as_ref().and_then(Option::as_ref);
                report_change(change, model.or(self.first_model.as_ref()).map(String::as_str), out);
            }
            Command::Configure(_) => {
                return Err(GatewayError::unsupported(NAME, "maxThinkingTokens"));
            }
            Command::Cancel { message_id } => {
                self.ledger.cancel_prompt(message_id, out)?;
            }
            Command::Edit { message_id, text } => self.ledger.edit_prompt(message_id, text)?,
            Command::Settle(_)
            | Command::Queue
            | Command::Query { .. }
            | Command::Rewind { .. }
            | Command::Start(_)
            | Command::Attach { .. } => return Err(refused_command(NAME, command)),
        }
        out.reply(call, Ok(Json::EMPTY));
        Ok(())
    }

    fn on_exit(&mut self, exit: Exit, out: &mut Out<'_>) {
        self.is_running = false;
        self.close_text(out);
        self.end_agents(out);
        if !self.ledger.turn_is_open() {
            return self.fail_unstarted(exit, out);
        }
        if self.last_error.as_ref().is_some_and(|error| error.is_end) {
            return self.fail(Failure::default(), None, out);
        }
        // A run that a signal cut off has no result and exits 0.
        let (failure, reason, error) = match exit {
            Exit::Code(0) | Exit::Signal(_) => {
                (TurnFailure::Interrupted, SessionEndReason::Cancelled, "the run was interrupted")
            }
            Exit::Code(_) | Exit::Unknown => {
                (TurnFailure::Died, SessionEndReason::Failed, "the output ended before the result")
            }
        };
        self.ledger.fail_turn(out, failure, Text::from(error));
        out.end(reason, Some(Text::from(error)));
    }
}

fn ready(init: Init<'_>, out: &mut Out<'_>) {
    out.ready(AgentInfo {
        native_session_id: init.session_id,
        model: init.model,
        ..AgentInfo::default()
    });
}

impl Translator {
    fn message(&mut self, message: Message<'_>, out: &mut Out<'_>) {
        let Some(content) = message.content else { return };
        match message.role.as_deref() {
            Some("user") => {
                self.last_error = None;
                // The repeated prompt also names the files of images, so use the one that was sent.
                let prompt = self.ledger.next_prompt().unwrap_or_else(|| TurnInput::from(content));
                self.ledger.start_turn(out, Some(prompt), TurnOrigin::Prompt);
            }
            Some("assistant") => {
                self.text(content, out);
                if message.delta != Some(true) {
                    self.close_text(out);
                }
            }
            _ => {}
        }
    }

    fn text(&mut self, content: Text<'_>, out: &mut Out<'_>) {
        self.ledger.ensure_turn(out);
        self.text_open = true;
        out.emit(TextChunk { content, is_complete: false, block_id: None });
    }

    fn close_text(&mut self, out: &mut Out<'_>) {
        if std::mem::take(&mut self.text_open) {
            out.emit(TextChunk { content: Text::from(""), is_complete: true, block_id: None });
        }
    }

    fn tool_use(&mut self, tool: ToolUse<'_>, out: &mut Out<'_>) {
        let (Some(id), Some(name)) = (tool.tool_id, tool.tool_name) else { return };
        self.start_tool(&id, name, tool.parameters, out);
    }

    fn start_tool(
        &mut self,
        id: &str,
        name: Text<'_>,
        arguments: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        self.ledger.ensure_turn(out);
        self.close_text(out);
        let edit = arguments.and_then(|arguments| edit(&name.decode(), arguments));
        let plan = (name == *"write_todos").then(|| arguments.and_then(plan)).flatten();
        if !self.started_tools.add(id) {
            return;
        }
        let spawned = (name == *SPAWN).then(|| spawned(arguments));
        let called = Called { edit, spawns: spawned.is_some() };
        self.ledger.tools.open(id, &Agent::main(), called);
        let kind = tool_kind(&name.decode());
        out.emit(ToolStarted {
            arguments: arguments.filter(|arguments| arguments.is_object()).map(Value::json),
            ..ToolStarted::new(id, name, kind)
        });
        if let Some(plan) = plan {
            out.emit(plan);
        }
        if let Some(spawned) = spawned {
            out.emit_as(&Agent::sub(id, MAIN_AGENT), spawned);
        }
    }

    fn tool_result(&mut self, result: ToolResult<'_>, out: &mut Out<'_>) {
        let Some(id) = result.tool_id else { return };
        let Some(tool) = self.ledger.tools.close(&id) else { return };
        let failure = result.error.unwrap_or_default();
        let tool_id = Text::from(&*id);
        let reason = failure.kind.as_ref().and_then(|kind| not_run(&kind.decode()));
        if tool.memo.spawns {
            let outcome = match (result.status.as_deref(), reason) {
                (Some("error"), Some(ToolFailure::Denied)) => AgentOutcome::Cancelled,
                (Some("error"), _) => AgentOutcome::Failed,
                _ => AgentOutcome::Completed,
            };
            let text = result.output.as_ref().and_then(|output| output.read::<String>().ok());
            let finished =
                AgentFinished { result: text.map(Text::from), ..AgentFinished::new(outcome) };
            out.emit_as(&Agent::sub(&*id, MAIN_AGENT), finished);
        }
        match (result.status.as_deref(), reason) {
            (Some("error"), Some(reason)) => out.emit(ToolFailed {
                tool_id,
                result: result.output.filter(|output| {
                    output.read::<String>().ok().as_deref()
                        != failure.message.as_ref().map(Text::decode).as_deref()
                }),
                error: failure.message.or(failure.kind).unwrap_or(Text::from("the tool failed")),
                reason,
            }),
            (status, _) => {
                let success = status != Some("error");
                let output = result.output.clone();
                out.emit(ToolCompleted {
                    result: result.output,
                    error: if success { None } else { failure.message.or(failure.kind) },
                    ..ToolCompleted::new(tool_id.clone(), success)
                });
                if let Some(edit) = tool.memo.edit.filter(|_| success) {
                    let output = output.and_then(|output| output.read::<String>().ok());
                    out.emit(changed(edit, output.as_deref(), tool_id));
                }
            }
        }
    }

    /// The specification's tool call is start and end in one.
    fn tool_call(&mut self, call: ToolCall<'_>, out: &mut Out<'_>) {
        let Some(name) = call.name else { return };
        self.unnamed_tools += 1;
        let id = format!("tool_{}", self.unnamed_tools);
        self.start_tool(&id, name, call.args, out);
        let status = Some(Cow::Borrowed("success"));
        self.tool_result(
            ToolResult { tool_id: Some(Cow::Owned(id)), status, ..ToolResult::default() },
            out,
        );
    }

    fn error(&mut self, error: Error<'_>, out: &mut Out<'_>) {
        match (error.severity.as_deref(), error.error) {
            (Some("warning"), _) => {
                let is_stop = |text: &String| text.starts_with("Loop detected");
                let text = error.message.as_ref().map(Text::to_string).filter(is_stop);
                self.loop_stop = text.or(self.loop_stop.take());
                out.emit(StatusChanged::new(Status::Warning).message(error.message));
            }
            // The specification's error: a `result` with the usage follows, or the process ends.
            (None, Some(failure)) => {
                self.ledger.ensure_turn(out);
                self.close_text(out);
                let code = failure.kind.or(failure.code);
                self.report_error(failure.message, code, true, out);
            }
            _ => self.report_error(error.message, None, false, out),
        }
    }

    fn report_error(
        &mut self,
        message: Option<Text<'_>>,
        code: Option<Text<'_>>,
        is_end: bool,
        out: &mut Out<'_>,
    ) {
        let message = message.unwrap_or(Text::from("an error without a message"));
        let kind = code.as_ref().map(Text::to_string);
        self.last_error = Some(LastError { message: message.to_string(), kind, is_end });
        out.emit(ErrorEvent { code, ..ErrorEvent::new(message) });
    }

    /// Ends the subagents of a turn that has ended.
    fn end_agents(&mut self, out: &mut Out<'_>) {
        let calls = self.ledger.tools.iter().filter(|call| call.memo.spawns);
        for call in calls {
            out.emit_as(
                &Agent::sub(&*call.id, MAIN_AGENT),
                AgentFinished::new(AgentOutcome::Cancelled),
            );
        }
    }

    fn outcome(&mut self, outcome: Outcome<'_>, out: &mut Out<'_>) {
        self.close_text(out);
        self.end_agents(out);
        let stats = outcome.stats.unwrap_or_default();
        match outcome.status.as_deref() {
            // Gemini calls a turn that it stopped itself a success (fixture real-loop), though over ACP the
            // turn took too many requests. It stores nothing of the response.
            Some("success") if self.loop_stop.is_some() => {
                let error = self.loop_stop.take().unwrap_or_default();
                self.last_error = None;
                self.ledger.fail_turn_with(
                    out,
                    TurnFailed {
                        usage: Some(usage(&stats)),
                        duration_ms: stats.duration_ms,
                        models: models(&stats),
                        ..failed_turn(TurnFailure::MaxTurns, Text::from(error.as_str()))
                    },
                );
                out.end(SessionEndReason::Failed, Some(Text::from(error)));
            }
            Some("success") => {
                self.last_error = None;
                self.ledger.complete_turn(
                    out,
                    TurnCompleted {
                        duration_ms: stats.duration_ms,
                        models: models(&stats),
                        ..completed_turn(usage(&stats))
                    },
                );
                out.end(SessionEndReason::Completed, None);
            }
            Some("cancelled") => {
                self.last_error = None;
                let error = Text::from("cancelled");
                self.ledger.fail_turn(out, TurnFailure::Interrupted, error);
                out.end(SessionEndReason::Cancelled, None);
            }
            _ => self.fail(outcome.error.unwrap_or_default(), Some(&stats), out),
        }
    }

    fn fail(&mut self, failure: Failure<'_>, stats: Option<&Stats<'_>>, out: &mut Out<'_>) {
        let (last, last_kind) = match self.last_error.take() {
            Some(last) => (Some(Text::from(last.message)), last.kind.map(Text::from)),
            None => (None, None),
        };
        let error = failure.message.or(last).unwrap_or(Text::from("the turn failed"));
        let told = api_error(&error.decode());
        let (error, status) = told.map_or((error, None), |told| (told.0.into(), told.1));
        let own_kind = failure.kind.or(failure.code).or(last_kind);
        let error_type = status.map(Text::from).or(own_kind);
        let limited = error_type.as_ref().is_some_and(|kind| *kind == *"FatalTurnLimitedError");
        let reason = if limited { TurnFailure::MaxTurns } else { TurnFailure::Error };
        self.ledger.fail_turn_with(
            out,
            TurnFailed {
                error_type,
                usage: stats.map(usage),
                duration_ms: stats.and_then(|stats| stats.duration_ms),
                models: stats.map(models).unwrap_or_default(),
                ..failed_turn(reason, error.clone())
            },
        );
        out.end(SessionEndReason::Failed, Some(error));
    }

    /// Fails the prompt of a process that ended before it reported anything about it.
    fn fail_unstarted(&mut self, exit: Exit, out: &mut Out<'_>) {
        if std::mem::replace(&mut self.has_begun, true) {
            return;
        }
        let Some(prompt) = self.ledger.next_prompt() else { return };
        self.ledger.start_turn(out, Some(prompt), TurnOrigin::Prompt);
        let (reason, why) = match exit {
            Exit::Code(41) => (TurnFailure::Error, NOT_SIGNED_IN),
            Exit::Code(42) => {
                (TurnFailure::Error, "gemini rejected the prompt or the session to resume")
            }
            Exit::Code(44) => (TurnFailure::Error, "gemini could not start its sandbox"),
            Exit::Code(52) => (TurnFailure::Error, "gemini rejected its settings"),
            Exit::Code(55) => (TurnFailure::Error, "gemini does not trust the folder"),
            Exit::Code(_) | Exit::Signal(_) | Exit::Unknown => {
                (TurnFailure::Died, "gemini ended before the turn started")
            }
        };
        self.ledger.fail_turn(out, reason, Text::from(why));
    }
}
