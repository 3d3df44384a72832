//! What a list needs to know of a session: small, so that a list can look at many.

use agentwire_protocol::{AgentType, Labels, SessionId, SessionState, SessionSummary};
use serde::Deserialize;

use super::Record;
use crate::clock;

/// How old the stored time of the last activity may become while a session does not change its state, in
/// milliseconds. To store it takes an append longer.
const STALE: i64 = 60_000;

/// The order of a list; the last comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ListOrder {
    Activity,
    Created,
}

/// Where a session is in a list. No two sessions have the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// When it was last active, in milliseconds since 1970; [`Place::UNKNOWN`] if that was not stored.
    pub at: i64,
    /// Its number: sessions that started later have larger ones.
    pub number: i64,
}

impl Place {
    /// Before all sessions.
    pub const START: Self = Self { at: i64::MAX, number: i64::MAX };

    /// The time of sessions of old stores, which come after all others.
    pub const UNKNOWN: i64 = -1;

    /// Whether a session here comes after one there.
    pub fn is_after(self, other: Self, order: ListOrder) -> bool {
        match order {
            ListOrder::Activity => self < other,
            ListOrder::Created => self.number < other.number,
        }
    }
}

/// When a session was last active, from its summary.
pub(super) fn active_at(summary: &SessionSummary) -> i64 {
    let nanoseconds = clock::nanoseconds(&summary.updated_at).unwrap_or(0);
    i64::try_from(nanoseconds / 1_000_000).unwrap_or(0)
}

/// Whether to store the time of the last activity again. A change of the state is always stored.
pub(super) fn is_stale(stored: Option<i64>, at: i64) -> bool {
    stored.is_none_or(|stored| at < stored || at - stored >= STALE)
}

/// A session, as far as lists are filtered and sorted by it.
#[derive(Clone, Debug, PartialEq)]
pub struct Brief {
    pub id: SessionId,
    pub agent: AgentType,
    pub state: SessionState,
    /// The title that comes from the prompt or the agent.
    pub title: Option<String>,
    pub first_prompt: Option<String>,
    pub directory: Option<String>,
    pub labels: Labels,
    pub place: Place,
}

/// The fields of a stored record that a list needs.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct BriefRecord {
    summary: BriefSummary,
    #[serde(default)]
    first_prompt: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct BriefSummary {
    id: SessionId,
    agent_type: AgentType,
    state: SessionState,
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    working_directory: Option<String>,
}

impl Brief {
    pub(super) fn new(record: Record, labels: Labels, place: Place) -> Self {
        let Record { summary, first_prompt, .. } = record;
        let SessionSummary { id, agent_type, state, title, working_directory, .. } = summary;
        Self {
            id,
            agent: agent_type,
            state,
            title,
            first_prompt,
            directory: working_directory,
            labels,
            place,
        }
    }
}

impl BriefRecord {
    pub(super) fn with(self, labels: Labels, place: Place) -> Brief {
        let BriefSummary { id, agent_type, state, title, working_directory } = self.summary;
        Brief {
            id,
            agent: agent_type,
            state,
            title,
            first_prompt: self.first_prompt,
            directory: working_directory,
            labels,
            place,
        }
    }
}
