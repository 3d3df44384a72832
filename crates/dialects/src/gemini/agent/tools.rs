//! Gemini's tools: the kind of each, and which of them change files or plans.

use std::borrow::Cow;

use agentwire_protocol::Text;
use agentwire_protocol::event::{
    AgentSpawned, FileChangeType, FileChanged, PlanEntry, PlanStatus, PlanUpdated, ToolFailure,
    ToolKind,
};

use crate::diff;
use crate::json::Value;

/// The longest text that is stored for an open call.
const KEPT_BYTES: usize = 64 << 10;

/// The tool that runs a subagent. No wire reports what the subagent does, only that it ends.
pub(crate) const SPAWN: &str = "invoke_agent";

/// What is stored about a call until its result.
#[derive(Debug, Default)]
pub(super) struct Called {
    pub(super) edit: Option<Edit>,
    pub(super) spawns: bool,
}

/// What an edit tool was asked to do; reported as a changed file once it is done.
#[derive(Debug)]
pub(super) struct Edit {
    path: String,
    before: Option<String>,
    /// The replacement, or the whole file. If a text is too long to store, both are `None`.
    after: Option<String>,
}

/// The errors that mean that a tool did not run at all.
pub(super) fn not_run(kind: &str) -> Option<ToolFailure> {
    match kind {
        "policy_violation" => Some(ToolFailure::Denied),
        "tool_not_registered" | "invalid_tool_params" => Some(ToolFailure::Invalid),
        _ => None,
    }
}

pub(super) fn edit(name: &str, arguments: Value<'_>) -> Option<Edit> {
    let path = arguments.get("file_path")?.string()?.into_owned();
    let text = |name| arguments.get(name).and_then(Value::string);
    let (before, after) = match name {
        "write_file" => (None, text("content")?),
        "replace" => (text("old_string"), text("new_string")?),
        _ => return None,
    };
    let is_short = before.iter().chain([&after]).all(|text| text.len() <= KEPT_BYTES);
    let keep = |text: Cow<'_, str>| is_short.then(|| text.into_owned());
    Some(Edit { path, before: before.and_then(keep), after: keep(after) })
}

/// The wire does not say whether `write_file` created the file, so it is reported as modified, which is
/// true either way. With `GEMINI_CLI_EXP_AGENT` the output is a diff, which shows it (fixture
/// real-exp-agent-write).
pub(super) fn changed<'a>(edit: Edit, output: Option<&str>, tool_id: Text<'a>) -> FileChanged<'a> {
    let told = output.filter(|output| output.starts_with("Index: "));
    let told = told.and_then(|output| Some(output.get(output.find("\n@@ ")? + 1..)?.to_owned()));
    let is_new = told.as_ref().is_some_and(|diff| diff.starts_with("@@ -0,0 "));
    let (diff, after) = match (edit.before, edit.after) {
        (Some(before), Some(after)) => {
            (told.or_else(|| Some(diff::of_passage(&before, &after))), None)
        }
        (_, after) => (told, after.map(Text::from)),
    };
    let change_type = if is_new { FileChangeType::Created } else { FileChangeType::Modified };
    let (diff, tool_id) = (diff.map(Text::from), Some(tool_id));
    FileChanged { diff, after, tool_id, ..FileChanged::new(edit.path, change_type) }
}

pub(super) fn spawned(arguments: Option<Value<'_>>) -> AgentSpawned<'_> {
    let text = |name| arguments.and_then(|arguments| arguments.read(name));
    AgentSpawned { name: text("agent_name"), prompt: text("prompt"), ..AgentSpawned::default() }
}

pub(super) fn plan(arguments: Value<'_>) -> Option<PlanUpdated<'_>> {
    let entries = arguments.get("todos")?.items().filter_map(|todo| {
        let status = todo.get("status").and_then(Value::string);
        Some(PlanEntry {
            content: todo.read("description")?,
            status: PlanStatus::from_word(status.as_deref().unwrap_or_default()),
            priority: None,
        })
    });
    Some(PlanUpdated { entries: entries.collect(), explanation: None })
}

pub(crate) fn tool_kind(name: &str) -> ToolKind {
    match name {
        "read_file" | "read_many_files" | "list_directory" | "read_background_output" => {
            ToolKind::Read
        }
        "write_file" | "replace" => ToolKind::Edit,
        "grep_search" | "glob" | "search_file_content" => ToolKind::Search,
        "run_shell_command" => ToolKind::Execute,
        "web_fetch" | "google_web_search" => ToolKind::Fetch,
        "write_todos" | "update_topic" | "save_memory" => ToolKind::Think,
        SPAWN => ToolKind::Agent,
        "ask_user" => ToolKind::Question,
        "enter_plan_mode" | "exit_plan_mode" => ToolKind::SwitchMode,
        name if name.starts_with("mcp_") => ToolKind::Mcp,
        _ => ToolKind::Other,
    }
}
