//! The agent's output: text, reasoning and plans.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Text;

/// Text of the agent's answer. The joined `content` of a block's chunks is the text. The last chunk carries
/// what the others did not, often nothing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TextChunk<'a> {
    /// The next piece of text.
    pub content: Text<'a>,
    /// Whether the block ends here.
    #[serde(default)]
    pub is_complete: bool,
    /// Which block, if the agent may have several open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_id: Option<Text<'a>>,
}

/// Text of the agent's reasoning; follows the same rules as [`TextChunk`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ThinkingChunk<'a> {
    /// The next piece of text.
    pub content: Text<'a>,
    /// Whether the block ends here.
    #[serde(default)]
    pub is_complete: bool,
    /// Which block, if the agent may have several open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_id: Option<Text<'a>>,
    /// A signature with which the model's service can verify the block, if the agent passes it on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Text<'a>>,
}

/// The agent's complete plan or to-do list.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanUpdated<'a> {
    /// The steps, in order.
    #[serde(default)]
    pub entries: Vec<PlanEntry<'a>>,
    /// The plan as text, if it has no steps or more than steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explanation: Option<Text<'a>>,
}

/// One step of a plan.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanEntry<'a> {
    /// What to do.
    pub content: Text<'a>,
    /// The state of the step.
    pub status: PlanStatus,
    /// The priority, as the agent names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Text<'a>>,
}

/// The state of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum PlanStatus {
    /// Not started.
    Pending,
    /// In progress.
    InProgress,
    /// Done.
    Completed,
    /// Abandoned.
    Cancelled,
}

impl PlanStatus {
    /// Reads any agent's name for the state. An unknown name means not started.
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
    /// The plan as a Markdown list, for readers that only know text.
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
