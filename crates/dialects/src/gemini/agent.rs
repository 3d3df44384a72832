//! We drive Gemini: its lines become events.

use std::borrow::Cow;

use agentwire_protocol::event::{
    AgentInfo, ErrorEvent, FileChangeType, FileChanged, PlanEntry, PlanStatus, PlanUpdated,
    SessionEndReason, Status, StatusChanged, TextChunk, ToolCompleted, ToolFailed, ToolFailure,
    ToolKind, ToolStarted, TurnCompleted, TurnFailed, TurnFailure, TurnOrigin,
};
use agentwire_protocol::usage::ModelUsage;
use agentwire_protocol::{Call, Command, ErrorCode, GatewayError, Json, Text, TokenUsage};

use super::wire::{
    Content, Error, Failure, Init, Message, Outcome, Stats, ToolCall, ToolResult, ToolUse,
};
use crate::agent::{AgentTranslator, Exit};
use crate::diff;
use crate::json::Value;
use crate::ledger::{Ledger, completed_turn, failed_turn};
use crate::tape::{Action, Agent, Out, Signal};

const NAME: &str = "gemini with stream-json";

/// What is known of one session.
#[derive(Debug, Default)]
pub(super) struct Translator {
    ledger: Ledger<Option<Edit>, ()>,
    /// Text has come that no closing chunk followed: the wire has no word for its end.
    text_open: bool,
    /// Tool calls of the specification have no id.
    unnamed_tools: u64,
}

/// What an edit tool was asked to do; told as a changed file when it has been done.
#[derive(Debug)]
struct Edit {
    path: String,
    before: Option<String>,
    after: String,
}

impl AgentTranslator for Translator {
    fn on_line(&mut self, message: Value<'_>, out: &mut Out<'_>) {
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
                message.to().into_iter().for_each(|result| self.tool_result(result, out))
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
            Command::Prompt(prompt) if !prompt.images.is_empty() => {
                return Err(GatewayError::unsupported(NAME, "images in a prompt"));
            }
            // The prompt itself is the next process's stdin.
            Command::Prompt(prompt) => self.ledger.prompt_sent(&prompt.text),
            Command::Interrupt => out.act(Action::Signal(Signal::Interrupt)),
            Command::Stop => out.act(Action::Signal(Signal::Terminate)),
            // The next process is started with it.
            Command::Configure(change) if change.max_thinking_tokens.is_none() => {}
            Command::Configure(_) => {
                return Err(GatewayError::unsupported(NAME, "maxThinkingTokens"));
            }
            Command::Settle(answer) => {
                let message =
                    format!("{NAME} asks nothing, so there is no request {}", answer.request_id);
                return Err(GatewayError::new(ErrorCode::RequestNotFound, message));
            }
            Command::Query { method, .. } => {
                return Err(GatewayError::unsupported(NAME, &format!("the query {method}")));
            }
            Command::Rewind { .. } | Command::Start(_) | Command::Attach { .. } => {
                return Err(GatewayError::unsupported(
                    NAME,
                    &format!("the command {}", command.name()),
                ));
            }
        }
        out.reply(call, Ok(Json::checked("{}")));
        Ok(())
    }

    fn on_exit(&mut self, exit: Exit, out: &mut Out<'_>) {
        self.close_text(out);
        if !self.ledger.turn_is_open() {
            return;
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
                self.ledger.next_prompt();
                self.ledger.start_turn(out, Some(content), TurnOrigin::Prompt);
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
        self.ledger.open_tool(id, &Agent::main(), edit);
        out.emit(ToolStarted {
            tool_id: Text::from(id),
            kind: tool_kind(&name.decode()),
            tool_name: name,
            arguments: arguments.filter(|arguments| arguments.is_object()).map(Value::json),
            title: None,
            server: None,
        });
        if let Some(plan) = plan {
            out.emit(plan);
        }
    }

    fn tool_result(&mut self, result: ToolResult<'_>, out: &mut Out<'_>) {
        let Some(id) = result.tool_id else { return };
        let edit = self.ledger.close_tool(&id).and_then(|tool| tool.memo);
        let failure = result.error.unwrap_or_default();
        let tool_id = Text::from(&*id);
        let reason = failure.kind.as_ref().and_then(|kind| not_run(&kind.decode()));
        match (result.status.as_deref(), reason) {
            (Some("error"), Some(reason)) => out.emit(ToolFailed {
                tool_id,
                error: failure.message.or(failure.kind).unwrap_or(Text::from("the tool failed")),
                reason,
                result: result.output,
            }),
            (status, _) => {
                let success = status != Some("error");
                out.emit(ToolCompleted {
                    tool_id: tool_id.clone(),
                    success,
                    result: result.output,
                    error: if success { None } else { failure.message.or(failure.kind) },
                    exit_code: None,
                    duration_ms: None,
                    structured: None,
                });
                if let Some(edit) = edit.filter(|_| success) {
                    out.emit(changed(edit, tool_id));
                }
            }
        }
    }

    /// The specification's tool call is begin and end in one.
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
                out.emit(StatusChanged::new(Status::Warning).message(error.message));
            }
            (None, Some(failure)) => {
                self.close_text(out);
                self.fail(failure, None, out);
            }
            _ => {
                let message = error.message.unwrap_or(Text::from("an error without words"));
                out.emit(ErrorEvent::new(message));
            }
        }
    }

    fn outcome(&mut self, outcome: Outcome<'_>, out: &mut Out<'_>) {
        self.close_text(out);
        let stats = outcome.stats.unwrap_or_default();
        match outcome.status.as_deref() {
            Some("success") => {
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
                let error = Text::from("cancelled");
                self.ledger.fail_turn(out, TurnFailure::Interrupted, error);
                out.end(SessionEndReason::Cancelled, None);
            }
            _ => self.fail(outcome.error.unwrap_or_default(), Some(&stats), out),
        }
    }

    fn fail(&mut self, failure: Failure<'_>, stats: Option<&Stats<'_>>, out: &mut Out<'_>) {
        let error = failure.message.unwrap_or(Text::from("the turn failed"));
        let error_type = failure.kind.or(failure.code);
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
}

fn usage(stats: &Stats<'_>) -> TokenUsage {
    let input_tokens = stats.input_tokens.unwrap_or(0);
    let output_tokens = stats.output_tokens.unwrap_or(0);
    TokenUsage {
        input_tokens,
        output_tokens,
        cached_tokens: stats.cached.or(stats.cache_tokens),
        cache_creation_tokens: None,
        reasoning_tokens: stats.thought_tokens,
        total_tokens: stats.total_tokens.unwrap_or(input_tokens.saturating_add(output_tokens)),
    }
}

fn models(stats: &Stats<'_>) -> Vec<ModelUsage> {
    let models = stats.models.into_iter().flat_map(Value::fields);
    models
        .filter_map(|(model, stats)| {
            let usage = usage(&stats.to()?);
            Some(ModelUsage { model: model.into_owned(), usage, cost_usd: None })
        })
        .collect()
}

/// The errors by which a tool did not run at all.
fn not_run(kind: &str) -> Option<ToolFailure> {
    match kind {
        "policy_violation" => Some(ToolFailure::Denied),
        "tool_not_registered" | "invalid_tool_params" => Some(ToolFailure::Invalid),
        _ => None,
    }
}

fn edit(name: &str, arguments: Value<'_>) -> Option<Edit> {
    let path = arguments.get("file_path")?.string()?.into_owned();
    let text = |name| arguments.get(name).and_then(Value::string).map(Cow::into_owned);
    match name {
        "write_file" => Some(Edit { path, before: None, after: text("content")? }),
        "replace" => Some(Edit { path, before: text("old_string"), after: text("new_string")? }),
        _ => None,
    }
}

/// The wire does not tell whether `write_file` made the file: `modified` is true of both.
fn changed<'a>(edit: Edit, tool_id: Text<'a>) -> FileChanged<'a> {
    let (diff, after) = match edit.before {
        Some(before) => (Some(Text::from(diff::of_passage(&before, &edit.after))), None),
        None => (None, Some(Text::from(edit.after))),
    };
    FileChanged {
        file_path: Text::from(edit.path),
        change_type: FileChangeType::Modified,
        diff,
        before: None,
        after,
        moved_to: None,
        tool_id: Some(tool_id),
    }
}

fn plan(arguments: Value<'_>) -> Option<PlanUpdated<'_>> {
    let entries = arguments.get("todos")?.items().filter_map(|todo| {
        let status = todo.get("status").and_then(Value::string);
        Some(PlanEntry {
            content: todo.read("description")?,
            status: PlanStatus::from_word(status.as_deref().unwrap_or_default()),
            priority: None,
        })
    });
    Some(PlanUpdated { entries: entries.collect(), explanation: None })
}

pub(crate) fn tool_kind(name: &str) -> ToolKind {
    match name {
        "read_file" | "read_many_files" | "list_directory" | "read_background_output" => {
            ToolKind::Read
        }
        "write_file" | "replace" => ToolKind::Edit,
        "grep_search" | "glob" | "search_file_content" => ToolKind::Search,
        "run_shell_command" => ToolKind::Execute,
        "web_fetch" | "google_web_search" => ToolKind::Fetch,
        "write_todos" | "update_topic" | "save_memory" => ToolKind::Think,
        "invoke_agent" => ToolKind::Agent,
        "ask_user" => ToolKind::Question,
        "enter_plan_mode" | "exit_plan_mode" => ToolKind::SwitchMode,
        name if name.starts_with("mcp_") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}
