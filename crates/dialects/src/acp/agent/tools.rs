//! Tool calls. `tool_call`, `tool_call_update` and permission requests each report a part of a call; the
//! parts are joined by its id.

use agentwire_protocol::event::{
    Other, SettledBy, ToolCompleted, ToolFailed, ToolFailure, ToolKind, ToolProgress, ToolStarted,
};
use agentwire_protocol::{Json, Text};

use super::super::quirks;
use super::super::wire::{self, ToolCall};
use super::Translator;
use super::call_effects::CallEffects;
use super::subagents::SpawnReport;
use super::tool_content::{
    FileEdit, TEXT_LIMIT, ToolContent, arguments, bounded, changed, read_content, read_content_with,
};
use crate::json::Value;
use crate::ledger::Open;
use crate::sent_text::SentText;
use crate::tape::{Ending, Out};

/// How many calls may wait for their arguments.
const WAITING_LIMIT: usize = 64;

/// The state of an open call.
#[derive(Debug, Default)]
pub(super) struct ToolState {
    pub(super) name: String,
    /// The name is the agent's own, not the title, which the model may have written.
    pub(super) is_named: bool,
    pub(super) title: String,
    pub(super) input: Option<Json<'static>>,
    pub(super) server: Option<String>,
    pub(super) effects: CallEffects,
    /// The output so far; an update repeats it and adds to it.
    output: SentText,
    /// The changes it is about to make, or has made.
    edits: Vec<FileEdit>,
    /// Set if the call runs a subagent: what is reported about it.
    pub(super) spawns: Option<SpawnReport>,
}

/// What is known about a call before it starts.
#[derive(Default)]
struct CallDetails {
    title: Option<String>,
    name: Option<String>,
    kind: Option<String>,
    input: Option<Json<'static>>,
    effects: CallEffects,
    content: ToolContent,
    spawned_by: Option<String>,
    spawns: bool,
    runs: bool,
}

pub(super) struct WaitingCall {
    id: String,
    details: CallDetails,
}

impl Translator {
    /// `tool_call` and `tool_call_update`: either may be the first update of a call, or the last.
    pub(super) fn tool_call(&mut self, call: &ToolCall<'_>, is_first: bool, out: &mut Out<'_>) {
        let Some(id) = call.id.clone() else { return };
        if self.is_over(&id) {
            out.emit(Other::named("lateToolCall"));
            if call.status.as_deref() == Some("completed") {
                out.ran(&id, true);
            }
            return self.runs_again(&id, call, out);
        }
        let is_told = self.block.is_some() || (out.is_recording() && !self.ledger.turn_is_open());
        self.in_turn(out);
        if self.wait_for_arguments(&id, call, is_first, out) {
            if !is_told {
                out.emit(Other::named("toolCallPending"));
            }
            return;
        }
        let was_waiting = self.waiting_calls.iter().any(|call| call.id == *id);
        let is_new = self.start_tool(&id, call, out);
        self.update_spawn(&id, call);
        self.ask_again(&id, out);
        if matches!(call.status.as_deref(), Some("in_progress" | "completed")) {
            self.runs(&id, out);
        }
        match call.status.as_deref() {
            Some("completed") => self.finish_tool(&id, call, true, out),
            Some("failed") if is_new && !was_waiting && self.has(|quirks| quirks.hides_refused) => {
                // The arguments were wrong: Gemini does not report the call before that (fixture
                // real-bad-args).
                let error = read_content(call.content).text;
                self.fail_tool(&id, ToolFailure::Invalid, &error, out);
            }
            Some("failed") => self.finish_tool(&id, call, false, out),
            _ => self.tool_progress(&id, call, is_new, out),
        }
    }

    /// An agent may report a call as soon as the model starts it, and its arguments only with the next
    /// update (fixture edge-late-arguments). Such a call is held until then, or until something arrives
    /// that comes after it. Returns `true` if it is held now.
    fn wait_for_arguments(
        &mut self,
        id: &str,
        call: &ToolCall<'_>,
        is_first: bool,
        out: &mut Out<'_>,
    ) -> bool {
        let is_known = self.ledger.tools.get(id).is_some()
            || self.waiting_calls.iter().any(|call| call.id == id);
        let is_pending = match call.status.as_deref() {
            Some(status) => status == "pending",
            // A `tool_call` without a status is `pending`.
            None => is_first,
        };
        let has_input = call.raw_input.is_some_and(|input| input.fields().next().is_some());
        if is_known || !is_pending || has_input {
            return false;
        }
        let details = CallDetails::of(id, call);
        if details.content.text.len() > TEXT_LIMIT {
            return false;
        }
        self.close_block(out);
        if self.waiting_calls.len() >= WAITING_LIMIT {
            self.start_waiting(out);
        }
        self.waiting_calls.push(WaitingCall { id: id.to_owned(), details });
        true
    }

    /// Starts the held calls, because nothing more can be waited for.
    pub(super) fn start_waiting(&mut self, out: &mut Out<'_>) {
        for WaitingCall { id, mut details } in std::mem::take(&mut self.waiting_calls) {
            self.start(&id, &mut details, out);
            self.describe(&id, details.content, out);
        }
    }

    /// Starts the call unless it is open, and stores what is new. Returns `true` if its content describes
    /// the call, because nothing was shown of it before.
    pub(super) fn start_tool(&mut self, id: &str, call: &ToolCall<'_>, out: &mut Out<'_>) -> bool {
        if let Some(tool) = self.ledger.tools.get(id) {
            let tool = &mut tool.memo;
            tool.effects.update(call, name_in_id(id));
            if let Some(input) = call.raw_input.filter(|input| input.is_object()) {
                tool.input = Some(input.json().into_owned());
            } else if tool.input.is_none() || tool.effects.shows_changes() {
                let edits = bounded(read_content_with(call.content, false).edits);
                // The latest content is what the call would do.
                if !edits.is_empty() || tool.input.is_none() {
                    tool.input = arguments(&edits);
                }
            }
            return false;
        }
        let Some(at) = self.waiting_calls.iter().position(|call| call.id == id) else {
            let mut details = CallDetails::of(id, call);
            self.start(id, &mut details, out);
            return true;
        };
        let mut details = self.waiting_calls.remove(at).details;
        details.add(id, call);
        self.start(id, &mut details, out);
        self.describe(id, details.content, out)
    }

    fn start(&mut self, id: &str, details: &mut CallDetails, out: &mut Out<'_>) {
        let mut effects = std::mem::take(&mut details.effects);
        let CallDetails { title, input, .. } = &*details;
        self.close_block(out);
        self.has_output = true;
        let named = details.name.as_deref().or_else(|| name_in_id(id));
        let mcp = title.as_deref().zip(named).and_then(|(title, name)| mcp_names(title, name));
        let server = mcp.map(|(server, _)| Text::from(server));
        let name = mcp.map(|(_, tool)| tool).or(named).or(title.as_deref()).unwrap_or("tool");
        let input = match input {
            Some(input) => Some(input.clone()),
            // Gemini shows the arguments of an MCP tool as text (fixture real-mcp-stdio).
            None if server.is_some() => object_in(&details.content.text),
            None => arguments(&details.content.edits),
        };
        let spawns = details.spawns || self.has(|quirks| named == Some(quirks.spawn_tool));
        let kind = if spawns { ToolKind::Agent } else { kind(details.kind.as_deref(), named) };
        effects.reported_kind = kind;
        let agent = &self.speaker(details.spawned_by.as_deref(), out);
        let started = ToolStarted {
            tool_id: Text::from(id),
            tool_name: Text::from(name),
            arguments: input.clone(),
            kind,
            title: title.as_deref().map(Text::from),
            server: server.clone(),
        };
        out.emit_as(agent, started);
        let title = title.clone().unwrap_or_default();
        let report = spawns.then(SpawnReport::default);
        let memo = ToolState {
            name: name.to_owned(),
            is_named: named.is_some(),
            title,
            input,
            server: server.map(|server| server.to_string()),
            effects,
            spawns: report,
            ..ToolState::default()
        };
        self.ledger.tools.open(id, agent, memo);
        self.started_tools.add(id);
        if spawns {
            self.agents.wait(id);
            if details.runs {
                self.spawn(id, out);
            }
        }
    }

    /// The first content of a call describes it; what follows is its output. Returns `true` if there was
    /// none.
    fn describe(&mut self, id: &str, content: ToolContent, out: &mut Out<'_>) -> bool {
        let Some(tool) = self.ledger.tools.get(id) else { return true };
        let is_nothing = !content.has_more && content.edits.is_empty();
        tool.memo.edits = bounded(content.edits);
        let is_input = tool.memo.input.as_ref().is_some_and(|input| input.get() == content.text);
        let text = (!content.text.is_empty() && !is_input).then_some(content.text);
        if let Some(message) = content.terminal.or(text) {
            out.emit_as(&tool.agent, ToolProgress::new(id, None, Some(Text::from(message))));
        }
        is_nothing
    }

    pub(super) fn is_over(&mut self, id: &str) -> bool {
        self.ledger.tools.get(id).is_none() && self.started_tools.has(id)
    }

    /// Reports what is new about a call that continues.
    pub(super) fn tool_progress(
        &mut self,
        id: &str,
        call: &ToolCall<'_>,
        is_new: bool,
        out: &mut Out<'_>,
    ) {
        if is_new {
            if call.content.is_some() {
                self.describe(id, read_content(call.content), out);
            }
            return;
        }
        let Some(open) = self.ledger.tools.get(id) else { return };
        let tool = &mut open.memo;
        let mut message = call.title.clone().filter(|title| *title != *tool.title);
        if let Some(title) = &message {
            tool.title = title.to_string();
        }
        let mut output = None;
        if call.content.is_some() {
            let content = read_content(call.content);
            tool.edits = bounded(content.edits);
            message = message.or_else(|| content.terminal.map(Text::from));
            let piece = tool.output.rest_of(&content.text).unwrap_or(&content.text).to_owned();
            tool.output = SentText::of(&content.text);
            output = (!piece.is_empty()).then(|| Text::from(piece));
        }
        if message.is_none() && output.is_none() {
            message = call.status.clone().map(Text::new);
        }
        if message.is_some() || output.is_some() {
            out.emit_as(&open.agent, ToolProgress::new(id, output, message));
        }
    }

    fn finish_tool(&mut self, id: &str, call: &ToolCall<'_>, is_well: bool, out: &mut Out<'_>) {
        self.close_block(out);
        // A recording does not contain the answer; the result shows it.
        let ending = match out.recording().filter(|_| is_well) {
            Some(recording) => recording.allowed(SettledBy::Client),
            None => Ending::RESOLVED,
        };
        self.settle_requests_of(id, ending, out);
        self.spawn(id, out);
        let agent = &self.owner(Some(id));
        let Some(Open { memo: tool, .. }) = self.ledger.tools.close(id) else { return };
        let seen = read_content_with(call.content, !is_well || tool.spawns.is_some());
        if let Some(report) = tool.spawns {
            self.spawn_result(id, report, is_well, &seen.text, out);
        }
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
        let completed = ToolCompleted::new(id, success);
        let completed = ToolCompleted { result, error, exit_code, structured, ..completed };
        out.emit_as(agent, completed);
        if is_well {
            edits.into_iter().for_each(|edit| out.emit_as(agent, changed(edit, id)));
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
        let agent = &self.owner(Some(id));
        if self.ledger.tools.close(id).is_some() {
            self.cut_agent(id, out);
            let error = if error.is_empty() { "the tool did not run" } else { error };
            let (tool_id, error) = (Text::from(id), Text::from(error));
            out.emit_as(agent, ToolFailed { tool_id, error, reason, result: None });
        }
    }
}

impl CallDetails {
    fn of(id: &str, call: &ToolCall<'_>) -> Self {
        let mut content = read_content(call.content);
        content.edits = bounded(content.edits);
        let mut details = Self { content, ..Self::default() };
        details.add(id, call);
        details
    }

    /// A newer value wins.
    fn add(&mut self, id: &str, call: &ToolCall<'_>) {
        self.effects.update(call, name_in_id(id));
        let text = |text: &Option<Text<'_>>| text.as_ref().map(Text::to_string);
        self.title = text(&call.title).or(self.title.take());
        self.name = text(&call.name).or(self.name.take());
        self.kind = call.kind.as_deref().map(str::to_owned).or(self.kind.take());
        let input = call.raw_input.filter(|input| input.is_object());
        self.input = input.map(|input| input.json().into_owned()).or(self.input.take());
        if let Some(meta) = call.meta.as_ref().and_then(|meta| meta.claude.as_ref()) {
            let spawned_by = meta.spawned_by.as_deref().map(str::to_owned);
            self.spawned_by = spawned_by.or(self.spawned_by.take());
            self.spawns |= matches!(meta.tool_name.as_deref(), Some("Agent" | "Task"));
        }
        self.runs |= call.status.as_deref() == Some("in_progress");
    }
}

/// Gemini's ids contain the tool's name twice: `read_file__read_file_1794766243269_0`. A name may contain
/// the divider.
pub(super) fn name_in_id(id: &str) -> Option<&str> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (rest, count) = id.rsplit_once('_')?;
    let (twice, time) = rest.rsplit_once('_')?;
    let length = twice.len().checked_sub(2)? / 2;
    let (name, rest) = twice.split_at_checked(length)?;
    let is_twice = rest.strip_prefix("__") == Some(name) && !name.is_empty();
    (is_twice && is_number(count) && is_number(time)).then_some(name)
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

pub(super) fn kind(kind: Option<&str>, name: Option<&str>) -> ToolKind {
    // Whatever kind an MCP server reports, its tools are never the agent's own.
    if name.is_some_and(|name| name.starts_with("mcp_")) {
        return ToolKind::Mcp;
    }
    let reported = kind.and_then(wire::kind);
    reported.or_else(|| name.map(quirks::tool_kind)).unwrap_or_default()
}
