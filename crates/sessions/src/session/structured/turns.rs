//! The turn of a session with a schema: it ends with a matching answer, or it fails.

use std::collections::VecDeque;

use agentwire_dialects::tape::{Agent, Draft};
use agentwire_protocol::command::Delivery;
use agentwire_protocol::event::{Status, StatusChanged, TurnCompleted, TurnFailed, TurnFailure};
use agentwire_protocol::usage::plus_cost;
use agentwire_protocol::{Call, Command, EventKind, GatewayError, Json, Prompt, Text};
use uuid::Uuid;

use super::super::actor::Actor;
use super::super::breach::Breach;
use super::super::callers::NOBODY;
use super::super::commands::taken;
use super::super::core::{Core, Effect};
use super::super::pending_prompt::{PendingPrompt, check_room};
use super::answer::{AnswerCheck, Check, CheckResult};
use super::{Checking, FAILED, FirstAnswerUsage, Stage, Structured, WAITING_BYTES};

/// The result of checking an answer; `None` if the check was given up.
pub(in super::super) struct CheckedAnswer(Option<CheckResult>);

impl Core {
    /// Records what the agent sends. Drops an event that only says that the agent starts or ends a part of
    /// the turn.
    pub(in super::super) fn form<'d>(&mut self, mut draft: Draft<'d>) -> Option<Draft<'d>> {
        let is_turn = matches!(
            draft.kind,
            EventKind::TurnStarted(_) | EventKind::TurnCompleted(_) | EventKind::TurnFailed(_)
        );
        if is_turn && self.checks_answer() {
            let error = "the agent continued while its answer was being checked";
            self.give_up_answer(TurnFailure::Error, error);
        }
        let Some(structured) = &mut self.structured else { return Some(draft) };
        let is_main = draft.agent.parent.is_none();
        match &mut draft.kind {
            EventKind::TextChunk(text) if is_main => structured.add_text(&text.content.decode()),
            EventKind::ToolStarted(_) if is_main => structured.forget(),
            EventKind::TurnStarted(turn) => {
                structured.forget();
                if let Some(spent) = structured.begins_again() {
                    structured.merged += 1;
                    structured.stage = Stage::Again(spent);
                    return self.carry_line(draft);
                }
                turn.turn_number = turn.turn_number.saturating_sub(structured.merged);
            }
            EventKind::TurnCompleted(turn) => {
                turn.turn_number = turn.turn_number.saturating_sub(structured.merged);
                structured.end(turn);
                // Accepted or not, the agent keeps the answer.
                self.state.has_answer = true;
                let check =
                    structured.check_answer(turn.result.as_ref().map(Text::decode).as_deref());
                return match check {
                    AnswerCheck::Done(judged) => self.answer_judged(draft, judged),
                    AnswerCheck::Large(check) => self.hold_answer(draft, check),
                };
            }
            EventKind::TurnFailed(turn) => {
                turn.turn_number = turn.turn_number.saturating_sub(structured.merged);
                structured.fail(turn);
                structured.stage = Stage::First;
            }
            _ => {}
        }
        Some(draft)
    }

    /// Ends the turn according to its answer, or has the agent asked again.
    fn answer_judged<'d>(
        &mut self,
        mut draft: Draft<'d>,
        judged: CheckResult,
    ) -> Option<Draft<'d>> {
        let cut = cut_by(self.breach.as_ref(), self.cut());
        let (Some(structured), EventKind::TurnCompleted(turn)) =
            (&mut self.structured, &mut draft.kind)
        else {
            return Some(draft);
        };
        let error = match judged {
            Ok(answer) => {
                turn.result = Some(Text::from(answer.get().to_owned()));
                turn.structured_output = Some(answer);
                structured.stage = Stage::First;
                return Some(draft);
            }
            Err(error) => error,
        };
        match cut {
            // A turn that was cut off or broke a rule fails for that reason.
            Some((reason, message)) => {
                structured.stage = Stage::First;
                draft.kind = unanswered(turn, reason, message).into();
            }
            None if matches!(structured.stage, Stage::First) => {
                return self.refuse_answer(draft, error);
            }
            None => {
                structured.stage = Stage::First;
                let message = format!(
                    "no answer matched the output format; the last answer was rejected: {error}"
                );
                let failed = unanswered(turn, TurnFailure::Error, message);
                let error_type = Some(Text::fixed(FAILED));
                draft.kind = TurnFailed { error_type, ..failed }.into();
            }
        }
        Some(draft)
    }

    /// Holds the end of the turn until its answer is checked. The agent's line is reported immediately.
    fn hold_answer<'d>(&mut self, draft: Draft<'d>, check: Check) -> Option<Draft<'d>> {
        let (Some(structured), EventKind::TurnCompleted(turn)) = (&mut self.structured, draft.kind)
        else {
            return None;
        };
        let turn = Box::new((*turn).into_owned());
        structured.checking = Some(Checking::Runs { turn, outcome: check.start() });
        let message = Text::fixed("the answer is being checked");
        let kind = StatusChanged::new(Status::Working).message(message).into();
        self.record(Draft { agent: Agent::main(), kind, native: draft.native });
        None
    }

    /// Whether the end of the turn waits until its answer is checked.
    pub(in super::super) fn checks_answer(&self) -> bool {
        let checking = self.structured.as_ref().and_then(|structured| structured.checking.as_ref());
        matches!(checking, Some(Checking::Runs { .. }))
    }

    /// Waits until the answer is checked, or the result is no longer needed.
    pub(in super::super) async fn checked(&mut self) -> CheckedAnswer {
        match self.structured.as_mut().and_then(|structured| structured.checking.as_mut()) {
            None => std::future::pending().await,
            Some(Checking::Dropped) => CheckedAnswer(None),
            Some(Checking::Runs { outcome, .. }) => {
                let lost = |_| Err("it could not be checked".to_owned());
                CheckedAnswer(Some(outcome.await.unwrap_or_else(lost)))
            }
        }
    }

    /// The turn continues: the agent will be asked again. The event that carries the agent's line also
    /// reports the new prompt.
    fn refuse_answer<'d>(&mut self, draft: Draft<'d>, error: String) -> Option<Draft<'d>> {
        let (Some(structured), EventKind::TurnCompleted(turn)) =
            (&mut self.structured, &draft.kind)
        else {
            return Some(draft);
        };
        let spent = FirstAnswerUsage {
            turn_number: turn.turn_number,
            usage: turn.usage,
            cost_usd: turn.cost_usd,
            duration_ms: turn.duration_ms,
            models: turn.models.clone(),
        };
        // The second answer is another model call, and limits must see what the first one used.
        let running = &mut self.state.running;
        running.steps += 1;
        // The end of a turn includes everything that was reported while it ran.
        if turn.usage.total_tokens > running.usage.total_tokens {
            running.usage = turn.usage;
        }
        if let Some(cost) = turn.cost_usd {
            let before = self.state.record.summary.cost_usd.unwrap_or(0.0);
            let total = plus_cost(before, cost);
            running.total_cost = Some(running.total_cost.map_or(total, |told| told.max(total)));
        }
        let details = serde_json::json!({ "prompt": structured.retry(&error) });
        let message = format!("the answer was not accepted: {error}; the agent is asked once more");
        structured.stage = Stage::Refused { spent: Box::new(spent), error };
        let status = StatusChanged::new(Status::Notice).message(Text::from(message));
        let kind = status.details(Json::of(&details)).into();
        self.record(Draft { agent: Agent::main(), kind, native: draft.native });
        None
    }

    /// Reports the line of an event that is not reported itself.
    fn carry_line<'d>(&mut self, draft: Draft<'d>) -> Option<Draft<'d>> {
        if draft.native.is_some() {
            let kind = StatusChanged::new(Status::Working).into();
            self.record(Draft { agent: Agent::main(), kind, native: draft.native });
        }
        None
    }

    /// The agent will not be asked again, so the turn has failed.
    pub(in super::super) fn give_up_answer(&mut self, reason: TurnFailure, error: &str) {
        let Some(structured) = &mut self.structured else { return };
        if let Some(Checking::Runs { turn, .. }) =
            structured.checking.take_if(|checking| matches!(checking, Checking::Runs { .. }))
        {
            structured.checking = Some(Checking::Dropped);
            structured.stage = Stage::First;
            return self.emit(unanswered(&turn, reason, error.to_owned()));
        }
        let spent = match std::mem::replace(&mut structured.stage, Stage::First) {
            Stage::Refused { spent, .. } | Stage::Asked(spent) => spent,
            other @ (Stage::First | Stage::Again(_)) => {
                structured.stage = other;
                return;
            }
        };
        let failed = TurnFailed {
            usage: Some(spent.usage),
            cost_usd: spent.cost_usd,
            duration_ms: spent.duration_ms,
            models: spent.models,
            ..TurnFailed::new(spent.turn_number, reason, Text::from(error.to_owned()))
        };
        self.emit(failed);
    }
}

impl Structured {
    /// If the turn that starts is the rest of another one, returns what that one used.
    fn begins_again(&mut self) -> Option<Box<FirstAnswerUsage>> {
        match std::mem::replace(&mut self.stage, Stage::First) {
            Stage::Asked(spent) => Some(spent),
            other @ (Stage::First | Stage::Refused { .. } | Stage::Again(_)) => {
                self.stage = other;
                None
            }
        }
    }

    /// Adds what the first part of the turn used.
    fn end(&self, turn: &mut TurnCompleted<'_>) {
        let Stage::Again(spent) = &self.stage else { return };
        let all = spent.plus(turn.usage, turn.cost_usd, turn.duration_ms, &turn.models);
        turn.turn_number = all.turn_number;
        turn.usage = all.usage;
        turn.cost_usd = all.cost_usd;
        turn.duration_ms = all.duration_ms;
        turn.models = all.models;
    }

    fn fail(&self, turn: &mut TurnFailed<'_>) {
        let Stage::Again(spent) = &self.stage else { return };
        let usage = turn.usage.unwrap_or_default();
        let all = spent.plus(usage, turn.cost_usd, turn.duration_ms, &turn.models);
        turn.turn_number = all.turn_number;
        turn.usage = Some(all.usage);
        turn.cost_usd = all.cost_usd;
        turn.duration_ms = all.duration_ms;
        turn.models = all.models;
    }
}

/// Why the turn cannot complete without an answer, and the agent cannot be asked again, if so.
fn cut_by(
    breach: Option<&Breach>,
    cut: Option<&(TurnFailure, String)>,
) -> Option<(TurnFailure, String)> {
    let breach = breach.map(|breach| (TurnFailure::Error, breach.message.clone()));
    breach.or_else(|| cut.cloned())
}

/// A turn that ended without a matching answer.
fn unanswered(
    turn: &TurnCompleted<'_>,
    reason: TurnFailure,
    message: String,
) -> TurnFailed<'static> {
    TurnFailed {
        usage: Some(turn.usage),
        duration_ms: turn.duration_ms,
        cost_usd: turn.cost_usd,
        models: turn.models.clone(),
        denials: turn.denials.clone().map(Json::into_owned),
        ..TurnFailed::new(turn.turn_number, reason, message)
    }
}

impl Actor {
    /// Whether a prompt must wait until the turn has ended. The agent does not know that its answer may be
    /// rejected, and would start the next turn.
    pub(in super::super) fn answers_first(&self) -> bool {
        let is_busy = self.core.state.is_busy();
        self.core.structured.as_ref().is_some_and(|structured| is_busy || structured.has_waiting())
    }

    /// Holds a prompt until the turn has ended.
    pub(in super::super) fn wait_for_turn(
        &mut self,
        call: Call,
        mut pending: PendingPrompt,
    ) -> Result<(), GatewayError> {
        let Some(structured) = &self.core.structured else { return Ok(()) };
        let waiting = structured.waiting.iter().map(|pending| &pending.prompt);
        check_room(waiting, &pending.prompt, WAITING_BYTES)?;
        let id = pending.id();
        let is_next = match pending.prompt.delivery.take() {
            Some(Delivery::Steer) => {
                let agent = self.plan.agent.as_str();
                return Err(GatewayError::unsupported(agent, "delivery steer with outputFormat"));
            }
            Some(Delivery::Now) => {
                if !self.interrupt_answer("the turn was interrupted") {
                    let interrupt = Command::Interrupt { cancel_queued: false };
                    self.tape.command(NOBODY, &interrupt, &mut self.core)?;
                    self.escalate();
                }
                true
            }
            Some(Delivery::Queue) | None => false,
        };
        // Only here, because a prompt that is refused must not wait.
        let Some(structured) = &mut self.core.structured else { return Ok(()) };
        let was_queued = std::mem::replace(&mut pending.is_queued, true);
        match is_next {
            true => structured.waiting.push_front(pending),
            false => structured.waiting.push_back(pending),
        }
        if !was_queued {
            self.queued(&id);
        }
        self.core.answer(call, Ok(taken(&id)));
        Ok(())
    }

    /// Asks the agent again if its answer was rejected, or gives it the next prompt.
    pub(in super::super) fn tend_answer(&mut self) {
        let Some(structured) = &self.core.structured else { return };
        if matches!(structured.stage, Stage::Refused { .. }) {
            return self.ask_again();
        }
        // The agent can start the next turn only if it is idle.
        let is_free = !self.core.state.is_busy() && !self.core.hooks.hold_turn_end();
        if !is_free || self.phase.is_ending() {
            return;
        }
        let waiting = self.core.structured.as_mut().map(|structured| &mut structured.waiting);
        let Some(pending) = waiting.and_then(VecDeque::pop_front) else { return };
        // When the prompt was accepted, the previous turn had not ended yet.
        let given = match self.limits.reached(&self.core.state) {
            Some(reached) if self.limits.asks() => self.hold(NOBODY, pending.clone(), reached),
            Some(reached) => {
                return self.fail_prompt(pending.prompt, reached.failure, &reached.message);
            }
            None => self.deliver_now(NOBODY, pending.clone()),
        };
        if let Err(error) = given {
            self.fail_prompt(pending.prompt, TurnFailure::Error, &error.message);
        }
    }

    /// Asks again, unless the turn must end here. At a limit, it waits until the request about the limit is
    /// answered.
    fn ask_again(&mut self) {
        let cut = cut_by(self.core.breach.as_ref(), self.core.cut());
        if let Some((reason, error)) = cut {
            return self.end_refused(reason, &error);
        }
        // The session or the turn is to stop.
        if self.phase.is_ending() || self.supervisor.awaits_signal() {
            let error = "the turn was interrupted before the agent could answer again";
            return self.end_refused(TurnFailure::Interrupted, error);
        }
        if let Some(reached) = self.limits.reached(&self.core.state) {
            if self.limits.asks() {
                self.enforce_limits();
            }
            if !self.limits.is_waiting() {
                self.end_refused(reached.failure, &reached.message);
            }
            return;
        }
        let Some(structured) = &mut self.core.structured else { return };
        let Stage::Refused { spent, error } = &structured.stage else { return };
        let (spent, text) = (spent.clone(), structured.retry(error));
        structured.stage = Stage::Asked(spent);
        let prompt = Prompt { message_id: Some(Uuid::new_v4().to_string()), ..Prompt::text(text) };
        let asked = self.tape.command(NOBODY, &Command::Prompt(prompt.clone()), &mut self.core);
        if let Err(error) = asked {
            return self.core.give_up_answer(TurnFailure::Error, &error.message);
        }
        self.touch();
        if self.plan.dialect.capabilities().process_per_turn {
            self.prompts.queue(prompt);
            self.core.effects.push(Effect::Start(self.prompts.change()));
        }
    }

    /// The agent is not asked again. It is already idle, so it needs no interrupt.
    fn end_refused(&mut self, reason: TurnFailure, error: &str) {
        self.core.give_up_answer(reason, error);
        self.calm();
    }

    /// Handles the result of a check, or its end without a result.
    pub(in super::super) async fn answer_checked(&mut self, CheckedAnswer(judged): CheckedAnswer) {
        self.core.journal.tick();
        let structured = self.core.structured.as_mut();
        let checking = structured.and_then(|structured| structured.checking.take());
        if let (Some(judged), Some(Checking::Runs { turn, .. })) = (judged, checking) {
            let draft = Draft { agent: Agent::main(), kind: (*turn).into(), native: None };
            if let Some(draft) = self.core.answer_judged(draft, judged) {
                self.core.pass_on(draft);
            }
        }
        // The agent may have ended meanwhile.
        self.process_ended().await;
        self.calm();
    }

    /// Handles an interrupt while the answer is checked, or before the process for the second answer has
    /// started. Then the agent need not know about it. Returns whether that is so.
    pub(in super::super) fn interrupt_answer(&mut self, reason: &str) -> bool {
        if self.core.checks_answer() {
            self.core.give_up_answer(TurnFailure::Interrupted, reason);
            return true;
        }
        let stage = self.core.structured.as_ref().map(|structured| &structured.stage);
        if !matches!(stage, Some(Stage::Asked(_))) || !self.prompts.has_queued() {
            return false;
        }
        self.prompts.clear_queue();
        // The agent has no other prompts: the rest wait here.
        let cancel = Command::Interrupt { cancel_queued: true };
        let _ = self.tape.command(NOBODY, &cancel, &mut self.core);
        self.core.give_up_answer(TurnFailure::Interrupted, reason);
        true
    }

    pub(in super::super) fn cancel_waiting(&mut self) {
        for pending in self.take_waiting() {
            let id = pending.id();
            let status = StatusChanged::new(Status::Queue).message(Text::fixed("cancelled"));
            self.core.emit(status.details(taken(&id)));
        }
    }

    /// The session ends, so there will be no further answer.
    pub(in super::super) fn end_answers(&mut self, reason: &str) {
        self.core.give_up_answer(TurnFailure::Died, reason);
        for pending in self.take_waiting() {
            self.fail_prompt(pending.prompt, TurnFailure::Died, reason);
        }
    }

    fn take_waiting(&mut self) -> VecDeque<PendingPrompt> {
        let structured = self.core.structured.as_mut();
        structured.map(|structured| std::mem::take(&mut structured.waiting)).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
