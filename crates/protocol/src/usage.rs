//! Token usage and cost.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Tokens, as counted by the agent. Claude counts cached input separately from `inputTokens`; Codex and
/// Gemini include it. `totalTokens` always includes everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct TokenUsage {
    /// Input tokens.
    pub input_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Input tokens read from a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Input tokens written to a cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_creation_tokens: Option<u64>,
    /// Reasoning tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_tokens: Option<u64>,
    /// All tokens.
    pub total_tokens: u64,
}

impl TokenUsage {
    /// The usage since `earlier`, where both are running totals. If the total went down, counting has
    /// restarted.
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

    /// Input tokens that were not cached. If the input includes cached tokens, they are subtracted.
    pub fn fresh_tokens(&self) -> u64 {
        let cached = self.cached_tokens.unwrap_or(0);
        let cached = cached.saturating_add(self.cache_creation_tokens.unwrap_or(0));
        let plain = self.input_tokens.saturating_add(self.output_tokens);
        // Reasoning may be counted separately from the output; that does not mean that the cache is counted
        // separately from the input.
        let with_reasoning = plain.saturating_add(self.reasoning_tokens.unwrap_or(0));
        let is_apart = self.total_tokens != with_reasoning
            && self.total_tokens >= plain.saturating_add(cached);
        match is_apart {
            true => self.input_tokens,
            false => self.input_tokens.saturating_sub(cached),
        }
    }

    /// The sum of both.
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

/// The usage of one model in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ModelUsage {
    /// The model.
    pub model: String,
    /// Its tokens.
    pub usage: TokenUsage,
    /// The cost, if the agent reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
}

/// The sum of both costs. A cost that is not a number, or would make the sum infinite, is ignored.
pub fn plus_cost(total: f64, cost: f64) -> f64 {
    let sum = total + cost;
    if sum.is_finite() { sum } else { total }
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Price {
    /// Input.
    pub input: f64,
    /// Output.
    pub output: f64,
    /// Input read from a cache.
    pub cache_read: f64,
    /// Input written to a cache.
    pub cache_write: f64,
}

impl Price {
    /// The rates of the insights specification, for an agent that reports no cost and has no configured
    /// price.
    pub const STANDARD: Self =
        Self { input: 3.0, output: 15.0, cache_read: 0.3, cache_write: 3.75 };

    /// The cost of this usage.
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
