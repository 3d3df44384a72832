//! The summary of a session.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::event::{AgentInfo, SessionEndReason, TurnFailure};
use crate::id::SessionId;
use crate::session::{AgentType, ApprovalMode};
use crate::usage::{TokenUsage, plus_cost};

/// The current state of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SessionState {
    /// The agent is starting.
    Starting,
    /// The agent waits for a prompt.
    Idle,
    /// The agent is working.
    Working,
    /// The agent waits for permission.
    WaitingPermission,
    /// The agent waits for an answer to a question.
    WaitingQuestion,
    /// The agent is working, but has sent nothing for a long time.
    Stalled,
    /// The session has ended; it may be resumed.
    Ended,
}

impl SessionState {
    /// All names on the wire.
    pub const NAMES: [&'static str; 7] =
        ["starting", "idle", "working", "waitingPermission", "waitingQuestion", "stalled", "ended"];

    /// The name on the wire.
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
    /// It finished normally.
    Completed,
    /// It failed with an error or at a limit.
    Failed,
    /// Someone interrupted it.
    Interrupted,
}

/// A session as it appears in a list.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    /// A UUID.
    pub id: SessionId,
    /// The agent.
    pub agent_type: AgentType,
    /// The current state.
    pub state: SessionState,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<SessionEndReason>,
    /// What went wrong, if anything did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The title that a client gave it, else the agent's, else the first words of the first prompt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The working directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The model in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When the gateway asks for approval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
    /// The driver of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The agent's own session id, which it needs to resume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_session_id: Option<String>,
    /// The agent's version, as it reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// The version of agentwire that ran it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_version: Option<String>,
    /// When it started, RFC 3339 in UTC.
    pub created_at: String,
    /// When its last event was received.
    pub updated_at: String,
    /// The number of its last event.
    pub last_seq: u64,
    /// How many turns it has had.
    pub turns: u64,
    /// How the last finished turn ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_turn: Option<TurnEnd>,
    /// Tokens used by all turns.
    pub usage: TokenUsage,
    /// Cost of all turns, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// How many requests are waiting for an answer.
    pub open_requests: u64,
    /// Whether it is pinned.
    #[serde(default)]
    pub pinned: bool,
    /// Its tags.
    #[serde(default)]
    pub tags: Vec<String>,
}

/// The longest title that comes from a prompt, in characters.
const TITLE_LIMIT: usize = 80;

/// How a prompt starts, on one line of at most so many characters; `None` if it has no words.
pub fn first_words(prompt: &str, limit: usize) -> Option<String> {
    let mut line = String::new();
    let mut left = limit;
    for word in prompt.split_whitespace() {
        let gap = usize::from(!line.is_empty());
        if left <= gap {
            break;
        }
        left -= gap;
        line.extend(std::iter::repeat_n(' ', gap));
        let before = line.len();
        line.extend(word.chars().take(left));
        left -= line.get(before..).map_or(0, |added| added.chars().count());
    }
    (!line.is_empty()).then_some(line)
}

impl SessionSummary {
    /// Uses the first words of a prompt as the title, if there is none yet.
    pub fn entitle(&mut self, prompt: &str) {
        if self.title.is_none() {
            self.title = first_words(prompt, TITLE_LIMIT);
        }
    }

    /// Takes over what an agent reports about itself, except its own session id.
    pub fn inform(&mut self, info: &AgentInfo<'_>) {
        if let Some(model) = &info.model {
            self.model = Some(model.to_string());
        }
        if let Some(version) = &info.agent_version {
            self.agent_version = Some(version.to_string());
        }
    }

    /// Adds a turn that has ended.
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
