//! The view behind `run`, `attach` and `logs`: turns events into text. It knows neither the
//! terminal nor the session.

pub(crate) mod dialog;
pub(crate) mod diff;
mod input;
pub(crate) mod layout;
mod notice;
pub(crate) mod numbers;
mod state;
pub(crate) mod summary;
mod tools;

#[cfg(test)]
mod tests;

use std::io::{self, Write};

use agentwire_protocol::event::{
    SessionEndReason, SessionEnded, SessionStarted, TurnCompleted, TurnFailed, TurnFailure,
};
use agentwire_protocol::{Event, EventKind, MAIN_AGENT, Native, Text, TokenUsage};
use jiff::Timestamp;

pub(crate) use self::layout::Style;
use self::layout::{Ink, Page, Section};
use self::state::ViewState;
pub(crate) use self::state::about;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lens {
    Whole,
    /// The text of the main agent.
    Answer,
    /// Everything but the text of the main agent.
    Progress,
    /// Errors and denials.
    Notes,
}

/// Whose event it is, and when it happened.
#[derive(Clone, Copy)]
struct Origin<'e> {
    agent: &'e str,
    parent: Option<&'e str>,
    now: Option<Timestamp>,
}

/// What the gateway says, or the agent that everything starts with.
const MAIN: Origin<'static> = Origin { agent: MAIN_AGENT, parent: None, now: None };

#[derive(Debug)]
pub(crate) struct View {
    page: Page,
    lens: Lens,
    shows_prompts: bool,
    state: ViewState,
}

impl View {
    pub(crate) fn new(style: Style, lens: Lens) -> Self {
        Self { page: Page::new(style), lens, shows_prompts: false, state: ViewState::default() }
    }

    /// Also shows prompts, for logs. On `run` the user has just typed the prompt.
    pub(crate) fn with_prompts(mut self) -> Self {
        self.shows_prompts = true;
        self
    }

    /// Sets the columns of the reader's terminal.
    pub(crate) fn set_width(&mut self, width: Option<usize>) {
        self.page.set_width(width);
    }

    pub(crate) fn event(&mut self, event: Event<'_>, out: &mut impl Write) -> io::Result<()> {
        let now = event.timestamp.parse().ok();
        let agent = event.agent_id.decode();
        if self.lens == Lens::Answer {
            if let (EventKind::TextChunk(chunk), MAIN_AGENT) = (&event.kind, &*agent) {
                let block = decoded(chunk.block_id.as_ref());
                self.says(Section::Text, &chunk.content.decode(), block, chunk.is_complete);
            }
            return self.send(out);
        }
        if let EventKind::SessionStarted(started) = &event.kind {
            self.started(started, &event.session_id);
            return self.send(out);
        }
        let parent = decoded(event.parent_agent_id.as_ref());
        let origin = Origin { agent: &agent, parent: parent.as_deref(), now };
        self.show(event.kind, origin, &event.native);
        self.send(out)
    }

    /// Ends an open line.
    pub(crate) fn rest(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.page.end_line();
        self.send(out)
    }

    /// Adds other output, such as a question, to the same page.
    pub(crate) fn aside(
        &mut self,
        out: &mut impl Write,
        say: impl FnOnce(&mut Page),
    ) -> io::Result<()> {
        let indent = std::mem::take(&mut self.page.indent);
        self.state.block = None;
        self.page.section(Section::Work);
        say(&mut self.page);
        self.page.end_line();
        self.page.indent = indent;
        self.send(out)
    }

    /// The user has seen what this tool wants to change; it is not shown again.
    pub(crate) fn saw_changes_of(&mut self, tool: &str) {
        self.state.saw(tool);
    }

    /// Whether the last line is open.
    pub(crate) fn is_mid_line(&self) -> bool {
        self.page.is_mid_line()
    }

    pub(crate) fn activity(&self) -> String {
        self.state.activity()
    }

    /// The session's working directory.
    pub(crate) fn directory(&self) -> Option<&str> {
        self.state.directory.as_deref()
    }

    fn send(&mut self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(self.page.take().as_bytes())
    }

    /// Whether more than errors and denials is shown.
    fn shows_all(&self) -> bool {
        self.lens != Lens::Notes
    }

    fn show(&mut self, kind: EventKind<'_>, origin: Origin<'_>, native: &[Native<'_>]) {
        let all = self.shows_all();
        match kind {
            EventKind::SessionEnded(ended) => self.ended(&ended),
            EventKind::TurnStarted(turn) => {
                self.state.begin_turn(origin.now);
                if let Some(prompt) = turn.prompt {
                    self.prompt(&prompt.decode());
                }
            }
            EventKind::TurnCompleted(turn) => self.turn_completed(&turn, origin.now),
            EventKind::TurnFailed(turn) => self.turn_failed(&turn, origin.now),
            EventKind::TextChunk(chunk) if all => {
                if origin.agent != MAIN_AGENT || self.lens == Lens::Whole {
                    self.state.heard(origin.agent);
                    let block = decoded(chunk.block_id.as_ref());
                    let text = chunk.content.decode();
                    self.hear(origin, Section::Text, &text, block, chunk.is_complete);
                }
            }
            EventKind::ThinkingChunk(chunk) if all => {
                let block = decoded(chunk.block_id.as_ref());
                let text = chunk.content.decode();
                self.hear(origin, Section::Thinking, &text, block, chunk.is_complete);
            }
            EventKind::ToolStarted(started) => self.tool_started(&started, origin),
            EventKind::ToolProgress(progress) => self.state.progress(&progress),
            EventKind::ToolCompleted(done) => self.tool_completed(&done, origin),
            EventKind::ToolFailed(failed) => self.tool_failed(&failed, origin),
            EventKind::FileChanged(change) if all => self.file_changed(&change, origin),
            EventKind::Error(error) => self.error(&error),
            EventKind::PlanUpdated(plan) if all => {
                self.turn_to(origin);
                self.plan(&plan);
            }
            EventKind::AgentSpawned(spawned) => self.spawned(&spawned, origin),
            EventKind::AgentFinished(done) => self.finished(&done, origin),
            EventKind::RequestRaised(request) => self.state.raised(&request, origin),
            EventKind::RequestSettled(settled) => self.settled(&settled, origin.now),
            EventKind::StatusChanged(status) => self.status(&status, origin.agent),
            EventKind::Other(_) if all => self.stderr(native),
            EventKind::SessionStarted(_)
            | EventKind::TextChunk(_)
            | EventKind::ThinkingChunk(_)
            | EventKind::FileChanged(_)
            | EventKind::PlanUpdated(_)
            | EventKind::UsageReported(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => {}
        }
    }

    /// The next output is this agent's. A subagent is named once.
    fn turn_to(&mut self, origin: Origin<'_>) {
        if self.state.speaker == origin.agent {
            return;
        }
        self.page.end_line();
        self.state.block = None;
        self.state.last_tool = None;
        self.state.speaker = origin.agent.to_owned();
        let (depth, name) = self.state.agent(origin);
        if depth > 0 {
            self.page.section(Section::Work);
            self.page.indent = 2 * (depth - 1);
            self.page.line(&[(Ink::Cyan, "▸ "), (Ink::Dim, &name)]);
        }
        self.page.indent = 2 * depth;
    }

    fn hear(
        &mut self,
        origin: Origin<'_>,
        section: Section,
        text: &str,
        block: Option<String>,
        is_complete: bool,
    ) {
        // The end of a block that another agent's output has ended already.
        if !text.is_empty() || self.state.speaker == origin.agent {
            self.turn_to(origin);
            self.says(section, text, block, is_complete);
        }
    }

    fn says(&mut self, section: Section, text: &str, block: Option<String>, is_complete: bool) {
        if !text.is_empty() {
            self.state.last_tool = None;
            let key = (section, block);
            if self.state.block.as_ref() != Some(&key) {
                self.page.paragraph(section);
                self.state.block = Some(key);
            }
            let ink = if section == Section::Thinking { Ink::Dim } else { Ink::Plain };
            // Without colour the mark tells thinking from text.
            let mark = section == Section::Thinking;
            self.page.marked(ink, text, mark.then_some("┊ "));
        }
        if is_complete {
            self.page.end_line();
            self.state.block = None;
        }
    }

    fn work(&mut self) {
        self.state.block = None;
        self.page.section(Section::Work);
    }

    fn started(&mut self, started: &SessionStarted<'_>, session: &str) {
        self.state.directory.clone_from(&started.config.working_directory);
        if !self.shows_all() {
            return;
        }
        let config = &started.config;
        let short = session.get(..8).unwrap_or(session);
        let about = [config.model.as_deref(), config.working_directory.as_deref(), Some(short)];
        let about: String = about.into_iter().flatten().map(|word| format!(" · {word}")).collect();
        self.page.section(Section::Head);
        self.page.line(&[(Ink::Bold, started.agent_type.as_str()), (Ink::Dim, &about)]);
    }

    fn prompt(&mut self, prompt: &str) {
        if !self.shows_prompts || self.state.prompt == prompt {
            return;
        }
        prompt.clone_into(&mut self.state.prompt);
        self.turn_to(MAIN);
        self.page.paragraph(Section::Head);
        self.page.marked(Ink::Bold, prompt.trim_end(), Some("> "));
        self.page.end_line();
    }

    fn ended(&mut self, ended: &SessionEnded<'_>) {
        let error = decoded(ended.error.as_ref()).unwrap_or_default();
        let how = match ended.reason {
            SessionEndReason::Completed | SessionEndReason::Cancelled => return,
            SessionEndReason::Failed => "the session failed",
            SessionEndReason::Timeout => "the session timed out",
        };
        if self.state.is_news(&error) {
            self.close(Ink::Red, "✗ ", how, "", &error);
        }
    }

    fn turn_completed(&mut self, turn: &TurnCompleted<'_>, now: Option<Timestamp>) {
        if self.shows_all() {
            let duration = turn.duration_ms.or_else(|| self.state.turn_took(now));
            let figures = figures(duration, Some(&turn.usage), turn.cost_usd);
            self.close(Ink::Green, "✓ ", "", &figures, "");
        }
    }

    fn turn_failed(&mut self, turn: &TurnFailed<'_>, now: Option<Timestamp>) {
        let how = match turn.reason {
            TurnFailure::Error | TurnFailure::Died => "the turn failed",
            TurnFailure::Interrupted => "interrupted",
            TurnFailure::MaxTurns => "the turn reached its step limit",
            TurnFailure::Budget => "the turn reached its cost limit",
            TurnFailure::Refused => "the model refused",
        };
        let duration = turn.duration_ms.or_else(|| self.state.turn_took(now));
        let figures = figures(duration, turn.usage.as_ref(), turn.cost_usd);
        let error = turn.error.decode();
        let error = match turn.reason {
            TurnFailure::Interrupted => "",
            TurnFailure::Error
            | TurnFailure::MaxTurns
            | TurnFailure::Budget
            | TurnFailure::Refused
            | TurnFailure::Died => self.state.news(&error),
        };
        self.close(Ink::Red, "✗ ", how, &figures, error);
    }

    fn close(&mut self, ink: Ink, mark: &str, how: &str, figures: &str, error: &str) {
        if !self.shows_all() {
            return self.note(&if error.is_empty() {
                how.to_owned()
            } else {
                format!("{how}: {error}")
            });
        }
        self.turn_to(MAIN);
        self.state.block = None;
        self.page.section(Section::End);
        let between = if how.is_empty() || figures.is_empty() { "" } else { " · " };
        self.page.line(&[(ink, mark), (ink, how), (Ink::Dim, between), (Ink::Dim, figures)]);
        if !error.is_empty() {
            self.page.marked(Ink::Red, error.trim_end(), Some("  "));
            self.page.end_line();
        }
    }
}

/// A text of an event, if it has one.
fn decoded(text: Option<&Text<'_>>) -> Option<String> {
    text.map(ToString::to_string)
}

/// Duration, tokens and cost.
fn figures(duration: Option<u64>, usage: Option<&TokenUsage>, cost: Option<f64>) -> String {
    let tokens = usage.filter(|usage| usage.total_tokens > 0).map(numbers::tokens);
    let parts = [duration.map(numbers::duration), tokens, cost.map(numbers::dollars)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(" · ")
}
