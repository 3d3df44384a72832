//! A user message from the client, as a prompt.

use std::collections::BTreeMap;

use agentwire_protocol::command::Delivery;
use agentwire_protocol::{Image, Json, Prompt};
use serde::Deserialize;

type Fields = BTreeMap<String, Json<'static>>;

/// Fields of a user message that a prompt has too, or that mean nothing here because the wire has one
/// session.
const KNOWN: [&str; 5] = ["type", "message", "uuid", "session_id", "parent_tool_use_id"];

#[derive(Deserialize)]
struct UserMessage {
    content: Json<'static>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    source: Option<Json<'static>>,
}

/// Reads a `user` line. `keeps_form`: the agent accepts content blocks, and gets them unchanged.
pub(super) fn read(line: &str, keeps_form: bool) -> Result<Prompt, String> {
    let unread = |error| format!("failed to read the user message: {error}");
    let mut fields: Fields = serde_json::from_str(line).map_err(unread)?;
    let message = fields.get("message").ok_or("the user message has no message")?;
    let message: UserMessage = message.read().map_err(unread)?;
    let text = |name: &str| fields.get(name).and_then(|value| value.read::<String>().ok());
    let message_id = text("uuid").filter(|id| !id.is_empty());
    let is_now = text("priority").as_deref() == Some("now");
    fields.retain(|name, value| {
        let is_known = KNOWN.contains(&&**name) || (is_now && name == "priority");
        !is_known && value.get() != "null"
    });
    Ok(Prompt {
        message_id,
        delivery: is_now.then_some(Delivery::Now),
        native: (!fields.is_empty()).then(|| Json::of(&fields)),
        ..content(message.content, keeps_form)?
    })
}

/// The message of a `user` line, unchanged.
pub(super) fn message(line: &str) -> Option<Json<'static>> {
    #[derive(Deserialize)]
    struct Line {
        message: Json<'static>,
    }
    serde_json::from_str::<Line>(line).ok().map(|line| line.message)
}

/// A message's content: a string, or blocks.
pub(crate) fn content(content: Json<'static>, keeps_form: bool) -> Result<Prompt, String> {
    if let Ok(text) = content.read::<String>() {
        return Ok(Prompt::text(text));
    }
    let unread = |error| format!("failed to read the user message's content: {error}");
    let mut prompt = Prompt::default();
    let mut texts = Vec::new();
    // Whether text and images carry all of the content, and whether they keep its form.
    let (mut is_all, mut is_form) = (true, true);
    for block in content.read::<Vec<Json<'static>>>().map_err(unread)? {
        let fields = block.read::<Fields>().map_err(unread)?.len();
        let Block { kind, text, source } = block.read().map_err(unread)?;
        is_form &= fields == 2;
        match (kind.as_str(), text, source.as_ref().and_then(image)) {
            ("text", Some(text), _) => {
                // Text after an image would move in front of it.
                is_form &= texts.is_empty() && prompt.images.is_empty();
                texts.push(text);
            }
            ("image", _, Some(image)) => prompt.images.push(image),
            _ => is_all = false,
        }
    }
    prompt.text = texts.join("\n");
    if !is_all || (keeps_form && !is_form) {
        prompt.content = Some(content);
    }
    Ok(prompt)
}

/// The image in an image block's `source`, if the block contains it.
pub(crate) fn image(source: &Json<'_>) -> Option<Image> {
    #[derive(Deserialize)]
    struct Source {
        #[serde(rename = "type")]
        kind: String,
        media_type: Option<String>,
        data: Option<String>,
    }
    let source = source.read::<Source>().ok().filter(|source| source.kind == "base64")?;
    Some(Image { media_type: source.media_type?, data: source.data? })
}
