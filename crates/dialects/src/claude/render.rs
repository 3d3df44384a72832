//! Renders unified events of any agent as the messages that a client of Claude reads.
//!
//! Claude's own lines pass unchanged. For every other agent, each turn is rendered as Claude would report
//! it: `system/init`, messages block by block, tool results, one `result`. Requests belong to the front:
//! control lines do not pass, and none are rendered.

mod calls;
pub(super) mod files;
mod frames;
mod messages;
mod native;
mod output;
mod plan;
mod session;
mod synthetic;
mod tools;
mod turn;

use std::collections::BTreeMap;

use agentwire_protocol::event::{RequestKind, RequestRaised, Status, StatusChanged, UsageReported};
use agentwire_protocol::{AgentType, Event, EventKind, Json, MAIN_AGENT, Text};
use serde::Serialize;

use self::frames::{CompactBoundary, CompactMetadata, RateLimit, Retry, StatusLine, System};
use self::messages::{BlockKind, Speakers, TextPiece};
use self::native::LineKind;
use self::output::MessageWriter;
use self::session::Session;
pub(crate) use self::session::claude_mode;
use self::tools::OpenCall;
use self::turn::{Ending, Totals, Turn};
use super::tools::{ToolCall, ToolUse};
use crate::json::{Scanner, Value};
use crate::program;
use crate::recent_ids::RecentIds;

/// The version of Claude Code whose protocol is spoken.
pub const VERSION: &str = "2.1.325";

/// What a client wants to see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// `stream_event` lines.
    pub partial: bool,
}

/// Renders the events of one session, starting with the first. To join later, feed it the earlier events
/// and discard the output.
#[derive(Debug, Default)]
pub struct Renderer {
    options: Options,
    /// The agent is Claude, or speaks its wire.
    is_claude: bool,
    /// The session's id in Claude's own lines.
    claude_id: Option<String>,
    session: Session,
    turn: Turn,
    totals: Totals,
    speakers: Speakers,
    tools: Vec<OpenCall>,
    /// Calls that were shown, open or not.
    called: RecentIds,
    /// Of these, the calls that show what they did to a file.
    edits: RecentIds,
    todos: Option<Json<'static>>,
    /// Questions that are shown as calls: the call's id by the request's id.
    questions: BTreeMap<String, String>,
    /// Agents that work while the agent that spawned them continues.
    background: RecentIds,
    last_is_error: Option<bool>,
    /// How many messages were rendered without an event.
    asides: u64,
    /// Messages whose fate is reported; `None` reports all.
    named: Option<RecentIds>,
    scanner: Scanner,
}

impl Renderer {
    pub fn new(options: Options) -> Self {
        Self { options, ..Self::default() }
    }

    /// Renders the event in Claude's format. Each message is one JSON object on one line, without `\n`, and
    /// with U+2028 and U+2029 escaped.
    pub fn event(&mut self, event: &Event<'_>, say: &mut dyn FnMut(&str)) {
        let mut is_said = false;
        for line in event.native.iter().filter(|line| native::is_claude(line)) {
            self.is_claude = true;
            let (text, line) = native::read(&mut self.scanner, &line.line);
            let text = native::in_mode(text, told_mode(&event.kind));
            is_said |= self.pass(&text, line, say);
        }
        let agent = &*event.agent_id.decode();
        if agent == MAIN_AGENT {
            self.session.update_info(&event.kind);
        }
        if let EventKind::SessionStarted(started) = &event.kind {
            self.is_claude = program(started.agent_type).speaks_claude();
        }
        let session_id = self.claude_id.take();
        let named = session_id.as_deref().unwrap_or(&event.session_id);
        let writer = &mut MessageWriter::new(named, &event.id, self.options.partial, say);
        if self.is_claude {
            self.bound(event, is_said, writer);
        } else {
            self.render(event, agent, writer);
        }
        self.claude_id = session_id;
    }

    /// Assumes this agent until an event says otherwise.
    pub fn of(mut self, agent: AgentType) -> Self {
        self.is_claude = program(agent).speaks_claude();
        self
    }

    /// The known MCP servers, as Claude lists them.
    pub(crate) fn servers(&self) -> Vec<serde_json::Value> {
        self.session.servers()
    }

    /// Whether the agent speaks Claude's own wire.
    pub fn speaks_claude(&self) -> bool {
        self.is_claude
    }

    /// The tool and the input that a permission is asked for, as its call was shown and with everything
    /// that the request adds. The request's event must have been rendered.
    pub fn asked(&self, request: &RequestRaised<'_>) -> (String, Json<'static>) {
        let id = request.tool_use_id.as_ref().map(Text::decode);
        if let Some(tool) = self.tools.iter().find(|tool| id.as_deref() == Some(&*tool.id)) {
            return (tool.name.clone(), tool.shown().input);
        }
        let name = request.tool_name.as_ref().or(request.name.as_ref());
        let name = name.or(request.title.as_ref()).map_or("unknown".into(), Text::decode);
        let title = request.title.as_ref().map(Text::decode).filter(|_| !self.is_claude);
        let input = request.input.as_ref();
        let call = ToolCall { name: &name, input, title: title.as_deref(), ..ToolCall::default() };
        let ToolUse { name, input, .. } = call.as_claude();
        (name, input)
    }

    /// Whether the last turn failed, if one has ended. For the exit code of the program.
    pub fn last_is_error(&self) -> Option<bool> {
        self.last_is_error
    }

    /// Reports the fate of named messages only: a client that gives its messages no ids does not hear of
    /// the ids that they were given.
    pub fn only_named(mut self) -> Self {
        self.named = Some(RecentIds::default());
        self
    }

    /// The client gave a message this id.
    pub fn name(&mut self, message: &str) {
        if let Some(named) = &mut self.named {
            named.add(message);
        }
    }

    fn is_known(&mut self, text: &str) -> bool {
        let Some(named) = &self.named else { return true };
        let message = native::command_uuid(&mut self.scanner, text);
        message.is_some_and(|message| named.count(&message) > 0)
    }

    /// Passes on one of Claude's own lines; returns whether it did.
    fn pass(&mut self, text: &str, line: LineKind, say: &mut dyn FnMut(&str)) -> bool {
        match line {
            LineKind::Withheld => return false,
            LineKind::Partial if !self.options.partial => return false,
            LineKind::Partial | LineKind::Message => {}
            LineKind::Lifecycle if self.is_known(text) => {}
            LineKind::Lifecycle => return false,
            LineKind::Init => {
                self.turn.is_begun = true;
                let session_id = native::session_id(&mut self.scanner, text);
                self.claude_id = session_id.or(self.claude_id.take());
            }
            LineKind::Result => {
                self.turn.has_result = true;
                self.last_is_error = native::is_error(&mut self.scanner, text);
            }
        }
        say(text);
        true
    }

    /// For a turn of Claude's, only the bounds are rendered here, if Claude did not report them: it died,
    /// was cut off, or never received the turn. So is a mode that the gateway applies for Claude.
    fn bound(&mut self, event: &Event<'_>, is_said: bool, writer: &mut MessageWriter<'_>) {
        if let EventKind::TurnStarted(_) = &event.kind {
            self.turn.started(&event.timestamp);
        } else if let EventKind::TurnCompleted(turn) = &event.kind {
            self.end_turn(event, &Ending::completed(turn, ""), writer);
        } else if let EventKind::TurnFailed(turn) = &event.kind {
            self.end_turn(event, &Ending::failed(turn), writer);
        } else if let EventKind::StatusChanged(change) = &event.kind
            && change.status == Status::Mode
            && !is_said
        {
            self.mode_changed(writer);
        }
    }

    fn mode_changed(&mut self, writer: &mut MessageWriter<'_>) {
        if let mode @ Some(_) = self.session.mode() {
            let status = StatusLine { permission_mode: mode, ..StatusLine::default() };
            system("status", status, writer);
        }
    }

    fn render(&mut self, event: &Event<'_>, agent: &str, writer: &mut MessageWriter<'_>) {
        // Everything about a turn comes after its `init`.
        if self.turn.is_due && !(is_preparing(&event.kind) && self.session.awaits_tools()) {
            self.start_turn(writer);
        }
        match &event.kind {
            EventKind::TurnStarted(_) => {
                self.turn = Turn::default();
                self.turn.started(&event.timestamp);
                self.speakers.main.start_turn();
                self.turn.is_due = self.session.awaits_tools();
                if !self.turn.is_due {
                    self.start_turn(writer);
                }
            }
            EventKind::TurnCompleted(turn) => {
                self.speakers.main.end_message(writer);
                let answer = std::mem::take(&mut self.speakers.main.answer);
                self.end_turn(event, &Ending::completed(turn, &answer), writer);
            }
            EventKind::TurnFailed(turn) => {
                self.speakers.main.end_message(writer);
                self.end_turn(event, &Ending::failed(turn), writer);
            }
            EventKind::TextChunk(chunk) => {
                let piece = TextPiece {
                    kind: BlockKind::Text,
                    content: &chunk.content,
                    is_complete: chunk.is_complete,
                    block_id: chunk.block_id.as_ref(),
                    signature: None,
                };
                self.piece(agent, &piece, writer);
            }
            EventKind::ThinkingChunk(chunk) => {
                let piece = TextPiece {
                    kind: BlockKind::Thinking,
                    content: &chunk.content,
                    is_complete: chunk.is_complete,
                    block_id: chunk.block_id.as_ref(),
                    signature: chunk.signature.as_ref(),
                };
                self.piece(agent, &piece, writer);
            }
            EventKind::ToolStarted(tool) => self.call(OpenCall::started(agent, tool), writer),
            EventKind::ToolProgress(progress) => self.tool_progress(progress),
            EventKind::ToolCompleted(completed) => self.tool_completed(completed, writer),
            EventKind::ToolFailed(failed) => self.tool_failed(failed, writer),
            EventKind::FileChanged(change) => self.file_changed(agent, change, writer),
            EventKind::PlanUpdated(plan) => self.plan_updated(agent, plan, writer),
            EventKind::AgentSpawned(spawned) => {
                let parent = event.parent_agent_id.as_ref().map(|parent| parent.decode());
                self.agent_spawned(agent, parent.as_deref().unwrap_or(MAIN_AGENT), spawned, writer);
            }
            EventKind::AgentFinished(finished) => self.agent_finished(agent, finished, writer),
            EventKind::StatusChanged(change) => self.status_changed(change, writer),
            EventKind::UsageReported(report) => self.usage_reported(agent, report, writer),
            EventKind::RequestRaised(request) => self.request_raised(agent, request, writer),
            EventKind::RequestSettled(settled) => self.request_settled(settled, writer),
            EventKind::Error(error) if error.will_retry == Some(true) => self.retrying(writer),
            _ => {}
        }
    }

    fn start_turn(&mut self, writer: &mut MessageWriter<'_>) {
        self.turn.is_due = false;
        self.session.await_no_more();
        if !self.turn.is_begun {
            self.turn.is_begun = true;
            self.session.init(writer);
        }
    }

    fn end_turn(&mut self, event: &Event<'_>, ending: &Ending<'_>, writer: &mut MessageWriter<'_>) {
        if self.turn.has_result {
            self.totals.add(ending, &self.session);
        } else {
            self.start_turn(writer);
            self.cut_tools(writer);
            let turn = (&self.turn, &*event.timestamp);
            let messages = self.speakers.main.messages;
            let is_error = self.totals.end(turn, ending, messages, &self.session, writer);
            self.last_is_error = Some(is_error);
        }
        self.turn = Turn::default();
        self.questions.clear();
    }

    /// Claude's main agent speaks only in turns, its subagents at any time.
    fn may_speak(&self, agent: &str) -> bool {
        self.turn.is_begun || agent != MAIN_AGENT
    }

    fn piece(&mut self, agent: &str, piece: &TextPiece<'_>, writer: &mut MessageWriter<'_>) {
        if !self.may_speak(agent) {
            return;
        }
        self.turn.cut_tool &= agent != MAIN_AGENT;
        self.speakers.of(agent, writer).piece(piece, self.session.model(), writer);
    }

    fn usage_reported(
        &mut self,
        agent: &str,
        report: &UsageReported<'_>,
        writer: &mut MessageWriter<'_>,
    ) {
        if let Some(usage) = &report.usage {
            self.speakers.of(agent, writer).used(self.session.usage(usage));
        }
    }

    fn status_changed(&mut self, change: &StatusChanged<'_>, writer: &mut MessageWriter<'_>) {
        match change.status {
            Status::Compacting => {
                let status = StatusLine { status: Some("compacting"), ..StatusLine::default() };
                system("status", status, writer);
            }
            Status::Compacted => {
                let over = StatusLine { compact_result: Some("success"), ..StatusLine::default() };
                system("status", over, writer);
                let pre_tokens = self.session.context_used;
                let compact_metadata = CompactMetadata { trigger: "auto", pre_tokens };
                system("compact_boundary", CompactBoundary { compact_metadata }, writer);
            }
            Status::Mode => self.mode_changed(writer),
            Status::Retrying => self.retrying(writer),
            Status::RateLimit => {
                if let Some(limits) = &change.details {
                    self.rate_limit(limits, writer);
                }
            }
            _ => {}
        }
    }

    /// A model call failed and is retried.
    fn retrying(&mut self, writer: &mut MessageWriter<'_>) {
        self.turn.retries += 1;
        let attempt = self.turn.retries;
        let retry = Retry {
            attempt,
            max_retries: attempt,
            retry_delay_ms: 0,
            error_status: None,
            error: "unknown",
        };
        system("api_retry", retry, writer);
    }

    /// Readers need the `status` that Claude's limits have. Other agents' limits have none and are left
    /// out.
    fn rate_limit(&mut self, limits: &Json<'_>, writer: &mut MessageWriter<'_>) {
        let Ok(document) = self.scanner.scan(limits.get()) else { return };
        let status = document.root().get("status").and_then(Value::string);
        if !matches!(status.as_deref(), Some("allowed" | "allowed_warning" | "rejected")) {
            return;
        }
        let uuid = writer.uuid();
        let session_id = writer.session_id;
        writer.frame(&RateLimit { rate_limit_info: limits, uuid, session_id });
    }
}

/// Whether an event only shows that the turn is being prepared, and renders nothing.
fn is_preparing(kind: &EventKind<'_>) -> bool {
    if let EventKind::StatusChanged(change) = kind {
        let status = change.status;
        let is_said = matches!(status, Status::Compacting | Status::Compacted | Status::Mode);
        !is_said && !matches!(status, Status::Retrying | Status::RateLimit)
    } else if let EventKind::RequestRaised(request) = kind {
        request.kind == RequestKind::Mcp
    } else {
        matches!(
            kind,
            EventKind::TurnStarted(_)
                | EventKind::RequestSettled(_)
                | EventKind::UsageReported(_)
                | EventKind::Other(_)
        )
    }
}

fn told_mode<'e>(kind: &'e EventKind<'_>) -> Option<&'e Text<'e>> {
    match kind {
        EventKind::StatusChanged(change) if change.status == Status::Mode => {
            change.message.as_ref()
        }
        EventKind::StatusChanged(change) => change.info.as_ref()?.mode.as_ref(),
        _ => None,
    }
}

fn system<T: Serialize>(subtype: &'static str, fields: T, writer: &mut MessageWriter<'_>) {
    let uuid = writer.uuid();
    let session_id = writer.session_id;
    writer.frame(&System { subtype, fields, session_id, uuid });
}

/// A `system` message about an event that is rendered in no other way.
pub(crate) fn system_message(
    event: &Event<'_>,
    subtype: &'static str,
    fields: impl Serialize,
) -> Json<'static> {
    let mut message = Json::trusted("null");
    let say = &mut |line: &str| message = Json::trusted(line.to_owned());
    system(subtype, fields, &mut MessageWriter::new(&event.session_id, &event.id, false, say));
    message
}
