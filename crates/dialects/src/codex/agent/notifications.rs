//! Notifications of the app server.

use std::borrow::Cow;

use agentwire_protocol::event::{
    AgentFinished, AgentInfo, AgentOutcome, ErrorEvent, PlanEntry, PlanStatus, PlanUpdated, Status,
    StatusChanged, TurnCompleted, TurnFailed, TurnFailure, TurnOrigin, UsageReported,
};
use agentwire_protocol::{Json, JsonObject, Text, TokenUsage};

use super::super::app_wire::{Delta, Failure, Notification, Step, Thread, Tokens, Turn};
use super::text::{BlockKey, BlockKind};
use super::{Translator, pick};
use crate::json::Value;
use crate::ledger::{completed_turn, failed_turn};
use crate::tape::{Agent, Out};

impl Translator {
    pub(super) fn notification(&mut self, method: &str, params: Value<'_>, out: &mut Out<'_>) {
        if method.starts_with("item/") && self.delta(method, params, out) {
            return;
        }
        let Some(notice) = params.to::<Notification<'_>>() else { return };
        match method {
            "item/started" => return self.item(&notice, false, out),
            "item/completed" => return self.item(&notice, true, out),
            "turn/started" => return self.turn_started(&notice, out),
            "turn/completed" => return self.turn_completed(notice, out),
            "thread/started" => return self.thread_started(&notice, out),
            "thread/tokenUsage/updated" => return self.usage(&notice, out),
            "serverRequest/resolved" => return self.resolved(&notice, out),
            "thread/settings/updated" => return self.settings(&notice, out),
            _ => {}
        }
        let thread_id = notice.thread_id.clone();
        let thread_id = thread_id.as_deref();
        match method {
            "thread/status/changed" => {
                let thread = self.threads.mentioned(thread_id);
                if let Some(status) = notice.status.filter(|_| !thread.is_undecided()) {
                    thread.show(out);
                    out.emit_as(&thread.agent(), status_of(status));
                }
            }
            "turn/plan/updated" => {
                let agent = &self.shown(thread_id, out);
                let steps = notice.plan.into_iter().flat_map(Value::items);
                out.emit_as(
                    agent,
                    PlanUpdated {
                        entries: steps.filter_map(|step| entry(step.to()?)).collect(),
                        explanation: notice.explanation,
                    },
                );
            }
            "error" => {
                let failure = notice.error.and_then(Value::to::<Failure<'_>>).unwrap_or_default();
                let agent = &self.shown(thread_id, out);
                self.failure(agent, &failure, notice.will_retry, out);
            }
            _ => {
                if let Some(change) = status_changed(method, params, notice) {
                    let agent = &self.shown(thread_id, out);
                    out.emit_as(agent, change);
                }
            }
        }
    }

    /// The agent of the thread, reported as spawned if it was not yet.
    pub(super) fn shown(&mut self, thread: Option<&str>, out: &mut Out<'_>) -> Agent<'static> {
        let thread = self.threads.of(thread);
        thread.show(out);
        thread.owner()
    }

    /// The hot path: reads only the fields of a delta. Returns `false` if it is not a delta.
    fn delta(&mut self, method: &str, params: Value<'_>, out: &mut Out<'_>) -> bool {
        enum DeltaKind {
            Part(fn(&Delta<'_>) -> BlockKind),
            Output,
            Message,
            Stdin,
            Changes,
        }
        let what = match method {
            "item/agentMessage/delta" => DeltaKind::Part(|_| BlockKind::Text),
            "item/reasoning/summaryTextDelta" => {
                DeltaKind::Part(|delta| BlockKind::Summary(delta.summary_index.unwrap_or(0)))
            }
            "item/reasoning/textDelta" => {
                DeltaKind::Part(|delta| BlockKind::Content(delta.content_index.unwrap_or(0)))
            }
            "item/plan/delta" => DeltaKind::Part(|_| BlockKind::Plan),
            "item/commandExecution/outputDelta" | "item/fileChange/outputDelta" => {
                DeltaKind::Output
            }
            "item/mcpToolCall/progress" => DeltaKind::Message,
            "item/commandExecution/terminalInteraction" => DeltaKind::Stdin,
            "item/fileChange/patchUpdated" => DeltaKind::Changes,
            _ => return false,
        };
        let delta: Delta<'_> = params.to().unwrap_or_default();
        let Some(item) = delta.item_id.as_deref() else { return true };
        match what {
            DeltaKind::Part(part) => {
                let Some(text) = delta.delta.filter(|text| text.is_string()) else { return true };
                let text = text.json();
                let thread = self.threads.of(delta.thread_id.as_deref());
                thread.show(out);
                if !thread.is_sub() && !self.ledger.turn_is_open() {
                    thread.turn = delta.turn_id.as_deref().map(str::to_owned);
                    self.ledger.ensure_turn(out);
                }
                let key = BlockKey { item, part: part(&delta), named: true };
                self.blocks.delta(out, &thread.agent(), key, text.get());
            }
            DeltaKind::Output => self.progress(item, delta.delta.and_then(Value::to), None, out),
            DeltaKind::Message => self.progress(item, None, delta.message, out),
            DeltaKind::Stdin => self.progress(item, None, delta.stdin, out),
            DeltaKind::Changes => {
                if let Some(changes) = delta.changes {
                    self.rewrite(item, changes, out);
                }
                self.report_progress(item, None, Some(Text::from("the patch changed")), out);
            }
        }
        true
    }

    fn thread_started(&mut self, notice: &Notification<'_>, out: &mut Out<'_>) {
        let Some(thread) = notice.thread.and_then(Value::to::<Thread<'_>>) else { return };
        let Some(id) = thread.id.as_deref() else { return };
        if let Some(parent) = thread.parent_thread_id.as_deref() {
            let parent = self.threads.of(Some(parent)).owner();
            let child = self.threads.child(id, id, &parent);
            child.named(thread.agent_nickname);
            child.show(out);
            return;
        }
        let first = self.threads.main_id().is_none();
        let started = self.threads.root(id);
        started.named(thread.agent_nickname);
        started.show(out);
        // The response to `thread/start` has reported all this, but a recording may lack it.
        if first && out.is_recording() {
            out.ready(AgentInfo {
                native_session_id: thread.id.map(Text::new),
                agent_version: thread.cli_version,
                model: thread.model,
                working_directory: thread.cwd,
                ..AgentInfo::default()
            });
        }
    }

    fn turn_started(&mut self, notice: &Notification<'_>, out: &mut Out<'_>) {
        let turn = notice.turn.clone().unwrap_or_default();
        let id = turn.id.as_deref();
        let thread_id = notice.thread_id.as_deref();
        // A subagent's turn names the turn that it serves.
        let serves_itself = id.is_some() && turn.root_turn_id.as_deref() == id;
        let thread = match thread_id {
            Some(thread) if serves_itself => self.threads.root(thread),
            thread => self.threads.mentioned(thread),
        };
        thread.usage = TokenUsage::default();
        if thread.is_sub() {
            thread.turn = id.map(str::to_owned);
            thread.wake();
            if !thread.is_undecided() {
                thread.show(out);
                out.emit_as(&thread.agent(), StatusChanged::new(Status::Working));
            }
            return;
        }
        if self.ledger.turn_is_open() && thread.turn.as_deref() == id {
            return;
        }
        thread.turn = id.map(str::to_owned);
        let prompt = self.ledger.next_prompt();
        let origin = match prompt {
            None if !out.is_recording() => TurnOrigin::Agent,
            _ => TurnOrigin::Prompt,
        };
        self.ledger.start_turn(out, prompt, origin);
        self.turn_is_known(out);
    }

    fn turn_completed(&mut self, notice: Notification<'_>, out: &mut Out<'_>) {
        let Some(turn) = notice.turn else { return };
        let thread = self.threads.of(notice.thread_id.as_deref());
        if thread.turn.is_some() {
            thread.show(out);
        }
        let agent = &thread.owner();
        let usage = std::mem::take(&mut thread.usage);
        let failed = turn.error.is_some() || turn.status.as_deref() == Some("failed");
        let interrupted = turn.status.as_deref() == Some("interrupted");
        self.blocks.close(out, Some(agent));
        self.settle_resolved(agent, out);
        if !interrupted {
            self.all_ran(agent, out);
        }
        if agent.parent.is_some() {
            self.ledger.close_agent(out, &agent.id.decode(), "its turn ended without its result");
            let outcome = match (interrupted, failed) {
                (true, _) => AgentOutcome::Cancelled,
                (_, true) => AgentOutcome::Failed,
                _ => AgentOutcome::Completed,
            };
            let ended = AgentFinished {
                result: answer(&turn).or(turn.error.and_then(|error| error.message)),
                usage: Some(usage),
                duration_ms: turn.duration_ms,
                ..AgentFinished::new(outcome)
            };
            return self.threads.of(notice.thread_id.as_deref()).finish(out, ended);
        }
        let duration_ms = turn.duration_ms;
        if interrupted || failed {
            let failure = turn.error.unwrap_or_default();
            let error_type = code(&failure).map(Text::new);
            let reason = match error_type.as_ref().map(Text::decode).as_deref() {
                _ if interrupted => TurnFailure::Interrupted,
                Some("cyberPolicy") => TurnFailure::Refused,
                _ => TurnFailure::Error,
            };
            let words = if interrupted { "interrupted" } else { "the turn failed" };
            let error = failure.message.unwrap_or(Text::from(words));
            let usage = Some(usage).filter(|usage| *usage != TokenUsage::default());
            let turn = TurnFailed { error_type, usage, duration_ms, ..failed_turn(reason, error) };
            self.ledger.fail_turn_with(out, turn);
        } else {
            let turn = TurnCompleted {
                duration_ms,
                result: answer(&turn),
                structured_output: self.structured_output(),
                ..completed_turn(usage)
            };
            self.ledger.complete_turn(out, turn);
        }
        self.last_error = None;
        self.turn_has_ended();
        if interrupted {
            self.clean_up(out);
        }
        self.next_turn(out);
    }

    fn usage(&mut self, notice: &Notification<'_>, out: &mut Out<'_>) {
        let Some(usage) = &notice.token_usage else { return };
        let thread = self.threads.of(notice.thread_id.as_deref());
        thread.show(out);
        let (last, total) = (usage.last.as_ref().map(tokens), usage.total.as_ref().map(tokens));
        // A report may arrive twice, and after a compaction `last` is the size of the context
        // (`real-app-compact`), so the increase of the total counts. A resumed thread first repeats the
        // report of a turn that has ended.
        let before = thread.total;
        thread.total = total.or(before);
        let new = match (before, total) {
            (Some(before), Some(total)) => Some(total.since(&before)),
            _ => last.or(total),
        };
        if let Some(new) = new.filter(|_| notice.turn_id.as_deref() == thread.turn.as_deref()) {
            thread.usage = thread.usage.plus(&new);
            self.last_error = None;
        }
        out.emit_as(
            &thread.agent(),
            UsageReported {
                usage: last,
                total,
                context_used: usage.last.as_ref().map(context),
                context_size: usage.model_context_window,
                ..UsageReported::default()
            },
        );
    }

    fn failure(
        &mut self,
        agent: &Agent<'_>,
        failure: &Failure<'_>,
        will_retry: Option<bool>,
        out: &mut Out<'_>,
    ) {
        let message = failure.message.clone().unwrap_or(Text::from("an error without a message"));
        if agent.parent.is_none() {
            self.last_error = Some(message.to_string());
        }
        let code = code(failure).map(Text::new);
        out.emit_as(agent, ErrorEvent { message, code, will_retry, details: details(failure) });
    }
}

/// The name of an error: a string, or the only key of an object.
fn code<'d>(failure: &Failure<'d>) -> Option<Cow<'d, str>> {
    let info = failure.info?;
    info.string().or_else(|| info.fields().next().map(|(name, _)| name))
}

/// What an error contains besides its message and its name.
fn details(failure: &Failure<'_>) -> Option<Json<'static>> {
    let mut object = JsonObject::new();
    let known = [
        ("codexErrorInfo", failure.info.filter(|info| info.is_object())),
        ("additionalDetails", failure.additional_details),
        ("misalignment", failure.misalignment),
    ];
    for (name, value) in known {
        if let Some(value) = value {
            object.add(name, &value.json());
        }
    }
    object.unless_empty()
}

/// The last message, if the end of the turn repeats it.
fn answer<'d>(turn: &Turn<'d>) -> Option<Text<'d>> {
    let items = turn.items.into_iter().flat_map(Value::items);
    items
        .filter(|item| item.get("type").is_some_and(|kind| kind.is("agentMessage")))
        .last()?
        .read("text")
}

/// How full the context is. If it is full, this is its size, though nothing was used
/// (`edge-app-context-full`).
fn context(tokens: &Tokens<'_>) -> u64 {
    tokens.total_tokens.unwrap_or(self::tokens(tokens).total_tokens)
}

fn tokens(tokens: &Tokens<'_>) -> TokenUsage {
    let told = tokens.input_tokens.is_some() || tokens.output_tokens.is_some();
    let input_tokens = tokens.input_tokens.unwrap_or(0);
    let output_tokens = tokens.output_tokens.unwrap_or(0);
    TokenUsage {
        input_tokens,
        output_tokens,
        cached_tokens: tokens.cached_input_tokens,
        cache_creation_tokens: tokens.cache_write_input_tokens,
        reasoning_tokens: tokens.reasoning_output_tokens,
        total_tokens: tokens
            .total_tokens
            .filter(|_| !told)
            .unwrap_or(input_tokens.saturating_add(output_tokens)),
    }
}

fn entry(step: Step<'_>) -> Option<PlanEntry<'_>> {
    let status = PlanStatus::from_word(step.status.as_deref().unwrap_or_default());
    Some(PlanEntry { content: step.step?, status, priority: None })
}

fn status_of(status: Value<'_>) -> StatusChanged<'_> {
    let word = status.get("type").and_then(Value::string);
    let flags = status.get("activeFlags").filter(|flags| flags.items().next().is_some());
    let change = match word.as_deref() {
        Some("active") if flags.is_some() => Status::Waiting,
        Some("active") => Status::Working,
        // Also `systemError`: an error has reported it, and the turn has failed.
        _ => Status::Idle,
    };
    let words = word.filter(|word| !matches!(&**word, "active" | "idle")).map(Text::new);
    StatusChanged::new(change).message(words).details(flags.map(Value::json))
}

/// Notifications that only report a change of state.
fn status_changed<'d>(
    method: &str,
    params: Value<'d>,
    notice: Notification<'d>,
) -> Option<StatusChanged<'d>> {
    let change = StatusChanged::new;
    Some(match method {
        "turn/diff/updated" => change(Status::Diff).message(notice.diff),
        "account/rateLimits/updated" => change(Status::RateLimit).details(notice.rate_limits),
        "configWarning" | "deprecationNotice" => {
            change(Status::Warning).message(notice.summary).details(notice.details)
        }
        "warning" | "guardianWarning" => change(Status::Warning).message(notice.message),
        "mcpServer/startupStatus/updated" => {
            let details = pick(params, &["status", "error", "failureReason"]);
            change(Status::McpServer).message(notice.name).details(details)
        }
        "mcpServer/oauthLogin/completed" => {
            let details = pick(params, &["success", "error"]);
            change(Status::McpServer).message(notice.name).details(details)
        }
        "thread/name/updated" => change(Status::Title).message(notice.thread_name),
        "model/rerouted" => {
            let details = pick(params, &["fromModel", "reason"]);
            change(Status::Model).message(notice.to_model).details(details)
        }
        "thread/compacted" => change(Status::Compacted),
        "hook/started" | "hook/completed" => {
            let run = notice.run?;
            change(Status::Hook).message(run.read("eventName")).details(run.json())
        }
        "item/autoApprovalReview/started" | "item/autoApprovalReview/completed" => {
            let message = notice.review.and_then(|review| review.read("rationale"));
            let details = pick(params, &["targetItemId", "review"]);
            change(Status::Notice).message(message).details(details)
        }
        "skills/changed" | "app/list/updated" => change(Status::Commands),
        "account/updated"
        | "account/login/completed"
        | "modelProvider/authRecoveryStarted"
        | "modelProvider/authRecoveryCompleted" => {
            change(Status::Account).message(Text::from(method.to_owned())).details(params.json())
        }
        "thread/queue/changed" => change(Status::Queue).details(params.json()),
        _ => return None,
    })
}
