//! Which sessions have changed, in the order of their last change. Nothing is recorded while nobody watches.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agentwire_protocol::SessionId;
use tokio::sync::watch;
use uuid::Uuid;

/// How many sessions are remembered. A watcher that has missed changes of more starts over.
const KEPT: usize = 16_384;

/// The changes of sessions in one process.
pub(crate) struct Changes {
    /// Distinguishes the numbers of this process from those of another.
    epoch: String,
    is_recording: AtomicBool,
    state: Mutex<State>,
    /// The number of the last change.
    last: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    last: u64,
    /// Changes up to this number may be forgotten.
    floor: u64,
    numbers: HashMap<SessionId, u64>,
    /// The last change of each session.
    order: BTreeMap<u64, SessionId>,
}

impl Default for Changes {
    fn default() -> Self {
        Self {
            epoch: Uuid::new_v4().simple().to_string(),
            is_recording: AtomicBool::new(false),
            state: Mutex::default(),
            last: watch::Sender::new(0),
        }
    }
}

impl Changes {
    /// Records changes from now on.
    pub(crate) fn record(&self) {
        self.is_recording.store(true, Ordering::SeqCst);
    }

    /// Records no more changes. Nobody can continue from an earlier cursor.
    pub(crate) fn expire(&self) {
        let mut state = self.state();
        self.is_recording.store(false, Ordering::SeqCst);
        let last = state.last + 1;
        *state = State { last, floor: last, ..State::default() };
    }

    /// A session has changed, and readers now see the change.
    pub(crate) fn mark(&self, session: &SessionId) {
        if !self.is_recording.load(Ordering::SeqCst) {
            return;
        }
        let last = {
            let mut state = self.state();
            state.last += 1;
            let last = state.last;
            if let Some(before) = state.numbers.insert(session.clone(), last) {
                state.order.remove(&before);
            }
            state.order.insert(last, session.clone());
            if state.order.len() > KEPT
                && let Some((number, oldest)) = state.order.pop_first()
            {
                state.numbers.remove(&oldest);
                state.floor = number;
            }
            last
        };
        self.last.send_modify(|known| *known = last.max(*known));
    }

    /// The number of the last change.
    pub(crate) fn last(&self) -> u64 {
        self.state().last
    }

    /// The sessions whose last change came after `after`, oldest first; `None` if some are forgotten.
    pub(crate) fn since(&self, after: u64, most: usize) -> Option<Vec<(u64, SessionId)>> {
        let state = self.state();
        if after < state.floor || after > state.last {
            return None;
        }
        let later = state.order.range(after + 1..).take(most);
        Some(later.map(|(number, session)| (*number, session.clone())).collect())
    }

    /// Waits for a change after `after`.
    pub(crate) async fn after(&self, after: u64) {
        // The sender is in `self`, so this cannot fail.
        let _ = self.last.subscribe().wait_for(|last| *last > after).await;
    }

    /// The text by which a client continues after this change.
    pub(crate) fn cursor(&self, number: u64) -> String {
        format!("{}.{number}", self.epoch)
    }

    /// The number in a cursor of this process.
    pub(crate) fn number(&self, cursor: &str) -> Option<u64> {
        cursor.strip_prefix(&self.epoch)?.strip_prefix('.')?.parse().ok()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(number: usize) -> SessionId {
        SessionId::from(format!("s{number}"))
    }

    #[test]
    fn each_session_has_its_last_change() {
        let changes = Changes::default();
        changes.mark(&id(1));
        assert_eq!(changes.since(0, 9), Some(vec![]), "nothing is recorded yet");
        changes.record();
        for number in [1, 2, 1, 3] {
            changes.mark(&id(number));
        }
        assert_eq!(changes.since(0, 9), Some(vec![(2, id(2)), (3, id(1)), (4, id(3))]));
        assert_eq!(changes.since(2, 1), Some(vec![(3, id(1))]));
        assert_eq!(changes.since(4, 9), Some(vec![]));
        assert_eq!(changes.since(5, 9), None, "of another process");
        let cursor = changes.cursor(3);
        assert_eq!(changes.number(&cursor), Some(3));
        assert_eq!(Changes::default().number(&cursor), None);
        changes.expire();
        assert_eq!(changes.since(4, 9), None);
        assert_eq!(changes.since(changes.last(), 9), Some(vec![]));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let changes = Changes::default();
        changes.record();
        for number in 0..KEPT + 2 {
            changes.mark(&id(number));
        }
        assert_eq!(changes.since(0, 1), None);
        assert_eq!(changes.since(1, 1), None);
        assert_eq!(changes.since(2, 1), Some(vec![(3, id(2))]));
        let state = changes.state();
        assert_eq!((state.order.len(), state.numbers.len()), (KEPT, KEPT));
    }
}
