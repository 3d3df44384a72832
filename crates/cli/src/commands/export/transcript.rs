//! A transcript for people: prompts, answers, tools, changes and cost.

use std::collections::BTreeMap;

use agentwire_protocol::event::{
    FileChangeType, FileChanged, RequestKind, RequestSettled, Status, ToolFailure, TurnFailure,
};
use agentwire_protocol::{Event, EventKind, Json, MAIN_AGENT, SessionSummary, TokenUsage};
use serde_json::Value;

use crate::commands::show::tokens;
use crate::format;

/// How many lines of a tool's result are shown; all are in the log.
const RESULT_LINES: usize = 40;

/// How much of a tool's arguments is shown on its line.
const ARGUMENT_COLUMNS: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Style {
    Text,
    Markdown,
}

/// Turns events into a transcript.
#[derive(Debug)]
pub(super) struct Transcript {
    style: Style,
    /// Incomplete texts, oldest first.
    open: Vec<Block>,
    /// Open requests by id.
    asked: BTreeMap<String, String>,
    /// What was not taken yet.
    shown: String,
}

#[derive(Debug)]
struct Block {
    agent: String,
    id: Option<String>,
    is_thinking: bool,
    text: String,
}

impl Transcript {
    pub(super) fn new(style: Style) -> Self {
        Self { style, open: Vec::new(), asked: BTreeMap::new(), shown: String::new() }
    }

    /// Takes what was added since the last time.
    pub(super) fn take(&mut self) -> String {
        std::mem::take(&mut self.shown)
    }

    /// The heading.
    pub(super) fn begin(&mut self, session: &SessionSummary) {
        let title = session.title.as_deref().map(format::line);
        let title = title.filter(|title| !title.is_empty()).unwrap_or_else(|| "Session".to_owned());
        let mark = match self.style {
            Style::Text => "",
            Style::Markdown => "# ",
        };
        self.line(&format!("{mark}{title}\n"));
        let fields = [
            ("Session", Some(session.id.as_str())),
            ("Agent", Some(session.agent_type.as_str())),
            ("Version", session.agent_version.as_deref()),
            ("Model", session.model.as_deref()),
            ("Directory", session.working_directory.as_deref()),
            ("Began", Some(session.created_at.as_str())),
        ];
        for (name, value) in fields {
            if let Some(value) = value {
                self.line(&format!("- {name}: {}", format::line(value)));
            }
        }
        self.line("");
    }

    fn line(&mut self, line: &str) {
        self.shown.push_str(line);
        self.shown.push('\n');
    }

    /// Adds an event.
    pub(super) fn event(&mut self, event: &Event<'_>) {
        let agent = event.agent_id.decode();
        let (content, block, is_complete, is_thinking) = match &event.kind {
            EventKind::TextChunk(chunk) => {
                (&chunk.content, &chunk.block_id, chunk.is_complete, false)
            }
            EventKind::ThinkingChunk(chunk) => {
                (&chunk.content, &chunk.block_id, chunk.is_complete, true)
            }
            // These show nothing, so they must not split a text.
            EventKind::UsageReported(_)
            | EventKind::ToolProgress(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => return,
            kind => {
                self.close(|open| open.agent == agent);
                return self.other(kind, &agent);
            }
        };
        let block = block.as_ref().map(|id| id.to_string());
        let is_same = |open: &Block| {
            open.agent == agent && open.id == block && open.is_thinking == is_thinking
        };
        match self.open.iter_mut().find(|open| is_same(open)) {
            Some(open) => open.text.push_str(&content.decode()),
            None => self.open.push(Block {
                agent: agent.to_string(),
                id: block.clone(),
                is_thinking,
                text: content.to_string(),
            }),
        }
        if is_complete {
            self.close(is_same);
        }
    }

    /// Writes incomplete texts as far as they arrived.
    pub(super) fn end(&mut self) {
        self.close(|_| true);
    }

    fn close(&mut self, fits: impl Fn(&Block) -> bool) {
        let (done, open) = std::mem::take(&mut self.open).into_iter().partition(|open| fits(open));
        self.open = open;
        let done: Vec<Block> = done;
        for block in done.iter().filter(|block| !block.text.trim().is_empty()) {
            match block.is_thinking {
                true => {
                    self.note(&block.agent, "Thinking", "");
                    self.quote(&block.agent, &block.text);
                }
                false => self.part(&block.agent, &block.text),
            }
        }
    }

    fn other(&mut self, kind: &EventKind<'_>, agent: &str) {
        match kind {
            EventKind::TurnStarted(turn) => {
                let heading = match self.style {
                    Style::Text => format!("--- turn {} ---", turn.turn_number),
                    Style::Markdown => format!("## Turn {}", turn.turn_number),
                };
                self.line(&format!("{heading}\n"));
                if let Some(prompt) = &turn.prompt {
                    self.quote(agent, &prompt.decode());
                }
            }
            EventKind::TurnCompleted(turn) => {
                let spent = spent(Some(&turn.usage), turn.duration_ms, turn.cost_usd);
                self.note(agent, "Done", &spent);
            }
            EventKind::TurnFailed(turn) => {
                let label = match turn.reason {
                    TurnFailure::Interrupted => "Interrupted",
                    TurnFailure::Error
                    | TurnFailure::MaxTurns
                    | TurnFailure::Budget
                    | TurnFailure::Refused
                    | TurnFailure::Died => "Failed",
                };
                self.note(agent, label, &turn.error.decode());
            }
            EventKind::ToolStarted(tool) => {
                let server = tool.server.as_ref().map(|server| format!("{server}: "));
                let name = format!("{}{}", server.unwrap_or_default(), tool.tool_name);
                let argument = tool.arguments.as_ref().map(argument).unwrap_or_default();
                self.call(agent, &name, &argument);
            }
            EventKind::ToolCompleted(tool) => {
                let result = tool.result.as_ref().map(result).unwrap_or_default();
                if let Some(error) = &tool.error {
                    self.note(agent, "Tool failed", &error.decode());
                }
                // The two are often equal.
                let is_told =
                    tool.error.as_ref().is_some_and(|error| error.decode().trim() == result.trim());
                if !is_told {
                    self.code(agent, "", &result);
                }
            }
            EventKind::ToolFailed(tool) => {
                let label = match tool.reason {
                    ToolFailure::Denied => "Denied",
                    ToolFailure::Interrupted => "Tool interrupted",
                    ToolFailure::Invalid => "Tool failed",
                };
                self.note(agent, label, &tool.error.decode());
            }
            EventKind::FileChanged(file) => self.file(agent, file),
            EventKind::Error(error) => self.note(agent, "Error", &error.message.decode()),
            EventKind::PlanUpdated(plan) => {
                self.note(agent, "Plan", "");
                self.part(agent, &plan.to_markdown());
            }
            EventKind::AgentSpawned(spawned) => {
                let what = [&spawned.name, &spawned.description].into_iter().flatten();
                let what = what.map(|text| text.to_string()).collect::<Vec<_>>().join(": ");
                self.note(agent, "Subagent", &what);
            }
            EventKind::AgentFinished(finished) => {
                let spent = spent(finished.usage.as_ref(), finished.duration_ms, None);
                self.note(agent, "Subagent done", &spent);
            }
            EventKind::RequestRaised(request) => {
                let tool = request.tool_name.as_ref().map(|name| name.to_string());
                let questions = request.questions.iter().map(|asked| asked.question.to_string());
                let what = match request.kind {
                    RequestKind::Permission => tool.unwrap_or_default(),
                    RequestKind::Question => questions.collect::<Vec<_>>().join(" "),
                    // Client programs answer these themselves.
                    RequestKind::Hook | RequestKind::Mcp => return,
                    RequestKind::Other => {
                        request.title.as_ref().map(|title| title.to_string()).unwrap_or_default()
                    }
                };
                self.asked.insert(request.request_id.to_string(), what);
            }
            EventKind::RequestSettled(settled) => self.settled(agent, settled),
            EventKind::StatusChanged(changed) => {
                let label = match changed.status {
                    Status::Model => "Model",
                    Status::Mode => "Mode",
                    Status::Notice => "Notice",
                    Status::Warning => "Warning",
                    Status::Compacted => "Context compacted",
                    _ => return,
                };
                let message = changed.message.as_ref().map(|text| text.to_string());
                self.note(agent, label, &message.unwrap_or_default());
            }
            EventKind::SessionEnded(ended) => match &ended.error {
                Some(error) => self.note(agent, "Session failed", &error.decode()),
                None => self.note(agent, "Session ended", ""),
            },
            _ => {}
        }
    }

    fn settled(&mut self, agent: &str, settled: &RequestSettled<'_>) {
        let Some(what) = self.asked.remove(&*settled.request_id.decode()) else { return };
        let mut text = format!("{what}: {} by {}", settled.outcome.as_str(), settled.by.as_str());
        if let Some(reason) = &settled.reason {
            text.push_str(&format!(" ({reason})"));
        }
        self.note(agent, "Asked", &text);
    }

    fn file(&mut self, agent: &str, file: &FileChanged<'_>) {
        let label = match file.change_type {
            FileChangeType::Created => "Created",
            FileChangeType::Modified => "Changed",
            FileChangeType::Deleted => "Deleted",
        };
        let to = file.moved_to.as_ref().map(|path| format!(" → {path}")).unwrap_or_default();
        self.note(agent, label, &format!("{}{to}", file.file_path));
        if let Some(diff) = &file.diff {
            self.code(agent, "diff", &diff.decode());
        }
    }

    /// One event on one line.
    fn note(&mut self, agent: &str, label: &str, text: &str) {
        let text = format::line(text);
        let line = match (self.style, text.is_empty()) {
            (Style::Text, true) => format!("[{label}]"),
            (Style::Text, false) => format!("[{label}] {text}"),
            (Style::Markdown, true) => format!("*{label}*"),
            (Style::Markdown, false) => format!("*{label}:* {}", inline_code(&text)),
        };
        self.part(agent, &line);
    }

    fn call(&mut self, agent: &str, name: &str, text: &str) {
        let (name, text) = (format::line(name), format::line(text));
        let text = format::cut(&text, ARGUMENT_COLUMNS);
        let line = match (self.style, text.is_empty()) {
            (Style::Text, _) => format!("● {name} {text}"),
            (Style::Markdown, true) => format!("**{name}**"),
            (Style::Markdown, false) => format!("**{name}** {}", inline_code(&text)),
        };
        self.part(agent, line.trim_end());
    }

    fn quote(&mut self, agent: &str, text: &str) {
        let lines: Vec<String> = text.trim_end().lines().map(|line| format!("> {line}")).collect();
        self.part(agent, &lines.join("\n"));
    }

    fn code(&mut self, agent: &str, language: &str, text: &str) {
        let text = text.trim_end();
        if text.is_empty() {
            return;
        }
        let mut lines: Vec<&str> = text.lines().take(RESULT_LINES).collect();
        let left = text.lines().count() - lines.len();
        let more = format!("… {} more", format::count(left as u64, "line"));
        if left > 0 {
            lines.push(&more);
        }
        let text = match self.style {
            Style::Text => lines.iter().map(|line| format!("  {line}\n")).collect(),
            Style::Markdown => {
                let fence = "`".repeat(longest_run(text, '`').max(2) + 1);
                format!("{fence}{language}\n{}\n{fence}", lines.join("\n"))
            }
        };
        self.part(agent, &text);
    }

    /// Writes a paragraph; a subagent's is marked.
    fn part(&mut self, agent: &str, text: &str) {
        let prefix = match (self.style, agent == MAIN_AGENT) {
            (_, true) => "",
            (Style::Text, false) => "    ",
            (Style::Markdown, false) => "> ",
        };
        for line in format::harmless(text).trim_end().lines() {
            self.line(format!("{prefix}{line}").trim_end());
        }
        self.line("");
    }
}

/// Known figures of a turn.
fn spent(usage: Option<&TokenUsage>, duration_ms: Option<u64>, cost: Option<f64>) -> String {
    let duration = duration_ms.map(|time| format!("{:.1} s", time as f64 / 1000.0));
    let usage = usage.filter(|usage| usage.total_tokens > 0).map(tokens);
    let parts = [duration, usage, cost.map(format::dollars)];
    parts.into_iter().flatten().collect::<Vec<_>>().join("; ")
}

/// The most descriptive argument, or all of them.
fn argument(arguments: &Json<'_>) -> String {
    let telling =
        ["command", "file_path", "path", "pattern", "query", "url", "description", "prompt"];
    let read = arguments.read::<Value>().ok();
    let found = telling.iter().find_map(|name| read.as_ref()?.get(name)?.as_str());
    match found {
        Some(text) => text.to_owned(),
        None if arguments.get() == "{}" => String::new(),
        None => arguments.get().to_owned(),
    }
}

/// The text of a tool's result, in any form.
fn result(result: &Json<'_>) -> String {
    let text_of = |part: &Value| {
        let kind = part.get("type").and_then(Value::as_str);
        match part.get("text").and_then(Value::as_str) {
            Some(text) => text.to_owned(),
            None => format!("[{}]", kind.unwrap_or("data")),
        }
    };
    match result.read::<Value>() {
        Ok(Value::String(text)) => text,
        Ok(Value::Array(parts)) => parts.iter().map(text_of).collect::<Vec<_>>().join("\n"),
        Ok(Value::Null) => String::new(),
        Ok(value @ (Value::Bool(_) | Value::Number(_) | Value::Object(_))) => format!("{value:#}"),
        // Such as lone surrogates, which Rust strings cannot hold.
        Err(_) => result.get().to_owned(),
    }
}

fn inline_code(text: &str) -> String {
    let ticks = "`".repeat(longest_run(text, '`') + 1);
    let space = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
    format!("{ticks}{space}{text}{space}{ticks}")
}

fn longest_run(text: &str, c: char) -> usize {
    text.split(|other| other != c).map(str::len).max().unwrap_or(0)
}
