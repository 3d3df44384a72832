//! Lines of `codex exec --json`.

use std::borrow::Cow;

use agentwire_protocol::event::{
    AgentInfo, ErrorEvent, PlanEntry, PlanStatus, PlanUpdated, Status, StatusChanged,
    TurnCompleted, TurnFailure, TurnOrigin, UsageReported,
};
use agentwire_protocol::{Call, Command, Configure, GatewayError, Json, Text, TokenUsage};

use super::super::exec_wire::{Item, Line, Todo, Usage};
use super::super::policy;
use super::text::{BlockKey, BlockKind};
use super::{Driver, Translator};
use crate::agent::{refused_command, report_change};
use crate::images;
use crate::json::Value;
use crate::ledger::{completed_turn, failed_turn};
use crate::tape::{Action, Agent, Out, Signal};

/// The state of the runs so far.
#[derive(Debug, Default)]
pub(super) struct Exec {
    /// Counts the processes, because item ids start over in each.
    runs: u64,
    /// The specification's items have no id: how many there were, and the open ones by type.
    pub(super) unnamed: u64,
    pub(super) open: Vec<(String, String)>,
    /// The thread's usage at the end of its last turn, once known.
    used: Option<TokenUsage>,
    pub(super) is_running: bool,
    /// The process has reported its turn.
    pub(super) begun: bool,
    /// The next process is for a prompt that was interrupted before.
    pub(super) stops_next: bool,
    /// The thread is older than the session: its earlier usage is unknown.
    resumed: bool,
}

impl Exec {
    pub(super) fn new(resumed: bool) -> Self {
        Self { resumed, ..Self::default() }
    }

    pub(super) fn end(&mut self) {
        self.open.clear();
        self.is_running = false;
        self.begun = false;
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    Started,
    Updated,
    Completed,
}

impl Translator {
    pub(super) fn exec_line(&mut self, kind: &str, message: Value<'_>, out: &mut Out<'_>) {
        let Some(line) = message.to::<Line<'_>>() else { return };
        self.exec.begun |= kind.starts_with("turn.") || kind.starts_with("item.");
        match kind {
            "thread.started" => self.exec_thread(line.thread_id.as_deref(), out),
            "turn.started" => {
                self.last_error = None;
                self.ending = None;
                let prompt = self.ledger.next_prompt();
                self.ledger.start_turn(out, prompt, TurnOrigin::Prompt);
            }
            "turn.completed" => self.exec_completed(&line.usage.unwrap_or_default(), out),
            "turn.failed" => {
                let error = line.error.unwrap_or_default().message;
                let error = error.unwrap_or(Text::from("the turn failed"));
                self.blocks.close(out, None);
                let turn = failed_turn(TurnFailure::Error, error.clone());
                self.ledger.fail_turn_with(out, turn);
                self.last_error = None;
                self.ending = Some(error.to_string());
            }
            "error" => self.exec_error(line.message, out),
            "item.started" => self.exec_item(Phase::Started, &line, message, out),
            "item.updated" => self.exec_item(Phase::Updated, &line, message, out),
            "item.completed" => self.exec_item(Phase::Completed, &line, message, out),
            _ => {}
        }
    }

    fn exec_thread(&mut self, id: Option<&str>, out: &mut Out<'_>) {
        let Some(id) = id else { return };
        self.exec.runs += 1;
        out.ready(AgentInfo { native_session_id: Some(Text::from(id)), ..AgentInfo::default() });
        if self.threads.main_id() != Some(id) {
            self.exec.used = None;
            self.threads.main().id = id.to_owned();
        }
        // A name that is not found silently opens a new thread (`exec-resume-sess-id`).
        if let Some(error) = self.mistaken(id, None).filter(|_| !out.is_recording()) {
            let code = Some(Text::from("resumeFailed"));
            out.emit(ErrorEvent { code, ..ErrorEvent::new(error.as_str()) });
            self.last_error = Some(error);
            out.act(Action::Signal(Signal::Terminate));
            return;
        }
        self.continue_thread(id.to_owned());
    }

    fn exec_completed(&mut self, usage: &Usage<'_>, out: &mut Out<'_>) {
        let total = total(usage);
        let before = self.exec.used.replace(total);
        self.blocks.close(out, None);
        let usage = match before {
            Some(before) => total.since(&before),
            None if !self.exec.resumed => total,
            // This turn's share of it is unknown.
            None => {
                out.emit(UsageReported { total: Some(total), ..UsageReported::default() });
                TokenUsage::default()
            }
        };
        let structured_output = self.structured_output();
        self.ledger
            .complete_turn(out, TurnCompleted { structured_output, ..completed_turn(usage) });
        self.last_error = None;
        self.ending = None;
    }

    /// An error is not the end: most are retries, and the end of a turn is reported by itself.
    fn exec_error(&mut self, message: Option<Cow<'_, str>>, out: &mut Out<'_>) {
        let message = message.unwrap_or(Cow::Borrowed("an error without a message"));
        let will_retry = message.starts_with("Reconnecting...").then_some(true);
        out.emit(ErrorEvent { will_retry, ..ErrorEvent::new(&*message) });
        self.last_error = Some(message.into_owned());
    }

    fn exec_item(&mut self, phase: Phase, line: &Line<'_>, message: Value<'_>, out: &mut Out<'_>) {
        let value = line.item.unwrap_or(message);
        let Some(item) = value.to::<Item<'_>>() else { return };
        let kind = match line.item {
            Some(_) => item.kind.clone(),
            None => line.item_type.clone(),
        };
        let Some(kind) = kind else { return };
        match &*kind {
            "agent_message" => self.exec_text(phase, &kind, &item, BlockKind::Text, out),
            "reasoning" => self.exec_text(phase, &kind, &item, BlockKind::Reasoning, out),
            "todo_list" => {
                if let Some(items) = item.items.filter(|items| items.is_array()) {
                    out.emit(PlanUpdated {
                        entries: items.items().filter_map(|todo| entry(todo.to()?)).collect(),
                        explanation: None,
                    });
                }
            }
            "error" => {
                if let Some(message) = item.message {
                    out.emit(StatusChanged::new(Status::Warning).message(message));
                }
            }
            "command_execution" | "file_change" | "mcp_tool_call" | "collab_tool_call"
            | "web_search" => self.exec_tool(phase, &kind, value, &item, out),
            _ => {}
        }
    }

    fn exec_text(
        &mut self,
        phase: Phase,
        kind: &str,
        item: &Item<'_>,
        part: BlockKind,
        out: &mut Out<'_>,
    ) {
        let id = item.id.as_ref().map(|id| self.exec_id(id));
        let key = BlockKey { item: id.as_deref().unwrap_or(kind), part, named: id.is_some() };
        let whole = item.text.or(item.content).filter(|text| text.is_string()).map(Value::json);
        let whole = whole.as_ref().map(Json::get);
        if phase != Phase::Started || whole.is_some() {
            self.ledger.ensure_turn(out);
        }
        match (phase, whole) {
            (Phase::Completed, whole) => {
                self.last_error = None;
                self.blocks.finish(out, &Agent::main(), key, whole);
                if part == BlockKind::Text && self.config.output_format.is_some() {
                    self.answer = whole.map(str::to_owned);
                }
            }
            (_, Some(whole)) => self.blocks.grow(out, &Agent::main(), key, whole),
            (_, None) => {}
        }
    }

    /// Items are numbered from the start in each process, so the number of the run is added in later ones.
    pub(super) fn exec_id<'i>(&self, id: &'i str) -> Cow<'i, str> {
        match self.exec.runs {
            0 | 1 => Cow::Borrowed(id),
            run => Cow::Owned(format!("{id}.{run}")),
        }
    }

    pub(super) fn exec_command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        match command {
            // The prompt itself is the next process's stdin.
            Command::Prompt(prompt) => {
                images::check(prompt)?;
                self.ledger.prompt_sent(prompt);
            }
            Command::Interrupt { cancel_queued } => {
                if *cancel_queued {
                    // The first prompt belongs to the process until it has reported its turn.
                    let kept = usize::from(self.exec.is_running && !self.exec.begun);
                    self.ledger.cancel_prompts(kept, out);
                }
                let is_over = self.exec.begun && !self.ledger.turn_is_open();
                if self.exec.is_running && !is_over {
                    self.stopping = true;
                } else {
                    self.exec.stops_next = self.ledger.has_prompts();
                }
                out.act(Action::Signal(Signal::Interrupt));
            }
            // SIGTERM would leave commands running that have no sandbox.
            Command::Stop | Command::Finish => {
                self.stopping = true;
                out.act(Action::Signal(Signal::Interrupt));
            }
            // The next process is started with it.
            Command::Configure(change) => {
                check(self.driver, change)?;
                let model = change.model.as_ref().and_then(Option::as_ref);
                report_change(change, model.or(self.first_model.as_ref()).map(String::as_str), out);
            }
            // If it was interrupted, the prompt after it was not.
            Command::Cancel { message_id } => {
                self.exec.stops_next &= !self.ledger.cancel_prompt(message_id, out)?;
            }
            Command::Edit { message_id, text } => self.ledger.edit_prompt(message_id, text)?,
            Command::Settle(_)
            | Command::Queue
            | Command::Query { .. }
            | Command::Rewind { .. }
            | Command::Start(_)
            | Command::Attach { .. } => return Err(refused_command(self.driver.name(), command)),
        }
        out.reply(call, Ok(Json::EMPTY));
        Ok(())
    }
}

/// Refuses a change that the driver does not support.
pub(super) fn check(driver: Driver, change: &Configure) -> Result<(), GatewayError> {
    if change.max_thinking_tokens.flatten().is_some() {
        return Err(driver.unsupported("maxThinkingTokens"));
    }
    policy::mode(driver, change.approval_mode, change.permission_mode.as_deref()).map(drop)
}

fn total(usage: &Usage<'_>) -> TokenUsage {
    let input_tokens = usage.input_tokens.unwrap_or(0);
    let output_tokens = usage.output_tokens.unwrap_or(0);
    TokenUsage {
        input_tokens,
        output_tokens,
        cached_tokens: usage.cached_input_tokens,
        cache_creation_tokens: usage.cache_write_input_tokens,
        reasoning_tokens: usage.reasoning_output_tokens,
        total_tokens: input_tokens.saturating_add(output_tokens),
    }
}

/// The wire does not report which step is in progress.
fn entry(todo: Todo<'_>) -> Option<PlanEntry<'_>> {
    let status = match todo.completed {
        Some(true) => PlanStatus::Completed,
        _ => PlanStatus::Pending,
    };
    Some(PlanEntry { content: todo.text?, status, priority: None })
}
