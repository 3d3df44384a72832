//! Tokens and money.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens, as the agent counts them. Claude counts cached input beside `inputTokens`, Codex and
/// Gemini count it within; `totalTokens` is everything in every case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenUsage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation_tokens: Option<u64>,
    /// Tokens of reasoning.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// All tokens.
    pub total_tokens: u64,
}

impl TokenUsage {
    /// What was used since `earlier`, of two running totals. A total that went back began anew.
    pub fn since(&self, earlier: &Self) -> Self {
        if self.total_tokens < earlier.total_tokens {
            return *self;
        }
        let less = |now: Option<u64>, then: Option<u64>| {
            now.map(|now| now.saturating_sub(then.unwrap_or(0)))
        };
        Self {
            input_tokens: self.input_tokens.saturating_sub(earlier.input_tokens),
            output_tokens: self.output_tokens.saturating_sub(earlier.output_tokens),
            cached_tokens: less(self.cached_tokens, earlier.cached_tokens),
            cache_creation_tokens: less(self.cache_creation_tokens, earlier.cache_creation_tokens),
            reasoning_tokens: less(self.reasoning_tokens, earlier.reasoning_tokens),
            total_tokens: self.total_tokens.saturating_sub(earlier.total_tokens),
        }
    }

    /// Both together.
    pub fn plus(&self, other: &Self) -> Self {
        let more = |a: Option<u64>, b: Option<u64>| match (a, b) {
            (None, None) => None,
            _ => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
        };
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cached_tokens: more(self.cached_tokens, other.cached_tokens),
            cache_creation_tokens: more(self.cache_creation_tokens, other.cache_creation_tokens),
            reasoning_tokens: more(self.reasoning_tokens, other.reasoning_tokens),
            total_tokens: self.total_tokens.saturating_add(other.total_tokens),
        }
    }
}

/// What one model used in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// Which model.
    pub model: String,
    /// Its tokens.
    pub usage: TokenUsage,
    /// What it cost, if the agent says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}
