//! The server's state for the board: the sessions it must end, and positions in event lists from which a
//! later page can continue without rereading everything before.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use agentwire_dialects::board::Board;
use agentwire_protocol::{SessionId, SessionSummary};

/// For how many sessions positions are stored; the most recently read ones.
const SESSIONS: usize = 16;

/// How many positions are stored per session.
const POSITIONS: usize = 32;

/// The largest state at a position, in bytes. A larger one is not stored.
const SIZE_LIMIT: usize = 16 << 10;

/// The minimum number of events between two positions.
pub(super) const STRIDE: usize = 256;

#[derive(Default)]
pub(crate) struct BoardSessions {
    /// Sessions that end when their turn ends.
    owned: Mutex<HashSet<SessionId>>,
    positions_by_session: Mutex<VecDeque<SessionPositions>>,
}

struct SessionPositions {
    id: SessionId,
    /// An id may be reused after its session is deleted.
    created_at: String,
    stride: usize,
    /// In order.
    positions: Vec<Position>,
    /// The furthest position that was read.
    last: Option<Position>,
}

/// A position in the list of a session: after this event.
#[derive(Clone, Default)]
pub(super) struct Position {
    pub(super) seq: u64,
    /// The number of board events up to here.
    pub(super) count: usize,
    pub(super) board: Board,
}

impl BoardSessions {
    /// The board is now responsible for ending this session. Returns false if it already was.
    pub(super) fn add_owned(&self, id: &SessionId) -> bool {
        lock(&self.owned).insert(id.clone())
    }

    pub(super) fn remove_owned(&self, id: &SessionId) {
        lock(&self.owned).remove(id);
    }

    pub(in crate::http) fn owns(&self, id: &SessionId) -> bool {
        lock(&self.owned).contains(id)
    }

    /// The last position with at most `count` events before it.
    pub(super) fn position_before(&self, session: &SessionSummary, count: usize) -> Position {
        self.with(session, |list| {
            let mut positions = list.positions.iter().chain(&list.last).rev();
            let fitting = positions.find(|position| position.count <= count);
            fitting.cloned().unwrap_or_default()
        })
    }

    /// Stores a position if it is far enough from its neighbours, or is the last one.
    pub(super) fn store_position(
        &self,
        session: &SessionSummary,
        position: &Position,
        is_last: bool,
    ) {
        if position.board.weight() <= SIZE_LIMIT {
            self.with(session, |list| list.store_position(position, is_last));
        }
    }

    /// Calls `what` with the positions of a session, and marks the session as the most recently read.
    fn with<T>(
        &self,
        session: &SessionSummary,
        what: impl FnOnce(&mut SessionPositions) -> T,
    ) -> T {
        let mut positions_by_session = lock(&self.positions_by_session);
        let at = positions_by_session.iter().position(|list| list.id == session.id);
        let known = at.and_then(|at| positions_by_session.remove(at));
        let known = known.filter(|list| list.created_at == session.created_at);
        let mut list = known.unwrap_or_else(|| SessionPositions {
            id: session.id.clone(),
            created_at: session.created_at.clone(),
            stride: STRIDE,
            positions: Vec::new(),
            last: None,
        });
        let done = what(&mut list);
        positions_by_session.truncate(SESSIONS - 1);
        positions_by_session.push_front(list);
        done
    }
}

impl SessionPositions {
    fn store_position(&mut self, position: &Position, is_last: bool) {
        if is_last {
            if self.last.as_ref().is_none_or(|last| last.seq < position.seq) {
                self.last = Some(position.clone());
            }
            return;
        }
        let at = self.positions.partition_point(|known| known.seq < position.seq);
        let is_near = |other: &Position| position.count.abs_diff(other.count) < self.stride;
        let before = at.checked_sub(1).and_then(|at| self.positions.get(at));
        if before.is_some_and(is_near) || self.positions.get(at).is_some_and(is_near) {
            return;
        }
        self.positions.insert(at, position.clone());
        if self.positions.len() > POSITIONS {
            // Keep every second position.
            self.stride = self.stride.saturating_mul(2);
            let mut at = 0;
            self.positions.retain(|_| {
                at += 1;
                at % 2 == 0
            });
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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

    fn position(count: usize) -> Position {
        Position { seq: count as u64, count, board: Board::default() }
    }

    #[test]
    fn places_are_few_and_spread_over_the_whole() {
        let sessions = BoardSessions::default();
        let session = session("a", "1");
        for count in 1..100_000 {
            sessions.store_position(&session, &position(count), count == 99_999);
        }
        // Reading again as the session grows adds no positions.
        for count in 1..1000 {
            sessions.store_position(&session, &position(99_999 + count), true);
        }
        let stored: Vec<usize> =
            lock(&sessions.positions_by_session)[0].positions.iter().map(|it| it.count).collect();
        assert!(
            (POSITIONS / 2..=POSITIONS).contains(&stored.len()) && stored.is_sorted(),
            "{stored:?}"
        );
        assert_eq!(sessions.position_before(&session, usize::MAX).count, 100_998);
        for count in [0, 1, 5000, 50_000, 99_998, 99_999] {
            let found = sessions.position_before(&session, count).count;
            assert!(found <= count && count - found <= 10_000, "{count}: {found}");
        }
    }

    #[test]
    fn a_session_that_took_the_id_of_another_has_none_of_its_places() {
        let sessions = BoardSessions::default();
        sessions.store_position(&session("a", "1"), &position(5), true);
        assert_eq!(sessions.position_before(&session("a", "1"), 9).count, 5);
        assert_eq!(sessions.position_before(&session("a", "2"), 9).count, 0);
    }

    #[test]
    fn only_the_sessions_that_were_read_last_are_kept() {
        let sessions = BoardSessions::default();
        for number in 0..100 {
            sessions.store_position(&session(&number.to_string(), "1"), &position(5), true);
        }
        assert_eq!(lock(&sessions.positions_by_session).len(), SESSIONS);
        assert_eq!(sessions.position_before(&session("99", "1"), 9).count, 5);
        assert_eq!(sessions.position_before(&session("0", "1"), 9).count, 0);
    }
}
