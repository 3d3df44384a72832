//! Tokens and their cost, at the rates of the insights specification's note 6.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The context window of the demo's models.
pub(super) const CONTEXT_WINDOW: u64 = 200_000;

/// The output limit of the demo's models.
const OUTPUT_LIMIT: u64 = 64_000;

/// Tokens of a message, a turn or a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Usage {
    pub(super) input: u64,
    pub(super) output: u64,
    pub(super) cache_read: u64,
    pub(super) cache_creation: u64,
}

impl Usage {
    pub(super) fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.output = self.output.saturating_add(other.output);
        self.cache_read = self.cache_read.saturating_add(other.cache_read);
        self.cache_creation = self.cache_creation.saturating_add(other.cache_creation);
    }

    pub(super) fn total(&self) -> u64 {
        [self.input, self.output, self.cache_read, self.cache_creation]
            .into_iter()
            .fold(0, u64::saturating_add)
    }

    /// In millionths of a cent, so that sums are exact.
    pub(super) fn cost_usd(&self) -> f64 {
        let parts = [
            (self.input, 300_u128),
            (self.output, 1500),
            (self.cache_read, 30),
            (self.cache_creation, 375),
        ];
        let cost: u128 = parts.into_iter().map(|(tokens, rate)| u128::from(tokens) * rate).sum();
        cost as f64 / 1e8
    }

    /// For messages and results.
    pub(super) fn to_json(self) -> Value {
        json!({
            "input_tokens": self.input,
            "output_tokens": self.output,
            "cache_read_input_tokens": self.cache_read,
            "cache_creation_input_tokens": self.cache_creation,
            "server_tool_use": { "web_search_requests": 0, "web_fetch_requests": 0 },
            "service_tier": "standard",
        })
    }

    /// For the file of the conversation.
    pub(super) fn kept(self) -> Value {
        json!([self.input, self.output, self.cache_read, self.cache_creation])
    }

    pub(super) fn from_kept(kept: &Value) -> Option<Self> {
        let counts: [u64; 4] = serde_json::from_value(kept.clone()).ok()?;
        let [input, output, cache_read, cache_creation] = counts;
        Some(Self { input, output, cache_read, cache_creation })
    }
}

/// Tokens by model.
pub(super) type Models = BTreeMap<String, Usage>;

/// `modelUsage`
pub(super) fn model_usage(models: &Models) -> Value {
    let entry = |usage: &Usage| {
        json!({
            "inputTokens": usage.input,
            "outputTokens": usage.output,
            "cacheReadInputTokens": usage.cache_read,
            "cacheCreationInputTokens": usage.cache_creation,
            "webSearchRequests": 0,
            "costUSD": usage.cost_usd(),
            "contextWindow": CONTEXT_WINDOW,
            "maxOutputTokens": OUTPUT_LIMIT,
        })
    };
    models
        .iter()
        .map(|(model, usage)| (model.clone(), entry(usage)))
        .collect::<serde_json::Map<_, _>>()
        .into()
}

pub(super) fn sum(models: &Models) -> Usage {
    let mut all = Usage::default();
    models.values().for_each(|usage| all.add(*usage));
    all
}

/// An estimate of the tokens of a text.
pub(super) fn tokens(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(4)
}
