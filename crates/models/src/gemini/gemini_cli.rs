//! What Gemini CLI itself asks, and what it writes into the conversations it sends.

use serde_json::{Value, json};

use crate::api::Request;
use crate::conversation::{Conversation, Entry};
use crate::sample::sample;

/// The first text of a conversation: where and when it takes place.
const SESSION: &str = "<session_context>";
/// How texts begin that are its own: what hooks say, what an editor shows, calls to go on after an
/// empty response or a loop.
const OWN: [&str; 6] = [
    SESSION,
    "<hook_context>",
    "Here is the user's editor context",
    "Here is a summary of changes in the user's editor context",
    "[System: You ",
    "System: Potential loop detected",
];
const GO_ON: &str = "Please continue.";
/// Files that the prompt names follow. Over ACP nothing says where they end.
const FILES: (&str, &str) = ("--- Content from referenced files ---", "--- End of content ---");
/// Said for the model where a turn ended after a result that it never answered.
const INTERRUPTED: &str = "[The previous response was interrupted before it completed.]";
/// Said for the model between a result and what belongs to it.
const FILLERS: [&str; 2] =
    ["[Tool execution completed.]", "Binary content received. Proceeding with analysis."];
const SNAPSHOT: &str = "<state_snapshot>";
const SUMMARY: &str = "Summarize the user's primary intent";

/// Whether the program is Gemini CLI, in whatever mode.
pub(super) fn asks(request: &Request) -> bool {
    agent(request).starts_with("GeminiCLI")
}

/// Whether it was started for one prompt. Such a prompt is one text.
pub(super) fn asks_once(request: &Request) -> bool {
    asks(request) && !agent(request).starts_with("GeminiCLI-acp")
}

fn agent(request: &Request) -> &str {
    request.header("user-agent").unwrap_or_default()
}

/// What was said, where a prompt that another follows was given up: a signal ended the program, and
/// the session was resumed.
pub(super) fn given_up(entries: Vec<Entry>) -> Vec<Entry> {
    let mut said = Vec::with_capacity(entries.len());
    for entry in entries {
        if matches!((said.last(), &entry), (Some(Entry::Prompt(_)), Entry::Prompt(_))) {
            said.push(Entry::Abandoned);
        }
        said.push(entry);
    }
    said
}

/// What tells conversations apart.
pub(super) fn session(text: &str) -> Option<String> {
    text.starts_with(SESSION).then(|| text.to_owned())
}

/// What the texts of one content of the user are.
pub(super) fn prompts<'body>(
    texts: impl Iterator<Item = &'body str>,
) -> impl Iterator<Item = Entry> {
    let mut within_files = false;
    texts.filter_map(move |text| {
        let said = text.trim();
        if said == FILES.0 || said == FILES.1 {
            within_files = said == FILES.0;
            return None;
        }
        let own = said == GO_ON || OWN.iter().any(|start| said.starts_with(start));
        (!within_files && !own && !said.is_empty()).then(|| Entry::Prompt(said.to_owned()))
    })
}

/// What a content of the model is: a response, if the model made it.
pub(super) fn response(text: &str, calls: bool) -> Option<Entry> {
    let said = text.trim();
    if calls {
        Some(Entry::Response)
    } else if said == INTERRUPTED {
        Some(Entry::Abandoned)
    } else {
        (!FILLERS.contains(&said)).then_some(Entry::Response)
    }
}

/// The answer to a call that it makes for itself. It streams its turns and those of its
/// subagents; what it does not stream chooses a model, judges, sums up, corrects an edit, or is
/// what a tool of its own asks (a search, a page).
pub(super) fn side(conversation: &Conversation) -> Option<String> {
    if conversation.stream {
        return None;
    }
    let prompt = conversation.prompt();
    Some(match &conversation.schema {
        Some(schema) => judgement(schema).to_string(),
        None if prompt.contains(SNAPSHOT) => {
            format!("{SNAPSHOT}\nThe user and the model talked.\n</state_snapshot>")
        }
        None if prompt.starts_with(SUMMARY) => "Talk to a scripted model".to_owned(),
        None => "A scripted model knows no more than this.".to_owned(),
    })
}

/// A value of the schema that lets things take their course: no loop was seen, an edit that failed
/// has failed, a text needs no correction. A choice takes the first that is offered: the small
/// model, the user's turn to speak.
fn judgement(schema: &Value) -> Value {
    let mut value = sample(schema);
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
