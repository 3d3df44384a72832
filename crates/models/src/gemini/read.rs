//! Reads a request for content.

use serde_json::Value;

use super::gemini_cli;
use crate::conversation::{Conversation, ConversationEntry};
use crate::json::text_at;
use crate::response_plan::Failure;

pub(super) fn conversation(
    body: &Value,
    model: &str,
    stream: bool,
) -> Result<Conversation, Failure> {
    let contents = contents(body)?;
    let config = |name: &str| body.get("generationConfig")?.get(name).cloned();
    let tools = list(Some(body), "tools").flat_map(|tool| list(Some(tool), "functionDeclarations"));
    let system = body.get("systemInstruction");
    Ok(Conversation {
        model: model.to_owned(),
        system: texts(system).collect::<Vec<_>>().join("\n"),
        session: contents
            .iter()
            .flat_map(|content| texts(Some(content)))
            .find_map(gemini_cli::session)
            .unwrap_or_default(),
        stream,
        tools: tools.map(|tool| text_at(tool, "name").to_owned()).collect(),
        entries: entries(contents),
        schema: config("responseJsonSchema").or_else(|| config("responseSchema")),
        ..Conversation::default()
    })
}

/// The contents, if the API would accept them.
fn contents(body: &Value) -> Result<&[Value], Failure> {
    let contents = body.get("contents").and_then(Value::as_array).map(Vec::as_slice);
    let Some(contents @ [_, ..]) = contents else {
        return Err(Failure::new(400, "contents: contents is not specified"));
    };
    for (place, content) in contents.iter().enumerate() {
        let role = content.get("role");
        if role.is_some_and(|role| !matches!(role.as_str(), Some("user" | "model" | "function"))) {
            let message = format!("contents[{place}].role: use a valid role: user, model");
            return Err(Failure::new(400, message));
        }
        if list(Some(content), "parts").next().is_none() {
            let message = format!("contents[{place}].parts: must not be empty");
            return Err(Failure::new(400, message));
        }
    }
    Ok(contents)
}

fn entries(contents: &[Value]) -> Vec<ConversationEntry> {
    let mut entries = Vec::new();
    let mut called = false;
    for content in contents {
        let parts = || list(Some(content), "parts");
        if text_at(content, "role") == "model" {
            let text: String = texts(Some(content)).collect();
            called = parts().any(|part| part.get("functionCall").is_some());
            entries.extend(gemini_cli::model_text(&text, called));
            continue;
        }
        let results: Vec<String> =
            parts().filter_map(|part| result(part.get("functionResponse")?)).collect();
        let called = std::mem::take(&mut called);
        if !results.is_empty() {
            entries.push(ConversationEntry::Results(results));
        } else if called {
            // After the user cancels, Gemini CLI leaves a call without a result.
            entries.push(ConversationEntry::Abandoned);
        }
        entries.extend(gemini_cli::prompts(texts(Some(content))));
    }
    entries
}

/// The text of a tool result: its output, its error, or the whole response.
fn result(function_response: &Value) -> Option<String> {
    let response = function_response.get("response")?;
    let text = response.get("output").or_else(|| response.get("error")).and_then(Value::as_str);
    Some(text.map_or_else(|| response.to_string(), str::to_owned))
}

fn texts(content: Option<&Value>) -> impl Iterator<Item = &str> {
    list(content, "parts").filter_map(|part| part.get("text")?.as_str())
}

fn list<'value>(value: Option<&'value Value>, name: &str) -> impl Iterator<Item = &'value Value> {
    value.and_then(|value| value.get(name)).and_then(Value::as_array).into_iter().flatten()
}
