//! Handles passed deadlines: signals, denials, and warnings about silent agents.

use agentwire_dialects::tape::Signal;
use agentwire_protocol::event::{Status, StatusChanged};
use agentwire_protocol::{ErrorCode, Text};
use tokio::time::Instant;

use super::actor::Actor;
use super::agent::Alarm;
use super::core::Effect;
use crate::process::TreeSignal;

impl Actor {
    /// The current turn was interrupted. If that has no effect, signals follow. A process that has not
    /// started is interrupted when it does.
    pub(super) fn escalate(&mut self) {
        let turn = self.core.state.current_turn();
        let has_started = self.supervisor.works_on(turn);
        if !has_started && self.plan.dialect.capabilities().process_per_turn {
            // No process works on it, and the next process may be for another prompt.
            let is_signal = |effect: &Effect| matches!(effect, Effect::Signal(Signal::Interrupt));
            self.core.effects.retain(|effect| !is_signal(effect));
            return self.prompts.interrupt_next();
        }
        let at = Instant::now() + self.plan.settings.timing.interrupt;
        self.supervisor.interrupted(at, turn);
    }

    /// The agent has new work, so its silence is counted from now.
    pub(super) fn touch(&mut self) {
        if let Some(process) = self.supervisor.process_mut() {
            process.touch();
        }
    }

    /// Stops the signals if the interrupt has reached its goal.
    pub(super) fn calm(&mut self) {
        if !self.phase.is_ending() {
            let is_idle = !self.core.state.is_busy() || self.core.hooks.hold_turn_end();
            self.supervisor.calm(is_idle, self.core.state.current_turn());
        }
    }

    /// Whether the agent has work and nothing holds it up.
    fn may_stall(&self) -> bool {
        !self.limits.is_waiting() && !self.core.checks_answer() && self.core.state.may_stall()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let process = self.supervisor.process().and_then(|process| {
            let is_signalled = self.supervisor.awaits_signal();
            process.watch.deadline(&self.plan.settings.timing, self.may_stall(), is_signalled)
        });
        [
            self.callers.deadline(),
            self.requests.deadline(),
            self.supervisor.deadline(),
            self.core.hooks.deadline(),
            self.trust_gate.rests_until(),
            process,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(super) async fn deadline_passed(&mut self) {
        let now = Instant::now();
        self.core.journal.tick();
        self.fail_calls(Some(now), ErrorCode::Timeout, "the agent did not answer in time");
        self.callers.extend(now, self.plan.settings.timing.call);
        self.end_rest(now);
        self.deny_late(now);
        self.core.raise_late(now);
        let pause = self.plan.settings.timing.signal;
        self.supervisor.send_due(now, pause);
        let may_stall = self.may_stall();
        let is_signalled = self.supervisor.awaits_signal();
        let timing = &self.plan.settings.timing;
        let alarm = self
            .supervisor
            .process_mut()
            .and_then(|process| process.watch.alarm(now, timing, may_stall, is_signalled));
        match alarm {
            None => {}
            Some(Alarm::Mute) => self.end_mute(now),
            Some(Alarm::Closed) => {
                let message = "the agent closed its output but still runs; ending it";
                self.core.error("agentFailed", message);
                self.supervisor.end_by(now, TreeSignal::Terminate);
            }
            Some(Alarm::Stalled) => {
                let seconds = self.plan.settings.timing.stall.as_secs();
                let message = format!("the agent has said nothing for {seconds} s");
                self.core.emit(StatusChanged::new(Status::Warning).message(Text::from(message)));
                self.core.state.silent(true);
            }
            Some(Alarm::Left) => self.give_up_left().await,
        }
    }

    fn end_mute(&mut self, now: Instant) {
        let agent = self.plan.agent.as_str();
        let seconds = self.plan.settings.timing.call.as_secs();
        let mut message = format!("{agent} said nothing for {seconds} s after its start");
        if let Some(process) = self.supervisor.process_mut() {
            if let Some(words) = process.said.last_lines() {
                message = format!("{message}: {words}");
            }
            process.watch.condemn(message.clone());
        }
        self.core.error(ErrorCode::StartFailed.as_str(), message.clone());
        // With one process per turn, the turn fails and the session continues.
        if !self.plan.dialect.capabilities().process_per_turn && !self.phase.is_ending() {
            self.phase.fail(message);
        }
        self.supervisor.end_by(now, TreeSignal::Terminate);
    }

    /// Stops waiting for processes that were left behind.
    async fn give_up_left(&mut self) {
        self.core.error("processLeft", "the agent left processes behind that agentwire cannot end");
        if let Some(process) = self.supervisor.process_mut() {
            process.gone();
        }
        self.process_ended().await;
    }
}
