//! Start and end of a turn.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::{Json, Text};
use crate::usage::{ModelUsage, TokenUsage};

/// The agent started to work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnStarted<'a> {
    /// Starts at 1.
    pub turn_number: u64,
    /// The prompt, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Text<'a>>,
    /// The `messageId`s of the accepted prompts that it works on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub message_ids: Vec<Text<'a>>,
    /// What started the turn.
    #[serde(default, skip_serializing_if = "TurnOrigin::is_prompt")]
    pub origin: TurnOrigin,
}

/// What started a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnOrigin {
    /// A prompt.
    #[default]
    Prompt,
    /// The agent on its own, for example after a background task.
    Agent,
}

impl TurnOrigin {
    fn is_prompt(&self) -> bool {
        *self == Self::Prompt
    }
}

/// The agent finished a turn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TurnCompleted<'a> {
    /// The number of the turn that ended.
    pub turn_number: u64,
    /// The tokens that this turn used; running totals are converted to differences.
    pub usage: TokenUsage,
    /// How long it took, as reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The cost of this turn, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Usage by model, if the agent reports it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUsage>,
    /// Why the model stopped, in the agent's words.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stop_reason: Option<Text<'a>>,
    /// The final answer, if the agent repeats it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Text<'a>>,
    /// The answer that follows the requested schema.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub structured_output: Option<Json<'a>>,
    /// Tool calls that were refused, as the agent lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denials: Option<Json<'a>>,
}

impl TurnCompleted<'_> {
    /// An owned copy.
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
    /// What went wrong.
    pub error: Text<'a>,
    /// The kind of failure.
    pub reason: TurnFailure,
    /// The agent's own name for the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_type: Option<Text<'a>>,
    /// The tokens that this turn used, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<TokenUsage>,
    /// How long it took, as reported by the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// The cost of this turn, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Usage by model, if the agent reports it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub models: Vec<ModelUsage>,
    /// Tool calls that were refused, as the agent lists them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denials: Option<Json<'a>>,
}

impl<'a> TurnFailed<'a> {
    /// A failed turn with only these fields.
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

/// Why a turn failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum TurnFailure {
    /// The model's service or the agent failed.
    Error,
    /// Someone interrupted it.
    Interrupted,
    /// It reached the maximum number of steps.
    MaxTurns,
    /// It reached the budget.
    Budget,
    /// The model refused.
    Refused,
    /// The agent's output ended in the middle of the turn.
    Died,
}

impl TurnFailure {
    /// The name on the wire.
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
