//! Changed files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::json::Text;

/// A file was changed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChanged<'a> {
    /// The path, as the agent names it.
    pub file_path: Text<'a>,
    /// What happened to it.
    pub change_type: FileChangeType,
    /// A unified diff, if the agent's data allow one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub diff: Option<Text<'a>>,
    /// The text before the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Text<'a>>,
    /// The text after the change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Text<'a>>,
    /// The new path, if the file was moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_to: Option<Text<'a>>,
    /// The tool call that changed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_id: Option<Text<'a>>,
}

impl<'a> FileChanged<'a> {
    /// A change with only these fields.
    pub fn new(file_path: impl Into<Text<'a>>, change_type: FileChangeType) -> Self {
        Self {
            file_path: file_path.into(),
            change_type,
            diff: None,
            before: None,
            after: None,
            moved_to: None,
            tool_id: None,
        }
    }
}

/// What happened to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum FileChangeType {
    /// The file was created.
    Created,
    /// The file's text changed, or the file was moved.
    Modified,
    /// The file was deleted.
    Deleted,
}
