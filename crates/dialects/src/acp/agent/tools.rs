//! Tool calls: told by `tool_call`, `tool_call_update` and permission requests alike, each time in
//! part, and put together by their id.

use agentwire_protocol::event::{
    FileChangeType, FileChanged, Other, RequestOutcome, SettledBy, ToolCompleted, ToolFailed,
    ToolFailure, ToolKind, ToolProgress, ToolStarted,
};
use agentwire_protocol::{Json, Text};

use super::super::wire::{Piece, ToolCall};
use super::Translator;
use crate::diff;
use crate::gemini;
use crate::json::Value;
use crate::ledger::OpenTool;
use crate::said::Said;
use crate::tape::{Agent, Out};

/// What is known of an open call.
#[derive(Debug, Default)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) title: String,
    pub(super) input: Option<Json<'static>>,
    /// The output so far; an update repeats it and adds to it.
    output: Said,
    /// The changes it is about to make, or has made.
    edits: Vec<Edit>,
}

/// A change of one file.
#[derive(Debug)]
struct Edit {
    path: String,
    before: Option<String>,
    after: String,
    change: FileChangeType,
}

/// The `content` of a call.
#[derive(Default)]
pub(super) struct Shown {
    pub(super) text: String,
    edits: Vec<Edit>,
    terminal: Option<String>,
    /// There is more in it than changes of files.
    has_more: bool,
}

impl Translator {
    /// `tool_call` and `tool_call_update`: either may be the first word of a call, or the last.
    pub(super) fn tool_call(&mut self, call: &ToolCall<'_>, out: &mut Out<'_>) {
        let Some(id) = call.id.clone() else { return };
        if self.is_over(&id) {
            return out.emit(Other::named("lateToolCall"));
        }
        self.in_turn(out);
        let is_new = self.start_tool(&id, call, out);
        match call.status.as_deref() {
            Some("completed") => self.finish_tool(&id, call, true, out),
            Some("failed") if is_new && self.is_gemini => {
                // The arguments were wrong: Gemini reports no call before (fixture real-bad-args).
                let error = shown(call.content).text;
                self.fail_tool(&id, ToolFailure::Invalid, &error, out);
            }
            Some("failed") => self.finish_tool(&id, call, false, out),
            _ => self.tool_progress(&id, call, is_new, out),
        }
    }

    /// Starts the call unless it is open, and keeps what is new. `true` if it was not open.
    pub(super) fn start_tool(&mut self, id: &str, call: &ToolCall<'_>, out: &mut Out<'_>) -> bool {
        if let Some(tool) = self.ledger.tool(id) {
            if let Some(input) = call.raw_input.filter(|input| input.is_object()) {
                tool.memo.input = Some(input.json().into_owned());
            }
            return false;
        }
        self.close_block(out);
        self.has_output = true;
        let title = call.title.as_ref().map(Text::to_string);
        let own_name = call.name.as_ref().map(Text::to_string);
        let named = own_name.or_else(|| name_in_id(id).map(str::to_owned));
        let kind = kind(call.kind.as_deref(), named.as_deref());
        let mcp = title.as_deref().zip(named.as_deref()).and_then(|(t, n)| mcp_names(t, n));
        let server = mcp.map(|(server, _)| server.to_owned());
        let name = mcp.map(|(_, tool)| tool.to_owned()).or(named);
        let name = name.or_else(|| title.clone()).unwrap_or_else(|| "tool".to_owned());
        let input = match call.raw_input.filter(|input| input.is_object()) {
            Some(input) => Some(input.json().into_owned()),
            // Gemini shows the arguments of an MCP tool as text (fixture real-mcp-stdio).
            None if server.is_some() => object_in(&shown(call.content).text),
            None => None,
        };
        out.emit(ToolStarted {
            tool_id: Text::from(id),
            tool_name: Text::from(name.as_str()),
            arguments: input.clone(),
            kind,
            title: call.title.clone(),
            server: server.map(Text::from),
        });
        let memo = Tool { name, title: title.unwrap_or_default(), input, ..Tool::default() };
        self.ledger.open_tool(id, &Agent::main(), memo);
        self.started_tools.add(id);
        true
    }

    /// Whether that call has ended.
    pub(super) fn is_over(&mut self, id: &str) -> bool {
        self.ledger.tool(id).is_none() && self.started_tools.has(id)
    }

    /// What is new of a call that goes on.
    pub(super) fn tool_progress(
        &mut self,
        id: &str,
        call: &ToolCall<'_>,
        is_new: bool,
        out: &mut Out<'_>,
    ) {
        let Some(tool) = self.ledger.tool(id) else { return };
        let tool = &mut tool.memo;
        let new_title = call.title.as_ref().filter(|title| **title != *tool.title);
        let mut message = new_title.filter(|_| !is_new).cloned();
        if let Some(title) = new_title {
            tool.title = title.to_string();
        }
        let mut output = None;
        if call.content.is_some() {
            let shown = shown(call.content);
            tool.edits = shown.edits;
            if let Some(terminal) = shown.terminal {
                message = message.or_else(|| Some(Text::from(format!("terminal {terminal}"))));
            }
            if is_new {
                // The first content describes the call; what follows is its output.
                let is_input = tool.input.as_ref().is_some_and(|input| input.get() == shown.text);
                let describes = !shown.text.is_empty() && !is_input;
                message = message.or_else(|| describes.then(|| Text::from(shown.text)));
            } else {
                let piece = tool.output.rest_of(&shown.text).unwrap_or(&shown.text).to_owned();
                tool.output = Said::of(&shown.text);
                output = (!piece.is_empty()).then(|| Text::from(piece));
            }
        }
        if message.is_none() && output.is_none() && !is_new {
            message = call.status.clone().map(Text::new);
        }
        if message.is_some() || output.is_some() {
            out.emit(ToolProgress {
                tool_id: Text::from(id),
                output,
                progress: None,
                message,
                elapsed_ms: None,
            });
        }
    }

    fn finish_tool(&mut self, id: &str, call: &ToolCall<'_>, is_well: bool, out: &mut Out<'_>) {
        self.close_block(out);
        // In a recording the answer was not seen; the result shows it.
        let outcome = match is_well && out.is_recording() {
            true => (RequestOutcome::Allowed, SettledBy::Client),
            false => (RequestOutcome::Resolved, SettledBy::Agent),
        };
        self.settle_requests_of(id, outcome, out);
        let Some(OpenTool { memo: tool, .. }) = self.ledger.close_tool(id) else { return };
        let seen = look(call.content, !is_well);
        let edits = if call.content.is_some() { seen.edits } else { tool.edits };
        let content = call.content.filter(|_| seen.has_more).map(Value::json);
        let output = call.raw_output.map(Value::json);
        let exit_code = call.raw_output.and_then(|output| {
            ["exitCode", "exit_code"].iter().find_map(|name| output.read::<i64>(name))
        });
        let success = is_well && exit_code.is_none_or(|code| code == 0);
        let error = (!success).then(|| match (exit_code, seen.text.is_empty()) {
            (Some(code), true) => Text::from(format!("exit code {code}")),
            (None, true) => Text::from("the tool failed"),
            (_, false) => Text::from(seen.text),
        });
        let (result, structured) = match content {
            Some(content) => (Some(content), output),
            None => (output, None),
        };
        out.emit(ToolCompleted {
            tool_id: Text::from(id),
            success,
            result,
            error,
            exit_code,
            duration_ms: None,
            structured,
        });
        if is_well {
            edits.into_iter().for_each(|edit| out.emit(changed(edit, id)));
        }
    }

    /// The call did not run, or was cut off.
    pub(super) fn fail_tool(
        &mut self,
        id: &str,
        reason: ToolFailure,
        error: &str,
        out: &mut Out<'_>,
    ) {
        if self.ledger.close_tool(id).is_some() {
            let error = if error.is_empty() { "the tool did not run" } else { error };
            let (tool_id, error) = (Text::from(id), Text::from(error));
            out.emit(ToolFailed { tool_id, error, reason, result: None });
        }
    }
}

/// What the `content` of a call shows.
pub(super) fn shown(content: Option<Value<'_>>) -> Shown {
    look(content, true)
}

/// The same; its text only if it is wanted, since it may be long.
fn look(content: Option<Value<'_>>, wants_text: bool) -> Shown {
    let mut shown = Shown::default();
    for piece in content.into_iter().flat_map(Value::items) {
        let Some(read) = piece.to::<Piece<'_>>() else { continue };
        match read.kind.as_deref() {
            Some("diff") => shown.edits.extend(edit(&read)),
            Some("terminal") => {
                shown.has_more = true;
                shown.terminal = read.terminal_id.and_then(Value::string).map(Into::into);
            }
            _ => {
                shown.has_more = true;
                if wants_text {
                    let text = read.content.and_then(|content| content.get("text")?.string());
                    text.into_iter().for_each(|text| shown.text.push_str(&text));
                }
                read.content.into_iter().for_each(Value::carried);
            }
        }
    }
    shown
}

/// Gemini names a new file by `_meta.kind` and shows it as one that was empty; others leave
/// `oldText` out.
fn edit(piece: &Piece<'_>) -> Option<Edit> {
    let path = piece.path?.string()?.into_owned();
    let before = piece.old_text.and_then(Value::string).map(Into::into);
    let after = piece.new_text.and_then(Value::string)?.into_owned();
    let kind = piece.meta.and_then(|meta| meta.get("kind")).and_then(Value::string);
    let change = match kind.as_deref() {
        Some("add") => FileChangeType::Created,
        Some("delete") => FileChangeType::Deleted,
        _ if before.is_none() => FileChangeType::Created,
        _ => FileChangeType::Modified,
    };
    Some(Edit { path, before, after, change })
}

fn changed(edit: Edit, tool_id: &str) -> FileChanged<'_> {
    let diff = diff::of_texts(edit.before.as_deref().unwrap_or_default(), &edit.after);
    let (before, after) = match edit.change {
        FileChangeType::Created => (None, Some(edit.after)),
        FileChangeType::Modified => (edit.before, Some(edit.after)),
        FileChangeType::Deleted => (edit.before, None),
    };
    FileChanged {
        file_path: Text::from(edit.path),
        change_type: edit.change,
        diff: diff.map(Text::from),
        before: before.map(Text::from),
        after: after.map(Text::from),
        moved_to: None,
        tool_id: Some(Text::from(tool_id)),
    }
}

/// Gemini's ids begin with the tool's name twice: `read_file__read_file_1794766243269_0`.
fn name_in_id(id: &str) -> Option<&str> {
    let (name, rest) = id.split_once("__")?;
    rest.strip_prefix(name)?.starts_with('_').then_some(name)
}

/// The server and the tool of `mcp_demo_add`, which Gemini titles `add (demo MCP Server)`.
fn mcp_names<'t>(title: &'t str, name: &str) -> Option<(&'t str, &'t str)> {
    let (tool, server) = title.strip_suffix(" MCP Server)")?.rsplit_once(" (")?;
    (name == format!("mcp_{server}_{tool}")).then_some((server, tool))
}

fn object_in(text: &str) -> Option<Json<'static>> {
    let json = Json::parse(text).ok()?;
    json.get().starts_with('{').then(|| json.into_owned())
}

fn kind(kind: Option<&str>, name: Option<&str>) -> ToolKind {
    match kind.unwrap_or("other") {
        "read" => ToolKind::Read,
        "edit" => ToolKind::Edit,
        "delete" => ToolKind::Delete,
        "move" => ToolKind::Move,
        "search" => ToolKind::Search,
        "execute" => ToolKind::Execute,
        "think" => ToolKind::Think,
        "fetch" => ToolKind::Fetch,
        "switch_mode" => ToolKind::SwitchMode,
        _ => name.map(gemini::tool_kind).unwrap_or_default(),
    }
}
