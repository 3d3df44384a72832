//! Prompts: text and images, or one of Claude's user messages.

use agentwire_protocol::{Image, Json, Prompt};
use serde::Deserialize;

use crate::claude::block_image;

#[derive(Deserialize)]
struct UserMessage {
    #[serde(rename = "type")]
    kind: Option<String>,
    role: Option<String>,
    content: Option<Json<'static>>,
    /// The inner message, if this is the line around it.
    message: Option<Json<'static>>,
    uuid: Option<String>,
    parent_tool_use_id: Option<Json<'static>>,
    tool_use_result: Option<Json<'static>>,
}

#[derive(Deserialize)]
struct Block {
    #[serde(rename = "type")]
    kind: String,
    text: Option<String>,
    source: Option<Json<'static>>,
    content: Option<Json<'static>>,
}

/// The prompt of a call: from `prompt` and `images`, or from `message`.
pub(super) fn read(
    text: Option<String>,
    images: Vec<Image>,
    message: Option<Json<'static>>,
) -> Result<Option<Prompt>, String> {
    let prompt = match (text, message) {
        (None, None) if images.is_empty() => return Ok(None),
        (text, None) => Prompt { images, ..Prompt::text(text.unwrap_or_default()) },
        (None, Some(message)) if images.is_empty() => user_message(&message)?,
        (_, Some(_)) => {
            return Err("give `prompt` and `images`, or `message`, not both".to_owned());
        }
    };
    if prompt.text.is_empty() && prompt.images.is_empty() && prompt.content.is_none() {
        return Err("the prompt is empty: it has neither text nor image".to_owned());
    }
    Ok(Some(prompt))
}

/// `{role, content}`, or a whole `{"type":"user","message":{role, content}}`.
fn user_message(message: &Json<'static>) -> Result<Prompt, String> {
    let wrong = |_| "`message` must be a user message: {role, content}".to_owned();
    let UserMessage { kind, role, content, message, uuid, parent_tool_use_id, tool_use_result } =
        message.read().map_err(wrong)?;
    if kind.is_some_and(|kind| kind != "user") {
        return Err("the `type` of a message must be user".to_owned());
    }
    for (name, value) in
        [("parent_tool_use_id", parent_tool_use_id), ("tool_use_result", tool_use_result)]
    {
        if value.is_some() {
            return Err(format!(
                "the message has a `{name}`, which no agent accepts from a client"
            ));
        }
    }
    let (role, content) = match message {
        Some(message) => {
            let inner: UserMessage = message.read().map_err(wrong)?;
            (inner.role, inner.content)
        }
        None => (role, content),
    };
    if role.is_some_and(|role| role != "user") {
        return Err("the `role` of a message must be user".to_owned());
    }
    let content = content.ok_or_else(|| "the message has no `content`".to_owned())?;
    let prompt = match content.read::<String>() {
        Ok(text) => Prompt::text(text),
        Err(_) => blocks(content)?,
    };
    Ok(Prompt { message_id: uuid, ..prompt })
}

/// Text and images as every agent accepts them, plus the original blocks unless text and images cover
/// everything.
fn blocks(content: Json<'static>) -> Result<Prompt, String> {
    let wrong = |_| "the `content` of a message must be text or content blocks".to_owned();
    let (mut texts, mut images, mut is_all) = (Vec::new(), Vec::new(), true);
    let list = content.read::<Vec<Block>>().map_err(wrong)?;
    let is_empty = list.is_empty();
    for Block { kind, text, source, content } in list {
        match (kind.as_str(), text, source.as_ref().and_then(block_image)) {
            ("text", Some(text), _) => {
                is_all &= texts.is_empty() && images.is_empty();
                texts.push(text);
            }
            ("image", _, Some(image)) => images.push(image),
            _ => {
                is_all = false;
                // The text of a tool result goes to agents that do not know tool results in prompts.
                texts.extend(content.and_then(|content| block_text(&content)));
            }
        }
    }
    let content = (!is_all && !is_empty).then_some(content);
    Ok(Prompt { images, content, ..Prompt::text(texts.join("\n\n")) })
}

/// The text of a block's content, which is a string or blocks.
fn block_text(content: &Json<'_>) -> Option<String> {
    if let Ok(text) = content.read::<String>() {
        return Some(text);
    }
    let blocks: Vec<Block> = content.read().ok()?;
    let texts: Vec<String> = blocks.into_iter().filter_map(|block| block.text).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(message: &str) -> Result<Prompt, String> {
        user_message(&Json::parse(message).unwrap().into_owned())
    }

    #[test]
    fn a_user_message_is_a_prompt() {
        assert_eq!(of(r#"{"role":"user","content":"Hi"}"#), Ok(Prompt::text("Hi")));
        let whole = of(r#"{"type":"user","message":{"role":"user","content":"Hi"},"uuid":"u"}"#);
        assert_eq!(whole, Ok(Prompt { message_id: Some("u".to_owned()), ..Prompt::text("Hi") }));
        let image =
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}"#;
        let simple =
            of(&format!(r#"{{"content":[{{"type":"text","text":"see"}},{image}]}}"#)).unwrap();
        assert_eq!((simple.text.as_str(), simple.images.len(), simple.content), ("see", 1, None));
    }

    #[test]
    fn other_blocks_are_kept_as_they_are() {
        let blocks =
            r#"[{"type":"tool_result","tool_use_id":"call_123","content":"File contents here"}]"#;
        let prompt = of(&format!(r#"{{"role":"user","content":{blocks}}}"#)).unwrap();
        assert_eq!(prompt.text, "File contents here");
        assert_eq!(prompt.content.unwrap().get(), blocks);
        for (block, text) in [
            (
                r#"{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"}]}"#,
                "a",
            ),
            (r#"{"type":"tool_result","tool_use_id":"c","content":null}"#, ""),
            (r#"{"type":"image","source":{"type":"url","url":"https://a.b/c.png"}}"#, ""),
            (r#"{"type":"search_result","source":"https://a.b","title":"t","content":[]}"#, ""),
        ] {
            let message = format!(r#"{{"content":[{block}]}}"#);
            let message = Json::parse(&message).unwrap().into_owned();
            let prompt = read(None, Vec::new(), Some(message));
            let prompt = prompt.unwrap().unwrap();
            assert_eq!((prompt.text.as_str(), prompt.images.len()), (text, 0), "{block}");
            assert_eq!(prompt.content.unwrap().get(), format!("[{block}]"));
        }
        let order = r#"[{"type":"text","text":"a"},{"type":"text","text":"b"}]"#;
        let prompt = of(&format!(r#"{{"content":{order}}}"#)).unwrap();
        assert_eq!((prompt.text.as_str(), prompt.content.is_some()), ("a\n\nb", true));
    }

    #[test]
    fn what_is_no_user_message_is_refused() {
        for wrong in [
            "1",
            "{}",
            r#"{"role":"assistant","content":"x"}"#,
            r#"{"content":7}"#,
            r#"{"content":[7]}"#,
            r#"{"message":"x"}"#,
            r#"{"type":"result","content":"x"}"#,
            r#"{"content":"x","parent_tool_use_id":"toolu_1"}"#,
            r#"{"content":"x","tool_use_result":{"stdout":""}}"#,
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
        let empty = Json::parse(r#"{"content":[]}"#).ok();
        assert!(read(None, Vec::new(), empty).is_err());
        assert!(of(r#"{"content":"x","parent_tool_use_id":null}"#).is_ok());
    }
}
