//! Fills the placeholders of a text.

use crate::conversation::Conversation;

/// Replaces `{result}` and the other placeholders; `{{` is a brace.
pub(super) fn fill(text: &str, conversation: &Conversation, longest: usize) -> String {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('{') {
        filled.push_str(before);
        if let Some(after) = after.strip_prefix('{') {
            filled.push('{');
            rest = after;
            continue;
        }
        let found = after
            .split_once('}')
            .and_then(|(name, after)| Some((value(name, conversation)?, after)));
        rest = match found {
            // Values that do not fit are left out: results may be large and used often.
            Some((value, after)) if filled.len() + value.len() > longest => after,
            Some((value, after)) => {
                filled.push_str(&value);
                after
            }
            None => {
                filled.push('{');
                after
            }
        };
    }
    filled.push_str(rest);
    filled.truncate(filled.floor_char_boundary(longest));
    filled
}

fn value(name: &str, conversation: &Conversation) -> Option<String> {
    match name {
        "result" => Some(conversation.results().join("\n")),
        "prompt" => Some(conversation.prompt().to_owned()),
        "model" => Some(conversation.model.clone()),
        "system" => Some(conversation.system.clone()),
        "tools" => Some(conversation.tools.join(" ")),
        _ => None,
    }
}
