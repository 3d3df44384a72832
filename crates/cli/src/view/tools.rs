//! Shows what an agent does: tools, changed files, subagents and requests.

use agentwire_protocol::event::{
    AgentFinished, AgentOutcome, AgentSpawned, FileChangeType, FileChanged, RequestOutcome,
    RequestSettled, SettledBy, ToolCompleted, ToolFailed, ToolFailure, ToolKind, ToolStarted,
};
use jiff::Timestamp;

use super::layout::Ink;
use super::state::{ShownAgent, ShownTool, since};
use super::{Origin, View, decoded, diff, numbers, summary};
use crate::format;

/// How many lines of a tool's result are shown.
const RESULT_LINES: usize = 6;

/// How many lines of a diff are shown.
const DIFF_LINES: usize = 40;

/// The longest line that is shown whole.
const LINE_LIMIT: usize = 300;

impl View {
    pub(super) fn tool_started(&mut self, started: &ToolStarted<'_>, origin: Origin<'_>) {
        let id = started.tool_id.decode();
        let title = started.title.as_ref().map(|title| title.decode());
        let directory = self.state.directory.as_deref();
        let summary = summary::summary(started.arguments.as_ref(), title.as_deref(), directory);
        let name = match &started.server {
            Some(server) => format!("{server}/{}", started.tool_name),
            None => started.tool_name.to_string(),
        };
        self.state.open_tool(&id, ShownTool::new(name, summary, started.kind, origin.now));
        // A subagent is shown when it starts, a plan when it changes.
        let is_shown = match started.kind {
            ToolKind::Agent | ToolKind::Think => false,
            ToolKind::Read
            | ToolKind::Edit
            | ToolKind::Delete
            | ToolKind::Move
            | ToolKind::Search
            | ToolKind::Execute
            | ToolKind::Fetch
            | ToolKind::Question
            | ToolKind::Mcp
            | ToolKind::SwitchMode
            | ToolKind::Other => true,
        };
        if self.shows_all() && is_shown {
            self.turn_to(origin);
            self.tool_line(&id);
        }
    }

    pub(super) fn tool_completed(&mut self, done: &ToolCompleted<'_>, origin: Origin<'_>) {
        if !self.shows_all() {
            return;
        }
        let id = done.tool_id.decode();
        let Some(tool) = self.state.tools.get(&*id) else { return };
        let kind = tool.kind;
        let took =
            done.duration_ms.or_else(|| since(tool.since, origin.now)).map(numbers::duration);
        if done.success && (tool.is_spawner || kind == ToolKind::Think) {
            self.state.tools.remove(&*id);
            return;
        }
        self.turn_to(origin);
        self.under_its_line(&id);
        let failed = !done.success || done.exit_code.is_some_and(|code| code != 0);
        let (ink, mark) = if failed { (Ink::Red, "✗") } else { (Ink::Green, "✓") };
        let code = done.exit_code.filter(|code| *code != 0).map(|code| format!("exit {code}"));
        let details: Vec<String> = code.into_iter().chain(took).collect();
        self.page.line(&[(ink, &format!("  {mark} ")), (Ink::Dim, &details.join(" · "))]);
        let result = done.result.as_ref().map(summary::result).unwrap_or_default();
        let error = decoded(done.error.as_ref()).unwrap_or_default();
        if failed {
            self.result(if result.trim().is_empty() { &error } else { &result });
        } else {
            match kind {
                // The change has its own event.
                ToolKind::Edit | ToolKind::Delete | ToolKind::Move | ToolKind::Think => {}
                ToolKind::Read if result.is_empty() => {}
                ToolKind::Read => {
                    let count = format::count(result.lines().count() as u64, "line");
                    self.page.line(&[(Ink::Dim, "    "), (Ink::Dim, &count)]);
                }
                ToolKind::Search
                | ToolKind::Execute
                | ToolKind::Fetch
                | ToolKind::Agent
                | ToolKind::Question
                | ToolKind::Mcp
                | ToolKind::SwitchMode
                | ToolKind::Other => self.result(&result),
            }
        }
        self.state.tools.remove(&*id);
        self.state.last_tool = None;
    }

    pub(super) fn tool_failed(&mut self, failed: &ToolFailed<'_>, origin: Origin<'_>) {
        let all = self.shows_all();
        let id = failed.tool_id.decode();
        let was_shown = self.state.tools.get(&*id).is_none_or(|tool| tool.is_denied);
        let tool = self.state.tools.get(&*id);
        let was_told =
            tool.is_some_and(|tool| self.state.has_warned_of(&tool.name, &failed.error.decode()));
        if !all && !was_shown && !was_told && failed.reason == ToolFailure::Denied {
            let about = tool.map(|tool| format!("{}  {}", tool.name, tool.summary));
            self.note(&format!("denied: {}: {}", about.unwrap_or_default(), failed.error));
        }
        if all && !was_shown {
            self.turn_to(origin);
            self.under_its_line(&id);
            let error = failed.error.decode();
            let how = match failed.reason {
                ToolFailure::Denied => "denied",
                ToolFailure::Interrupted => "interrupted",
                ToolFailure::Invalid => "invalid call",
            };
            self.page.line(&[(Ink::Red, "  ✗ "), (Ink::Red, how)]);
            if failed.reason != ToolFailure::Interrupted && !was_told {
                self.result(&error);
            }
            self.state.last_tool = None;
        }
        self.state.tools.remove(&*id);
    }

    fn tool_line(&mut self, id: &str) {
        self.work();
        if let Some(tool) = self.state.tools.get_mut(id) {
            tool.is_shown = true;
            let gap = if tool.summary.is_empty() { "" } else { "  " };
            self.page.line(&[
                (Ink::Cyan, "● "),
                (Ink::Bold, &tool.name),
                (Ink::Plain, gap),
                (Ink::Plain, &tool.summary),
            ]);
            self.state.last_tool = Some(id.to_owned());
        }
    }

    /// Names the tool that the next lines belong to, unless its line is just above.
    fn under_its_line(&mut self, id: &str) {
        self.work();
        if self.state.last_tool.as_deref() == Some(id) {
            return;
        }
        match self.state.tools.get(id) {
            Some(tool) if tool.is_shown => {
                let line = format!("{}  {}", tool.name, tool.summary);
                self.page.line(&[(Ink::Dim, "○ "), (Ink::Dim, line.trim_end())]);
            }
            Some(_) => self.tool_line(id),
            None => {}
        }
    }

    fn result(&mut self, text: &str) {
        let lines: Vec<&str> = text.trim_end().lines().collect();
        // A single extra line is shown instead of "1 more line".
        let limit = if lines.len() == RESULT_LINES + 1 { lines.len() } else { RESULT_LINES };
        for line in lines.iter().take(limit) {
            let line = numbers::cut(line, LINE_LIMIT);
            self.page.marked(Ink::Dim, &line, Some("    "));
            self.page.end_line();
            if line.is_empty() {
                self.page.line(&[]);
            }
        }
        if let Some(more) = lines.len().checked_sub(limit).filter(|more| *more > 0) {
            self.page.line(&[(Ink::Dim, "    "), (Ink::Dim, &numbers::more(more))]);
        }
    }

    pub(super) fn file_changed(&mut self, change: &FileChanged<'_>, origin: Origin<'_>) {
        self.turn_to(origin);
        self.work();
        self.state.last_tool = None;
        let path = change.file_path.decode();
        let near = summary::near(&path, self.state.directory.as_deref());
        let (before, after) = (decoded(change.before.as_ref()), decoded(change.after.as_ref()));
        let diff = decoded(change.diff.as_ref()).or_else(|| match (before, after) {
            (None, None) => None,
            (before, after) => {
                let (before, after) = (before.unwrap_or_default(), after.unwrap_or_default());
                Some(diff::of_texts(&before, &after, false))
            }
        });
        let verb = match change.change_type {
            FileChangeType::Created => "created ",
            FileChangeType::Modified => "changed ",
            FileChangeType::Deleted => "deleted ",
        };
        let moved = change.moved_to.as_ref().map(|to| format!(" → {to}")).unwrap_or_default();
        let (added, removed) = diff.as_deref().map_or((0, 0), diff::size);
        let size = if diff.is_some() { format!("  +{added} −{removed}") } else { String::new() };
        self.page.line(&[
            (Ink::Yellow, "± "),
            (Ink::Dim, verb),
            (Ink::Bold, near),
            (Ink::Bold, &moved),
            (Ink::Dim, &size),
        ]);
        let was_seen = change.tool_id.as_ref().is_some_and(|id| self.state.has_seen(&id.decode()));
        if let Some(diff) = diff.filter(|_| !was_seen) {
            let indent = self.page.indent;
            self.page.indent += 4;
            diff::show(&mut self.page, &diff, DIFF_LINES);
            self.page.indent = indent;
        }
    }

    pub(super) fn spawned(&mut self, spawned: &AgentSpawned<'_>, origin: Origin<'_>) {
        let (depth, _) = self.state.agent(origin);
        let depth = depth.max(1);
        let name = decoded(spawned.name.as_ref()).unwrap_or_else(|| "subagent".to_owned());
        let about = spawned.description.as_ref().or(spawned.prompt.as_ref());
        let about = decoded(about).unwrap_or_default();
        let about = numbers::cut(about.lines().next().unwrap_or_default(), LINE_LIMIT).into_owned();
        let known = ShownAgent { depth, name: name.clone(), since: origin.now, spoke: false };
        self.state.open_agent(origin.agent, known);
        if self.shows_all() {
            self.work();
            self.state.last_tool = None;
            self.state.speaker = origin.agent.to_owned();
            self.page.indent = 2 * (depth - 1);
            self.page.line(&[
                (Ink::Cyan, "▸ "),
                (Ink::Bold, &name),
                (Ink::Plain, "  "),
                (Ink::Plain, &about),
            ]);
            self.page.indent = 2 * depth;
        }
    }

    pub(super) fn finished(&mut self, done: &AgentFinished<'_>, origin: Origin<'_>) {
        let Some(known) = self.state.agents.remove(origin.agent) else { return };
        if !self.shows_all() {
            return;
        }
        self.page.end_line();
        self.state.speaker = origin.parent.unwrap_or(agentwire_protocol::MAIN_AGENT).to_owned();
        self.state.last_tool = None;
        self.page.indent = 2 * (known.depth - 1);
        self.work();
        let took =
            done.duration_ms.or_else(|| since(known.since, origin.now)).map(numbers::duration);
        let tokens =
            done.usage.map(|usage| format!("{} tokens", numbers::count(usage.total_tokens)));
        let details: Vec<String> = [took, tokens].into_iter().flatten().collect();
        let (ink, mark) = match done.outcome {
            AgentOutcome::Completed => (Ink::Green, "◂ "),
            AgentOutcome::Failed => (Ink::Red, "✗ "),
            AgentOutcome::Cancelled => (Ink::Yellow, "✗ "),
        };
        let name = format!("{}  ", known.name);
        self.page.line(&[(ink, mark), (Ink::Bold, &name), (Ink::Dim, &details.join(" · "))]);
        if let Some(result) = done.result.as_ref().filter(|_| !known.spoke) {
            self.result(&result.decode());
        }
    }

    pub(super) fn settled(&mut self, settled: &RequestSettled<'_>, now: Option<Timestamp>) {
        let all = self.shows_all();
        let Some(request) = self.state.settled(&settled.request_id.decode()) else { return };
        let tool = request.tool.as_deref().and_then(|id| self.state.tools.get_mut(id));
        if let Some(tool) = tool {
            // The tool starts now: the wait for an answer does not count as its time.
            tool.since = now;
            tool.is_denied = settled.outcome == RequestOutcome::Denied;
        }
        let (ink, how) = match (settled.outcome, settled.by) {
            (RequestOutcome::Denied, _) => (Ink::Red, "  ✗ denied"),
            (RequestOutcome::Allowed, SettledBy::Policy) | (RequestOutcome::Resolved, _) => return,
            (RequestOutcome::Allowed, _) if all => (Ink::Dim, "  → allowed"),
            (RequestOutcome::Answered, _) if all => (Ink::Dim, "  → answered"),
            (RequestOutcome::Withdrawn, _) if all => (Ink::Dim, "  → withdrawn"),
            (RequestOutcome::Allowed | RequestOutcome::Answered | RequestOutcome::Withdrawn, _) => {
                return;
            }
        };
        let reason =
            settled.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
        if !all {
            return self.note(&format!("denied: {}{reason}", request.about));
        }
        let (agent, parent) = (request.agent.as_str(), request.parent.as_deref());
        self.turn_to(Origin { agent, parent, now });
        match &request.tool {
            Some(id) if self.state.tools.contains_key(id) => self.under_its_line(id),
            Some(_) | None => {
                self.work();
                self.page.line(&[(Ink::Yellow, "? "), (Ink::Plain, &request.about)]);
            }
        }
        self.page.line(&[(ink, how), (Ink::Dim, &reason)]);
        self.state.last_tool.clone_from(&request.tool);
    }
}
