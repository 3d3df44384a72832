//! What the programs send and no unified event carries: messages that are only logged, and fields of other
//! messages that are never read. Determined by the dialects from the logs of sessions.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::Path;

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::driver;
use agentwire_dialects::tape::{Draft, Tape};
use agentwire_protocol::{Event, EventKind, NativeLine, Stream};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Failure;
use super::scenarios::Column;

/// Fields that name the kind of a message, in addition to `type` or `method`.
const KINDS: [&str; 10] = [
    "/subtype",
    "/request/subtype",
    "/response/subtype",
    "/event/type",
    "/event/content_block/type",
    "/event/delta/type",
    "/message/content/0/type",
    "/item/type",
    "/params/item/type",
    "/params/update/sessionUpdate",
];

/// How many characters of a line to show as an example.
const EXAMPLE: usize = 400;

/// What no unified event carries.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Residue {
    /// Messages that are only logged.
    pub(super) messages: BTreeSet<String>,
    /// Unread fields of the other messages, each after the name of its message.
    pub(super) fields: BTreeSet<String>,
}

impl Residue {
    pub(super) fn add(&mut self, other: &Self) {
        self.messages.extend(other.messages.iter().cloned());
        self.fields.extend(other.fields.iter().cloned());
    }

    /// What is new compared with `known`. The fields of a new message are not listed one by one.
    pub(super) fn beyond(&self, known: &Self) -> Self {
        let messages: BTreeSet<String> =
            self.messages.difference(&known.messages).cloned().collect();
        let is_new = |field: &&String| {
            field.split_once(' ').is_some_and(|(name, _)| messages.contains(name))
        };
        let fields = self.fields.difference(&known.fields).filter(|field| !is_new(field));
        Self { fields: fields.cloned().collect(), messages }
    }
}

/// What the logs of one program contain.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    pub(super) residue: Residue,
    /// The start of a line, by the name of its message.
    pub(super) examples: BTreeMap<String, String>,
}

impl Observed {
    pub(super) fn of(column: &Column, directory: &Path) -> Result<Self, Failure> {
        let failed = |error| Failure::of(format!("read the logs of {}", column.name))(error);
        let dialect = driver(column.agent, Some(&column.driver))
            .map_err(|error| failed(io::Error::other(error.message)))?;
        let mut observed = Self::default();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let log = entry.and_then(|entry| fs::read_to_string(entry.path())).map_err(failed)?;
            observed.read(dialect, &log).map_err(failed)?;
        }
        Ok(observed)
    }

    /// Reads one session's log: an event per line.
    pub(super) fn read(&mut self, dialect: &dyn AgentDialect, log: &str) -> io::Result<()> {
        let mut tape = Tape::recording(dialect).track_residue();
        for line in log.lines() {
            let event = Event::from_json(line)?;
            for native in event.native.iter().filter(|native| native.stream == Stream::Stdout) {
                match &native.line {
                    NativeLine::Json(json) => self.line(&mut tape, json.get()),
                    NativeLine::Text(text) => self.line(&mut tape, text),
                    NativeLine::Bytes(_) => self.message("bytes", ""),
                }
            }
        }
        Ok(())
    }

    fn line(&mut self, tape: &mut Tape, line: &str) {
        let mut is_only_kept = true;
        tape.line(line.as_bytes(), &mut |draft: Draft<'_>| {
            // Events without a line, such as the session's start, occur anyway.
            if draft.native.is_some() {
                is_only_kept = matches!(draft.kind, EventKind::Other(_));
            }
        });
        let unread = tape.take_residue();
        let Ok(message) = serde_json::from_str::<Value>(line) else {
            return self.message("text", line);
        };
        let name = name(&message);
        let paths: Vec<String> = if is_only_kept {
            self.message(&name, line);
            outline(&message)
        } else {
            unread.iter().filter_map(|entry| Some(entry.split_once(' ')?.1.to_owned())).collect()
        };
        let fields = paths.iter().map(|path| format!("{name} {}", without_names(path)));
        self.residue.fields.extend(fields);
    }

    fn message(&mut self, name: &str, line: &str) {
        self.example(name, line);
        self.residue.messages.insert(name.to_owned());
    }

    fn example(&mut self, name: &str, line: &str) {
        let cut = || line.chars().take(EXAMPLE).collect();
        self.examples.entry(name.to_owned()).or_insert_with(cut);
    }
}

/// The name of a message: its type or method, and its kind. Without spaces.
fn name(message: &Value) -> String {
    let text = |pointer: &str| message.pointer(pointer).and_then(Value::as_str);
    let reply = if message.get("error").is_some() { "reply/error" } else { "reply" };
    let first = text("/type").or_else(|| text("/method")).unwrap_or(reply);
    let kinds = KINDS.into_iter().filter_map(text);
    std::iter::once(first).chain(kinds).collect::<Vec<_>>().join("/").replace(' ', "_")
}

/// The fields of an unread message, and the fields inside them.
fn outline(message: &Value) -> Vec<String> {
    let fields = |value: &Value| -> Vec<(String, Value)> {
        value
            .as_object()
            .into_iter()
            .flatten()
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    };
    let mut paths = Vec::new();
    for (key, value) in fields(message).into_iter().filter(|(_, value)| !value.is_null()) {
        let inner = fields(&value);
        paths.extend(
            inner
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(below, _)| format!("{key}.{below}")),
        );
        if inner.is_empty() {
            paths.push(key);
        }
    }
    paths
}

/// Replaces keys that name something, such as models, files or ids, with `*`.
fn without_names(path: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('.') {
        let is_word =
            part.chars().all(|c| c.is_ascii_alphabetic() || matches!(c, '_' | '$' | '[' | ']'));
        match parts.last() {
            _ if is_word => parts.push(part),
            Some(&"*") => {}
            Some(_) | None => parts.push("*"),
        }
    }
    parts.join(".")
}
