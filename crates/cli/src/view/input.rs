//! The input of a tool call, shown in full to the person who must allow it.

use agentwire_protocol::Json;
use serde_json::{Map, Value};

use super::layout::{Ink, Page};
use super::{diff, numbers, summary};

/// How many lines of a diff or of a value are shown. Commands are always whole.
const LINES: usize = 200;

/// Shows an input: a command as it will run, a change as a diff, and every other field by its name.
pub(crate) fn show(page: &mut Page, input: &Json<'_>, directory: Option<&str>) {
    let Ok(Value::Object(mut fields)) = input.read::<Value>() else {
        return lines(page, Ink::Plain, input.get());
    };
    if let Some(command) = fields.get("command").and_then(summary::text) {
        fields.remove("command");
        page.marked(Ink::Bold, "$ ", None);
        page.marked(Ink::Bold, &command, Some("  "));
        page.end_line();
    }
    for name in ["file_path", "path"] {
        if let Some(Value::String(path)) = fields.get(name) {
            page.line(&[(Ink::Bold, summary::near(path, directory))]);
            fields.remove(name);
        }
    }
    changes(page, &mut fields, directory);
    project_files(page, &mut fields);
    for (name, value) in fields {
        let text = match value {
            Value::String(text) => text,
            Value::Array(_) | Value::Object(_) => {
                serde_json::to_string_pretty(&value).unwrap_or_default()
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
        };
        match text.contains('\n') {
            true => {
                page.line(&[(Ink::Dim, &name), (Ink::Dim, ":")]);
                page.indent += 2;
                lines(page, Ink::Plain, &text);
                page.indent -= 2;
            }
            false => page.line(&[(Ink::Dim, &name), (Ink::Dim, ": "), (Ink::Plain, &text)]),
        }
    }
}

/// Shows and removes the fields that are file changes.
fn changes(page: &mut Page, fields: &mut Map<String, Value>, directory: Option<&str>) {
    if let Some((old, new)) = passage(fields) {
        diff::show(page, &diff::of_texts(&old, &new, true), LINES);
        fields.remove("old_string");
        fields.remove("new_string");
    } else if let Some(Value::String(text)) = fields.get("content") {
        diff::show(page, &diff::of_texts("", text, false), LINES);
        fields.remove("content");
    }
    let is_edits = |value: &Value| {
        let edits = value.as_array().filter(|edits| !edits.is_empty());
        edits.is_some_and(|edits| edits.iter().all(|edit| edit_of(edit).is_some()))
    };
    for name in ["edits", "changes", "content"] {
        let Some(value) = fields.get(name).filter(|value| is_edits(value)).cloned() else {
            continue;
        };
        fields.remove(name);
        for (path, diff) in value.as_array().into_iter().flatten().filter_map(edit_of) {
            if let Some(path) = path {
                page.line(&[(Ink::Bold, summary::near(&path, directory))]);
            }
            diff::show(page, &diff, LINES);
        }
    }
}

/// Shows and removes files and what each would run.
fn project_files(page: &mut Page, fields: &mut Map<String, Value>) {
    let is_file = |file: &Value| file.get("path").is_some() && file.get("runs").is_some();
    let files = fields.get("files").and_then(Value::as_array);
    if !files.is_some_and(|files| files.iter().all(is_file)) {
        return;
    }
    for file in fields.remove("files").iter().filter_map(Value::as_array).flatten() {
        let text = |name| file.get(name).and_then(Value::as_str);
        page.line(&[(Ink::Bold, text("path").unwrap_or_default())]);
        page.indent += 2;
        if let Some(link) = text("link") {
            page.line(&[(Ink::Dim, "is a link to "), (Ink::Plain, link)]);
        }
        for run in file.get("runs").and_then(Value::as_array).into_iter().flatten() {
            lines(page, Ink::Plain, run.as_str().unwrap_or_default());
        }
        if let Some(note) = text("note") {
            page.line(&[(Ink::Yellow, note)]);
        }
        let digest = text("digest").and_then(|digest| digest.get(..16));
        if let Some(digest) = digest {
            page.line(&[(Ink::Dim, "sha256 "), (Ink::Dim, digest), (Ink::Dim, "…")]);
        }
        page.indent -= 2;
    }
}

fn passage(fields: &Map<String, Value>) -> Option<(String, String)> {
    let text = |name| fields.get(name)?.as_str().map(str::to_owned);
    Some((text("old_string")?, text("new_string")?))
}

/// One change in the form of any agent: the file, if named, and the diff.
fn edit_of(edit: &Value) -> Option<(Option<String>, String)> {
    let fields = edit.as_object()?;
    let text = |name| fields.get(name).and_then(Value::as_str);
    let path = text("path").map(str::to_owned);
    if let Some((old, new)) = passage(fields) {
        return Some((path, diff::of_texts(&old, &new, true)));
    }
    if let Some(new) = text("newText") {
        return Some((path, diff::of_texts(text("oldText").unwrap_or_default(), new, false)));
    }
    let diff = text("diff")?;
    // For a new or deleted file, Codex sends the text itself.
    match fields.get("kind").and_then(|kind| kind.get("type")).and_then(Value::as_str) {
        Some("add") => Some((path, diff::of_texts("", diff, false))),
        Some("delete") => Some((path, diff::of_texts(diff, "", false))),
        Some(_) | None => Some((path, diff.to_owned())),
    }
}

fn lines(page: &mut Page, ink: Ink, text: &str) {
    let all: Vec<&str> = text.trim_end().lines().collect();
    for line in all.iter().take(LINES) {
        page.line(&[(ink, line)]);
    }
    if let Some(more) = all.len().checked_sub(LINES).filter(|more| *more > 0) {
        page.line(&[(Ink::Dim, &numbers::more(more))]);
    }
}
