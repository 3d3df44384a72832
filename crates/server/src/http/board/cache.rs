//! The server's state for the board: the sessions it must end, and positions in event lists from which a
//! later page can continue without rereading everything before.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agentwire_dialects::board::Board;
use agentwire_protocol::{SessionId, SessionSummary};

/// For how many sessions positions are stored; the most recently read ones.
const SESSIONS: usize = 16;

/// How many positions are stored per session.
const PLACES: usize = 32;

/// The largest state at a position, in bytes. A larger one is not stored.
const WEIGHT: usize = 16 << 10;

/// The minimum number of events between two positions.
pub(super) const STRIDE: usize = 256;

#[derive(Default)]
pub(crate) struct Desk {
    /// Sessions that end when their turn ends.
    own: Mutex<HashSet<SessionId>>,
    lists: Mutex<VecDeque<List>>,
}

struct List {
    id: SessionId,
    /// An id may be reused after its session is deleted.
    created_at: String,
    stride: usize,
    /// In order.
    places: Vec<Place>,
    /// The furthest position that was read.
    last: Option<Place>,
}

/// A position in the list of a session: after this event.
#[derive(Clone, Default)]
pub(super) struct Place {
    pub(super) seq: u64,
    /// The number of board events up to here.
    pub(super) count: usize,
    pub(super) board: Board,
}

impl Desk {
    /// The board is now responsible for ending this session. Returns false if it already was.
    pub(super) fn take_on(&self, id: &SessionId) -> bool {
        lock(&self.own).insert(id.clone())
    }

    pub(super) fn let_go(&self, id: &SessionId) {
        lock(&self.own).remove(id);
    }

    pub(in crate::http) fn sees_to(&self, id: &SessionId) -> bool {
        lock(&self.own).contains(id)
    }

    /// The last position with at most `count` events before it.
    pub(super) fn before(&self, session: &SessionSummary, count: usize) -> Place {
        self.with(session, |list| {
            let mut places = list.places.iter().chain(&list.last).rev();
            let fitting = places.find(|place| place.count <= count);
            fitting.cloned().unwrap_or_default()
        })
    }

    /// Stores a position if it is far enough from its neighbours, or is the last one.
    pub(super) fn keep(&self, session: &SessionSummary, place: &Place, is_last: bool) {
        if place.board.weight() <= WEIGHT {
            self.with(session, |list| list.keep(place, is_last));
        }
    }

    /// Calls `what` with the positions of a session, and marks the session as the most recently read.
    fn with<T>(&self, session: &SessionSummary, what: impl FnOnce(&mut List) -> T) -> T {
        let mut lists = lock(&self.lists);
        let at = lists.iter().position(|list| list.id == session.id);
        let known = at.and_then(|at| lists.remove(at));
        let known = known.filter(|list| list.created_at == session.created_at);
        let mut list = known.unwrap_or_else(|| List {
            id: session.id.clone(),
            created_at: session.created_at.clone(),
            stride: STRIDE,
            places: Vec::new(),
            last: None,
        });
        let done = what(&mut list);
        lists.truncate(SESSIONS - 1);
        lists.push_front(list);
        done
    }
}

impl List {
    fn keep(&mut self, place: &Place, is_last: bool) {
        if is_last {
            if self.last.as_ref().is_none_or(|last| last.seq < place.seq) {
                self.last = Some(place.clone());
            }
            return;
        }
        let at = self.places.partition_point(|known| known.seq < place.seq);
        let is_near = |other: &Place| place.count.abs_diff(other.count) < self.stride;
        let before = at.checked_sub(1).and_then(|at| self.places.get(at));
        if before.is_some_and(is_near) || self.places.get(at).is_some_and(is_near) {
            return;
        }
        self.places.insert(at, place.clone());
        if self.places.len() > PLACES {
            // Keep every second position.
            self.stride = self.stride.saturating_mul(2);
            let mut at = 0;
            self.places.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
    }
}

fn lock<T>(kept: &Mutex<T>) -> MutexGuard<'_, T> {
    kept.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session(id: &str, created_at: &str) -> SessionSummary {
        let summary = serde_json::json!({
            "id": id, "agentType": "demo", "state": "ended", "createdAt": created_at,
            "updatedAt": "", "lastSeq": 0, "turns": 0, "openRequests": 0,
            "usage": { "inputTokens": 0, "outputTokens": 0, "totalTokens": 0 },
        });
        serde_json::from_value(summary).expect("a summary")
    }

    fn place(count: usize) -> Place {
        Place { seq: count as u64, count, board: Board::default() }
    }

    #[test]
    fn places_are_few_and_spread_over_the_whole() {
        let desk = Desk::default();
        let session = session("a", "1");
        for count in 1..100_000 {
            desk.keep(&session, &place(count), count == 99_999);
        }
        // Reading again as the session grows adds no positions.
        for count in 1..1000 {
            desk.keep(&session, &place(99_999 + count), true);
        }
        let kept: Vec<usize> = lock(&desk.lists)[0].places.iter().map(|it| it.count).collect();
        assert!((PLACES / 2..=PLACES).contains(&kept.len()) && kept.is_sorted(), "{kept:?}");
        assert_eq!(desk.before(&session, usize::MAX).count, 100_998);
        for count in [0, 1, 5000, 50_000, 99_998, 99_999] {
            let found = desk.before(&session, count).count;
            assert!(found <= count && count - found <= 10_000, "{count}: {found}");
        }
    }

    #[test]
    fn a_session_that_took_the_id_of_another_has_none_of_its_places() {
        let desk = Desk::default();
        desk.keep(&session("a", "1"), &place(5), true);
        assert_eq!(desk.before(&session("a", "1"), 9).count, 5);
        assert_eq!(desk.before(&session("a", "2"), 9).count, 0);
    }

    #[test]
    fn only_the_sessions_that_were_read_last_are_kept() {
        let desk = Desk::default();
        for number in 0..100 {
            desk.keep(&session(&number.to_string(), "1"), &place(5), true);
        }
        assert_eq!(lock(&desk.lists).len(), SESSIONS);
        assert_eq!(desk.before(&session("99", "1"), 9).count, 5);
        assert_eq!(desk.before(&session("0", "1"), 9).count, 0);
    }
}
