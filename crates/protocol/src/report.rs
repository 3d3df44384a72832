//! What is known about all sessions together: usage over time, and the search in their texts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::id::SessionId;
use crate::session::AgentType;

/// What usage to report.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct UsageQuery {
    /// Only turns that ended at this time or later, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Only turns that ended before this time, RFC 3339.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
    /// The length of a row in time; one row for the whole time if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bin: Option<UsageBin>,
    /// What to tell apart; everything together if omitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<UsageBy>,
}

/// The length of a row in time, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UsageBin {
    /// An hour.
    Hour,
    /// A day.
    Day,
}

impl UsageBin {
    /// All names on the wire.
    pub const NAMES: [&'static str; 2] = ["hour", "day"];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Hour => "hour",
            Self::Day => "day",
        }
    }
}

/// What rows of usage tell apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum UsageBy {
    /// The agents.
    Agent,
    /// The models.
    Model,
    /// The sessions.
    Session,
    /// The working directories.
    Directory,
}

impl UsageBy {
    /// All names on the wire.
    pub const NAMES: [&'static str; 4] = ["agent", "model", "session", "directory"];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Agent => "agent",
            Self::Model => "model",
            Self::Session => "session",
            Self::Directory => "directory",
        }
    }
}

/// The usage of turns that have ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageReport {
    /// The rows, the oldest first; within the same time, the most tokens first. At most 10,000.
    pub rows: Vec<UsageRow>,
    /// Whether every event in the store is counted. `false` while old sessions are still being read, or if
    /// there are more rows.
    pub complete: bool,
}

/// The usage of some turns. Tokens that an agent does not report are 0.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct UsageRow {
    /// When the row begins, with `bin`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bin: Option<String>,
    /// The agent, by agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentType>,
    /// The model, by model; absent if the agent did not report it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The session, by session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The working directory, by directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub directory: Option<String>,
    /// New input tokens: neither read from a cache nor written to it.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from a cache.
    pub cached_tokens: u64,
    /// Input tokens written to a cache.
    pub cache_creation_tokens: u64,
    /// Reasoning tokens.
    pub reasoning_tokens: u64,
    /// The cost that the agents report; absent if none of them does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// The cost by the operator's prices of the turns whose model has one; absent if none has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub computed_cost_usd: Option<f64>,
    /// Turns that ended, in whatever way.
    pub turns: u64,
    /// Tool calls of these turns.
    pub tool_calls: u64,
    /// How long these turns waited for an answer to a permission or a question, in milliseconds.
    pub waited_ms: u64,
}

/// What to search for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct SearchQuery {
    /// The words, all of which a text must have. Words in double quotes must follow each other. A word that
    /// ends in `*` stands for all words that start so.
    pub q: String,
    /// Only in this session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// Only texts of events of this type: turnStarted, textChunk, thinkingChunk, toolStarted or
    /// fileChanged.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The `next` of the previous page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub after: Option<String>,
    /// The maximum page size; 20 by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<usize>,
}

impl SearchQuery {
    /// The types of events whose texts are found.
    pub const TYPES: [&'static str; 5] =
        ["turnStarted", "textChunk", "thinkingChunk", "toolStarted", "fileChanged"];
}

/// What a search found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchResult {
    /// The texts, the last indexed first.
    pub hits: Vec<SearchHit>,
    /// The value of `after` for the next page, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// Whether every event in the store was searched. `false` while old sessions are still being read.
    pub complete: bool,
}

impl SearchResult {
    /// The default page size.
    pub const PAGE: usize = 20;
    /// The maximum page size.
    pub const LIMIT: usize = 200;
}

/// A text with the words.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchHit {
    /// The session.
    pub session_id: SessionId,
    /// The number of the first event of the text.
    pub seq: u64,
    /// The type of that event.
    #[serde(rename = "type")]
    pub kind: String,
    /// When it was received.
    pub timestamp: String,
    /// The title of the session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The part of the text around the words.
    pub snippet: String,
    /// Where the words are in `snippet`: start and end of each, in characters.
    pub marks: Vec<[usize; 2]>,
}
