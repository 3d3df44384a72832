//! Detects problems of a process by time: silence, a closed output, processes left behind. The caller
//! passes in the time.

use std::time::Duration;

use tokio::time::Instant;

use crate::settings::Timing;

/// How long an agent may keep running after it closed its output.
const CLOSED_GRACE: Duration = Duration::from_secs(2);

/// How long to wait for the end of processes that were left behind. They are killed immediately; only
/// processes that run as another user survive that.
const LEFT_GRACE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(in super::super) struct Watch {
    started: Instant,
    /// When it last sent something or got something to do.
    heard: Instant,
    has_spoken: bool,
    /// When it closed stdout, if it still runs.
    closed: Option<Instant>,
    has_exited: bool,
    /// How long to wait for the processes that it left behind.
    left_until: Option<Instant>,
    /// Why the gateway ended it, if it did.
    verdict: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Alarm {
    /// It never sent anything. Every agent has something to answer when it starts.
    Mute,
    /// It closed its output and still runs.
    Closed,
    /// It has work, but has sent nothing for a long time.
    Stalled,
    /// It has exited and left processes that cannot be killed.
    Left,
}

impl Watch {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            started: now,
            heard: now,
            has_spoken: false,
            closed: None,
            has_exited: false,
            left_until: None,
            verdict: None,
        }
    }

    /// The agent has new work, so its silence is counted from now.
    pub(super) fn touch(&mut self, now: Instant) {
        self.heard = now;
    }

    /// It has sent `count` bytes; 0 means the end of its output.
    pub(super) fn hear(&mut self, now: Instant, count: usize) {
        self.heard = now;
        self.has_spoken |= count > 0;
        if count == 0 {
            self.closed = Some(now);
        }
    }

    pub(super) fn exited(&mut self, now: Instant, is_gone: bool) {
        self.has_exited = true;
        self.left_until = (!is_gone).then(|| now + LEFT_GRACE);
    }

    pub(super) fn gone(&mut self) {
        self.left_until = None;
    }

    pub(in super::super) fn condemn(&mut self, reason: String) {
        self.verdict = Some(reason);
    }

    pub(in super::super) fn is_mute(&self) -> bool {
        !self.has_spoken
    }

    pub(in super::super) fn verdict(&self) -> Option<&str> {
        self.verdict.as_deref()
    }

    /// When [`Self::alarm`] is due. `may_stall`: the agent has work and nothing holds it up.
    /// `is_signalled`: the process is being ended already.
    pub(in super::super) fn deadline(
        &self,
        timing: &Timing,
        may_stall: bool,
        is_signalled: bool,
    ) -> Option<Instant> {
        let alarms = [Alarm::Mute, Alarm::Closed, Alarm::Stalled, Alarm::Left];
        alarms.iter().filter_map(|alarm| self.at(*alarm, timing, may_stall, is_signalled)).min()
    }

    /// The alarm that is due. A closed output is reported once.
    pub(in super::super) fn alarm(
        &mut self,
        now: Instant,
        timing: &Timing,
        may_stall: bool,
        is_signalled: bool,
    ) -> Option<Alarm> {
        let alarms = [Alarm::Left, Alarm::Mute, Alarm::Closed, Alarm::Stalled];
        let has_come = |alarm: &Alarm| {
            self.at(*alarm, timing, may_stall, is_signalled).is_some_and(|at| at <= now)
        };
        let alarm = alarms.into_iter().find(has_come)?;
        if alarm == Alarm::Closed {
            self.closed = None;
        }
        Some(alarm)
    }

    fn at(
        &self,
        alarm: Alarm,
        timing: &Timing,
        may_stall: bool,
        is_signalled: bool,
    ) -> Option<Instant> {
        let lives = !self.has_exited;
        match alarm {
            Alarm::Mute => (lives && !self.has_spoken && self.verdict.is_none())
                .then(|| self.started + timing.call),
            Alarm::Closed => {
                self.closed.filter(|_| lives && !is_signalled).map(|closed| closed + CLOSED_GRACE)
            }
            Alarm::Stalled => (lives && may_stall).then(|| self.heard + timing.stall),
            Alarm::Left => self.left_until,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn timing() -> Timing {
        Timing { call: 60 * SECOND, stall: 300 * SECOND, ..Timing::default() }
    }

    #[test]
    fn a_process_that_says_nothing_is_mute_once_it_had_its_time() {
        let start = Instant::now();
        let mut watch = Watch::new(start);
        assert_eq!(watch.deadline(&timing(), false, false), Some(start + 60 * SECOND));
        assert_eq!(watch.alarm(start + 59 * SECOND, &timing(), false, false), None);
        assert_eq!(watch.alarm(start + 60 * SECOND, &timing(), false, false), Some(Alarm::Mute));
        watch.condemn("mute".to_owned());
        assert_eq!(watch.deadline(&timing(), false, false), None);
        let mut watch = Watch::new(start);
        watch.hear(start, 1);
        assert_eq!(watch.deadline(&timing(), false, false), None);
    }

    #[test]
    fn a_closed_output_is_reported_once_unless_it_is_being_ended() {
        let start = Instant::now();
        let mut watch = Watch::new(start);
        watch.hear(start, 1);
        watch.hear(start, 0);
        let late = start + CLOSED_GRACE;
        assert_eq!(watch.alarm(late, &timing(), false, true), None);
        assert_eq!(watch.alarm(late, &timing(), false, false), Some(Alarm::Closed));
        assert_eq!(watch.alarm(late, &timing(), false, false), None);
    }

    #[test]
    fn only_who_works_stalls_and_what_it_hears_begins_the_time_again() {
        let start = Instant::now();
        let mut watch = Watch::new(start);
        watch.hear(start, 1);
        let late = start + 300 * SECOND;
        assert_eq!(watch.alarm(late, &timing(), false, false), None);
        assert_eq!(watch.alarm(late, &timing(), true, false), Some(Alarm::Stalled));
        watch.touch(late);
        assert_eq!(watch.deadline(&timing(), true, false), Some(late + 300 * SECOND));
    }

    #[test]
    fn what_is_left_is_waited_for_and_nothing_else_counts_any_more() {
        let start = Instant::now();
        let mut watch = Watch::new(start);
        watch.exited(start, false);
        assert_eq!(watch.deadline(&timing(), true, false), Some(start + LEFT_GRACE));
        assert_eq!(watch.alarm(start + LEFT_GRACE, &timing(), true, false), Some(Alarm::Left));
        watch.gone();
        assert_eq!(watch.deadline(&timing(), true, false), None);
    }
}
