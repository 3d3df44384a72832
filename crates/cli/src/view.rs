//! The one view behind `run`, `attach` and `logs`: events in, text out. It knows no terminal and no
//! session.

pub(crate) mod ask;
pub(crate) mod diff;
mod input;
mod memory;
pub(crate) mod page;
pub(crate) mod tool;
pub(crate) mod words;
mod work;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use agentwire_protocol::event::{
    ErrorEvent, PlanStatus, PlanUpdated, SessionEndReason, SessionEnded, SessionStarted, Status,
    StatusChanged, TurnCompleted, TurnFailed, TurnFailure,
};
use agentwire_protocol::{Event, EventKind, MAIN_AGENT, Native, Stream, TokenUsage};
use jiff::Timestamp;

use self::memory::Memory;
pub(crate) use self::memory::about;
pub(crate) use self::page::Style;
use self::page::{Ink, Page, Section};

/// How much of a session a reader sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lens {
    /// Everything.
    Whole,
    /// The text of the main agent.
    Answer,
    /// Everything but that.
    Progress,
    /// Only what went wrong or was refused.
    Notes,
}

/// A session as text.
#[derive(Debug)]
pub(crate) struct View {
    page: Page,
    lens: Lens,
    shows_prompts: bool,
    known: Memory,
}

impl View {
    pub(crate) fn new(style: Style, lens: Lens) -> Self {
        Self { page: Page::new(style), lens, shows_prompts: false, known: Memory::default() }
    }

    /// Shows prompts too. Who gave one knows it; in a log it is the other half of the talk.
    pub(crate) fn with_prompts(mut self) -> Self {
        self.shows_prompts = true;
        self
    }

    /// Shows an event.
    pub(crate) fn event(&mut self, event: Event<'_>, out: &mut impl Write) -> io::Result<()> {
        let now = event.timestamp.parse().ok();
        let agent = event.agent_id.decode();
        if self.lens == Lens::Answer {
            if let (EventKind::TextChunk(chunk), MAIN_AGENT) = (&event.kind, &*agent) {
                let block = chunk.block_id.as_ref().map(ToString::to_string);
                self.says(Section::Text, &chunk.content.decode(), block, chunk.is_complete);
            }
            return self.send(out);
        }
        let parent = event.parent_agent_id.as_ref().map(ToString::to_string);
        self.show(event.kind, &agent, parent.as_deref(), now, &event.native);
        self.send(out)
    }

    /// Ends the line that is not ended.
    pub(crate) fn rest(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.page.end_line();
        self.send(out)
    }

    /// Shows what somebody else has to say on the same page.
    pub(crate) fn aside(
        &mut self,
        out: &mut impl Write,
        say: impl FnOnce(&mut Page),
    ) -> io::Result<()> {
        self.page.indent = 0;
        self.page.section(Section::Work);
        say(&mut self.page);
        self.page.end_line();
        self.send(out)
    }

    /// Whether the last line is not ended.
    pub(crate) fn is_mid_line(&self) -> bool {
        self.page.is_mid_line()
    }

    /// What the agent does now.
    pub(crate) fn activity(&self) -> String {
        self.known.activity()
    }

    /// Where the session works.
    pub(crate) fn directory(&self) -> Option<&str> {
        self.known.directory.as_deref()
    }

    fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.page.take().as_bytes())
    }

    fn show(
        &mut self,
        kind: EventKind<'_>,
        agent: &str,
        parent: Option<&str>,
        now: Option<Timestamp>,
        native: &[Native<'_>],
    ) {
        let all = self.lens != Lens::Notes;
        match kind {
            EventKind::SessionStarted(started) => self.started(&started, all),
            EventKind::SessionEnded(ended) => self.ended(&ended),
            EventKind::TurnStarted(turn) => {
                self.known.turn_since = now;
                if let Some(prompt) = turn.prompt {
                    self.prompt(&prompt.decode());
                }
            }
            EventKind::TurnCompleted(turn) => self.turn_completed(&turn, now, all),
            EventKind::TurnFailed(turn) => self.turn_failed(&turn, now),
            EventKind::TextChunk(chunk) if all => {
                if agent != MAIN_AGENT || self.lens == Lens::Whole {
                    self.turn_to(agent, parent);
                    let block = chunk.block_id.as_ref().map(ToString::to_string);
                    self.says(Section::Text, &chunk.content.decode(), block, chunk.is_complete);
                }
            }
            EventKind::ThinkingChunk(chunk) if all => {
                self.turn_to(agent, parent);
                let block = chunk.block_id.as_ref().map(ToString::to_string);
                self.says(Section::Thinking, &chunk.content.decode(), block, chunk.is_complete);
            }
            EventKind::ToolStarted(started) => self.tool_started(&started, agent, parent, now, all),
            EventKind::ToolProgress(progress) => self.known.progress(&progress),
            EventKind::ToolCompleted(done) => self.tool_completed(&done, agent, parent, now, all),
            EventKind::ToolFailed(failed) => self.tool_failed(&failed, agent, parent, all),
            EventKind::FileChanged(change) if all => self.file_changed(&change, agent, parent),
            EventKind::Error(error) => self.error(&error),
            EventKind::PlanUpdated(plan) if all => {
                self.turn_to(agent, parent);
                self.plan(&plan);
            }
            EventKind::AgentSpawned(spawned) => self.spawned(&spawned, agent, parent, now, all),
            EventKind::AgentFinished(done) => self.finished(&done, agent, parent, now, all),
            EventKind::RequestRaised(request) => self.known.raised(&request, agent, parent),
            EventKind::RequestSettled(settled) => self.settled(&settled, now, all),
            EventKind::StatusChanged(status) => self.status(&status, agent, all),
            EventKind::Other(_) if all => self.stderr(native),
            EventKind::TextChunk(_)
            | EventKind::ThinkingChunk(_)
            | EventKind::FileChanged(_)
            | EventKind::PlanUpdated(_)
            | EventKind::UsageReported(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => {}
        }
    }

    /// From here on it is this agent's; whose it is, is said once.
    fn turn_to(&mut self, agent: &str, parent: Option<&str>) {
        if self.known.speaker == agent {
            return;
        }
        self.page.end_line();
        self.known.block = None;
        self.known.last_tool = None;
        self.known.speaker = agent.to_owned();
        let (depth, name) = self.known.agent(agent, parent);
        if depth > 0 {
            self.page.section(Section::Work);
            self.page.indent = 2 * (depth - 1);
            self.page.line(&[(Ink::Cyan, "▸ "), (Ink::Dim, &name)]);
        }
        self.page.indent = 2 * depth;
    }

    fn says(&mut self, section: Section, text: &str, block: Option<String>, is_complete: bool) {
        if !text.is_empty() {
            self.known.last_tool = None;
            let key = (section, block);
            if self.known.block.as_ref() != Some(&key) {
                self.page.paragraph(section);
                self.known.block = Some(key);
            }
            let ink = if section == Section::Thinking { Ink::Dim } else { Ink::Plain };
            // Without colour the mark tells thinking from text.
            let mark = section == Section::Thinking;
            self.page.marked(ink, text, mark.then_some("┊ "));
        }
        if is_complete {
            self.page.end_line();
            self.known.block = None;
        }
    }

    fn work(&mut self) {
        self.known.block = None;
        self.page.section(Section::Work);
    }

    fn started(&mut self, started: &SessionStarted<'_>, all: bool) {
        self.known.directory.clone_from(&started.config.working_directory);
        if all {
            let agent = started.agent_type.as_str();
            let model = started.config.model.as_deref().map(|model| format!(" · {model}"));
            let place = self.known.directory.as_deref().map(|place| format!(" · {place}"));
            self.page.section(Section::Head);
            let (model, place) = (model.unwrap_or_default(), place.unwrap_or_default());
            self.page.line(&[(Ink::Bold, agent), (Ink::Dim, &model), (Ink::Dim, &place)]);
        }
    }

    fn prompt(&mut self, prompt: &str) {
        if !self.shows_prompts || self.known.prompt == prompt {
            return;
        }
        prompt.clone_into(&mut self.known.prompt);
        self.turn_to(MAIN_AGENT, None);
        self.page.section(Section::End);
        self.page.marked(Ink::Bold, prompt.trim_end(), Some("> "));
        self.page.end_line();
    }

    fn ended(&mut self, ended: &SessionEnded<'_>) {
        let error = ended.error.as_ref().map(ToString::to_string).unwrap_or_default();
        let how = match ended.reason {
            SessionEndReason::Completed | SessionEndReason::Cancelled => return,
            SessionEndReason::Failed => "the session failed",
            SessionEndReason::Timeout => "the session ran out of time",
        };
        if self.known.is_news(&error) {
            self.close(&[(Ink::Red, "✗ "), (Ink::Red, how)], &error);
        }
    }

    fn turn_completed(&mut self, turn: &TurnCompleted<'_>, now: Option<Timestamp>, all: bool) {
        let duration = turn.duration_ms.or_else(|| self.known.turn_took(now));
        if all {
            let figures = figures(duration, Some(&turn.usage), turn.cost_usd);
            self.close(&[(Ink::Green, "✓ "), (Ink::Dim, &figures)], "");
        }
    }

    fn turn_failed(&mut self, turn: &TurnFailed<'_>, now: Option<Timestamp>) {
        let how = match turn.reason {
            TurnFailure::Error => "failed",
            TurnFailure::Interrupted => "interrupted",
            TurnFailure::MaxTurns => "stopped after as many steps as it may take",
            TurnFailure::Budget => "stopped after spending as much as it may",
            TurnFailure::Refused => "refused",
            TurnFailure::Died => "failed: the agent ended",
        };
        let duration = turn.duration_ms.or_else(|| self.known.turn_took(now));
        let figures = figures(duration, turn.usage.as_ref(), turn.cost_usd);
        let figures = if figures.is_empty() { figures } else { format!(" · {figures}") };
        let error = turn.error.decode();
        let is_news = turn.reason != TurnFailure::Interrupted && self.known.is_news(&error);
        let error = if is_news { &*error } else { "" };
        self.close(&[(Ink::Red, "✗ "), (Ink::Red, how), (Ink::Dim, &figures)], error);
    }

    /// The last lines of a turn.
    fn close(&mut self, line: &[(Ink, &str)], error: &str) {
        self.turn_to(MAIN_AGENT, None);
        self.known.block = None;
        self.page.section(Section::End);
        self.page.line(line);
        if !error.is_empty() {
            self.page.marked(Ink::Red, error.trim_end(), Some("  "));
            self.page.end_line();
        }
    }

    fn error(&mut self, error: &ErrorEvent<'_>) {
        let message = error.message.decode();
        if self.known.is_news(&message) {
            self.work();
            let retries = if error.will_retry == Some(true) { " (it tries again)" } else { "" };
            self.page.line(&[(Ink::Red, "! "), (Ink::Red, &message), (Ink::Dim, retries)]);
        }
    }

    fn plan(&mut self, plan: &PlanUpdated<'_>) {
        self.work();
        self.page.line(&[(Ink::Cyan, "● "), (Ink::Bold, "Plan")]);
        if let Some(explanation) = &plan.explanation {
            self.page.marked(Ink::Dim, explanation.decode().trim_end(), Some("  "));
        }
        for entry in &plan.entries {
            let (mark, ink) = match entry.status {
                PlanStatus::Pending => ("  ☐ ", Ink::Plain),
                PlanStatus::InProgress => ("  ◐ ", Ink::Bold),
                PlanStatus::Completed => ("  ☑ ", Ink::Dim),
                PlanStatus::Cancelled => ("  ☒ ", Ink::Dim),
            };
            self.page.line(&[(ink, mark), (ink, &entry.content.decode())]);
        }
    }

    fn status(&mut self, status: &StatusChanged<'_>, agent: &str, all: bool) {
        if let Some(place) = status.info.as_ref().and_then(|info| info.working_directory.as_ref()) {
            self.known.directory = Some(place.to_string());
        }
        let message = status.message.as_ref().map(ToString::to_string).unwrap_or_default();
        let (ink, mark) = match status.status {
            Status::Prompted if agent == MAIN_AGENT => return self.prompt(&message),
            Status::Warning => (Ink::Yellow, "! "),
            Status::Notice if all => (Ink::Dim, "· "),
            Status::Retrying if all => (Ink::Yellow, "· the model's service is tried again: "),
            Status::Compacting if all => (Ink::Dim, "· the context is being shortened "),
            Status::Compacted if all => (Ink::Dim, "· the context is shorter now "),
            Status::Model if all => (Ink::Dim, "· model: "),
            Status::Mode if all => (Ink::Dim, "· mode: "),
            Status::Notice
            | Status::Retrying
            | Status::Compacting
            | Status::Compacted
            | Status::Model
            | Status::Mode
            | Status::Ready
            | Status::Working
            | Status::Idle
            | Status::Waiting
            | Status::Prompted
            | Status::Queue
            | Status::RateLimit
            | Status::Session
            | Status::Title
            | Status::Commands
            | Status::McpServer
            | Status::Hook
            | Status::Task
            | Status::Diff
            | Status::Account
            | Status::Suggestion => return,
        };
        self.work();
        self.page.line(&[(ink, mark), (ink, message.trim_end())]);
    }

    fn stderr(&mut self, native: &[Native<'_>]) {
        for line in native.iter().filter(|native| native.stream == Stream::Stderr) {
            let text = String::from_utf8_lossy(line.line.bytes()).into_owned();
            if !text.trim().is_empty() {
                self.work();
                self.page.line(&[(Ink::Dim, "stderr "), (Ink::Dim, &text)]);
            }
        }
    }
}

/// How long it took, what it used and cost.
fn figures(duration: Option<u64>, usage: Option<&TokenUsage>, cost: Option<f64>) -> String {
    let tokens = usage.filter(|usage| usage.total_tokens > 0).map(words::tokens);
    let parts = [duration.map(words::duration), tokens, cost.map(words::dollars)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
