//! What the `content` of a tool call shows: words, a terminal, changes of files.

use agentwire_protocol::event::{FileChangeType, FileChanged};
use agentwire_protocol::{Json, Text};
use serde_json::json;

use super::super::wire::Piece;
use crate::diff;
use crate::json::Value;

/// How much of a text is kept of a call that is open.
pub(super) const KEPT_BYTES: usize = 64 << 10;

/// A change of one file.
#[derive(Debug)]
pub(super) struct Edit {
    path: String,
    /// Unless they were too long to keep.
    texts: Option<Texts>,
    change: FileChangeType,
}

/// A file before and after a change.
#[derive(Debug)]
struct Texts {
    before: Option<String>,
    after: String,
}

/// The `content` of a call.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) edits: Vec<Edit>,
    /// A line that names it.
    pub(super) terminal: Option<String>,
    /// There is more in it than changes of files.
    pub(super) has_more: bool,
}

/// What may be kept of changes while their call is open: of long texts, only the path.
pub(super) fn kept(mut edits: Vec<Edit>) -> Vec<Edit> {
    for edit in &mut edits {
        edit.texts = edit.texts.take().filter(|texts| {
            let before = texts.before.as_ref().map_or(0, String::len);
            before.max(texts.after.len()) <= KEPT_BYTES
        });
    }
    edits
}

/// What the `content` of a call shows.
pub(super) fn shown(content: Option<Value<'_>>) -> Shown {
    look(content, true)
}

/// The same; its text only if it is wanted, since it may be long.
pub(super) fn look(content: Option<Value<'_>>, wants_text: bool) -> Shown {
    let mut shown = Shown::default();
    for piece in content.into_iter().flat_map(Value::items) {
        let Some(read) = piece.to::<Piece<'_>>() else { continue };
        match read.kind.as_deref() {
            Some("diff") => shown.edits.extend(edit(&read)),
            Some("terminal") => {
                shown.has_more = true;
                let id = read.terminal_id.and_then(Value::string);
                shown.terminal = id.map(|id| format!("terminal {id}"));
            }
            _ => {
                shown.has_more = true;
                if wants_text {
                    let text = read.content.and_then(|content| content.get("text")?.string());
                    text.into_iter().for_each(|text| shown.text.push_str(&text));
                }
                read.content.into_iter().for_each(Value::carried);
            }
        }
    }
    shown
}

/// Gemini names a new file by `_meta.kind` and shows it as one that was empty; others leave
/// `oldText` out.
fn edit(piece: &Piece<'_>) -> Option<Edit> {
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
    Some(Edit { path, texts: Some(Texts { before, after }), change })
}

/// What a call that shows one change and tells no arguments is called with, in the words that other
/// agents have for it.
pub(super) fn arguments(edits: &[Edit]) -> Option<Json<'static>> {
    let [Edit { path, texts: Some(Texts { before, after }), change }] = edits else { return None };
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

pub(super) fn changed(edit: Edit, tool_id: &str) -> FileChanged<'_> {
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
        file_path: Text::from(edit.path),
        change_type: edit.change,
        diff: diff.map(Text::from),
        before: before.map(Text::from),
        after: after.map(Text::from),
        moved_to: None,
        tool_id: Some(Text::from(tool_id)),
    }
}
