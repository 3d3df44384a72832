//! Subagents. The event's `agentId` names the subagent, `parentAgentId` the agent that spawned it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Text;
use crate::usage::TokenUsage;

/// A subagent started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct AgentSpawned<'a> {
    /// The kind of subagent, as the agent names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Text<'a>>,
    /// What it is for, in a few words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<Text<'a>>,
    /// Its prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text<'a>>,
    /// The agent's own id for the subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<Text<'a>>,
    /// Whether the agent that spawned it keeps working in the meantime.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub background: Option<bool>,
}

/// A subagent ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentFinished<'a> {
    /// How it ended.
    pub outcome: AgentOutcome,
    /// Its answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Text<'a>>,
    /// The agent's own id for the subagent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_id: Option<Text<'a>>,
    /// The tokens it used, if the agent reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// How long it took, as reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
}

impl AgentFinished<'_> {
    /// An end of which only the outcome is known.
    pub fn new(outcome: AgentOutcome) -> Self {
        Self { outcome, result: None, native_id: None, usage: None, duration_ms: None }
    }
}

/// How a subagent ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum AgentOutcome {
    /// It answered.
    Completed,
    /// It failed.
    Failed,
    /// It was stopped.
    Cancelled,
}
