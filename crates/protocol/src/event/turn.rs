//! A turn's beginning and end.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{Json, Text};
use crate::usage::{ModelUsage, TokenUsage};

/// The agent began to work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted<'a> {
    /// From 1.
    pub turn_number: u64,
    /// What it works on, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text<'a>>,
    /// The prompts that it works on, by the ids under which they were taken.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub message_ids: Vec<Text<'a>>,
    /// Who began it.
    #[serde(default, skip_serializing_if = "TurnOrigin::is_prompt")]
    pub origin: TurnOrigin,
}

/// Who began a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnOrigin {
    /// A prompt.
    #[default]
    Prompt,
    /// The agent by itself, such as after a background task.
    Agent,
}

impl TurnOrigin {
    fn is_prompt(&self) -> bool {
        *self == Self::Prompt
    }
}

/// The agent finished a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnCompleted<'a> {
    /// The number of the turn that ended.
    pub turn_number: u64,
    /// What this turn used; running totals are turned into differences.
    pub usage: TokenUsage,
    /// How long it took, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What this turn cost, if the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Usage by model, where the agent tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUsage>,
    /// Why the model stopped, in the agent's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Text<'a>>,
    /// The final answer, where the agent repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Text<'a>>,
    /// The answer that follows the schema asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Json<'a>>,
    /// Tool calls that were refused, as the agent lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denials: Option<Json<'a>>,
}

impl TurnCompleted<'_> {
    /// A copy that borrows nothing.
    pub fn into_owned(self) -> TurnCompleted<'static> {
        TurnCompleted {
            turn_number: self.turn_number,
            usage: self.usage,
            duration_ms: self.duration_ms,
            cost_usd: self.cost_usd,
            models: self.models,
            stop_reason: self.stop_reason.map(Text::into_owned),
            result: self.result.map(Text::into_owned),
            structured_output: self.structured_output.map(Json::into_owned),
            denials: self.denials.map(Json::into_owned),
        }
    }
}

/// The turn ended in any other way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnFailed<'a> {
    /// The number of the turn that ended.
    pub turn_number: u64,
    /// What went wrong, in words.
    pub error: Text<'a>,
    /// Of which kind it was.
    pub reason: TurnFailure,
    /// The agent's own name of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Text<'a>>,
    /// What this turn used, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// How long it took, as the agent says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// What this turn cost, if the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Usage by model, where the agent tells.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUsage>,
    /// Tool calls that were refused, as the agent lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denials: Option<Json<'a>>,
}

impl<'a> TurnFailed<'a> {
    /// A turn that failed for that reason, of which no more is known.
    pub fn new(turn_number: u64, reason: TurnFailure, error: impl Into<Text<'a>>) -> Self {
        Self {
            turn_number,
            error: error.into(),
            reason,
            error_type: None,
            usage: None,
            duration_ms: None,
            cost_usd: None,
            models: Vec::new(),
            denials: None,
        }
    }
}

/// Of which kind a failure was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnFailure {
    /// The model's service or the agent failed.
    Error,
    /// Somebody interrupted it.
    Interrupted,
    /// It took as many steps as it may.
    MaxTurns,
    /// It spent as much as it may.
    Budget,
    /// The model refused.
    Refused,
    /// The agent's output ended in mid-turn.
    Died,
}

impl TurnFailure {
    /// The name as it stands on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Interrupted => "interrupted",
            Self::MaxTurns => "maxTurns",
            Self::Budget => "budget",
            Self::Refused => "refused",
            Self::Died => "died",
        }
    }
}
