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

    /// What was read and was in no cache: where cached tokens are counted within the input, without
    /// them.
    pub fn fresh_tokens(&self) -> u64 {
        let cached = self.cached_tokens.unwrap_or(0);
        let cached = cached.saturating_add(self.cache_creation_tokens.unwrap_or(0));
        let plain = self.input_tokens.saturating_add(self.output_tokens);
        // Reasoning may stand beside the output, and is no sign of a cache beside the input.
        let with_reasoning = plain.saturating_add(self.reasoning_tokens.unwrap_or(0));
        let is_apart = self.total_tokens != with_reasoning
            && self.total_tokens >= plain.saturating_add(cached);
        match is_apart {
            true => self.input_tokens,
            false => self.input_tokens.saturating_sub(cached),
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

/// Both costs together. What is no cost, or beyond all numbers, does not count.
pub fn plus_cost(total: f64, cost: f64) -> f64 {
    let sum = total + cost;
    if sum.is_finite() { sum } else { total }
}

/// Dollars for a million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Read.
    pub input: f64,
    /// Written.
    pub output: f64,
    /// Read from a cache.
    pub cache_read: f64,
    /// Written to a cache.
    pub cache_write: f64,
}

impl Price {
    /// The insights specification's rates, for an agent that tells no cost and has no price set.
    pub const STANDARD: Self =
        Self { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };

    /// What that cost.
    pub fn of(&self, usage: &TokenUsage) -> f64 {
        let cached = usage.cached_tokens.unwrap_or(0);
        let created = usage.cache_creation_tokens.unwrap_or(0);
        (usage.fresh_tokens() as f64 * self.input
            + usage.output_tokens as f64 * self.output
            + cached as f64 * self.cache_read
            + created as f64 * self.cache_write)
            / 1e6
    }
}
