//! Reads a Responses request.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{codex, write};
use crate::conversation::{Conversation, ConversationEntry};
use crate::json::text_at;
use crate::response_plan::{Failure, ToolKind};

/// The conversation of a request; `thread` tells conversations apart.
pub(super) fn conversation(body: &Value, thread: Option<&str>) -> Result<Conversation, Failure> {
    check(body)?;
    let items = match body.get("input") {
        Some(Value::Array(items)) => items.as_slice(),
        _ => &[],
    };
    let mut entries = entries(items);
    if let Some(Value::String(prompt)) = body.get("input") {
        entries.push(ConversationEntry::Prompt(prompt.clone()));
    }
    let notes = items.iter().filter(|item| matches!(text_at(item, "role"), "developer" | "system"));
    let notes = notes.flat_map(|item| texts(item.get("content")));
    let system: Vec<&str> =
        body.get("instructions").and_then(Value::as_str).into_iter().chain(notes).collect();
    let offered = Offered::new(body, items);
    let thread = thread.unwrap_or_else(|| text_at(body, "prompt_cache_key"));
    let mut conversation = Conversation {
        model: text_at(body, "model").to_owned(),
        system: system.join("\n"),
        session: thread.to_owned(),
        stream: body.get("stream").and_then(Value::as_bool).unwrap_or(false),
        tools: offered.names,
        kinds: offered.kinds,
        entries,
        schema: body.pointer("/text/format/schema").cloned(),
        side: None,
    };
    conversation.side = codex::side_answer(body, &conversation);
    Ok(conversation)
}

/// Refuses what the API would refuse, and what needs stored responses.
fn check(body: &Value) -> Result<(), Failure> {
    let wrong = |what: String| Err(Failure::new(400, what));
    if !body.get("model").is_some_and(Value::is_string) {
        return wrong("Missing required parameter: 'model'.".to_owned());
    }
    if body.get("previous_response_id").is_some_and(|id| !id.is_null()) {
        let kind = Some("previous_response_not_found".to_owned());
        let message = "responses are not stored; send the whole conversation as 'input'";
        return Err(Failure { kind, ..Failure::new(400, message) });
    }
    match body.get("input") {
        Some(Value::String(_)) => Ok(()),
        Some(Value::Array(items)) => {
            let bad = items.iter().position(|item| !item.is_object());
            bad.map_or(Ok(()), |place| {
                wrong(format!("Invalid type for 'input[{place}]': expected an input item."))
            })
        }
        Some(_) => wrong("Invalid type for 'input': expected a string or an array.".to_owned()),
        None => wrong("Missing required parameter: 'input'.".to_owned()),
    }
}

fn entries(items: &[Value]) -> Vec<ConversationEntry> {
    let mut entries = Vec::new();
    for item in items {
        // The type of a message is optional.
        match (text_at(item, "type"), text_at(item, "role")) {
            ("message" | "", "assistant") => entries.extend(response(item)),
            ("message" | "", "user") => {
                entries.extend(texts(item.get("content")).into_iter().flat_map(codex::user_text));
            }
            ("agent_message", _) => {
                entries.extend(codex::task_entries(&texts(item.get("content"))));
            }
            (kind, _) if kind.ends_with("_output") => {
                let result = texts(item.get("output")).join("\n");
                match entries.last_mut() {
                    Some(ConversationEntry::Results(results)) => results.push(result),
                    _ => entries.push(ConversationEntry::Results(vec![result])),
                }
            }
            ("compaction", _) => {
                entries.extend(codex::summary_entries(text_at(item, "encrypted_content")));
            }
            (kind, _) if kind == "reasoning" || kind.ends_with("_call") => {
                entries.extend(response(item));
            }
            _ => {}
        }
    }
    entries
}

/// A model item; its response may have been incomplete.
fn response(item: &Value) -> impl Iterator<Item = ConversationEntry> {
    let broken = text_at(item, "id").ends_with(write::BROKEN);
    std::iter::once(ConversationEntry::Response).chain(broken.then_some(ConversationEntry::Broken))
}

/// The offered tools: from the request's list, and from items.
#[derive(Default)]
struct Offered {
    names: Vec<String>,
    kinds: BTreeMap<String, ToolKind>,
}

impl Offered {
    fn new(body: &Value, items: &[Value]) -> Self {
        let mut offered = Self::default();
        offered.add("", body.get("tools"));
        for item in items.iter().filter(|item| text_at(item, "type") == "additional_tools") {
            offered.add("", item.get("tools"));
        }
        offered
    }

    /// A tool in a namespace is named `NAMESPACE.NAME`; a tool of the API itself by its type.
    fn add(&mut self, namespace: &str, tools: Option<&Value>) {
        for tool in tools.and_then(Value::as_array).into_iter().flatten() {
            let kind = match (text_at(tool, "type"), text_at(tool, "name")) {
                // Namespaces do not nest.
                ("namespace", name) if namespace.is_empty() => {
                    let inner = if name == codex::FUNCTIONS { "" } else { name };
                    self.add(inner, tool.get("tools"));
                    continue;
                }
                ("custom", _) => ToolKind::Freeform,
                (_, "") if text_at(tool, "execution") == "client" => ToolKind::Part,
                (_, "") => ToolKind::Hosted,
                (_, _) => ToolKind::Function,
            };
            let own = matches!(kind, ToolKind::Part | ToolKind::Hosted);
            let name = text_at(tool, if own { "type" } else { "name" });
            let space = if namespace.is_empty() { "" } else { "." };
            let name = format!("{namespace}{space}{name}");
            if kind != ToolKind::Function {
                self.kinds.insert(name.clone(), kind);
            }
            self.names.push(name);
        }
    }
}

/// The texts of an item's content: one string, or a list of parts. This server's encrypted parts are plain
/// text.
fn texts<'body>(content: Option<&'body Value>) -> Vec<&'body str> {
    match content {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(parts)) => {
            let text =
                |part: &'body Value| part.get("text").or_else(|| part.get("encrypted_content"));
            parts.iter().filter_map(text).filter_map(Value::as_str).collect()
        }
        _ => Vec::new(),
    }
}
