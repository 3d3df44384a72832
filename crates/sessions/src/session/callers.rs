//! Callers that wait for a reply. Each gets exactly one.

use std::collections::BTreeMap;
use std::time::Duration;

use agentwire_protocol::Call;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::{Client, CommandReply};

pub(super) const NOBODY: Call = Call(0);

/// Callers that wait for a reply, and the client whose command is running.
#[derive(Debug, Default)]
pub(super) struct Callers {
    waiting: BTreeMap<u64, Caller>,
    last: u64,
    current: Client,
}

#[derive(Debug)]
struct Caller {
    reply: oneshot::Sender<CommandReply>,
    deadline: Instant,
}

impl Callers {
    pub(super) fn add(&mut self, reply: oneshot::Sender<CommandReply>, deadline: Instant) -> Call {
        self.last += 1;
        self.waiting.insert(self.last, Caller { reply, deadline });
        Call(self.last)
    }

    /// Removes the caller and returns its reply channel.
    pub(super) fn take(&mut self, call: Call) -> Option<oneshot::Sender<CommandReply>> {
        self.waiting.remove(&call.0).map(|waiting| waiting.reply)
    }

    pub(super) fn is_waiting(&self, call: Call) -> bool {
        self.waiting.contains_key(&call.0)
    }

    /// The callers whose deadline is at or before `until`, or all of them.
    pub(super) fn waiting(&self, until: Option<Instant>) -> Vec<Call> {
        let is_late = |waiting: &Caller| until.is_none_or(|until| waiting.deadline <= until);
        let late = self.waiting.iter().filter(|(_, waiting)| is_late(waiting));
        late.map(|(call, _)| Call(*call)).collect()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.waiting.values().map(|waiting| waiting.deadline).min()
    }

    /// Extends the deadline of late callers: their answer exists, but is not stored yet.
    pub(super) fn extend(&mut self, now: Instant, by: Duration) {
        for waiting in self.waiting.values_mut().filter(|waiting| waiting.deadline <= now) {
            waiting.deadline = now + by;
        }
    }

    /// The client whose command is running, or a nameless one.
    pub(super) fn current(&self) -> &Client {
        &self.current
    }

    pub(super) fn set_current(&mut self, client: Client) {
        self.current = client;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_caller_is_found_once_and_the_late_ones_by_their_time() {
        let (start, second) = (Instant::now(), Duration::from_secs(1));
        let mut callers = Callers::default();
        let mut add = |at| callers.add(oneshot::channel().0, at);
        let (first, late) = (add(start), add(start + second));
        assert!(first != NOBODY && first != late);
        assert_eq!(callers.deadline(), Some(start));
        assert_eq!(callers.waiting(Some(start)), [first]);
        assert_eq!(callers.waiting(None), [first, late]);
        callers.extend(start, 5 * second);
        assert_eq!(callers.deadline(), Some(start + second));
        assert!(callers.take(first).is_some() && callers.take(first).is_none());
        assert!(!callers.is_waiting(first) && callers.is_waiting(late));
        assert!(callers.take(NOBODY).is_none());
    }
}
