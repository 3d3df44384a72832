//! What the agent says: text, reasoning, plans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Text;

/// Text of the answer. The `content` of a block's chunks, joined, is the text; the closing chunk
/// carries what the others did not, often nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextChunk<'a> {
    /// The next piece.
    pub content: Text<'a>,
    /// Whether the block ends here.
    #[serde(default)]
    pub is_complete: bool,
    /// Which block, where an agent may have several open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_id: Option<Text<'a>>,
}

/// Text of the agent's reasoning; the same rules as for [`TextChunk`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingChunk<'a> {
    /// The next piece.
    pub content: Text<'a>,
    /// Whether the block ends here.
    #[serde(default)]
    pub is_complete: bool,
    /// Which block, where an agent may have several open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_id: Option<Text<'a>>,
    /// What lets the model's service verify the block, where the agent passes it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Text<'a>>,
}

/// The agent's plan or to-do list, whole.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanUpdated<'a> {
    /// The steps in order.
    #[serde(default)]
    pub entries: Vec<PlanEntry<'a>>,
    /// The plan in words, where it has no steps or more than steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Text<'a>>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanEntry<'a> {
    /// What is to be done.
    pub content: Text<'a>,
    /// How far it is.
    pub status: PlanStatus,
    /// How it matters, in the agent's word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Text<'a>>,
}

/// How far a step is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    /// Not begun.
    Pending,
    /// Being done.
    InProgress,
    /// Done.
    Completed,
    /// Given up.
    Cancelled,
}

impl PlanStatus {
    /// Reads any agent's word for it; an unknown one is not begun.
    pub fn from_word(word: &str) -> Self {
        match word {
            "in_progress" | "inProgress" => Self::InProgress,
            "completed" | "done" => Self::Completed,
            "cancelled" | "canceled" => Self::Cancelled,
            _ => Self::Pending,
        }
    }
}

impl PlanUpdated<'_> {
    /// The plan as a Markdown list, for readers that know only text.
    pub fn to_markdown(&self) -> String {
        let mut text = String::new();
        if let Some(explanation) = &self.explanation {
            text.push_str(&explanation.decode());
            text.push('\n');
        }
        for entry in &self.entries {
            let mark = match entry.status {
                PlanStatus::Pending => "[ ]",
                PlanStatus::InProgress => "[-]",
                PlanStatus::Completed => "[x]",
                PlanStatus::Cancelled => "[~]",
            };
            text.push_str(&format!("- {mark} {}\n", entry.content));
        }
        text
    }
}
