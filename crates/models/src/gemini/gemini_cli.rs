//! Recognises Gemini CLI's own calls, and what it adds to the conversations it sends.

use serde_json::{Value, json};

use crate::api::ApiRequest;
use crate::conversation::{Conversation, ConversationEntry};
use crate::schema_sample::schema_sample;

/// The first text of a conversation: its place and time.
const SESSION: &str = "<session_context>";
/// The first words of Gemini CLI's own texts: hook output, editor context, and requests to continue after
/// an empty response or a loop.
const OWN: [&str; 6] = [
    SESSION,
    "<hook_context>",
    "Here is the user's editor context",
    "Here is a summary of changes in the user's editor context",
    "[System: You ",
    "System: Potential loop detected",
];
const GO_ON: &str = "Please continue.";
/// The files named in a prompt follow. Over ACP nothing marks their end.
const FILES: (&str, &str) = ("--- Content from referenced files ---", "--- End of content ---");
/// Added as a model text where a turn ended after a tool result without a response.
const INTERRUPTED: &str = "[The previous response was interrupted before it completed.]";
/// Added as a model text between a tool result and the content that belongs to it.
const FILLERS: [&str; 2] =
    ["[Tool execution completed.]", "Binary content received. Proceeding with analysis."];
const SNAPSHOT: &str = "<state_snapshot>";
const SUMMARY: &str = "Summarize the user's primary intent";

/// Whether the program is Gemini CLI, in any mode.
pub(super) fn is_gemini_cli(request: &ApiRequest) -> bool {
    agent(request).starts_with("GeminiCLI")
}

/// Whether it was started for one prompt. Such a prompt is one text.
pub(super) fn has_one_prompt(request: &ApiRequest) -> bool {
    is_gemini_cli(request) && !agent(request).starts_with("GeminiCLI-acp")
}

fn agent(request: &ApiRequest) -> &str {
    request.header("user-agent").unwrap_or_default()
}

/// Marks a prompt that another one follows directly as given up: a signal ended the program, and the
/// session was resumed.
pub(super) fn mark_abandoned(entries: Vec<ConversationEntry>) -> Vec<ConversationEntry> {
    let mut said = Vec::with_capacity(entries.len());
    for entry in entries {
        if matches!(
            (said.last(), &entry),
            (Some(ConversationEntry::Prompt(_)), ConversationEntry::Prompt(_))
        ) {
            said.push(ConversationEntry::Abandoned);
        }
        said.push(entry);
    }
    said
}

/// The text that tells conversations apart.
pub(super) fn session(text: &str) -> Option<String> {
    text.starts_with(SESSION).then(|| text.to_owned())
}

/// The prompts among the texts of one user content.
pub(super) fn prompts<'body>(
    texts: impl Iterator<Item = &'body str>,
) -> impl Iterator<Item = ConversationEntry> {
    let mut within_files = false;
    texts.filter_map(move |text| {
        let said = text.trim();
        if said == FILES.0 || said == FILES.1 {
            within_files = said == FILES.0;
            return None;
        }
        let own = said == GO_ON || OWN.iter().any(|start| said.starts_with(start));
        (!within_files && !own && !said.is_empty())
            .then(|| ConversationEntry::Prompt(said.to_owned()))
    })
}

/// What a model content means: a response only if the model wrote it.
pub(super) fn model_text(text: &str, calls: bool) -> Option<ConversationEntry> {
    let said = text.trim();
    if calls {
        Some(ConversationEntry::Response)
    } else if said == INTERRUPTED {
        Some(ConversationEntry::Abandoned)
    } else {
        (!FILLERS.contains(&said)).then_some(ConversationEntry::Response)
    }
}

/// The answer to a call that Gemini CLI makes on its own behalf. It streams its turns and those of its
/// subagents. Calls without streaming choose a model, judge, summarise, correct an edit, or belong to one
/// of its tools (a search, a page).
pub(super) fn side_answer(conversation: &Conversation) -> Option<String> {
    if conversation.stream {
        return None;
    }
    let prompt = conversation.prompt();
    Some(match &conversation.schema {
        Some(schema) => harmless_value(schema).to_string(),
        None if prompt.contains(SNAPSHOT) => {
            format!("{SNAPSHOT}\nThe user and the model talked.\n</state_snapshot>")
        }
        None if prompt.starts_with(SUMMARY) => "Talk to a scripted model".to_owned(),
        None => "A scripted model knows no more than this.".to_owned(),
    })
}

/// A value of the schema that changes nothing: no loop was seen, a failed edit stays failed, a text needs
/// no correction. For a choice, it takes the first option: the small model, the user's turn.
fn harmless_value(schema: &Value) -> Value {
    let mut value = schema_sample(schema);
    for (name, harmless) in [
        ("unproductive_state_confidence", json!(0)),
        ("noChangesRequired", json!(false)),
        ("corrected_string_escaping", json!("")),
    ] {
        if let Some(field) = value.get_mut(name) {
            *field = harmless;
        }
    }
    value
}
