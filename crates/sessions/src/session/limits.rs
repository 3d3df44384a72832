//! Limits that the gateway enforces for every agent: steps per turn, money, tokens. At a limit, the agent
//! is paused and a request asks for more. If the session is configured not to ask, the turn is cut off.

use agentwire_dialects::tape::ScreenedCall;
use agentwire_protocol::event::{
    RequestKind, RequestOutcome, RequestRaised, SettledBy, TurnFailed, TurnFailure, TurnOrigin,
    TurnStarted,
};
use agentwire_protocol::session::OnLimit;
use agentwire_protocol::usage::plus_cost;
use agentwire_protocol::{
    Answer, Call, Command, GatewayError, Json, Price, Prompt, SessionConfig, Text, TokenUsage,
};

use super::actor::Actor;
use super::callers::NOBODY;
use super::commands::taken;
use super::pending_prompt::{HELD_BYTES, PendingPrompt, check_room, edit, place};
use super::pending_request::{Asker, PendingRequest};
use super::requests::allows;
use super::state::DerivedState;
use crate::process::TreeSignal;

pub(super) struct Limits {
    steps: Option<Limit<u64>>,
    dollars: Option<Limit<f64>>,
    tokens: Option<Limit<u64>>,
    asks: bool,
    price: Price,
    /// The limit that a request is open about.
    waiting: Option<ReachedLimit>,
    /// Calls that wait for its answer: requested, or shown to the gateway's own hook.
    calls: Vec<PendingRequest>,
    screened: Vec<ScreenedCall>,
    /// Prompts that wait until a client allows more.
    prompts: Vec<PendingPrompt>,
}

struct Limit<T> {
    now: T,
    /// What is added when a client allows more.
    step: T,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReachedLimit {
    pub(super) name: &'static str,
    pub(super) failure: TurnFailure,
    pub(super) message: String,
}

/// What happens when a limit is reached.
#[derive(Debug, PartialEq)]
pub(super) enum AtLimit {
    /// A client is asked for more.
    Ask(ReachedLimit),
    /// A client was asked and has not answered.
    Wait,
    /// Nobody is asked: the work fails.
    Fail(ReachedLimit),
}

/// What the answer about a limit leads to.
#[derive(Debug, PartialEq)]
pub(super) enum Answered {
    /// Work continues, with the prompts that waited.
    Continue,
    /// The running turn is cut off.
    Cut(ReachedLimit),
    /// No turn runs: the prompts that waited fail.
    Fail(ReachedLimit),
}

impl<T: Copy> Limit<T> {
    fn of(value: T) -> Self {
        Self { now: value, step: value }
    }
}

impl Limits {
    pub(super) fn new(config: &SessionConfig, price: Option<Price>) -> Self {
        Self {
            steps: config.max_turns.map(u64::from).map(Limit::of),
            dollars: config.max_budget_usd.map(Limit::of),
            tokens: config.max_budget_tokens.map(Limit::of),
            asks: config.on_limit.unwrap_or_default() == OnLimit::Ask,
            price: price.unwrap_or(Price::STANDARD),
            waiting: None,
            calls: Vec::new(),
            screened: Vec::new(),
            prompts: Vec::new(),
        }
    }

    pub(super) fn asks(&self) -> bool {
        self.asks
    }

    /// Whether a limit is reached and the request about it is not answered yet.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// The limit that the session has reached or passed, if any.
    pub(super) fn reached(&self, state: &DerivedState) -> Option<ReachedLimit> {
        let reached = |name, failure, message| Some(ReachedLimit { name, failure, message });
        if let Some(Limit { now, .. }) =
            self.steps.as_ref().filter(|limit| state.running.steps > limit.now)
        {
            let message = format!("the turn has reached its limit of {now} steps");
            return reached("maxTurns", TurnFailure::MaxTurns, message);
        }
        let usage = state.record.summary.usage.plus(&state.running.usage);
        let used = usage.total_tokens;
        if let Some(Limit { now, .. }) = self.tokens.as_ref().filter(|limit| used >= limit.now) {
            let message = format!("the session has used {used} of {now} tokens");
            return reached("maxBudgetTokens", TurnFailure::Budget, message);
        }
        let spent = self.spent(state, &usage);
        let Limit { now, .. } = self.dollars.as_ref().filter(|limit| spent >= limit.now)?;
        let message = format!("the session has spent ${spent:.4} of ${now}");
        reached("maxBudgetUsd", TurnFailure::Budget, message)
    }

    /// The agent's own figure, or else an estimate by price. Some agents report the cost of a turn only at
    /// its end; until then the turn counts by price.
    fn spent(&self, state: &DerivedState, usage: &TokenUsage) -> f64 {
        let told = state.record.summary.cost_usd;
        match (told, state.running.total_cost) {
            (Some(told), Some(running)) => told.max(running),
            (Some(told), None) => plus_cost(told, self.price.of(&state.running.usage)),
            (None, Some(running)) => running,
            (None, None) => self.price.of(usage),
        }
    }

    /// Decides what happens at a limit. A client is asked once; until it answers, everything waits.
    pub(super) fn meet(&mut self, reached: ReachedLimit) -> AtLimit {
        if !self.asks {
            AtLimit::Fail(reached)
        } else if self.is_waiting() {
            AtLimit::Wait
        } else {
            self.waiting = Some(reached.clone());
            AtLimit::Ask(reached)
        }
    }

    /// Decides what follows from the answer, if one was awaited. A client that allows more adds the same
    /// amount again.
    fn answered(&mut self, allow: bool, turn_runs: bool) -> Option<Answered> {
        let reached = self.waiting.take()?;
        if !allow {
            let end = if turn_runs { Answered::Cut } else { Answered::Fail };
            return Some(end(reached));
        }
        let more = |limit: &mut Limit<u64>| limit.now += limit.step;
        match reached.name {
            "maxTurns" => self.steps.iter_mut().for_each(more),
            "maxBudgetTokens" => self.tokens.iter_mut().for_each(more),
            _ => self.dollars.iter_mut().for_each(|limit| limit.now += limit.step),
        }
        Some(Answered::Continue)
    }

    /// Holds a call of the agent until a client has answered.
    pub(super) fn hold_call(&mut self, call: PendingRequest) {
        self.calls.push(call);
    }

    /// Takes the held calls, once nobody is asked any more.
    pub(super) fn released(&mut self) -> Vec<PendingRequest> {
        if self.is_waiting() { Vec::new() } else { std::mem::take(&mut self.calls) }
    }

    /// The same for a call that the agent has shown to the gateway's own hook.
    pub(super) fn hold_screened(&mut self, call: ScreenedCall) {
        self.screened.push(call);
    }

    pub(super) fn released_screened(&mut self) -> Vec<ScreenedCall> {
        if self.is_waiting() { Vec::new() } else { std::mem::take(&mut self.screened) }
    }

    /// Whether prompts wait at a limit.
    pub(super) fn hold_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    pub(super) fn held_prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.prompts.iter().map(|pending| &pending.prompt)
    }

    /// Drops a prompt that waits at a limit. Returns whether it did wait.
    pub(super) fn drop_prompt(&mut self, id: &str) -> bool {
        place(self.prompts.iter(), id).map(|at| self.prompts.remove(at)).is_some()
    }

    pub(super) fn edit_prompt(&mut self, id: &str, text: &str) -> Result<bool, GatewayError> {
        edit(&mut self.prompts, id, text, HELD_BYTES)
    }

    /// Holds a prompt, if there is room.
    fn hold(&mut self, pending: PendingPrompt) -> Result<(), GatewayError> {
        check_room(self.prompts.iter().map(|held| &held.prompt), &pending.prompt, HELD_BYTES)?;
        self.prompts.push(pending);
        Ok(())
    }
}

impl Actor {
    /// Checks whether a limit is reached while a turn runs.
    pub(super) fn enforce_limits(&mut self) {
        let runs = self.core.state.record.open.turn.is_some() && !self.core.hooks.hold_turn_end();
        let runs = runs && self.supervisor.has_process() && !self.core.checks_answer();
        if !runs || self.core.cut().is_some() || self.phase.is_ending() {
            return;
        }
        let Some(reached) = self.limits.reached(&self.core.state) else { return };
        match self.limits.meet(reached) {
            AtLimit::Ask(reached) => {
                self.supervisor.signal(TreeSignal::Pause);
                self.request_more(&reached);
            }
            AtLimit::Wait => {}
            AtLimit::Fail(reached) => self.cut_off(reached.failure, reached.message),
        }
    }

    /// Holds a prompt that arrives when a limit is already reached.
    pub(super) fn hold(
        &mut self,
        call: Call,
        mut pending: PendingPrompt,
        reached: ReachedLimit,
    ) -> Result<(), GatewayError> {
        let id = pending.id();
        let was_queued = std::mem::replace(&mut pending.is_queued, true);
        self.limits.hold(pending)?;
        if !was_queued {
            self.queued(&id);
        }
        self.core.answer(call, Ok(taken(&id)));
        match self.limits.meet(reached) {
            AtLimit::Ask(reached) => self.request_more(&reached),
            AtLimit::Wait => {}
            AtLimit::Fail(reached) => self.fail_held(reached.failure, &reached.message),
        }
        Ok(())
    }

    fn request_more(&mut self, reached: &ReachedLimit) {
        let id = format!("limit-{}", self.core.journal.last() + 1);
        let input = Json::of(&serde_json::json!({ "limit": reached.name }));
        let request = RequestRaised {
            title: Some(Text::fixed("Continue past the limit?")),
            message: Some(Text::from(reached.message.as_str())),
            name: Some(Text::fixed(reached.name)),
            input_is_fixed: true,
            allow_is_once: true,
            ..RequestRaised::new(id.as_str(), RequestKind::Permission, Some(input))
        };
        // No rule answers this: only a client may raise a limit.
        self.core.raise_request(request, Asker::Limit);
        self.wait_for_answer(&id);
    }

    pub(super) fn limit_answered(&mut self, answer: &Answer) -> Result<(), GatewayError> {
        let allow = allows(answer, "a limit")?;
        let turn_runs = self.core.state.record.open.turn.is_some();
        let Some(answered) = self.limits.answered(allow, turn_runs) else { return Ok(()) };
        self.supervisor.signal(TreeSignal::Continue);
        match answered {
            Answered::Continue => {
                for pending in std::mem::take(&mut self.limits.prompts) {
                    if let Err(error) = self.offer(NOBODY, pending.clone()) {
                        self.fail_prompt(pending.prompt, TurnFailure::Error, &error.message);
                    }
                }
            }
            Answered::Cut(reached) => self.cut_off(reached.failure, reached.message),
            Answered::Fail(reached) => self.fail_held(reached.failure, &reached.message),
        }
        Ok(())
    }

    /// The request about a limit has no effect any more.
    pub(super) fn limit_is_moot(&mut self, reason: &str) {
        self.limits.waiting = None;
        self.limits.screened.clear();
        let ours =
            self.core.state.requests.values().find(|raised| raised.asker == Asker::Limit).cloned();
        if let Some(raised) = ours {
            self.close(&raised, RequestOutcome::Denied, SettledBy::Gateway, Some(reason), None);
        }
        self.fail_held(TurnFailure::Died, reason);
    }

    /// Lets a paused agent run again, so that it can read its input.
    pub(super) fn unpause(&mut self) {
        if self.limits.waiting.take().is_some() {
            for call in self.limits.released_screened() {
                self.deny_call(&call, "the turn was interrupted");
            }
            self.supervisor.signal(TreeSignal::Continue);
        }
    }

    /// Ends the turn, which then fails for this reason.
    pub(super) fn cut_off(&mut self, failure: TurnFailure, message: String) {
        self.core.cut_turn(failure, message);
        let _ =
            self.tape.command(NOBODY, &Command::Interrupt { cancel_queued: false }, &mut self.core);
        self.escalate();
    }

    /// Prompts that a limit keeps from the agent become failed turns.
    fn fail_held(&mut self, reason: TurnFailure, error: &str) {
        for pending in std::mem::take(&mut self.limits.prompts) {
            self.fail_prompt(pending.prompt, reason, error);
        }
    }

    /// A prompt that never reaches the agent becomes a failed turn.
    pub(super) fn fail_prompt(&mut self, prompt: Prompt, reason: TurnFailure, error: &str) {
        let turn_number = self.core.state.own_turn();
        self.core.emit(TurnStarted {
            turn_number,
            prompt: Some(Text::from(prompt.text)),
            message_ids: prompt.message_id.into_iter().map(Text::from).collect(),
            origin: TurnOrigin::Agent,
        });
        self.core.emit(TurnFailed::new(turn_number, reason, error));
        self.core.state.own_turn_ended();
    }
}

#[cfg(test)]
mod tests;
