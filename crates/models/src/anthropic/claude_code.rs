//! Recognises what Claude Code itself adds to the conversations it sends.

use serde_json::Value;

use crate::conversation::{Conversation, ConversationEntry};
use crate::schema_sample::schema_sample;

const REMINDER: (&str, &str) = ("<system-reminder>", "</system-reminder>");
/// The user interrupted the turn.
const INTERRUPTED: &str = "[Request interrupted by user";
/// The stream broke (2.1.325).
const CUT_OFF: &str = "Your response above was cut off mid-stream";
/// The user ran a local command.
const COMMANDS: [&str; 3] = ["<local-command-", "<command-name>", "<command-message>"];
/// A prompt sent while a tool ran. A paragraph of instructions follows it.
const QUEUED_PROMPT: &str = "The user sent a new message while you were working:\n";
/// In a reminder before a question that is not part of the conversation.
const SIDE_QUESTION: &str = "This is a side question from the user";
const SUMMARY: &str = "Your task is to create a detailed summary of";
/// The first words of Claude Code's other calls, and the answers to them.
const OWN_CALLS: [(&str, &str); 3] = [
    ("[SUGGESTION MODE", "run the tests"),
    ("Describe your most recent action", "Playing the script"),
    ("The user stepped away", "The script is being played."),
];
/// A session that needs a title.
const SESSION: &str = "<session>";

/// What a text in a user message means.
pub(super) fn user_text(text: &str) -> Option<ConversationEntry> {
    let own_text = without_reminders(text);
    let own_text = own_text.trim();
    if own_text.starts_with(INTERRUPTED) {
        Some(ConversationEntry::Abandoned)
    } else if own_text.starts_with(CUT_OFF) {
        Some(ConversationEntry::Broken)
    } else if own_text.is_empty() || COMMANDS.iter().any(|command| own_text.starts_with(command)) {
        None
    } else {
        Some(ConversationEntry::Prompt(own_text.to_owned()))
    }
}

/// What a `system` message means. Most are notes to the model, which a script ignores.
pub(super) fn system_text(text: &str) -> Option<ConversationEntry> {
    let (prompt, _) = text.strip_prefix(QUEUED_PROMPT)?.rsplit_once("\n\n")?;
    Some(ConversationEntry::Prompt(prompt.to_owned()))
}

/// Whether the text is a side question, outside the conversation.
pub(super) fn is_side_question(text: &str) -> bool {
    text.starts_with(REMINDER.0) && text.contains(SIDE_QUESTION)
}

/// The answer to a call that Claude Code makes on its own behalf.
pub(super) fn side_answer(body: &Value, conversation: &Conversation) -> Option<String> {
    let prompt = conversation.prompt();
    if body.get("max_tokens").and_then(Value::as_u64) == Some(1) {
        // A probe of the quota or of a model.
        Some("Yes".to_owned())
    } else if prompt.contains(SUMMARY) {
        let summary = "<summary>The user and the model talked.</summary>";
        Some(format!("<analysis>All was said.</analysis>\n\n{summary}"))
    } else if prompt.starts_with(SESSION) {
        conversation.schema.as_ref().map(|schema| schema_sample(schema).to_string())
    } else {
        let own_call = OWN_CALLS.iter().find(|(begin, _)| prompt.starts_with(begin));
        own_call.map(|(_, answer)| (*answer).to_owned())
    }
}

fn without_reminders(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(REMINDER.0) {
        kept.push_str(before);
        rest = after.split_once(REMINDER.1).map_or("", |(_, after)| after);
    }
    kept + rest
}
