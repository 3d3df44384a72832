//! Changed files, as the calls with which Claude would have changed them.

use agentwire_protocol::Json;
use agentwire_protocol::event::{FileChangeType, FileChanged};
use serde::Serialize;

/// A call that changes a file, and its result.
pub(in crate::claude) struct Edit {
    pub(super) name: &'static str,
    pub(in crate::claude) input: Json<'static>,
    pub(super) content: String,
    pub(super) structured: Json<'static>,
}

/// The calls that show this change: a `Write` for a new file, an `Edit` for each passage of an existing
/// one. Claude has no tool that deletes, and a change of which only the path is known shows nothing.
pub(in crate::claude) fn edits(change: &FileChanged<'_>) -> Vec<Edit> {
    let path = &*change.file_path.decode();
    let before = change.before.as_ref().map(|text| text.decode());
    let after = change.after.as_ref().map(|text| text.decode());
    let diff = change.diff.as_ref().map(|diff| diff.decode());
    let hunks = hunks(diff.as_deref().unwrap_or_default());
    match change.change_type {
        FileChangeType::Deleted => Vec::new(),
        FileChangeType::Created => {
            let content = after.map(String::from).or_else(|| {
                let lines = hunks.iter().flat_map(|hunk| hunk.side('+'));
                (!hunks.is_empty()).then(|| lines.map(|line| format!("{line}\n")).collect())
            });
            content.map(|content| write(path, &content)).into_iter().collect()
        }
        FileChangeType::Modified if hunks.is_empty() => match (before, after) {
            (Some(before), Some(after)) => vec![edit(path, &before, &after, Some(&before), &[])],
            _ => Vec::new(),
        },
        FileChangeType::Modified => {
            let passage = |hunk: &Hunk<'_>, sign| hunk.side(sign).collect::<Vec<_>>().join("\n");
            let hunk = |hunk: Hunk<'_>| {
                let (old, new) = (passage(&hunk, '-'), passage(&hunk, '+'));
                let patch = hunk.patch();
                edit(path, &old, &new, before.as_deref(), patch.as_slice())
            };
            hunks.into_iter().map(hunk).collect()
        }
    }
}

fn write(path: &str, content: &str) -> Edit {
    Edit {
        name: "Write",
        input: Json::of(&WriteInput { file_path: path, content }),
        content: format!("File created successfully at: {path}"),
        structured: Json::of(&WriteResult {
            r#type: "create",
            file_path: path,
            content,
            structured_patch: [],
            original_file: None,
        }),
    }
}

fn edit(path: &str, old: &str, new: &str, before: Option<&str>, patch: &[Patch<'_>]) -> Edit {
    Edit {
        name: "Edit",
        input: Json::of(&EditInput { file_path: path, old_string: old, new_string: new }),
        content: format!("The file {path} has been updated."),
        structured: Json::of(&EditResult {
            file_path: path,
            old_string: old,
            new_string: new,
            original_file: before,
            structured_patch: patch,
            user_modified: false,
            replace_all: false,
        }),
    }
}

struct Hunk<'d> {
    /// Its position, if the diff gives one: first line and number of lines, before and after.
    place: Option<[u64; 4]>,
    lines: Vec<&'d str>,
}

impl<'d> Hunk<'d> {
    /// The lines of one side: those with that sign, and the common ones.
    fn side(&self, sign: char) -> impl Iterator<Item = &'d str> {
        self.lines.iter().filter_map(move |line| line.strip_prefix([' ', sign]))
    }

    /// Whether it has as many old lines as its header says.
    fn is_whole(&self) -> bool {
        let before = self.side('-').count() as u64;
        self.place.is_some_and(|[_, lines, _, _]| before >= lines)
    }

    fn patch(&self) -> Option<Patch<'_>> {
        let [old_start, old_lines, new_start, new_lines] = self.place?;
        Some(Patch { old_start, old_lines, new_start, new_lines, lines: &self.lines })
    }
}

fn hunks(diff: &str) -> Vec<Hunk<'_>> {
    let mut hunks: Vec<Hunk<'_>> = Vec::new();
    for line in diff.lines() {
        if let Some(header) = line.strip_prefix("@@") {
            hunks.push(Hunk { place: place(header), lines: Vec::new() });
        } else if let Some(hunk) = hunks.last_mut()
            && line.starts_with([' ', '-', '+'])
        {
            hunk.lines.push(line);
        } else if let Some(hunk) = hunks.last_mut()
            && line.is_empty()
            && !hunk.is_whole()
        {
            // Some writers omit the space of a blank line.
            hunk.lines.push(" ");
        }
    }
    hunks.retain(|hunk| !hunk.lines.is_empty());
    hunks
}

/// Reads ` -1,3 +1,4 @@ …`; an omitted number of lines is 1.
fn place(header: &str) -> Option<[u64; 4]> {
    let mut words = header.split_whitespace();
    let mut range = |sign| {
        let range: &str = words.next()?.strip_prefix(sign)?;
        let (start, lines) = range.split_once(',').unwrap_or((range, "1"));
        Some((start.parse().ok()?, lines.parse().ok()?))
    };
    let (old, new): ((u64, u64), (u64, u64)) = (range('-')?, range('+')?);
    Some([old.0, old.1, new.0, new.1])
}

#[derive(Serialize)]
struct WriteInput<'a> {
    file_path: &'a str,
    content: &'a str,
}

#[derive(Serialize)]
struct EditInput<'a> {
    file_path: &'a str,
    old_string: &'a str,
    new_string: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WriteResult<'a> {
    r#type: &'static str,
    file_path: &'a str,
    content: &'a str,
    structured_patch: [Patch<'a>; 0],
    original_file: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EditResult<'a> {
    file_path: &'a str,
    old_string: &'a str,
    new_string: &'a str,
    original_file: Option<&'a str>,
    structured_patch: &'a [Patch<'a>],
    user_modified: bool,
    replace_all: bool,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Patch<'a> {
    old_start: u64,
    old_lines: u64,
    new_start: u64,
    new_lines: u64,
    lines: &'a [&'a str],
}
