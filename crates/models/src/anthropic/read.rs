//! Reads a Messages request.

use serde_json::Value;

use super::claude_code;
use crate::conversation::{Conversation, ConversationEntry};
use crate::json::text_at;
use crate::response_plan::Failure;

/// Refuses what the API would refuse.
pub(super) fn check(body: &Value) -> Result<(), Failure> {
    let wrong = |what: &str| Err(Failure::new(400, what));
    if !body.get("model").is_some_and(Value::is_string) {
        return wrong("model: Field required");
    }
    let Some(messages) = body.get("messages").and_then(Value::as_array) else {
        return wrong("messages: Field required");
    };
    if messages.is_empty() {
        return wrong("messages: at least one message is required");
    }
    for (place, message) in messages.iter().enumerate() {
        match message.get("role").and_then(Value::as_str) {
            Some("user" | "assistant" | "system") => {}
            _ => {
                return wrong(&format!(
                    "messages.{place}.role: Input should be 'user' or 'assistant'"
                ));
            }
        }
        if !matches!(message.get("content"), Some(Value::String(_) | Value::Array(_))) {
            return wrong(&format!("messages.{place}.content: Field required"));
        }
    }
    Ok(())
}

pub(super) fn conversation(body: &Value, session: String) -> Result<Conversation, Failure> {
    check(body)?;
    if !body.get("max_tokens").is_some_and(Value::is_u64) {
        return Err(Failure::new(400, "max_tokens: Field required"));
    }
    let list = |name: &str| body.get(name).and_then(Value::as_array).into_iter().flatten();
    let schema = body
        .pointer("/output_config/format/schema")
        .or_else(|| body.pointer("/output_format/schema"));
    let mut conversation = Conversation {
        model: text_at(body, "model").to_owned(),
        system: texts(body.get("system")).join("\n"),
        session,
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        tools: list("tools").map(|tool| text_at(tool, "name").to_owned()).collect(),
        entries: entries(list("messages")),
        schema: schema.cloned(),
        ..Conversation::default()
    };
    conversation.side = claude_code::side_answer(body, &conversation);
    Ok(conversation)
}

fn entries<'body>(messages: impl Iterator<Item = &'body Value>) -> Vec<ConversationEntry> {
    let mut entries = Vec::new();
    for message in messages {
        let content = message.get("content");
        match text_at(message, "role") {
            "assistant" => entries.push(ConversationEntry::Response),
            "user" => {
                let results = results(content);
                if !results.is_empty() {
                    entries.push(ConversationEntry::Results(results));
                }
                for text in texts(content) {
                    if claude_code::is_side_question(text) {
                        entries.clear();
                    }
                    entries.extend(claude_code::user_text(text));
                }
            }
            _ => entries.extend(texts(content).into_iter().filter_map(claude_code::system_text)),
        }
    }
    entries
}

fn results(content: Option<&Value>) -> Vec<String> {
    let blocks = content.and_then(Value::as_array).into_iter().flatten();
    let results = blocks.filter(|block| text_at(block, "type") == "tool_result");
    results.map(|result| texts(result.get("content")).join("\n")).collect()
}

/// The texts of a message's content: one string, or a list of blocks.
fn texts(content: Option<&Value>) -> Vec<&str> {
    match content {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(blocks)) => {
            let texts = blocks.iter().filter(|block| text_at(block, "type") == "text");
            texts.map(|block| text_at(block, "text")).collect()
        }
        _ => Vec::new(),
    }
}
