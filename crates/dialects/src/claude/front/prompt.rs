//! A user message of the client, as a prompt.

use agentwire_protocol::command::Delivery;
use agentwire_protocol::{Image, Json, Prompt};
use serde::Deserialize;

#[derive(Deserialize)]
struct UserLine {
    message: UserMessage,
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    priority: Option<String>,
}

#[derive(Deserialize)]
struct UserMessage {
    content: Json<'static>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    source: Option<Json<'static>>,
}

#[derive(Deserialize)]
struct Source {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    media_type: Option<String>,
    #[serde(default)]
    data: Option<String>,
}

/// Reads a `user` line. Which session it names says nothing: the wire has one.
pub(super) fn read(line: &str) -> Result<Prompt, String> {
    let line: UserLine = serde_json::from_str(line)
        .map_err(|error| format!("failed to read the user message: {error}"))?;
    Ok(Prompt {
        message_id: line.uuid.filter(|id| !id.is_empty()),
        delivery: (line.priority.as_deref() == Some("now")).then_some(Delivery::Now),
        ..content(line.message.content)?
    })
}

/// The message of a `user` line, as it is.
pub(super) fn message(line: &str) -> Option<Json<'static>> {
    #[derive(Deserialize)]
    struct Line {
        message: Json<'static>,
    }
    serde_json::from_str::<Line>(line).ok().map(|line| line.message)
}

/// A message's content: a string, or blocks.
pub(super) fn content(content: Json<'static>) -> Result<Prompt, String> {
    if let Ok(text) = content.read::<String>() {
        return Ok(Prompt::text(text));
    }
    let blocks: Vec<Block> = content
        .read()
        .map_err(|error| format!("failed to read the user message's content: {error}"))?;
    let mut prompt = Prompt::default();
    let mut texts = Vec::new();
    let mut is_plain = true;
    for block in blocks {
        let source = block.source.and_then(|source| source.read::<Source>().ok());
        match (block.kind.as_str(), block.text, source) {
            ("text", Some(text), _) => {
                // Text after an image would come before it.
                is_plain &= texts.is_empty() && prompt.images.is_empty();
                texts.push(text);
            }
            ("image", _, Some(Source { kind, media_type: Some(media_type), data: Some(data) }))
                if kind == "base64" =>
            {
                prompt.images.push(Image { media_type, data });
            }
            _ => is_plain = false,
        }
    }
    prompt.text = texts.join("\n");
    if !is_plain {
        prompt.content = Some(content);
    }
    Ok(prompt)
}
