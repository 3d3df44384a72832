//! Turns: which prompt started one, how it ended, what it used.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::event::{
    SessionEndReason, Status, StatusChanged, TurnCompleted, TurnFailed, TurnFailure, TurnOrigin,
};
use agentwire_protocol::usage::ModelUsage;
use agentwire_protocol::{Json, MAIN_AGENT, Text, TokenUsage};

use super::Translator;
use crate::claude::wire::{Lifecycle, ModelTotals, Outcome, Usage};
use crate::json::Value;
use crate::ledger::{TurnInput, completed_turn, failed_turn};
use crate::tape::{Agent, Out};

/// How many prompts may wait.
const WAITING_LIMIT: usize = 4096;

/// Prompts that were sent and have not started a turn.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    waiting: VecDeque<SentPrompt>,
    /// Prompts that the agent took from its queue since the last turn.
    taken: Vec<SentPrompt>,
    /// A background task ended while no turn ran: the next turn is the agent's own.
    task_ended: bool,
}

#[derive(Debug)]
struct SentPrompt {
    /// The agent reports what becomes of prompts that have one.
    uuid: Option<String>,
    text: String,
}

impl Prompts {
    pub(super) fn sent(&mut self, uuid: Option<&str>, text: &str) {
        if self.waiting.len() < WAITING_LIMIT {
            let uuid = uuid.map(str::to_owned);
            self.waiting.push_back(SentPrompt { uuid, text: text.to_owned() });
        }
    }

    pub(super) fn task_ended(&mut self) {
        self.task_ended = true;
    }

    fn remove(&mut self, uuid: &str) -> Option<SentPrompt> {
        let at = self.waiting.iter().position(|sent| sent.uuid.as_deref() == Some(uuid))?;
        self.waiting.remove(at)
    }

    /// What the turn that starts now works on. Several prompts may become one turn
    /// (`real-e5-user-messages-queued-mid-turn-and-cancel-queued`).
    fn next(&mut self, named: &[Cow<'_, str>]) -> Option<TurnInput<'static>> {
        let mut prompts = std::mem::take(&mut self.taken);
        prompts.extend(named.iter().filter_map(|uuid| self.remove(uuid)));
        // Old versions do not report what becomes of prompts: the oldest is next.
        if prompts.is_empty() && !self.task_ended {
            prompts.extend(self.waiting.pop_front());
        }
        let (texts, ids): (Vec<String>, Vec<_>) =
            prompts.into_iter().map(|sent| (sent.text, sent.uuid)).unzip();
        let ids = ids.into_iter().flatten().map(Text::from).collect();
        (!texts.is_empty()).then(|| TurnInput { text: Text::from(texts.join("\n\n")), ids })
    }
}

/// The running totals of the process.
#[derive(Debug, Default)]
pub(super) struct Totals {
    /// The first totals include usage from before this process.
    resumed: bool,
    cost_usd: Option<f64>,
    models: BTreeMap<String, (TokenUsage, Option<f64>)>,
}

struct TurnUsage {
    usage: TokenUsage,
    models: Vec<ModelUsage>,
    cost_usd: Option<f64>,
}

impl Totals {
    pub(super) fn of_process(resumed: bool) -> Self {
        Self { resumed, ..Self::default() }
    }

    /// The difference from the last result, as the agent reports it or as we count.
    fn spent(&mut self, outcome: &Outcome<'_>) -> TurnUsage {
        let first_of_resumed = std::mem::take(&mut self.resumed);
        let totals = model_usages(outcome.model_usage);
        let told = outcome.since_last.filter(|models| models.is_object());
        let mut models = match told {
            Some(models) => model_usages(Some(models)),
            None if first_of_resumed => Vec::new(),
            None => totals.iter().map(|model| self.model_since(model)).collect(),
        };
        models.retain(|model| model.usage.total_tokens > 0 || model.cost_usd > Some(0.0));
        let earlier = self.cost_usd.unwrap_or(0.0);
        let total_cost_usd = outcome.total_cost_usd.filter(|cost| cost.is_finite());
        let cost_usd = match (total_cost_usd, told) {
            (Some(_), Some(_)) => Some(
                models.iter().filter_map(|model| model.cost_usd).fold(0.0, |sum, cost| sum + cost),
            ),
            (Some(_), None) if first_of_resumed => None,
            // A total that decreased has started over (`/clear`).
            (Some(total), None) if total < earlier => Some(total),
            (Some(total), None) => Some(total - earlier),
            (None, _) => None,
        };
        self.cost_usd = total_cost_usd.or(self.cost_usd);
        self.models =
            totals.into_iter().map(|model| (model.model, (model.usage, model.cost_usd))).collect();
        // `usage` leaves out what subagents used.
        let usage = match models.split_first() {
            Some((first, rest)) => {
                rest.iter().fold(first.usage, |sum, model| sum.plus(&model.usage))
            }
            None => outcome.usage.as_ref().map(usage).unwrap_or_default(),
        };
        TurnUsage { usage, models, cost_usd }
    }

    fn model_since(&self, now: &ModelUsage) -> ModelUsage {
        let Some((earlier, cost)) = self.models.get(&now.model) else { return now.clone() };
        let anew = now.usage.total_tokens < earlier.total_tokens;
        let before = cost.filter(|_| !anew).unwrap_or(0.0);
        ModelUsage {
            model: now.model.clone(),
            usage: now.usage.since(earlier),
            cost_usd: now.cost_usd.map(|cost| (cost - before).max(0.0)),
        }
    }
}

impl Translator {
    /// Starts a turn, unless one is running.
    pub(super) fn begin_turn(&mut self, named: &[Cow<'_, str>], out: &mut Out<'_>) {
        if self.ledger.turn_is_open() {
            return;
        }
        let prompt = self.prompts.next(named);
        let by_itself = std::mem::take(&mut self.prompts.task_ended) || !out.is_recording();
        let origin = match &prompt {
            None if by_itself => TurnOrigin::Agent,
            _ => TurnOrigin::Prompt,
        };
        self.interrupted = false;
        self.error_code = None;
        self.board.turn_is_others();
        self.ledger.start_turn(out, prompt, origin);
    }

    pub(super) fn ensure_turn(&mut self, out: &mut Out<'_>) {
        self.begin_turn(&[], out);
    }

    /// The process ended: prompts that never started a turn have failed.
    pub(super) fn fail_prompts(&mut self, reason: TurnFailure, out: &mut Out<'_>) {
        let prompts = std::mem::take(&mut self.prompts);
        for sent in prompts.taken.into_iter().chain(prompts.waiting) {
            let ids = sent.uuid.into_iter().map(Text::from).collect();
            let input = TurnInput { text: Text::from(sent.text), ids };
            self.ledger.start_turn(out, Some(input), TurnOrigin::Prompt);
            self.ledger.fail_turn(
                out,
                reason,
                Text::from("the agent ended before the turn started"),
            );
        }
    }

    /// Subagents in the background also speak between turns, and start none.
    pub(super) fn ensure_turn_of(&mut self, agent: &Agent<'_>, out: &mut Out<'_>) {
        if agent.parent.is_none() {
            self.ensure_turn(out);
        }
    }

    /// `command_lifecycle`: what becomes of a prompt. One that is taken while a turn runs joins that turn.
    pub(super) fn lifecycle(&mut self, line: Lifecycle<'_>, out: &mut Out<'_>) {
        let (Some(uuid), Some(state)) = (line.command_uuid, line.state) else { return };
        let status = StatusChanged::new(Status::Queue)
            .message(state.clone())
            .details(Json::of(&serde_json::json!({ "messageId": uuid })));
        out.emit(status);
        match &*state.decode() {
            "started" => {
                let Some(sent) = self.prompts.remove(&uuid) else { return };
                if self.ledger.turn_is_open() {
                    let details = Json::of(&serde_json::json!({ "messageId": uuid }));
                    let joined =
                        StatusChanged::new(Status::Prompted).message(Text::from(sent.text));
                    out.emit(joined.details(details));
                } else {
                    self.prompts.taken.push(sent);
                }
            }
            "cancelled" | "completed" => {
                self.prompts.remove(&uuid);
                self.prompts.taken.retain(|sent| sent.uuid.as_deref() != Some(&*uuid));
            }
            _ => {}
        }
    }

    pub(super) fn outcome(&mut self, outcome: Outcome<'_>, out: &mut Out<'_>) {
        self.ensure_turn(out);
        self.close_stream(MAIN_AGENT, out);
        self.cut_foreground_agents(out);
        if out.is_recording() {
            self.resolve_requests(out);
        }
        let spent = self.totals.spent(&outcome);
        let denials = outcome.denials.filter(|list| list.items().next().is_some());
        let denials = denials.map(Value::json);
        let Some(reason) = self.failure(&outcome) else {
            self.ending = None;
            return self.ledger.complete_turn(
                out,
                TurnCompleted {
                    duration_ms: outcome.duration_ms,
                    cost_usd: spent.cost_usd,
                    models: spent.models,
                    stop_reason: outcome.stop_reason,
                    result: outcome.result,
                    structured_output: outcome.structured_output,
                    denials,
                    ..completed_turn(spent.usage)
                },
            );
        };
        let error = match reason {
            TurnFailure::Interrupted => Text::from("the turn was interrupted"),
            _ => error_of(&outcome),
        };
        let ending = match reason {
            TurnFailure::Interrupted => SessionEndReason::Cancelled,
            _ => SessionEndReason::Failed,
        };
        self.ending = Some((ending, Some(error.to_string())));
        let error_type = outcome
            .api_error_type
            .or(self.error_code.take().map(Text::from))
            .or(outcome.subtype.filter(|subtype| subtype != "success").map(Text::new));
        self.ledger.fail_turn_with(
            out,
            TurnFailed {
                error_type,
                usage: Some(spent.usage),
                duration_ms: outcome.duration_ms,
                cost_usd: spent.cost_usd,
                models: spent.models,
                denials,
                ..failed_turn(reason, error)
            },
        );
    }

    /// A failed model call is reported as `success` with `is_error`, and a turn that a prompt cut off as
    /// `success` without it (`real-m6-priority-now`).
    fn failure(&self, outcome: &Outcome<'_>) -> Option<TurnFailure> {
        if outcome.terminal_reason.as_deref().is_some_and(|why| why.starts_with("aborted")) {
            return Some(TurnFailure::Interrupted);
        }
        let refused = outcome.stop_reason.as_ref().is_some_and(|reason| *reason == *"refusal");
        match outcome.subtype.as_deref() {
            Some("error_max_turns") => Some(TurnFailure::MaxTurns),
            Some("error_max_budget_usd") => Some(TurnFailure::Budget),
            Some("error_during_execution") if self.interrupted => Some(TurnFailure::Interrupted),
            Some(subtype) if subtype.starts_with("error") => Some(TurnFailure::Error),
            _ if outcome.is_error == Some(true) && refused => Some(TurnFailure::Refused),
            _ if outcome.is_error == Some(true) => Some(TurnFailure::Error),
            _ => None,
        }
    }
}

/// Leaves out diagnostics, which are internal to the agent.
fn error_of<'d>(outcome: &Outcome<'d>) -> Text<'d> {
    let errors = outcome.errors.iter().flatten();
    let shown: Vec<&str> =
        errors.map(|error| &**error).filter(|error| !error.starts_with("[ede_")).collect();
    if !shown.is_empty() {
        return Text::from(shown.join("\n"));
    }
    match (&outcome.result, &outcome.subtype) {
        (Some(result), _) if !result.is_empty() => result.clone(),
        (_, Some(subtype)) => Text::new(subtype.clone()),
        _ => Text::from("the turn failed"),
    }
}

pub(super) fn usage(usage: &Usage<'_>) -> TokenUsage {
    merged(&TokenUsage::default(), usage)
}

/// The usage so far, updated by a later count.
pub(super) fn merged(earlier: &TokenUsage, now: &Usage<'_>) -> TokenUsage {
    let thinking = now.details.as_ref().and_then(|details| details.thinking_tokens);
    total(TokenUsage {
        input_tokens: now.input_tokens.unwrap_or(earlier.input_tokens),
        output_tokens: now.output_tokens.unwrap_or(earlier.output_tokens),
        cached_tokens: now.cache_read.or(earlier.cached_tokens),
        cache_creation_tokens: now.cache_creation.or(earlier.cache_creation_tokens),
        reasoning_tokens: thinking.or(earlier.reasoning_tokens),
        total_tokens: 0,
    })
}

/// The tokens that a model call was given.
pub(super) fn context_used(usage: &TokenUsage) -> u64 {
    usage.total_tokens.saturating_sub(usage.output_tokens)
}

/// Cached input is counted in addition to the input.
fn total(usage: TokenUsage) -> TokenUsage {
    let parts = [
        Some(usage.input_tokens),
        Some(usage.output_tokens),
        usage.cached_tokens,
        usage.cache_creation_tokens,
    ];
    let total_tokens = parts.into_iter().flatten().fold(0, u64::saturating_add);
    TokenUsage { total_tokens, ..usage }
}

fn model_usages(models: Option<Value<'_>>) -> Vec<ModelUsage> {
    let fields = models.into_iter().flat_map(Value::fields);
    fields
        .filter_map(|(model, totals)| {
            let totals: ModelTotals<'_> = totals.to()?;
            let usage = total(TokenUsage {
                input_tokens: totals.input_tokens.unwrap_or(0),
                output_tokens: totals.output_tokens.unwrap_or(0),
                cached_tokens: totals.cache_read,
                cache_creation_tokens: totals.cache_creation,
                reasoning_tokens: totals.thinking_tokens,
                total_tokens: 0,
            });
            let cost_usd = totals.cost_usd.filter(|cost| cost.is_finite());
            Some(ModelUsage { model: model.into_owned(), usage, cost_usd })
        })
        .collect()
}
