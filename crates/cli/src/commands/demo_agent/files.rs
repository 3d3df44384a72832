//! Read, Write and Edit: the tools that work on files.

use std::fs;
use std::io;
use std::path::Path;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use similar::{ChangeTag, TextDiff};

use super::json::JsonFields as _;
use super::tools::Outcome;

/// Maximum size of a file that is shown in full.
const READ_LIMIT: u64 = 256 << 10;

/// Maximum size of an image.
const IMAGE_LIMIT: u64 = 16 << 20;

/// The default number of lines.
const LINES: u64 = 2000;

const CURRENT: &str = "(file state is current in your context — no need to Read it back)";

/// A tool that works on one file.
pub(super) type FileTool = fn(&Path, &Value) -> io::Result<Outcome>;

/// Applies the tool; a failure is its outcome.
pub(super) fn apply(tool: FileTool, path: &Path, input: &Value) -> Outcome {
    tool(path, input).unwrap_or_else(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            Outcome::failed(&format!("File does not exist: {}", path.display()))
        }
        _ => Outcome::failed(&format!("{}: {error}", path.display())),
    })
}

pub(super) fn read(path: &Path, input: &Value) -> io::Result<Outcome> {
    let size = fs::metadata(path)?.len();
    let media = path.extension().and_then(|extension| match extension.to_str()? {
        "png" => Some("image/png"),
        "jpg" | "jpeg" => Some("image/jpeg"),
        "gif" => Some("image/gif"),
        "webp" => Some("image/webp"),
        _ => None,
    });
    let limit = if media.is_some() { IMAGE_LIMIT } else { READ_LIMIT };
    if size > limit {
        let message = format!("File content ({size} bytes) exceeds maximum allowed size ({limit})");
        return Ok(Outcome::failed(&message));
    }
    let bytes = fs::read(path)?;
    if let Some(media) = media {
        return Ok(picture(&bytes, media));
    }
    let text = String::from_utf8_lossy(&bytes);
    let all: Vec<&str> = text.split('\n').collect();
    let start = input.at("offset").as_u64().unwrap_or(1).max(1);
    let count = input.at("limit").as_u64().unwrap_or(LINES);
    let skip = usize::try_from(start - 1).unwrap_or(usize::MAX);
    let shown = all.iter().skip(skip).take(usize::try_from(count).unwrap_or(usize::MAX));
    let shown: Vec<&str> = shown.copied().collect();
    let numbered: Vec<String> =
        (start..).zip(&shown).map(|(number, line)| format!("{number}\t{line}")).collect();
    Ok(Outcome::done(
        numbered.join("\n"),
        json!({ "type": "text", "file": {
            "filePath": path,
            "content": shown.join("\n"),
            "numLines": shown.len(),
            "startLine": start,
            "totalLines": all.len(),
        } }),
    ))
}

fn picture(bytes: &[u8], media: &str) -> Outcome {
    let data = BASE64_STANDARD.encode(bytes);
    let source = json!({ "type": "base64", "media_type": media, "data": data });
    let file = json!({ "base64": data, "type": media, "originalSize": bytes.len() });
    Outcome::done(
        json!([{ "type": "image", "source": source }]),
        json!({ "type": "image", "file": file }),
    )
}

pub(super) fn write(path: &Path, input: &Value) -> io::Result<Outcome> {
    let content = input.at("content").as_str().unwrap_or_default();
    let before = match fs::read(path) {
        Ok(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        Err(error) => return Err(error),
    };
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::write(path, content)?;
    let (kind, text, hunks) = match &before {
        Some(before) => {
            let text =
                format!("The file {} has been updated successfully. {CURRENT}", path.display());
            ("update", text, patch(before, content))
        }
        None => {
            let text = format!("File created successfully at: {} {CURRENT}", path.display());
            ("create", text, json!([]))
        }
    };
    Ok(Outcome::done(
        text,
        json!({
            "type": kind,
            "filePath": path,
            "content": content,
            "structuredPatch": hunks,
            "originalFile": before,
            "userModified": false,
        }),
    ))
}

pub(super) fn edit(path: &Path, input: &Value) -> io::Result<Outcome> {
    let text = |key: &str| input.at(key).as_str().unwrap_or_default();
    let (old, new) = (text("old_string"), text("new_string"));
    let replace_all = input.at("replace_all") == true;
    let before = fs::read_to_string(path)?;
    let matches = if old.is_empty() { 0 } else { before.matches(old).count() };
    let wrong = match matches {
        _ if old == new => {
            Some("No changes to make: old_string and new_string are exactly the same.".to_owned())
        }
        0 => Some(format!("String to replace not found in file.\nString: {old}")),
        2.. if !replace_all => Some(format!(
            "Found {matches} matches of the string to replace, but replace_all is false. To replace \
             only one occurrence, please provide more context.\nString: {old}"
        )),
        _ => None,
    };
    if let Some(message) = wrong {
        return Ok(Outcome::failed(&message));
    }
    let after = before.replace(old, new);
    fs::write(path, &after)?;
    Ok(Outcome::done(
        format!("The file {} has been updated successfully. {CURRENT}", path.display()),
        json!({
            "filePath": path,
            "oldString": old,
            "newString": new,
            "structuredPatch": patch(&before, &after),
            "originalFile": before,
            "userModified": false,
            "replaceAll": replace_all,
        }),
    ))
}

/// The diff, with three lines of context.
fn patch(before: &str, after: &str) -> Value {
    let diff = TextDiff::from_lines(before, after);
    let hunks = diff.grouped_ops(3).into_iter().filter_map(|group| {
        let (first, last) = (group.first()?, group.last()?);
        let (old, new) = (first.old_range().start, first.new_range().start);
        let lines: Vec<String> = group
            .iter()
            .flat_map(|operation| diff.iter_changes(operation))
            .map(|change| {
                let sign = match change.tag() {
                    ChangeTag::Equal => ' ',
                    ChangeTag::Delete => '-',
                    ChangeTag::Insert => '+',
                };
                format!("{sign}{}", change.value().trim_end_matches('\n'))
            })
            .collect();
        Some(json!({
            "oldStart": old + 1,
            "oldLines": last.old_range().end - old,
            "newStart": new + 1,
            "newLines": last.new_range().end - new,
            "lines": lines,
        }))
    });
    hunks.collect()
}
