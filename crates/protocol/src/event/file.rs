//! Changed files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Text;

/// A file was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChanged<'a> {
    /// Which file, as the agent names it.
    pub file_path: Text<'a>,
    /// What happened to it.
    pub change_type: FileChangeType,
    /// A unified diff, where the agent's data allow one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Text<'a>>,
    /// The text before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text<'a>>,
    /// The text after.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Text<'a>>,
    /// Where it was moved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Text<'a>>,
    /// The tool call that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Text<'a>>,
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FileChangeType {
    /// It is new.
    Created,
    /// Its text changed, or it was moved.
    Modified,
    /// It is gone.
    Deleted,
}
