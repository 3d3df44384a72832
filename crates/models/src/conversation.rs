//! What a request says, whatever its API.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::plan::ToolKind;

/// A request for a response of the model.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conversation {
    pub(crate) model: String,
    pub(crate) system: String,
    /// What tells conversations apart that say the same, if the program sends such an id. Only
    /// attempts are counted by it.
    pub(crate) session: String,
    pub(crate) stream: bool,
    /// Names of the tools the program offers.
    pub(crate) tools: Vec<String>,
    /// What those of them are that are no functions.
    pub(crate) kinds: BTreeMap<String, ToolKind>,
    /// What was said so far, oldest first.
    pub(crate) entries: Vec<Entry>,
    /// The form that the answer must have: JSON of this schema.
    pub(crate) schema: Option<Value>,
    /// The answer, if this is a side call of the program; its markers are then not read.
    pub(crate) side: Option<String>,
}

/// A part of a conversation.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Entry {
    /// A text of the user. One entry for each text, so that of several the last counts.
    Prompt(String),
    /// The model spoke or called tools. Adjacent ones are one response.
    Response,
    /// Texts of the results of tools, in order.
    Results(Vec<String>),
    /// The turn was given up by the user: the script before it is over.
    Abandoned,
    /// The response before did not come whole, and the program asks for it again.
    Broken,
}

impl Conversation {
    pub(crate) fn kind(&self, tool: &str) -> ToolKind {
        self.kinds.get(tool).copied().unwrap_or_default()
    }

    /// The last text of the user.
    pub(crate) fn prompt(&self) -> &str {
        self.entries.iter().rev().find_map(Entry::prompt).unwrap_or_default()
    }

    /// The last text of the user, if the model has not spoken since.
    pub(crate) fn unanswered(&self) -> Option<&str> {
        let since = self.entries.iter().rev().take_while(|entry| **entry != Entry::Response);
        since.filter_map(Entry::prompt).next()
    }

    /// The texts of the last results of tools.
    pub(crate) fn results(&self) -> &[String] {
        self.entries
            .iter()
            .rev()
            .find_map(|entry| match entry {
                Entry::Results(texts) => Some(texts.as_slice()),
                Entry::Prompt(_) | Entry::Response | Entry::Abandoned | Entry::Broken => None,
            })
            .unwrap_or_default()
    }
}

impl Entry {
    fn prompt(&self) -> Option<&str> {
        match self {
            Self::Prompt(text) => Some(text),
            Self::Response | Self::Results(_) | Self::Abandoned | Self::Broken => None,
        }
    }
}
