//! What lists of sessions are filtered and sorted by. Small, so that a list can look at all sessions.

use agentwire_protocol::{AgentType, Labels, SessionId, SessionState, SessionSummary};
use serde::Deserialize;

use super::Record;

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
    pub created_at: String,
    pub updated_at: String,
    pub labels: Labels,
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
    created_at: String,
    updated_at: String,
}

impl Brief {
    pub(super) fn new(record: Record, labels: Labels) -> Self {
        let Record { summary, first_prompt, .. } = record;
        let SessionSummary { id, agent_type, state, title, working_directory, .. } = summary;
        let SessionSummary { created_at, updated_at, .. } = summary;
        Self {
            id,
            agent: agent_type,
            state,
            title,
            first_prompt,
            directory: working_directory,
            created_at,
            updated_at,
            labels,
        }
    }
}

impl BriefRecord {
    pub(super) fn with(self, labels: Labels) -> Brief {
        let BriefSummary { id, agent_type, state, title, .. } = self.summary;
        let BriefSummary { working_directory, created_at, updated_at, .. } = self.summary;
        Brief {
            id,
            agent: agent_type,
            state,
            title,
            first_prompt: self.first_prompt,
            directory: working_directory,
            created_at,
            updated_at,
            labels,
        }
    }

    pub(super) fn id(&self) -> &SessionId {
        &self.summary.id
    }
}
