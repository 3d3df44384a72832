//! Signals that grow stronger until the agent reacts. The caller passes in the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::process::TreeSignal;

#[derive(Debug, Default)]
pub(super) struct Escalation {
    next: Option<Next>,
}

#[derive(Clone, Copy, Debug)]
struct Next {
    at: Instant,
    signal: TreeSignal,
    goal: Goal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Goal {
    /// The end of this turn, which may not have started.
    Turn(u64),
    Process,
}

impl Escalation {
    /// The turn was interrupted. If it has not ended at `at`, signals follow. Signals that are already
    /// planned stay.
    pub(super) fn interrupt(&mut self, at: Instant, turn: u64) {
        let goal = Goal::Turn(turn);
        match &mut self.next {
            Some(Next { goal: Goal::Process, .. }) => {}
            Some(next) => next.goal = goal,
            None => self.next = Some(Next { at, signal: TreeSignal::Interrupt, goal }),
        }
    }

    /// The process must end: `signal` is sent at `at`.
    pub(super) fn end(&mut self, at: Instant, signal: TreeSignal) {
        self.next = Some(Next { at, signal, goal: Goal::Process });
    }

    pub(super) fn is_on(&self) -> bool {
        self.next.is_some()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.next.map(|next| next.at)
    }

    /// If the agent is idle or the current turn is another one, the interrupt has reached its goal.
    pub(super) fn calm(&mut self, is_idle: bool, turn: u64) {
        let is_reached = |next: &mut Next| match next.goal {
            Goal::Turn(goal) => is_idle || turn != goal,
            Goal::Process => false,
        };
        self.next.take_if(is_reached);
    }

    pub(super) fn clear(&mut self) {
        self.next = None;
    }

    /// The signal to send now. A stronger one follows after `pause`.
    pub(super) fn due(&mut self, now: Instant, pause: Duration) -> Option<TreeSignal> {
        let Next { signal, goal, .. } = self.next.filter(|next| next.at <= now)?;
        let stronger = match signal {
            TreeSignal::Interrupt => Some(TreeSignal::Terminate),
            TreeSignal::Terminate => Some(TreeSignal::Kill),
            TreeSignal::Kill | TreeSignal::Pause | TreeSignal::Continue => None,
        };
        self.next = stronger.map(|signal| Next { at: now + pause, signal, goal });
        Some(signal)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn signals_grow_stronger_until_the_last() {
        let start = Instant::now();
        let mut escalation = Escalation::default();
        escalation.interrupt(start + SECOND, 1);
        assert_eq!(escalation.due(start, SECOND), None);
        let mut sent = Vec::new();
        let mut now = start;
        while let Some(at) = escalation.deadline() {
            now = at;
            sent.extend(escalation.due(now, SECOND));
        }
        assert_eq!(sent, [TreeSignal::Interrupt, TreeSignal::Terminate, TreeSignal::Kill]);
        assert_eq!(now, start + 3 * SECOND);
    }

    #[test]
    fn it_ends_with_the_turn_that_it_is_for() {
        let start = Instant::now();
        let mut escalation = Escalation::default();
        escalation.interrupt(start, 1);
        escalation.calm(false, 1);
        assert!(escalation.is_on());
        escalation.calm(false, 2);
        assert!(!escalation.is_on());
        escalation.interrupt(start, 2);
        escalation.calm(true, 2);
        assert!(!escalation.is_on());
    }

    #[test]
    fn what_ends_the_process_goes_on_whatever_becomes_of_the_turn() {
        let start = Instant::now();
        let mut escalation = Escalation::default();
        escalation.end(start, TreeSignal::Terminate);
        escalation.interrupt(start + SECOND, 1);
        escalation.calm(true, 1);
        assert_eq!(escalation.due(start, SECOND), Some(TreeSignal::Terminate));
        escalation.calm(true, 2);
        assert_eq!(escalation.due(start + SECOND, SECOND), Some(TreeSignal::Kill));
    }
}
