//! The content of a request, independent of its API.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::response_plan::ToolKind;

/// A request for a model response.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) model: String,
    pub(crate) system: String,
    /// Tells conversations with the same content apart, if the program sends an id. It is only used to
    /// count attempts.
    pub(crate) session: String,
    pub(crate) stream: bool,
    /// The names of the offered tools.
    pub(crate) tools: Vec<String>,
    /// The kinds of the tools that are not functions.
    pub(crate) kinds: BTreeMap<String, ToolKind>,
    /// The conversation so far, oldest first.
    pub(crate) entries: Vec<ConversationEntry>,
    /// The JSON schema that the answer must match.
    pub(crate) schema: Option<Value>,
    /// The answer, if the program makes this call on its own behalf. Its markers are not read.
    pub(crate) side: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ConversationEntry {
    /// A text of the user. Each text is an entry, so that the last one counts.
    Prompt(String),
    /// The model spoke or called tools. Adjacent entries are one response.
    Response,
    /// The texts of tool results, in order.
    Results(Vec<String>),
    /// The user gave up the turn, which ends the script before it.
    Abandoned,
    /// The previous response was incomplete, and the program repeats the request.
    Broken,
}

impl Conversation {
    pub(crate) fn kind(&self, tool: &str) -> ToolKind {
        self.kinds.get(tool).copied().unwrap_or_default()
    }

    /// The user's last text.
    pub(crate) fn prompt(&self) -> &str {
        self.entries.iter().rev().find_map(ConversationEntry::prompt).unwrap_or_default()
    }

    /// The user's last text, if the model has not spoken since.
    pub(crate) fn unanswered(&self) -> Option<&str> {
        let since =
            self.entries.iter().rev().take_while(|entry| **entry != ConversationEntry::Response);
        since.filter_map(ConversationEntry::prompt).next()
    }

    /// The texts of the last tool results.
    pub(crate) fn results(&self) -> &[String] {
        self.entries
            .iter()
            .rev()
            .find_map(|entry| match entry {
                ConversationEntry::Results(texts) => Some(texts.as_slice()),
                _ => None,
            })
            .unwrap_or_default()
    }
}

impl ConversationEntry {
    fn prompt(&self) -> Option<&str> {
        match self {
            Self::Prompt(text) => Some(text),
            _ => None,
        }
    }
}
