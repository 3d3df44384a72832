//! The `content` of a tool call: text, a terminal, file changes.

use agentwire_protocol::event::{FileChangeType, FileChanged};
use agentwire_protocol::{Json, Text};
use serde_json::json;

use super::super::wire::ToolContentItem;
use crate::diff;
use crate::json::Value;

/// The longest text that is stored for an open call.
pub(super) const TEXT_LIMIT: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct FileEdit {
    path: String,
    /// `None` if they were too long to store.
    texts: Option<Texts>,
    change: FileChangeType,
}

#[derive(Debug)]
struct Texts {
    before: Option<String>,
    after: String,
}

#[derive(Default)]
pub(super) struct ToolContent {
    pub(super) text: String,
    pub(super) edits: Vec<FileEdit>,
    /// A line that names the terminal.
    pub(super) terminal: Option<String>,
    /// It contains more than file changes.
    pub(super) has_more: bool,
}

/// Reduces changes to what is stored while their call is open: long texts are dropped, the path remains.
pub(super) fn bounded(mut edits: Vec<FileEdit>) -> Vec<FileEdit> {
    for edit in &mut edits {
        edit.texts = edit.texts.take().filter(|texts| {
            let before = texts.before.as_ref().map_or(0, String::len);
            before.max(texts.after.len()) <= TEXT_LIMIT
        });
    }
    edits
}

pub(super) fn read_content(content: Option<Value<'_>>) -> ToolContent {
    read_content_with(content, true)
}

/// Like [`read_content`], but reads the text only if it is wanted, since it may be long.
pub(super) fn read_content_with(content: Option<Value<'_>>, wants_text: bool) -> ToolContent {
    let mut parsed = ToolContent::default();
    for piece in content.into_iter().flat_map(Value::items) {
        let Some(read) = piece.to::<ToolContentItem<'_>>() else { continue };
        match read.kind.as_deref() {
            Some("diff") => parsed.edits.extend(edit(&read)),
            Some("terminal") => {
                parsed.has_more = true;
                let id = read.terminal_id.and_then(Value::string);
                parsed.terminal = id.map(|id| format!("terminal {id}"));
            }
            _ => {
                parsed.has_more = true;
                if wants_text {
                    let text = read.content.and_then(|content| content.get("text")?.string());
                    text.into_iter().for_each(|text| parsed.text.push_str(&text));
                }
                read.content.into_iter().for_each(Value::carried);
            }
        }
    }
    parsed
}

/// Gemini marks a new file with `_meta.kind` and shows it as previously empty; other agents leave `oldText`
/// out.
fn edit(piece: &ToolContentItem<'_>) -> Option<FileEdit> {
    let path = piece.path?.string()?.into_owned();
    let before = piece.old_text.and_then(Value::string).map(Into::into);
    let after = piece.new_text.and_then(Value::string)?.into_owned();
    let kind = piece.meta.and_then(|meta| meta.get("kind")).and_then(Value::string);
    let change = match kind.as_deref() {
        Some("add") => FileChangeType::Created,
        Some("delete") => FileChangeType::Deleted,
        _ if before.is_none() => FileChangeType::Created,
        _ => FileChangeType::Modified,
    };
    Some(FileEdit { path, texts: Some(Texts { before, after }), change })
}

/// Arguments for a call that shows one change but reports no arguments, named as other agents name them.
pub(super) fn arguments(edits: &[FileEdit]) -> Option<Json<'static>> {
    let [FileEdit { path, texts: Some(Texts { before, after }), change }] = edits else {
        return None;
    };
    match change {
        FileChangeType::Created => Some(Json::of(&json!({ "file_path": path, "content": after }))),
        FileChangeType::Modified => Some(Json::of(&json!({
            "file_path": path,
            "old_string": before.as_deref().unwrap_or_default(),
            "new_string": after,
        }))),
        FileChangeType::Deleted => None,
    }
}

pub(super) fn changed(edit: FileEdit, tool_id: &str) -> FileChanged<'_> {
    let diff = edit.texts.as_ref().and_then(|Texts { before, after }| {
        diff::of_texts(before.as_deref().unwrap_or_default(), after)
    });
    let (before, after) = match (edit.texts, edit.change) {
        (None, _) => (None, None),
        (Some(texts), FileChangeType::Created) => (None, Some(texts.after)),
        (Some(texts), FileChangeType::Modified) => (texts.before, Some(texts.after)),
        (Some(texts), FileChangeType::Deleted) => (texts.before, None),
    };
    FileChanged {
        diff: diff.map(Text::from),
        before: before.map(Text::from),
        after: after.map(Text::from),
        tool_id: Some(Text::from(tool_id)),
        ..FileChanged::new(edit.path, edit.change)
    }
}
