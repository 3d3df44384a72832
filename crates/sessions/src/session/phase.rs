//! The phase of a session's life. It only moves forward: an ending session does not become live again, and
//! an ended one stays ended.

use agentwire_protocol::event::SessionEndReason;

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) enum Phase {
    /// Clients may prompt it and answer its requests.
    #[default]
    Live,
    /// No client is left. The session ends once its work is done; until then, rules answer the agent's
    /// requests.
    Finishing,
    /// Its process must end, and the session ends with it.
    Ending(Ending),
    /// Its end is reported.
    Over,
    /// The log could not be written, so its last entry is not the session's end.
    Lost,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Ending {
    reason: SessionEndReason,
    error: Option<String>,
    /// It was told to stop, whatever it is doing.
    is_stopped: bool,
    is_alone: bool,
}

/// What state a stop found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// The agent works, or could work.
    First,
    /// The agent is ending by itself and reads nothing more.
    Ending,
    /// It was stopped before, or has ended.
    Repeated,
}

impl Phase {
    pub(super) fn is_live(&self) -> bool {
        *self == Self::Live
    }

    /// Whether no client is left that could prompt or answer.
    pub(super) fn is_alone(&self) -> bool {
        match self {
            Self::Finishing => true,
            Self::Ending(ending) => ending.is_alone,
            Self::Live | Self::Over | Self::Lost => false,
        }
    }

    pub(super) fn is_ending(&self) -> bool {
        matches!(self, Self::Ending(_) | Self::Over | Self::Lost)
    }

    /// Whether it was told to stop, whatever it is doing, or has ended.
    pub(super) fn is_stopped(&self) -> bool {
        matches!(self, Self::Ending(Ending { is_stopped: true, .. }) | Self::Over | Self::Lost)
    }

    pub(super) fn is_ended(&self) -> bool {
        matches!(self, Self::Over | Self::Lost)
    }

    /// How the session ends now that its process has ended, if it was to end.
    pub(super) fn ending(&self) -> Option<(SessionEndReason, Option<String>)> {
        match self {
            Self::Ending(ending) => Some((ending.reason, ending.error.clone())),
            Self::Live | Self::Finishing | Self::Over | Self::Lost => None,
        }
    }

    /// No client is left.
    pub(super) fn finish(&mut self) {
        match self {
            Self::Live => *self = Self::Finishing,
            Self::Ending(ending) => ending.is_alone = true,
            Self::Finishing | Self::Over | Self::Lost => {}
        }
    }

    /// The work is done, and the agent ends by itself.
    pub(super) fn complete(&mut self) {
        if !self.is_ending() {
            self.set(SessionEndReason::Completed, None);
        }
    }

    /// The session cannot continue. A failure overrides any other reason.
    pub(super) fn fail(&mut self, error: String) {
        self.set(SessionEndReason::Failed, Some(error));
    }

    /// The session is told to stop. A failure stays a failure.
    pub(super) fn stop(&mut self, reason: SessionEndReason) -> Stop {
        let found = match self {
            Self::Live | Self::Finishing => Stop::First,
            Self::Ending(ending) if ending.is_stopped => Stop::Repeated,
            Self::Ending(_) => Stop::Ending,
            Self::Over | Self::Lost => Stop::Repeated,
        };
        if found != Stop::Repeated && !self.has_failed() {
            self.set(reason, None);
        }
        if let Self::Ending(ending) = self {
            ending.is_stopped = true;
        }
        found
    }

    /// Its end is reported. Returns whether it had not ended before.
    pub(super) fn end(&mut self) -> bool {
        let is_first = !self.is_ended();
        if is_first {
            *self = Self::Over;
        }
        is_first
    }

    /// Its log cannot be written.
    pub(super) fn lose(&mut self) {
        *self = Self::Lost;
    }

    fn has_failed(&self) -> bool {
        matches!(self, Self::Ending(Ending { reason: SessionEndReason::Failed, .. }))
    }

    fn set(&mut self, reason: SessionEndReason, error: Option<String>) {
        if !self.is_ended() {
            let (is_alone, is_stopped) = (self.is_alone(), self.is_stopped());
            *self = Self::Ending(Ending { reason, error, is_stopped, is_alone });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use SessionEndReason::{Cancelled, Completed, Failed};

    /// Every sequence of three steps.
    #[test]
    fn it_only_moves_on() {
        let steps: &[fn(&mut Phase)] = &[
            Phase::finish,
            Phase::complete,
            |phase| phase.fail("broken".to_owned()),
            |phase| {
                let _ = phase.stop(Cancelled);
            },
            |phase| {
                let _ = phase.end();
            },
            Phase::lose,
        ];
        for first in steps {
            for second in steps {
                for third in steps {
                    let mut phase = Phase::default();
                    let mut before = (false, false, false, false);
                    for step in [first, second, third] {
                        let was_alone = phase.is_alone();
                        step(&mut phase);
                        let now = (
                            !phase.is_live(),
                            phase.is_ending(),
                            phase.is_stopped(),
                            phase.is_ended(),
                        );
                        let is_back = |before: bool, now: bool| before && !now;
                        assert!(!is_back(before.0, now.0) && !is_back(before.1, now.1));
                        assert!(!is_back(before.2, now.2) && !is_back(before.3, now.3));
                        assert!(phase.is_ended() || !was_alone || phase.is_alone());
                        assert_eq!(phase.ending().is_some(), now.1 && !now.3);
                        before = now;
                    }
                }
            }
        }
    }

    #[test]
    fn a_failure_stays_one() {
        let mut phase = Phase::default();
        phase.complete();
        phase.fail("broken".to_owned());
        assert_eq!(phase.stop(Cancelled), Stop::Ending);
        assert_eq!(phase.ending(), Some((Failed, Some("broken".to_owned()))));
        assert_eq!(phase.stop(Cancelled), Stop::Repeated);
    }

    #[test]
    fn a_stop_replaces_the_end_that_was_coming() {
        let mut phase = Phase::default();
        phase.finish();
        phase.complete();
        assert_eq!(phase.ending(), Some((Completed, None)));
        assert_eq!(phase.stop(Cancelled), Stop::Ending);
        assert_eq!(phase.ending(), Some((Cancelled, None)));
        assert!(phase.is_alone() && phase.end() && !phase.end());
        assert_eq!(phase.stop(Cancelled), Stop::Repeated);
    }
}
