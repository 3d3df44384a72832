//! What happens when time is up: signals, denials, and the word that an agent is silent.

use std::time::Duration;

use agentwire_protocol::event::{SessionEndReason, Status, StatusChanged};
use agentwire_protocol::{ErrorCode, Text};
use tokio::time::Instant;

use super::actor::Actor;
use crate::process::TreeSignal;

/// How long an agent may live on after it closed its output.
const CLOSED_GRACE: Duration = Duration::from_secs(2);

impl Actor {
    /// An interrupt that is not heeded becomes signals.
    pub(super) fn escalate(&mut self) {
        let at = Instant::now() + self.plan.settings.timing.interrupt;
        self.braked = self.core.book.record.open.turn;
        self.escalation.get_or_insert((at, TreeSignal::Interrupt));
    }

    /// The agent has something new to do: its silence counts from here.
    pub(super) fn touch(&mut self) {
        if let Some(process) = &mut self.process {
            process.heard = Instant::now();
        }
    }

    /// What an interrupt was to reach is reached.
    pub(super) fn calm(&mut self) {
        let is_over = !self.core.book.is_busy()
            || self.core.book.record.open.turn != self.braked
            || self.core.hooks.hold_turn_end();
        if self.ending.is_none() && self.escalation.is_some() && is_over {
            self.escalation = None;
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let timing = &self.plan.settings.timing;
        let left = self.process.as_ref().and_then(|process| process.left_until);
        let process = self.process.as_ref().filter(|process| process.exit.is_none());
        let stall = process
            .filter(|_| self.reached.is_none() && self.core.book.may_stall())
            .map(|process| process.heard + timing.stall);
        // Every agent has something to answer when it is started.
        let silent = process.filter(|process| !process.has_spoken && process.verdict.is_none());
        let silent = silent.map(|process| process.started + timing.call);
        let closed = process.and_then(|process| process.closed).map(|closed| closed + CLOSED_GRACE);
        let closed = closed.filter(|_| self.escalation.is_none());
        [
            self.calls.values().map(|waiting| waiting.deadline).min(),
            self.deadlines.values().min().copied(),
            self.escalation.map(|(at, _)| at),
            self.core.hooks.deadline(),
            self.trusting.rests_until(),
            stall,
            silent,
            closed,
            left,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(super) async fn deadline_passed(&mut self) {
        let now = Instant::now();
        self.core.journal.tick();
        if let Some(process) = &mut self.process
            && process.left_until.is_some_and(|left| left <= now)
        {
            self.core
                .error("processLeft", "the agent left processes that cannot be ended from here");
            process.gone();
            if process.is_over() {
                self.process_over().await;
            }
        }
        self.fail_calls(
            |waiting| waiting.deadline <= now,
            ErrorCode::Timeout,
            "the agent did not answer in time",
        );
        // Those that have their answer wait for the store, not for the agent.
        for waiting in self.calls.values_mut().filter(|waiting| waiting.deadline <= now) {
            waiting.deadline = now + self.plan.settings.timing.call;
        }
        self.end_rest(now);
        self.deny_late(now);
        self.core.raise_late(now);
        if let Some((_, signal)) = self.escalation.filter(|(at, _)| *at <= now) {
            self.signal(TreeSignal::Continue);
            self.signal(signal);
            let next = match signal {
                TreeSignal::Interrupt => Some(TreeSignal::Terminate),
                TreeSignal::Terminate => Some(TreeSignal::Kill),
                TreeSignal::Kill | TreeSignal::Pause | TreeSignal::Continue => None,
            };
            self.escalation = next.map(|signal| (now + self.plan.settings.timing.signal, signal));
        }
        let Some(process) = self.process.as_mut().filter(|process| process.exit.is_none()) else {
            return;
        };
        let call = self.plan.settings.timing.call;
        let is_silent = !process.has_spoken && process.verdict.is_none();
        if is_silent && process.started + call <= now {
            let agent = self.plan.agent.as_str();
            let mut message =
                format!("{agent} said nothing for {} s after its start", call.as_secs());
            if let Some(words) = process.said.last_words() {
                message = format!("{message}: {words}");
            }
            process.verdict = Some(message.clone());
            self.core.error(ErrorCode::StartFailed.as_str(), message.clone());
            // Where one process serves one turn, the turn fails and the session goes on.
            if !self.plan.dialect.capabilities().process_per_turn {
                self.ending.get_or_insert((SessionEndReason::Failed, Some(message)));
            }
            self.escalation = Some((now, TreeSignal::Terminate));
            return;
        }
        let closed = process.closed.is_some_and(|closed| closed + CLOSED_GRACE <= now);
        if closed && self.escalation.is_none() {
            process.closed = None;
            self.core.error("agentFailed", "the agent closed its output and lives on: it is ended");
            self.escalation = Some((now, TreeSignal::Terminate));
        } else if process.heard + self.plan.settings.timing.stall <= now
            && self.core.book.may_stall()
        {
            let seconds = self.plan.settings.timing.stall.as_secs();
            let message = format!("the agent has said nothing for {seconds} s");
            self.core.emit(StatusChanged::new(Status::Warning).message(Text::from(message)));
            self.core.book.silent(true);
        }
    }
}
