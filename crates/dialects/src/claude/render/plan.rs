//! Renders plans as Claude's to-do list.

use std::collections::BTreeMap;

use agentwire_protocol::event::{PlanStatus, PlanUpdated};
use agentwire_protocol::{Json, Text};
use serde::Serialize;

/// The list as it appears in `TodoWrite`. A cancelled step is left out.
pub(super) fn todos(plan: &PlanUpdated<'_>) -> Json<'static> {
    let todos = plan.entries.iter().filter_map(|entry| {
        let status = match entry.status {
            PlanStatus::Pending => "pending",
            PlanStatus::InProgress => "in_progress",
            PlanStatus::Completed => "completed",
            PlanStatus::Cancelled => return None,
        };
        Some(Todo { content: &entry.content, status, active_form: &entry.content })
    });
    Json::of(&todos.collect::<Vec<_>>())
}

pub(super) fn input(todos: &Json<'_>) -> Json<'static> {
    Json::of(&BTreeMap::from([("todos", todos)]))
}

/// The structured result of `TodoWrite`.
pub(super) fn structured(old: &Json<'_>, new: &Json<'_>) -> Json<'static> {
    Json::of(&Structured { old_todos: old, new_todos: new })
}

#[derive(Serialize)]
struct Todo<'a> {
    content: &'a Text<'a>,
    status: &'static str,
    #[serde(rename = "activeForm")]
    active_form: &'a Text<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Structured<'a> {
    old_todos: &'a Json<'a>,
    new_todos: &'a Json<'a>,
}
