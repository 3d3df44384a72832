//! What Codex itself writes into the conversations it sends.

use serde_json::{Value, json};

use super::read::text_at;
use crate::conversation::{Conversation, Entry};
use crate::sample::sample;
use crate::scene::Scene;

/// The namespace of tools that need none (0.166.0, models in code mode).
pub(super) const FUNCTIONS: &str = "functions";
/// Its user interrupted it.
const ABORTED: &str = "<turn_aborted>";
/// Before a summary of what was said, which is gone but for the prompts.
const SUMMARY: &str = "Another language model started to solve this problem";
/// In our summaries, before a number.
const SO_FAR: &str = "Responses so far: ";
/// The most responses that a summary may stand for.
const MOST: usize = 4096;
/// The head of a message that gives an agent its task.
const TASK: &str = "Message Type: NEW_TASK";
/// Threads in which it works for itself: is a command safe, what is worth remembering. They have
/// the prompts of others in theirs.
const OWN_THREADS: [&str; 2] = ["guardian_review", "memory_consolidation"];
/// Notes in the name of the user.
const NOTES: [&str; 6] = [
    "<environment_context>",
    "# AGENTS.md instructions",
    "<user_instructions>",
    "<skill>",
    "<user_shell_command>",
    "<subagent_notification>",
];

/// What a text in a message of the user is.
pub(super) fn text(text: &str) -> Vec<Entry> {
    let said = text.trim_start();
    if said.starts_with(ABORTED) {
        vec![Entry::Abandoned]
    } else if said.starts_with(SUMMARY) {
        summed_up(said)
    } else if said.is_empty() || NOTES.iter().any(|note| said.starts_with(note)) {
        Vec::new()
    } else {
        vec![Entry::Prompt(text.to_owned())]
    }
}

/// What our summary stands for: so many responses to the last script, or its end.
pub(super) fn summed_up(summary: &str) -> Vec<Entry> {
    let count = summary.rsplit_once(SO_FAR).and_then(|(_, count)| count.trim().parse().ok());
    match count {
        Some(count @ 0..MOST) => {
            let response = || [Entry::Response, Entry::Results(Vec::new())];
            std::iter::repeat_with(response).take(count).flatten().collect()
        }
        Some(MOST..) | None => vec![Entry::Abandoned],
    }
}

/// A summary that lets the script go on after it.
pub(super) fn summary(conversation: &Conversation) -> String {
    let count = Scene::responses(conversation);
    let count = count.map(|count| format!(" {SO_FAR}{count}")).unwrap_or_default();
    format!("The user and the model talked.{count}")
}

/// What a message between agents is, given as its head and its content. What an agent knew before
/// its task is what the one that gave it was told.
pub(super) fn task(texts: &[&str]) -> Vec<Entry> {
    match texts {
        [head, task @ ..] if head.starts_with(TASK) => {
            vec![Entry::Abandoned, Entry::Prompt(task.join("\n"))]
        }
        _ => Vec::new(),
    }
}

/// Whether the conversation is to be put into one item that only the API can read.
pub(super) fn wants_compaction(body: &Value) -> bool {
    let last = body.get("input").and_then(Value::as_array).and_then(|items| items.last());
    last.is_some_and(|item| text_at(item, "type") == "compaction_trigger")
}

/// The answer to a call that Codex makes for itself.
pub(super) fn side(body: &Value, conversation: &Conversation) -> Option<String> {
    let metadata = metadata(body);
    let own = !matches!(text_at(&metadata, "request_kind"), "" | "turn")
        || OWN_THREADS.contains(&text_at(&metadata, "thread_source"));
    if own {
        return Some(match &conversation.schema {
            Some(schema) => sample(schema).to_string(),
            None => summary(conversation),
        });
    }
    // A review may also be told what to say.
    let reviews = text_at(&metadata, "subagent_kind") == "review";
    let told = conversation
        .entries
        .iter()
        .any(|entry| matches!(entry, Entry::Prompt(text) if text.contains("[[")));
    (reviews && !told).then(review)
}

/// What Codex says of a request, which is JSON in a text.
fn metadata(body: &Value) -> Value {
    let text = body.pointer("/client_metadata/x-codex-turn-metadata").and_then(Value::as_str);
    text.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default()
}

/// A review that finds nothing.
fn review() -> String {
    let review = json!({
        "findings": [],
        "overall_correctness": "patch is correct",
        "overall_explanation": "Nothing to say.",
        "overall_confidence_score": 1.0,
    });
    review.to_string()
}
