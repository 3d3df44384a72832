//! Recognises what Codex itself adds to the conversations it sends.

use serde_json::{Value, json};

use crate::conversation::{Conversation, ConversationEntry};
use crate::json::text_at;
use crate::planner::ResponseSteps;
use crate::schema_sample::schema_sample;

/// The namespace of tools without a namespace (0.166.0, models in code mode).
pub(super) const FUNCTIONS: &str = "functions";
/// The user interrupted the turn.
const ABORTED: &str = "<turn_aborted>";
/// Starts a summary that replaces everything except the prompts.
const SUMMARY: &str = "Another language model started to solve this problem";
/// Precedes the number of responses in this server's summaries.
const SO_FAR: &str = "Responses so far: ";
/// The largest number of responses that a summary is accepted for.
const MOST: usize = 4096;
/// Starts a message that gives an agent its task.
const TASK: &str = "Message Type: NEW_TASK";
/// Threads for Codex's own work (is a command safe, what to remember). They contain prompts of other
/// threads.
const OWN_THREADS: [&str; 2] = ["guardian_review", "memory_consolidation"];
/// Texts that Codex adds in the user's name.
const NOTES: [&str; 6] = [
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
];

/// What a text in a user message means.
pub(super) fn user_text(text: &str) -> Vec<ConversationEntry> {
    let trimmed = text.trim_start();
    if trimmed.starts_with(ABORTED) {
        vec![ConversationEntry::Abandoned]
    } else if trimmed.starts_with(SUMMARY) {
        summary_entries(trimmed)
    } else if trimmed.is_empty() || NOTES.iter().any(|note| trimmed.starts_with(note)) {
        Vec::new()
    } else {
        vec![ConversationEntry::Prompt(text.to_owned())]
    }
}

/// The entries that a summary of this server replaces: its count of responses to the last script, or the
/// script's end.
pub(super) fn summary_entries(summary: &str) -> Vec<ConversationEntry> {
    let count = summary.rsplit_once(SO_FAR).and_then(|(_, count)| count.trim().parse().ok());
    match count {
        Some(count @ 0..MOST) => {
            let response = || [ConversationEntry::Response, ConversationEntry::Results(Vec::new())];
            std::iter::repeat_with(response).take(count).flatten().collect()
        }
        Some(MOST..) | None => vec![ConversationEntry::Abandoned],
    }
}

/// A summary after which the script continues.
pub(super) fn summary(conversation: &Conversation) -> String {
    let count = ResponseSteps::responses(conversation);
    let count = count.map(|count| format!(" {SO_FAR}{count}")).unwrap_or_default();
    format!("The user and the model talked.{count}")
}

/// What a message between agents means, given its head and its content. The conversation before a task
/// belongs to the agent that gave it.
pub(super) fn task_entries(texts: &[&str]) -> Vec<ConversationEntry> {
    match texts {
        [head, task @ ..] if head.starts_with(TASK) => {
            vec![ConversationEntry::Abandoned, ConversationEntry::Prompt(task.join("\n"))]
        }
        _ => Vec::new(),
    }
}

/// Whether the conversation should be compacted into one encrypted item.
pub(super) fn wants_compaction(body: &Value) -> bool {
    let last = body.get("input").and_then(Value::as_array).and_then(|items| items.last());
    last.is_some_and(|item| text_at(item, "type") == "compaction_trigger")
}

/// The answer to a call that Codex makes on its own behalf.
pub(super) fn side_answer(body: &Value, conversation: &Conversation) -> Option<String> {
    let metadata = metadata(body);
    let own = !matches!(text_at(&metadata, "request_kind"), "" | "turn")
        || OWN_THREADS.contains(&text_at(&metadata, "thread_source"));
    if own {
        return Some(match &conversation.schema {
            Some(schema) => schema_sample(schema).to_string(),
            None => summary(conversation),
        });
    }
    // A review may also have a script.
    let reviews = text_at(&metadata, "subagent_kind") == "review";
    let has_script = conversation
        .entries
        .iter()
        .any(|entry| matches!(entry, ConversationEntry::Prompt(text) if text.contains("[[")));
    (reviews && !has_script).then(review)
}

/// What Codex says about a request: JSON inside a string.
fn metadata(body: &Value) -> Value {
    let text = body.pointer("/client_metadata/x-codex-turn-metadata").and_then(Value::as_str);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

fn review() -> String {
    let review = json!({
        "findings": [],
        "overall_correctness": "patch is correct",
        "overall_explanation": "Nothing to say.",
        "overall_confidence_score": 1.0,
    });
    review.to_string()
}
