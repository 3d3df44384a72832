//! Attribute names and values of the conventions for generative AI.

use agentwire_dialects::program;
use agentwire_protocol::{AgentType, TokenUsage};
use serde_json::json;

use super::span::{Attribute, CONTENT, Value, bounded, number_of};

/// The provider of the agent's models. For an agent that may use any provider, its own name.
pub(super) fn provider(agent: Option<AgentType>) -> &'static str {
    agent.map_or("_OTHER", |agent| program(agent).provider)
}

/// Token counts. By the conventions, the input includes everything that was read, cached or not.
pub(super) fn usage(usage: &TokenUsage, attributes: &mut Vec<Attribute>) {
    // For some subagents, only the total is known.
    if usage.input_tokens == 0 && usage.output_tokens == 0 && usage.total_tokens > 0 {
        return;
    }
    let cached = [usage.cached_tokens, usage.cache_creation_tokens].into_iter().flatten();
    let input = cached.fold(usage.fresh_tokens(), u64::saturating_add);
    attributes.push(("gen_ai.usage.input_tokens", number_of(input)));
    attributes.push(("gen_ai.usage.output_tokens", number_of(usage.output_tokens)));
    for (key, count) in [
        ("gen_ai.usage.cache_read.input_tokens", usage.cached_tokens),
        ("gen_ai.usage.cache_creation.input_tokens", usage.cache_creation_tokens),
        ("gen_ai.usage.reasoning.output_tokens", usage.reasoning_tokens),
    ] {
        attributes.extend(count.map(|count| (key, number_of(count))));
    }
}

/// One message, in the JSON format of the conventions.
pub(super) fn message(role: &str, text: &str) -> Value {
    let part = json!({ "type": "text", "content": bounded(text, CONTENT) });
    Value::Text(json!([{ "role": role, "parts": [part] }]).to_string())
}
