//! Fields of a raw input that hint at a command, a deletion or a move, whatever the kind of the call. They
//! are searched at any depth.

use serde_json::Value;

use crate::describe::{Class, Fields, is_one};

/// Fields that hold a command to run; the first one present is the command. Names are compared without
/// case, `_` and `-`.
const COMMANDS: &[&str] = &[
    "command",
    "cmd",
    "argv",
    "script",
    "commandline",
    "shellcommand",
    "commands",
    "program",
    "executable",
    "exec",
    "execute",
    "run",
    "bash",
    "shell",
    "args",
    "arguments",
];

/// Fields that mean a deletion, unless null or false.
const DELETES: &[&str] =
    &["delete", "deleted", "deletefile", "deletefiles", "isdelete", "remove", "unlink", "rm"];

/// Fields that mean a move, unless null or false.
const MOVES: &[&str] = &["move", "moveto", "movepath", "rename", "renameto", "newpath", "newname"];

/// Fields that change who may read, change or run a file, unless null or false.
const MODES: &[&str] =
    &["chmod", "chown", "chgrp", "setmode", "newmode", "filemode", "permissions", "perms"];

/// Fields whose value names the operation.
const DEEDS: &[&str] =
    &["operation", "op", "action", "type", "kind", "changetype", "verb", "method", "mode"];

pub(super) fn command(raw: &Fields) -> Option<&str> {
    COMMANDS
        .iter()
        .find_map(|command| raw.keys().find(|name| is_one(&[command], name)))
        .map(String::as_str)
}

/// Adds the classes that the fields hint at.
pub(super) fn classes(raw: &Fields, classes: &mut Vec<Class>) {
    for (name, value) in raw {
        let class = match value {
            Value::Null | Value::Bool(false) => None,
            _ if is_one(COMMANDS, name) => Some(Class::Shell),
            _ if is_one(DELETES, name) => Some(Class::Delete),
            _ if is_one(MOVES, name) => Some(Class::Move),
            _ if is_one(MODES, name) || is_file_mode(name, value) => Some(Class::Shell),
            Value::String(word) if is_one(DEEDS, name) => of_word(word),
            _ => None,
        };
        classes.extend(class.filter(|class| !classes.contains(class)));
        within(value, classes);
    }
}

fn within(value: &Value, found: &mut Vec<Class>) {
    match value {
        Value::Object(fields) => classes(fields, found),
        Value::Array(items) => items.iter().for_each(|item| within(item, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn of_word(word: &str) -> Option<Class> {
    if is_one(DELETES, word) || is_one(&["trash", "erase", "wipe"], word) {
        return Some(Class::Delete);
    }
    if is_one(MOVES, word) {
        return Some(Class::Move);
    }
    (is_one(COMMANDS, word) || is_one(MODES, word)).then_some(Class::Shell)
}

/// Whether a field `mode` holds file permissions (`0755`, `+x`), which may make the file a program.
fn is_file_mode(name: &str, value: &Value) -> bool {
    let is_bits = |text: &str| {
        text.bytes().all(|b| b.is_ascii_digit() || b"ogua+=-rwxst,".contains(&b))
            && text.contains(|c: char| c.is_ascii_digit() || "+=".contains(c))
    };
    is_one(&["mode"], name) && (value.is_number() || value.as_str().is_some_and(is_bits))
}

/// All text of a value, including keys, separated by spaces.
pub(super) fn texts(value: &Value) -> String {
    let mut all = String::new();
    collect(value, &mut all);
    all
}

pub(super) fn texts_of(fields: &Fields) -> String {
    let mut all = String::new();
    collect_fields(fields, &mut all);
    all
}

fn collect(value: &Value, all: &mut String) {
    match value {
        Value::String(text) => add(text, all),
        Value::Array(items) => items.iter().for_each(|item| collect(item, all)),
        Value::Object(fields) => collect_fields(fields, all),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn collect_fields(fields: &Fields, all: &mut String) {
    for (name, value) in fields {
        add(name, all);
        collect(value, all);
    }
}

fn add(text: &str, all: &mut String) {
    if !all.is_empty() {
        all.push(' ');
    }
    all.push_str(text);
}
