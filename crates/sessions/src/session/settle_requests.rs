//! Settles requests: each exactly once, by a rule, by the first client that answers, or by the gateway,
//! which only ever denies.

use std::time::Duration;

use agentwire_protocol::command::Behavior;
use agentwire_protocol::event::{RequestKind, RequestOutcome, SettledBy, UNANSWERED};
use agentwire_protocol::{Answer, Call, Command, ErrorCode, GatewayError, Json, Settlement};
use tokio::time::Instant;

use super::actor::Actor;
use super::answer_effects::one_form;
use super::answer_scope;
use super::callers::NOBODY;
use super::hooks::can_deny;
use super::pending_request::{Asker, PendingRequest};
use super::policy::{OnDisk, Verdict};
use super::requests::{asked, check_answer};

impl Actor {
    /// Applies the rules to new requests. What they leave open waits for a client.
    pub(super) fn settle_raised(&mut self) {
        loop {
            self.judge_raised();
            // A denial may lead to another request.
            if !self.phase.is_alone() || self.core.state.requests.is_empty() {
                return;
            }
            self.deny_alone();
        }
    }

    fn judge_raised(&mut self) {
        self.judge_calls();
        self.core.raised.append(&mut self.limits.released());
        while !self.core.raised.is_empty() {
            for raised in std::mem::take(&mut self.core.raised) {
                // It may have been settled since.
                if !self.core.state.requests.contains_key(&raised.id) {
                    continue;
                }
                let is_call =
                    raised.kind == RequestKind::Permission && raised.asker == Asker::Agent;
                // Past a limit, nothing runs until the request about the limit is answered.
                if is_call && self.limits.is_waiting() {
                    self.wait_for_answer(&raised.id);
                    self.limits.hold_call(raised);
                    continue;
                }
                if let Some((_, message)) = self.core.cut().cloned().filter(|_| is_call) {
                    self.deny(&raised.id, &message, false);
                    continue;
                }
                if self.decide(&raised) {
                    continue;
                }
                let verdict = match raised.kind {
                    RequestKind::Permission => self.core.policy.decide(&asked(&raised), &OnDisk),
                    _ => Verdict::Ask,
                };
                match verdict {
                    Verdict::Allow(rule) => self.by_rule(&raised, true, &rule),
                    Verdict::Deny(rule) => self.by_rule(&raised, false, &rule),
                    Verdict::Ask if raised.kind == RequestKind::Permission => {
                        self.wait_for_decision(&raised);
                    }
                    Verdict::Ask => self.wait_for_answer(&raised.id),
                }
            }
        }
    }

    /// Denies everything that waits for a client, because no client is left. The turn continues.
    pub(super) fn deny_alone(&mut self) {
        let open: Vec<String> = self.core.state.requests.keys().cloned().collect();
        open.iter().for_each(|id| self.deny(id, "nobody is left to answer", false));
    }

    /// No rule decides, so a client or a hook may.
    pub(super) fn wait_for_decision(&mut self, raised: &PendingRequest) {
        self.wait_for_answer(&raised.id);
        self.core.raise_asking(raised);
    }

    pub(super) fn wait_for_answer(&mut self, id: &str) {
        if let Some(timeout) = self.patience(id) {
            self.requests.wait(id, Instant::now() + timeout);
        }
    }

    /// How long that request may wait: the shorter of the hook's own timeout and the general one.
    fn patience(&self, id: &str) -> Option<Duration> {
        let limits = [self.core.hooks.patience(id), self.plan.settings.timing.request];
        limits.into_iter().flatten().min()
    }

    pub(super) fn by_rule(&mut self, raised: &PendingRequest, allow: bool, rule: &str) {
        let settlement = match allow {
            true => Settlement::allow(raised.id.as_str()),
            false => Settlement::deny(raised.id.as_str(), format!("denied: {rule}")),
        };
        match self.tape.command(NOBODY, &Command::Settle(settlement), &mut self.core) {
            Ok(()) => {
                let outcome = if allow { RequestOutcome::Allowed } else { RequestOutcome::Denied };
                self.close(raised, outcome, SettledBy::Policy, Some(rule), None);
            }
            Err(error) => {
                self.core.error(error.code.as_str(), error.message);
                self.wait_for_decision(raised);
            }
        }
    }

    /// A client answers. The first answer wins; later ones get an error.
    pub(super) fn settle(
        &mut self,
        call: Call,
        settlement: &Settlement,
    ) -> Result<(), GatewayError> {
        let id = settlement.request_id.as_str();
        let Some(raised) = self.core.state.requests.get(id).cloned() else {
            return Err(self.requests.not_open(id));
        };
        let is_denied = settlement.behavior == Some(Behavior::Deny);
        let settlement = &self.checked(&raised, settlement)?;
        let answer = settlement.answer()?;
        check_answer(&raised, &answer)?;
        let allows = matches!(answer, Answer::Allow { .. });
        if allows && raised.asker == Asker::Agent {
            self.check_limit()?;
        }
        let failed = settlement.error.as_deref().filter(|_| !is_denied);
        if let Some(error) = failed.filter(|_| self.is_hook(id)) {
            self.hook_failed(call, &raised, error);
            return Ok(());
        }
        if self.is_hook(id) {
            return self.settle_hook(call, &raised, answer, settlement.message.as_deref());
        }
        let effects = self.answer_effects(&raised, settlement, &answer)?;
        self.pass_on(call, &raised, &answer, effects.settlement.as_ref().unwrap_or(settlement))?;
        if let (Some(tool), Some(standing)) = (&raised.tool_use_id, effects.standing) {
            self.core.stands(tool, standing);
        }
        let (outcome, updated) = outcome(&raised, &answer, failed.is_some());
        let mut reason = settlement.message.clone().or_else(|| settlement.error.clone());
        let kept = self
            .apply_answer_effects(&raised, &effects, outcome != RequestOutcome::Denied)
            .join(", ");
        if !kept.is_empty() {
            reason = Some(reason.map_or(kept.clone(), |reason| format!("{reason} ({kept})")));
        }
        self.close(&raised, outcome, SettledBy::Client, reason.as_deref(), updated);
        Ok(())
    }

    /// Converts the answer into one form. Refuses an answer to an input that differs from the request's,
    /// and one that grants more than its client may.
    fn checked(
        &self,
        raised: &PendingRequest,
        given: &Settlement,
    ) -> Result<Settlement, GatewayError> {
        // A denial is accepted, whatever the client was shown.
        let is_denied = given.behavior == Some(Behavior::Deny);
        let digest = given.input_digest.as_ref().filter(|_| !is_denied);
        if digest.is_some_and(|digest| *digest != raised.digest) {
            let id = &raised.id;
            let message = format!("the answer does not match request {id}: the input differs");
            return Err(GatewayError::new(ErrorCode::Conflict, message));
        }
        let settlement = self.as_shown(raised, one_form(given)?)?;
        if self.callers.current().is_limited {
            answer_scope::check(raised, &settlement)?;
        }
        self.plain(raised, &settlement)
    }

    fn pass_on(
        &mut self,
        call: Call,
        raised: &PendingRequest,
        answer: &Answer,
        settlement: &Settlement,
    ) -> Result<(), GatewayError> {
        match raised.asker {
            Asker::Agent => {
                let settle = Command::Settle(settlement.clone());
                return self.tape.command(call, &settle, &mut self.core);
            }
            Asker::Limit => self.limit_answered(answer)?,
            Asker::Trust => self.trust_answered(answer)?,
            Asker::Relay => self.settle_message(raised, answer)?,
        }
        self.core.answer(call, Ok(Json::EMPTY));
        Ok(())
    }

    /// Refuses an allow that changes an input which cannot be changed: the call that was shown must not run
    /// in place of the one that is meant. Returning the input unchanged is fine.
    fn as_shown(
        &self,
        raised: &PendingRequest,
        mut settlement: Settlement,
    ) -> Result<Settlement, GatewayError> {
        let is_allow = settlement.behavior != Some(Behavior::Deny);
        let Some(input) = settlement.updated_input.take_if(|_| raised.is_fixed && is_allow) else {
            return Ok(settlement);
        };
        let read = |json: &Json<'_>| json.read::<serde_json::Value>().ok();
        if raised.input.as_ref().and_then(read) == read(&input) {
            return Ok(settlement);
        }
        let what =
            "updatedInput: it runs the call as shown or not at all; deny the request instead";
        Err(GatewayError::unsupported(self.plan.agent.as_str(), what))
    }

    /// Refuses an answer that lets a call run past a limit.
    pub(super) fn check_limit(&self) -> Result<(), GatewayError> {
        match self.limits.is_waiting() {
            false => Ok(()),
            true => {
                let message = "a limit is reached; answer the request about the limit first";
                Err(GatewayError::new(ErrorCode::Conflict, message))
            }
        }
    }

    pub(super) fn close(
        &mut self,
        raised: &PendingRequest,
        outcome: RequestOutcome,
        by: SettledBy,
        reason: Option<&str>,
        updated: Option<&Json<'static>>,
    ) {
        let client = self.callers.current().name.clone().filter(|_| by == SettledBy::Client);
        // The agent may have settled it by itself.
        if self.core.state.requests.contains_key(&raised.id) {
            self.core.settled(raised, outcome, (by, client.as_deref()), reason, updated);
            if let Some(by) = client.as_deref() {
                let session = self.core.state.record.summary.id.as_str();
                let (request, outcome) = (raised.id.as_str(), outcome.as_str());
                tracing::info!(session, request, by, outcome, "request answered");
            }
        }
        self.core.hooks.permission_settled(&raised.id);
        if let Some(bridge) = &mut self.bridge {
            bridge.settled(&raised.id);
        }
        self.touch();
        let how = format!("{} by {}", outcome.as_str(), by.as_str());
        self.requests.settled(&raised.id, how, client);
    }

    pub(super) fn deny_late(&mut self, now: Instant) {
        for id in self.requests.take_late(now) {
            let seconds = self.patience(&id).unwrap_or_default().as_secs();
            self.deny(&id, &format!("{UNANSWERED} {seconds} s"), false);
        }
    }

    /// Denies every permission and question; the turn ends with them.
    pub(super) fn deny_all(&mut self, reason: &str) {
        self.deny_each(reason, |raised| {
            matches!(raised.kind, RequestKind::Permission | RequestKind::Question)
        });
    }

    /// Denies the agent's messages to MCP servers.
    pub(super) fn deny_messages(&mut self, reason: &str) {
        self.deny_each(reason, |raised| raised.asker == Asker::Relay);
    }

    fn deny_each(&mut self, reason: &str, which: impl Fn(&PendingRequest) -> bool) {
        let open = self.core.state.requests.values().filter(|raised| which(raised));
        let open: Vec<String> = open.map(|raised| raised.id.clone()).collect();
        open.iter().for_each(|id| self.deny(id, reason, true));
    }

    fn deny(&mut self, id: &str, reason: &str, ends_turn: bool) {
        let Some(raised) = self.core.state.requests.get(id).cloned() else { return };
        if self.is_hook(id) {
            return self.pass_over(&raised, SettledBy::Gateway, reason);
        }
        let message = Some(reason.to_owned());
        let denial = Answer::Deny { message, interrupt: false, always: false };
        // An agent that is gone cannot get the answer. The request is settled anyway.
        let _ = match raised.asker {
            Asker::Agent => {
                let settlement =
                    Settlement { interrupt: Some(ends_turn), ..Settlement::deny(id, reason) };
                self.tape.command(NOBODY, &Command::Settle(settlement), &mut self.core)
            }
            Asker::Limit => self.limit_answered(&denial),
            Asker::Trust => self.trust_answered(&denial),
            Asker::Relay => self.message_answered(&raised, denial),
        };
        // A hook that cannot deny anything is withdrawn.
        let is_denied = raised.kind != RequestKind::Hook || can_deny(raised.input.as_ref());
        let outcome = if is_denied { RequestOutcome::Denied } else { RequestOutcome::Withdrawn };
        self.close(&raised, outcome, SettledBy::Gateway, Some(reason), None);
    }

    /// Settles everything that is still open when the session ends: requests are denied and hooks
    /// withdrawn. Only readers see it; the agent gets no answer.
    pub(super) fn withdraw_all(&mut self, reason: &str) {
        let open: Vec<PendingRequest> = self.core.state.requests.values().cloned().collect();
        for raised in open {
            let outcome = match raised.kind {
                RequestKind::Hook => RequestOutcome::Withdrawn,
                _ => RequestOutcome::Denied,
            };
            self.close(&raised, outcome, SettledBy::Gateway, Some(reason), None);
        }
    }
}

/// How the answer settles the request, and the call's new input if the answer changes it.
fn outcome<'a>(
    raised: &PendingRequest,
    answer: &'a Answer,
    has_failed: bool,
) -> (RequestOutcome, Option<&'a Json<'static>>) {
    match answer {
        // The files as they were shown are trusted.
        Answer::Allow { .. } if raised.asker == Asker::Trust => (RequestOutcome::Allowed, None),
        Answer::Allow { updated_input, .. } => (RequestOutcome::Allowed, updated_input.as_ref()),
        // The agent treats that as no answer.
        Answer::Deny { .. } if has_failed && raised.kind == RequestKind::Hook => {
            (RequestOutcome::Withdrawn, None)
        }
        Answer::Deny { .. } => (RequestOutcome::Denied, None),
        Answer::Answers(_) | Answer::HookOutput(_) => (RequestOutcome::Answered, None),
    }
}
