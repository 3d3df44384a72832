//! Changed files, of both wires.

use agentwire_protocol::Text;
use agentwire_protocol::event::{FileChangeType, FileChanged};

use super::super::{app_wire, exec_wire};
use crate::diff;
use crate::json::{Scanner, Value};
use crate::tape::{Agent, Out};

/// Reports each file of an app server's change.
pub(super) fn report_app_changes(
    out: &mut Out<'_>,
    agent: &Agent<'_>,
    id: &str,
    changes: Value<'_>,
) {
    for change in changes.items().filter_map(Value::to::<app_wire::Change<'_>>) {
        let kind = change.kind.unwrap_or_default();
        let Some(file_path) = change.path else { continue };
        let text = change.diff;
        let mut changed = FileChanged { moved_to: kind.move_path, ..file(file_path, id) };
        match kind.kind.as_deref() {
            Some("add") => {
                changed.change_type = FileChangeType::Created;
                changed.diff = text.as_ref().and_then(|text| of_whole("", &text.decode()));
                changed.after = text;
            }
            Some("delete") => {
                changed.change_type = FileChangeType::Deleted;
                changed.diff = text.as_ref().and_then(|text| of_whole(&text.decode(), ""));
                changed.before = text;
            }
            _ => changed.diff = text,
        }
        out.emit_as(agent, changed);
    }
}

/// Reports each file of exec's change; only the specification's have texts.
pub(super) fn report_exec_changes(
    out: &mut Out<'_>,
    agent: &Agent<'_>,
    id: &str,
    changes: Value<'_>,
) {
    for change in changes.items().filter_map(Value::to::<exec_wire::Change<'_>>) {
        let Some(file_path) = change.path else { continue };
        let diff = match (&change.before, &change.after) {
            (None, None) => None,
            (before, after) => {
                let text = |text: &Option<Text<'_>>| {
                    text.as_ref().map(|text| text.decode().into_owned()).unwrap_or_default()
                };
                of_whole(&text(before), &text(after))
            }
        };
        let change_type = match (change.kind.as_deref(), &change.before, &change.after) {
            (Some("add"), _, _) | (None, None, Some(_)) => FileChangeType::Created,
            (Some("delete"), _, _) | (None, Some(_), None) => FileChangeType::Deleted,
            _ => FileChangeType::Modified,
        };
        let (before, after) = (change.before, change.after);
        out.emit_as(agent, FileChanged { change_type, diff, before, after, ..file(file_path, id) });
    }
}

/// Reads the changes of a call: those at its end, or those stored from an earlier line.
pub(super) fn read(last: Option<Value<'_>>, kept: Option<&str>, then: impl FnOnce(Value<'_>)) {
    if let Some(changes) = last {
        return then(changes);
    }
    let mut scanner = Scanner::new();
    if let Some(Ok(document)) = kept.map(|kept| scanner.scan(kept)) {
        then(document.root());
    }
}

fn file<'a>(file_path: Text<'a>, id: &'a str) -> FileChanged<'a> {
    let changed = FileChanged::new(file_path, FileChangeType::Modified);
    FileChanged { tool_id: Some(Text::from(id)), ..changed }
}

fn of_whole(before: &str, after: &str) -> Option<Text<'static>> {
    diff::of_texts(before, after).map(Text::from)
}
