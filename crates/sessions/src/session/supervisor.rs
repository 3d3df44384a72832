//! Holds the agent's process and plans its signals: one process per session, or one per turn.

use std::time::Duration;

use tokio::time::Instant;

use super::agent::{Origin, ProcessActivity, Running};
use super::escalation::Escalation;
use crate::process::TreeSignal;

#[derive(Default)]
pub(super) struct Supervisor {
    process: Option<Running>,
    /// Signals that follow if the process does not react.
    escalation: Escalation,
    /// The conversation that the next process continues.
    origin: Origin,
    due: Option<Due>,
    /// With one process per turn: the turn that the last process was started for.
    turn: Option<u64>,
}

/// What to start, once the reason for it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The agent: it is known whether the project is trusted, or its start time has come.
    Agent,
    /// The process for the next prompt.
    Process,
}

impl Supervisor {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, ..Self::default() }
    }

    pub(super) fn process(&self) -> Option<&Running> {
        self.process.as_ref()
    }

    pub(super) fn process_mut(&mut self) -> Option<&mut Running> {
        self.process.as_mut()
    }

    pub(super) fn has_process(&self) -> bool {
        self.process.is_some()
    }

    /// A process has started; with one process per turn, for this turn.
    pub(super) fn started(&mut self, process: Running, turn: Option<u64>) {
        self.process = Some(process);
        self.turn = self.next_turn(turn);
    }

    /// While hooks hold the end of a turn, the turn is still open when the next one's process starts.
    fn next_turn(&self, current: Option<u64>) -> Option<u64> {
        current.map(|current| self.turn.map_or(current, |last| current.max(last + 1)))
    }

    /// Whether the process, if there is one, works on this turn and not on an earlier one.
    pub(super) fn works_on(&self, turn: u64) -> bool {
        self.has_process() && self.turn.is_none_or(|own| turn <= own)
    }

    /// Returns the process once it has ended and all its output is read.
    pub(super) fn take_over(&mut self) -> Option<Running> {
        let process = self.process.take_if(|process| process.is_ended());
        if process.is_some() {
            self.escalation.clear();
        }
        process
    }

    /// Ignores further output. Dropping the process kills it. Nothing starts after this.
    pub(super) fn end(&mut self) {
        self.process = None;
        self.due = None;
    }

    pub(super) fn signal(&self, signal: TreeSignal) {
        if let Some(process) = &self.process {
            process.control.signal(signal);
        }
    }

    /// The turn was interrupted. If it has not ended at `at`, signals follow.
    pub(super) fn interrupted(&mut self, at: Instant, turn: u64) {
        self.escalation.interrupt(at, turn);
    }

    /// The process must end: `signal` is sent at `at`, and stronger ones follow.
    pub(super) fn end_by(&mut self, at: Instant, signal: TreeSignal) {
        self.escalation.end(at, signal);
    }

    /// If the agent is idle or the current turn is another one, the interrupt has reached its goal.
    pub(super) fn calm(&mut self, is_idle: bool, turn: u64) {
        self.escalation.calm(is_idle, turn);
    }

    pub(super) fn awaits_signal(&self) -> bool {
        self.escalation.is_on()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.escalation.deadline()
    }

    /// Sends the signal that is due. A stronger one follows after `pause`.
    pub(super) fn send_due(&mut self, now: Instant, pause: Duration) {
        if let Some(signal) = self.escalation.due(now, pause) {
            // A paused process does not react to any other signal.
            self.signal(TreeSignal::Continue);
            self.signal(signal);
        }
    }

    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn resume_from(&mut self, id: String) {
        self.origin = Origin { resume: Some(id), fork: false };
    }

    /// Schedules a start. The agent starts before the processes of its prompts.
    pub(super) fn want(&mut self, due: Due) {
        if self.due != Some(Due::Agent) {
            self.due = Some(due);
        }
    }

    pub(super) fn take_due(&mut self) -> Option<Due> {
        self.due.take()
    }

    /// The next thing that happens to the process. Cancel safe.
    pub(super) async fn next(&mut self, may_gather: bool) -> ProcessActivity {
        match &mut self.process {
            Some(process) => process.next(may_gather).await,
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agent_comes_before_the_processes_of_its_prompts() {
        for order in [[Due::Agent, Due::Process], [Due::Process, Due::Agent]] {
            let mut supervisor = Supervisor::default();
            order.into_iter().for_each(|due| supervisor.want(due));
            assert_eq!(supervisor.take_due(), Some(Due::Agent), "{order:?}");
            assert_eq!(supervisor.take_due(), None, "{order:?}");
        }
        let mut supervisor = Supervisor::default();
        supervisor.want(Due::Process);
        supervisor.want(Due::Process);
        assert_eq!(supervisor.take_due(), Some(Due::Process));
        assert_eq!(supervisor.take_due(), None);
    }

    #[test]
    fn a_process_is_for_one_turn() {
        let mut supervisor = Supervisor::default();
        assert!(!supervisor.works_on(1), "there is no process");
        for (current, own) in [(1, 1), (2, 2), (2, 3), (4, 4)] {
            supervisor.turn = supervisor.next_turn(Some(current));
            assert_eq!(supervisor.turn, Some(own));
        }
        supervisor.turn = supervisor.next_turn(None);
        assert_eq!(supervisor.turn, None, "one process for all turns");
    }

    #[test]
    fn nothing_starts_after_the_end() {
        let mut supervisor = Supervisor::default();
        supervisor.want(Due::Agent);
        supervisor.end();
        assert_eq!(supervisor.take_due(), None);
        assert!(!supervisor.has_process());
    }

    #[test]
    fn the_next_process_goes_on_with_what_the_last_one_told() {
        let origin = Origin { resume: Some("a".to_owned()), fork: true };
        let mut supervisor = Supervisor::new(origin);
        assert!(supervisor.origin().fork);
        supervisor.resume_from("b".to_owned());
        let origin = supervisor.origin();
        assert_eq!((origin.resume.as_deref(), origin.fork), (Some("b"), false));
    }

    #[test]
    fn signals_follow_an_interrupt_until_its_turn_is_over() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut supervisor = Supervisor::default();
        assert!(!supervisor.awaits_signal());
        supervisor.interrupted(start + second, 1);
        assert_eq!(supervisor.deadline(), Some(start + second));
        supervisor.send_due(start, second);
        assert_eq!(supervisor.deadline(), Some(start + second), "not yet");
        supervisor.send_due(start + second, 2 * second);
        assert_eq!(supervisor.deadline(), Some(start + 3 * second));
        supervisor.calm(false, 1);
        assert!(supervisor.awaits_signal());
        supervisor.calm(false, 2);
        assert!(!supervisor.awaits_signal());
        supervisor.end_by(start, TreeSignal::Terminate);
        supervisor.calm(true, 2);
        assert!(supervisor.awaits_signal(), "the process has not ended");
    }
}
