//! The files that a raw input may name. Every string is checked, at any depth.

use serde_json::Value;

use crate::describe::{Class, Fields, TEXT, file_address, has_scheme, is_one, is_text};

/// Fields that are known to hold a path, for tools about which nothing else is known.
pub(in crate::acp) const PATH: &[&str] = &[
    "file_path",
    "path",
    "abs_path",
    "absolute_path",
    "filePath",
    "notebook_path",
    "dir_path",
    "target_file",
];

/// A field whose name contains one of these may hold a path.
const LIKE_PATH: &[&str] = &[
    "path",
    "file",
    "dir",
    "dest",
    "target",
    "location",
    "uri",
    "root",
    "folder",
    "source",
    "src",
    "dst",
    "cwd",
    "workspace",
];

/// A field with exactly one of these names may hold a path too.
const ALSO_PATH: &[&str] = &["from", "to", "in", "out", "input", "output"];

/// More text fields that a tool that only thinks may have.
const LIST: &[&str] = &["todos", "plan", "steps", "tasks", "status", "priority", "id"];

/// Fields that hold a whole patch, which names its own files.
const PATCH: &[&str] = &["patch", "diff", "patches", "diffs"];

/// How many files of one input are collected; an input with more is not certain.
const FILES_LIMIT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct NamedFiles {
    /// Every file that it may name.
    pub(super) files: Vec<String>,
    /// Those in fields that are known to hold a path.
    pub(super) known: Vec<String>,
    /// It may name more than these.
    pub(super) is_unclear: bool,
    /// How many strings are in fields for paths.
    fields: usize,
    has_relative: bool,
}

#[derive(Clone, Copy)]
struct FieldPosition<'f> {
    name: &'f str,
    /// It is inside a field that may hold paths.
    in_path: bool,
}

impl NamedFiles {
    /// The files that the input of a call of that class names.
    pub(super) fn of(class: Class, fields: &Fields) -> Self {
        let mut named = Self::default();
        named.look_in(class, false, fields);
        // A path may be relative to a directory that another field names.
        named.is_unclear |= named.fields > 1 && named.has_relative;
        named
    }

    /// The files that an input without fields may name: any text may be a path.
    pub(super) fn anywhere(class: Class, value: &Value) -> Self {
        let mut named = Self::default();
        named.collect(class, FieldPosition { name: "", in_path: true }, value);
        Self { is_unclear: true, ..named }
    }

    /// Whether it names nothing, as far as can be seen.
    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty() && !self.is_unclear
    }

    fn collect(&mut self, class: Class, at: FieldPosition<'_>, value: &Value) {
        match value {
            Value::Null => {}
            Value::Bool(_) | Value::Number(_) => self.is_unclear |= speaks_of_path(at.name),
            Value::String(text) => self.read(class, at, text),
            Value::Array(items) => items.iter().for_each(|item| self.collect(class, at, item)),
            Value::Object(fields) => {
                self.is_unclear |= PATH.contains(&at.name);
                self.look_in(class, at.in_path || speaks_of_path(at.name), fields);
            }
        }
    }

    fn look_in(&mut self, class: Class, in_path: bool, fields: &Fields) {
        for (name, value) in fields {
            // The keys of a map may be paths too.
            if leads_away(name) || (in_path && name.contains(['/', '.'])) {
                self.add(name, false);
            }
            self.is_unclear |= name.split_whitespace().any(has_path);
            self.collect(class, FieldPosition { name, in_path }, value);
        }
    }

    fn read(&mut self, class: Class, at: FieldPosition<'_>, text: &str) {
        let is_word = !text.trim().contains(char::is_whitespace);
        if is_text(at.name) {
            let is_content = class == Class::Edit && !at.in_path && is_one(TEXT, at.name);
            if is_word && !is_content && leads_away(text) {
                self.add(text, false);
            }
        } else if at.in_path || speaks_of_path(at.name) {
            self.fields += 1;
            self.has_relative |= !text.starts_with('/') && file_address(text).is_none();
            let is_known = PATH.contains(&at.name);
            self.add(text, is_known);
            if is_known {
                self.known.push(text.to_owned());
            }
        } else if leads_away(text) {
            self.add(text, false);
        } else if is_one(PATCH, at.name) || text.split_whitespace().any(has_path) {
            self.is_unclear = true;
        } else if class != Class::Search && is_word && text.contains(['/', '.']) {
            // It may name a file in the working directory. A search reaches all of those anyway.
            self.add(text, false);
        }
    }

    fn add(&mut self, text: &str, is_known: bool) {
        // Some tools expand or remove these characters, others do not.
        let is_plain = is_known || !text.contains(|c| "*?[{($\\\"'`<".contains(c));
        let is_full = self.files.len() >= FILES_LIMIT;
        let is_elsewhere = has_scheme(text) && file_address(text).is_none();
        self.is_unclear |= text.is_empty() || text.trim() != text || !is_plain || is_full;
        self.is_unclear |= is_elsewhere;
        match file_address(text).unwrap_or_else(|| Some(text.trim().to_owned())) {
            Some(path) if !is_full && !path.is_empty() && !self.files.contains(&path) => {
                self.files.push(path);
            }
            Some(_) => {}
            None => self.is_unclear = true,
        }
    }
}

/// Whether an input has only numbers, booleans, nulls, and text in known text fields.
pub(super) fn is_only_text(fields: &Fields) -> bool {
    fn is_plain(name: &str, value: &Value) -> bool {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => true,
            Value::String(_) => is_text(name) || is_one(LIST, name),
            Value::Array(items) => items.iter().all(|item| is_plain(name, item)),
            Value::Object(fields) => fields.iter().all(|(name, value)| is_plain(name, value)),
        }
    }
    fields.iter().all(|(name, value)| is_plain(name, value))
}

fn speaks_of_path(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    !is_text(name)
        && (LIKE_PATH.iter().any(|part| lower.contains(part)) || ALSO_PATH.contains(&&*lower))
}

/// Whether a whole string is a path that may lead out of the working directory.
fn leads_away(text: &str) -> bool {
    let text = text.trim().trim_start_matches(['"', '\'', '`', '<', '(']);
    let goes_up = |text: &str| text.split(|c| "/\\{}()[],|".contains(c)).any(|part| part == "..");
    text.starts_with(['/', '~'])
        || file_address(text).is_some()
        || goes_up(text)
        || (text.contains('\\') && goes_up(&text.replace('\\', "")))
}

/// Whether a word contains such a path, as in `--out=/etc/x`, or the address of another machine.
fn has_path(word: &str) -> bool {
    (word.starts_with('-') && word.contains(['/', '~']))
        || word.split(['=', '@', ':', ';', ',']).any(leads_away)
}
