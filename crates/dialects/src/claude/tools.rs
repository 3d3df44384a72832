//! Any agent's tool call in Claude's terms: the tool name and the input fields that Claude would use.
//!
//! Claude's clients and hooks know tools by these names. The agent's own fields stay next to them.

use std::collections::BTreeMap;

use agentwire_protocol::event::{FileChangeType, FileChanged, ToolKind};
use agentwire_protocol::{Json, Text, shell};
use serde_json::Value;

use super::render::files;

type Fields = BTreeMap<String, Json<'static>>;

/// A tool call of any agent, as the agent reports it.
#[derive(Clone, Copy, Debug, Default)]
pub struct ToolCall<'c> {
    /// The agent's name for the tool.
    pub name: &'c str,
    pub kind: ToolKind,
    /// The MCP server that provides the tool.
    pub server: Option<&'c str>,
    pub input: Option<&'c Json<'c>>,
    pub title: Option<&'c str>,
}

/// A tool call as Claude would make it.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolUse {
    /// Claude's name for the tool, or the agent's own if Claude has none.
    pub name: String,
    /// An object: the agent's own fields, plus Claude's where they are certain.
    pub input: Json<'static>,
    /// The input shows how a file changes.
    pub is_edit: bool,
}

impl ToolCall<'_> {
    pub fn as_claude(&self) -> ToolUse {
        let given = self.input.map(|input| input.clone().into_owned());
        let read = given.as_ref().map(Json::read::<Fields>);
        // Input that is not an object is shown too.
        let mut is_changed = matches!(read, Some(Err(_)) | None);
        let mut fields = match (read, &given) {
            (Some(Ok(fields)), _) => fields,
            (_, Some(given)) => Fields::from([("input".to_owned(), given.clone())]),
            (_, None) => Fields::new(),
        };
        let title = self.title.filter(|title| !title.is_empty());
        if self.server.is_none() {
            let more = more(self.kind, &fields, title);
            is_changed |= !more.is_empty();
            fields.extend(more);
        }
        if let Some(title) = title.filter(|_| fields.is_empty()) {
            is_changed = true;
            fields.insert("description".to_owned(), Json::of(&title));
        }
        let name = match self.server {
            Some(server) => format!("mcp__{server}__{}", self.name),
            None => name(self.name, self.kind, &fields).to_owned(),
        };
        let is_edit = match &*name {
            "Edit" => ["file_path", "old_string", "new_string"].iter().all(|it| has(&fields, it)),
            "Write" => ["file_path", "content"].iter().all(|it| has(&fields, it)),
            _ => false,
        };
        let input = given.filter(|_| !is_changed).unwrap_or_else(|| Json::of(&fields));
        ToolUse { name, input, is_edit }
    }
}

/// Merges the earlier input of a call with the later one, which wins. A `null` replaces nothing.
pub fn overlaid(before: Option<&Json<'_>>, now: Option<&Json<'_>>) -> Option<Json<'static>> {
    let own = |json: &Json<'_>| json.clone().into_owned();
    let (Some(before), Some(now)) = (before, now) else { return now.or(before).map(own) };
    let (Ok(mut fields), Ok(more)) = (before.read::<Fields>(), now.read::<Fields>()) else {
        return Some(own(now));
    };
    fields.extend(more.into_iter().filter(|(_, value)| value.get() != "null"));
    Some(Json::of(&fields))
}

fn name<'n>(own: &'n str, kind: ToolKind, fields: &Fields) -> &'n str {
    let says = |words: &[&str]| words.iter().any(|word| own.contains(word));
    match kind {
        ToolKind::Execute if has(fields, "command") => "Bash",
        ToolKind::Read if !says(&["list", "many", "background"]) => "Read",
        ToolKind::Edit if has(fields, "old_string") => "Edit",
        ToolKind::Edit if has(fields, "content") => "Write",
        ToolKind::Edit if says(&["write", "create"]) || only_adds(fields) => "Write",
        ToolKind::Edit => "Edit",
        ToolKind::Search if says(&["glob"]) => "Glob",
        ToolKind::Search if says(&["grep", "search"]) => "Grep",
        ToolKind::Fetch if says(&["search"]) => "WebSearch",
        ToolKind::Fetch => "WebFetch",
        ToolKind::Agent if says(&["spawn", "invoke", "task"]) => "Task",
        ToolKind::Question => "AskUserQuestion",
        ToolKind::Execute
        | ToolKind::Read
        | ToolKind::Search
        | ToolKind::Agent
        | ToolKind::Think
        | ToolKind::Delete
        | ToolKind::Move
        | ToolKind::Mcp
        | ToolKind::SwitchMode
        | ToolKind::Other => own,
    }
}

/// Claude's fields that follow from the agent's own.
fn more(kind: ToolKind, fields: &Fields, title: Option<&str>) -> Fields {
    let mut more = Fields::new();
    match kind {
        ToolKind::Execute => {
            let command = match read(fields, "command") {
                Some(Value::Array(words)) => {
                    let words = words.iter().filter_map(Value::as_str).map(quoted);
                    Some(words.collect::<Vec<_>>().join(" "))
                }
                Some(Value::String(_)) => None,
                // An agent that reports no arguments for a command shows the command as the call's title.
                Some(_) | None => title.map(str::to_owned),
            };
            more.extend(command.map(|command| ("command".to_owned(), Json::of(&command))));
        }
        ToolKind::Edit => {
            if let Some(edit) = only_change(fields) {
                more.extend(edit.read::<Fields>().unwrap_or_default());
            } else if !has(fields, "file_path") {
                more.extend(only_path(fields).as_deref().map(path));
            }
        }
        ToolKind::Read if !has(fields, "file_path") => {
            more.extend(only_path(fields).as_deref().map(path));
        }
        _ => {}
    }
    more
}

fn path(path: &str) -> (String, Json<'static>) {
    ("file_path".to_owned(), Json::of(&path))
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => shell::quoted(word),
    }
}

/// Whether all the changes that a call lists are new files.
fn only_adds(fields: &Fields) -> bool {
    let changes = list(fields, "changes");
    !changes.is_empty() && changes.iter().all(|change| change_kind(change) == Some("add"))
}

fn change_kind(change: &Value) -> Option<&str> {
    change.pointer("/kind/type").or(change.get("kind"))?.as_str()
}

/// The input of Claude's tool, if the call lists a single change that Claude could make.
fn only_change(fields: &Fields) -> Option<Json<'static>> {
    let changes = list(fields, "changes");
    let [change] = changes.as_slice() else { return None };
    if change.pointer("/kind/move_path").is_some_and(|path| !path.is_null()) {
        return None;
    }
    let diff = Text::from(change.get("diff")?.as_str()?);
    let is_new = change_kind(change)? == "add";
    let change_type = match change_kind(change)? {
        "add" => FileChangeType::Created,
        "delete" => FileChangeType::Deleted,
        _ => FileChangeType::Modified,
    };
    let changed = FileChanged {
        diff: (!is_new).then(|| diff.clone()),
        after: is_new.then_some(diff),
        ..FileChanged::new(change.get("path")?.as_str()?, change_type)
    };
    match files::edits(&changed).as_mut_slice() {
        [edit] => Some(std::mem::replace(&mut edit.input, Json::EMPTY)),
        _ => None,
    }
}

/// The file that a call touches, if it is exactly one. One of several cannot represent the others.
fn only_path(fields: &Fields) -> Option<String> {
    let named = ["path", "absolute_path", "abs_path", "filePath"];
    let named = named.iter().find_map(|name| fields.get(*name)?.read::<String>().ok());
    if named.is_some() {
        return named;
    }
    let paths = ["changes", "locations", "content"].into_iter().flat_map(|name| list(fields, name));
    let mut paths: Vec<String> =
        paths.filter_map(|item| Some(item.get("path")?.as_str()?.to_owned())).collect();
    paths.sort();
    paths.dedup();
    if paths.len() == 1 { paths.pop() } else { None }
}

fn has(fields: &Fields, name: &str) -> bool {
    fields.get(name).is_some_and(|value| value.get().starts_with('"'))
}

fn read(fields: &Fields, name: &str) -> Option<Value> {
    fields.get(name)?.read().ok()
}

fn list(fields: &Fields, name: &str) -> Vec<Value> {
    fields.get(name).and_then(|list| list.read().ok()).unwrap_or_default()
}
