//! The usage of a run, and errors of the model service.

use agentwire_protocol::TokenUsage;
use agentwire_protocol::usage::ModelUsage;
use serde::Deserialize;

use super::super::wire::Stats;
use crate::json::Value;

/// The message and status of a model service's error, which Gemini passes on as JSON in a string: `[API
/// Error: {"error":{"code":400,"message":"…","status":"INVALID_ARGUMENT"}}]`.
pub(crate) fn api_error(message: &str) -> Option<(String, Option<String>)> {
    #[derive(Deserialize)]
    struct Wrapped {
        error: Inner,
    }
    #[derive(Deserialize)]
    struct Inner {
        message: String,
        status: Option<String>,
    }
    let bare = message.strip_prefix("[API Error: ").and_then(|rest| rest.strip_suffix(']'));
    let Wrapped { error } = serde_json::from_str(bare.unwrap_or(message)).ok()?;
    Some((error.message, error.status))
}

pub(super) fn usage(stats: &Stats<'_>) -> TokenUsage {
    let input_tokens = stats.input_tokens.unwrap_or(0);
    let output_tokens = stats.output_tokens.unwrap_or(0);
    let plain = input_tokens.saturating_add(output_tokens);
    let total_tokens = stats.total_tokens.unwrap_or(plain);
    // The program counts thoughts only in the total (fixture real-think).
    let thoughts = total_tokens.checked_sub(plain).filter(|thoughts| *thoughts > 0);
    TokenUsage {
        input_tokens,
        output_tokens,
        cached_tokens: stats.cached.or(stats.cache_tokens),
        cache_creation_tokens: None,
        reasoning_tokens: stats.thought_tokens.or(thoughts),
        total_tokens,
    }
}

pub(super) fn models(stats: &Stats<'_>) -> Vec<ModelUsage> {
    let models = stats.models.into_iter().flat_map(Value::fields);
    models
        .filter_map(|(model, stats)| {
            let usage = usage(&stats.to()?);
            Some(ModelUsage { model: model.into_owned(), usage, cost_usd: None })
        })
        .collect()
}
