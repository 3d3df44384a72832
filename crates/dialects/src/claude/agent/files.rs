//! Changed files, from what the tool reports it did, or else from what it was asked to do.

use std::borrow::Cow;

use agentwire_protocol::Text;
use agentwire_protocol::event::{FileChangeType, FileChanged};

use crate::claude::wire::{FileResult, Hunk};
use crate::diff;
use crate::json::Value;

/// Longest input of a call, in bytes, that is stored until its result. For a longer one only the path is
/// stored: the result usually reports the change itself.
pub(super) const KEPT: usize = 64 << 10;

/// What an edit tool was asked to do. Results of subagents' tools report no more than that.
#[derive(Debug)]
pub(super) struct IntendedChange {
    path: String,
    diff: Option<String>,
    after: Option<String>,
}

impl IntendedChange {
    pub(super) fn asked(tool: &str, input: Value<'_>) -> Option<Self> {
        let text = |value: Value<'_>, name| value.read::<Cow<'_, str>>(name).map(Cow::into_owned);
        let passage = |value: Value<'_>| {
            let (old, new) = (text(value, "old_string")?, text(value, "new_string")?);
            Some(diff::of_passage(&old, &new))
        };
        let kept = input.json().get().len() <= KEPT;
        let (diff, after) = match tool {
            "Write" | "Edit" | "MultiEdit" if !kept => (None, None),
            "Write" => (None, text(input, "content")),
            "Edit" => (passage(input), None),
            "MultiEdit" => (Some(input.get("edits")?.items().filter_map(passage).collect()), None),
            "NotebookEdit" => {
                let path = text(input, "notebook_path")?;
                return Some(Self { path, diff: None, after: None });
            }
            _ => return None,
        };
        Some(Self { path: text(input, "file_path")?, diff, after })
    }

    /// The change was made. Whether the file existed before is not reported.
    pub(super) fn done<'d>(self) -> FileChanged<'d> {
        FileChanged {
            diff: self.diff.map(Text::from),
            after: self.after.map(Text::from),
            ..FileChanged::new(self.path, FileChangeType::Modified)
        }
    }
}

/// The change that a file tool reports. Results of other tools do not name a file in this way.
pub(super) fn changed(result: Value<'_>) -> Option<FileChanged<'_>> {
    let told: FileResult<'_> = result.to()?;
    if told.error.is_some_and(|error| !error.is_empty()) {
        return None;
    }
    let notebook = told.notebook_path.is_some();
    if !notebook && told.patch.is_none() {
        return None;
    }
    let file_path = told.file_path.or(told.notebook_path)?;
    let created = told.kind.as_deref() == Some("create");
    let before = told.original_file.or(told.original_contents).or(told.notebook_before);
    let after = told.content.or(told.notebook_after);
    let diff = told.patch.map(hunks).filter(|diff| !diff.is_empty()).or_else(|| {
        let before = before.as_ref().map(Text::decode);
        let before = if created { Some(before.unwrap_or_default()) } else { before };
        let diff = diff::of_texts(&before?, &after.as_ref()?.decode())?;
        (!diff.is_empty()).then_some(diff)
    });
    let change_type = if created { FileChangeType::Created } else { FileChangeType::Modified };
    let diff = diff.map(Text::from);
    Some(FileChanged { diff, before, after, ..FileChanged::new(file_path, change_type) })
}

fn hunks(patch: Value<'_>) -> String {
    let mut diff = String::new();
    for hunk in patch.items().filter_map(Value::to::<Hunk<'_>>) {
        diff.push_str(&format!(
            "@@ -{},{} +{},{} @@\n",
            hunk.old_start.unwrap_or(0),
            hunk.old_lines.unwrap_or(0),
            hunk.new_start.unwrap_or(0),
            hunk.new_lines.unwrap_or(0),
        ));
        for line in hunk.lines.iter().flatten() {
            diff.push_str(line);
            diff.push('\n');
        }
    }
    diff
}
