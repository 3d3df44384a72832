//! Limits that the gateway enforces for every agent: steps per turn, money, tokens. At a limit, the agent
//! is paused and a request asks for more. If the session is configured not to ask, the turn is cut off.

use agentwire_protocol::event::{
    RequestKind, RequestOutcome, RequestRaised, SettledBy, TurnFailed, TurnFailure, TurnOrigin,
    TurnStarted,
};
use agentwire_protocol::session::OnLimit;
use agentwire_protocol::usage::plus_cost;
use agentwire_protocol::{
    Answer, Call, Command, ErrorCode, GatewayError, Json, Price, Prompt, SessionConfig, Text,
    TokenUsage,
};

use super::actor::Actor;
use super::callers::NOBODY;
use super::commands::taken;
use super::pending_prompt::PendingPrompt;
use super::pending_request::{Asker, PendingRequest};
use super::state::DerivedState;
use crate::process::TreeSignal;

#[derive(Clone, Debug)]
pub(super) struct Limits {
    steps: Option<u64>,
    step: u64,
    dollars: Option<f64>,
    dollar: f64,
    tokens: Option<u64>,
    token: u64,
    asks: bool,
    price: Price,
    /// The limit that a request is open about.
    waiting: Option<ReachedLimit>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReachedLimit {
    pub(super) name: &'static str,
    pub(super) failure: TurnFailure,
    pub(super) message: String,
}

impl Limits {
    pub(super) fn new(config: &SessionConfig, price: Option<Price>) -> Self {
        Self {
            steps: config.max_turns.map(u64::from),
            step: config.max_turns.unwrap_or(0).into(),
            dollars: config.max_budget_usd,
            dollar: config.max_budget_usd.unwrap_or(0.0),
            tokens: config.max_budget_tokens,
            token: config.max_budget_tokens.unwrap_or(0),
            asks: config.on_limit.unwrap_or_default() == OnLimit::Ask,
            price: price.unwrap_or(Price::STANDARD),
            waiting: None,
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
        if let Some(limit) = self.steps.filter(|limit| state.running.steps > *limit) {
            return Some(ReachedLimit {
                name: "maxTurns",
                failure: TurnFailure::MaxTurns,
                message: format!("the turn has reached its limit of {limit} steps"),
            });
        }
        let usage = state.record.summary.usage.plus(&state.running.usage);
        if let Some(limit) = self.tokens.filter(|limit| usage.total_tokens >= *limit) {
            return Some(ReachedLimit {
                name: "maxBudgetTokens",
                failure: TurnFailure::Budget,
                message: format!("the session has used {} of {limit} tokens", usage.total_tokens),
            });
        }
        let spent = self.spent(state, &usage);
        let limit = self.dollars.filter(|limit| spent >= *limit)?;
        Some(ReachedLimit {
            name: "maxBudgetUsd",
            failure: TurnFailure::Budget,
            message: format!("the session has spent ${spent:.4} of ${limit}"),
        })
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

    /// A client allowed more: the same amount again.
    pub(super) fn extend(&mut self, name: &str) {
        match name {
            "maxTurns" => self.steps = self.steps.map(|steps| steps + self.step),
            "maxBudgetTokens" => self.tokens = self.tokens.map(|tokens| tokens + self.token),
            _ => self.dollars = self.dollars.map(|dollars| dollars + self.dollar),
        }
    }
}

impl Actor {
    /// Checks whether a limit is reached while a turn runs.
    pub(super) fn enforce_limits(&mut self) {
        let runs = self.core.state.record.open.turn.is_some() && !self.core.hooks.hold_turn_end();
        let runs = runs && self.supervisor.has_process() && !self.core.checks_answer();
        if !runs || self.limits.is_waiting() || self.core.cut.is_some() || self.phase.is_ending() {
            return;
        }
        let Some(reached) = self.limits.reached(&self.core.state) else { return };
        if self.limits.asks() {
            self.supervisor.signal(TreeSignal::Pause);
            self.request_more(reached);
        } else {
            self.cut_off(reached.failure, reached.message);
        }
    }

    /// Holds a prompt that arrives when a limit is already reached.
    pub(super) fn hold(
        &mut self,
        call: Call,
        mut pending: PendingPrompt,
        reached: ReachedLimit,
    ) -> Result<(), GatewayError> {
        self.prompts.check_hold(&pending)?;
        let id = pending.id();
        if !std::mem::replace(&mut pending.is_queued, true) {
            self.queued(&id);
        }
        self.prompts.hold(pending);
        self.core.answer(call, Ok(taken(&id)));
        if !self.limits.asks() {
            self.fail_held(reached.failure, &reached.message);
        } else if !self.limits.is_waiting() {
            self.request_more(reached);
        }
        Ok(())
    }

    fn request_more(&mut self, reached: ReachedLimit) {
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
        self.limits.waiting = Some(reached);
    }

    pub(super) fn limit_answered(
        &mut self,
        _raised: &PendingRequest,
        answer: &Answer,
    ) -> Result<(), GatewayError> {
        let allow = match answer {
            Answer::Allow { .. } => true,
            Answer::Deny { .. } => false,
            Answer::Answers(_) | Answer::HookOutput(_) => {
                let message = "answer a limit with allow or deny";
                return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
            }
        };
        let Some(reached) = self.limits.waiting.take() else { return Ok(()) };
        self.supervisor.signal(TreeSignal::Continue);
        if allow {
            self.limits.extend(reached.name);
            for pending in self.prompts.take_held() {
                if let Err(error) = self.offer(NOBODY, pending.clone()) {
                    self.fail_prompt(pending.prompt, TurnFailure::Error, &error.message);
                }
            }
        } else if self.core.state.record.open.turn.is_some() {
            self.cut_off(reached.failure, reached.message);
        } else {
            self.fail_held(reached.failure, &reached.message);
        }
        Ok(())
    }

    /// The request about a limit has no effect any more.
    pub(super) fn limit_is_moot(&mut self, reason: &str) {
        self.limits.waiting = None;
        self.requests.take_held_calls();
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
            self.deny_held("the turn was interrupted");
            self.supervisor.signal(TreeSignal::Continue);
        }
    }

    /// Ends the turn, which then fails for this reason.
    pub(super) fn cut_off(&mut self, failure: TurnFailure, message: String) {
        self.core.cut = Some((failure, message));
        let _ =
            self.tape.command(NOBODY, &Command::Interrupt { cancel_queued: false }, &mut self.core);
        self.escalate();
    }

    /// Prompts that a limit keeps from the agent become failed turns.
    fn fail_held(&mut self, reason: TurnFailure, error: &str) {
        for pending in self.prompts.take_held() {
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
