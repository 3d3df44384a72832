//! What is known of a session as a whole.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{AgentInfo, SessionEndReason, TurnFailure};
use crate::id::SessionId;
use crate::session::{AgentType, ApprovalMode};
use crate::usage::{TokenUsage, plus_cost};

/// What a session does now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionState {
    /// Its agent starts.
    Starting,
    /// It waits for a prompt.
    Idle,
    /// It works on one.
    Working,
    /// It waits for somebody to allow or deny.
    WaitingPermission,
    /// It waits for somebody to answer.
    WaitingQuestion,
    /// It works, but has said nothing for long.
    Stalled,
    /// It is over; it may be resumed.
    Ended,
}

impl SessionState {
    /// The name as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Idle => "idle",
            Self::Working => "working",
            Self::WaitingPermission => "waitingPermission",
            Self::WaitingQuestion => "waitingQuestion",
            Self::Stalled => "stalled",
            Self::Ended => "ended",
        }
    }
}

/// How a turn ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnEnd {
    /// As it should.
    Completed,
    /// By an error or at a limit.
    Failed,
    /// By somebody's wish.
    Interrupted,
}

/// A session as it stands in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// A UUID.
    pub id: SessionId,
    /// Which agent.
    pub agent_type: AgentType,
    /// What it does now.
    pub state: SessionState,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SessionEndReason>,
    /// What went wrong, if something did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The first words of its first prompt, or the title the agent gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Where it works.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The model in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the gateway asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
    /// The wire over which the agent is driven.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The agent's own id of the session, by which it resumes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_session_id: Option<String>,
    /// The agent's version, as it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The version of agentwire that ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_version: Option<String>,
    /// When it began, RFC 3339 in UTC.
    pub created_at: String,
    /// When its last event came.
    pub updated_at: String,
    /// The number of its last event.
    pub last_seq: u64,
    /// How many turns it has had.
    pub turns: u64,
    /// How the last of them that is over ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<TurnEnd>,
    /// What all its turns used.
    pub usage: TokenUsage,
    /// What all its turns cost, if the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How many requests wait for an answer.
    pub open_requests: u64,
}

/// How many letters a title has at most.
const TITLE_LIMIT: usize = 80;

impl SessionSummary {
    /// Takes a prompt's first words for the title, if there is none yet.
    pub fn entitle(&mut self, prompt: &str) {
        let words = prompt.split_whitespace().collect::<Vec<_>>().join(" ");
        if self.title.is_none() && !words.is_empty() {
            self.title = Some(words.chars().take(TITLE_LIMIT).collect());
        }
    }

    /// Takes what an agent says of itself, but for its own id of the session.
    pub fn inform(&mut self, info: &AgentInfo<'_>) {
        if let Some(model) = &info.model {
            self.model = Some(model.to_string());
        }
        if let Some(version) = &info.agent_version {
            self.agent_version = Some(version.to_string());
        }
    }

    /// Counts a turn that is over.
    pub fn turn_over(&mut self, end: TurnEnd, usage: Option<TokenUsage>, cost_usd: Option<f64>) {
        self.last_turn = Some(end);
        self.usage = self.usage.plus(&usage.unwrap_or_default());
        if let Some(cost) = cost_usd {
            self.cost_usd = Some(plus_cost(self.cost_usd.unwrap_or(0.0), cost));
        }
    }
}

impl From<TurnFailure> for TurnEnd {
    fn from(reason: TurnFailure) -> Self {
        match reason {
            TurnFailure::Interrupted => Self::Interrupted,
            TurnFailure::Error
            | TurnFailure::MaxTurns
            | TurnFailure::Budget
            | TurnFailure::Refused
            | TurnFailure::Died => Self::Failed,
        }
    }
}
