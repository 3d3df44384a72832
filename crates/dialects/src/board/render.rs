//! Renders the events of one session for the board. Rendered from the first event, the result is always the
//! same: pages and live readers see one list.
//!
//! Readers treat `error` and `cancelled` as the end of the session. So each is sent once, when the session
//! ends: a turn that fails or is interrupted in a session that continues becomes a `log`.

use std::collections::BTreeMap;

use agentwire_protocol::event::{
    AgentSpawned, FileChanged, PlanStatus, PlanUpdated, RequestKind, RequestRaised,
    SessionEndReason, SessionEnded, Status, ToolStarted, TurnFailed, TurnFailure,
};
use agentwire_protocol::{Event, EventKind, Json, Text};

use super::wire::{Action, Diff, Empty, Message, MessageWriter, ToolResult};
use crate::claude::tools::ToolUse;
use crate::json::Scanner;
use crate::tool_display::{result_text, tool_use};

/// How much of a line or a thought is collected before it is sent unfinished.
const GATHER_LIMIT: usize = 1 << 20;

/// How many calls are remembered until their results arrive.
const TOOL_LIMIT: usize = 4096;

/// A renderer for the board. A copy continues from the same place.
#[derive(Clone, Debug, Default)]
pub struct Board {
    /// The unfinished line or thought of each agent.
    begun: BTreeMap<String, PartialText>,
    /// The names of the calls without a result.
    tools: BTreeMap<String, String>,
    /// How the last turn failed. It is reported once it is known whether the session continues.
    failure: Option<Failure>,
    /// There was a turn, and none is running.
    rests: bool,
}

#[derive(Clone, Debug, Default)]
struct PartialText {
    line: String,
    thought: String,
}

#[derive(Clone, Debug)]
enum Failure {
    Interrupted,
    Error(String),
}

impl Board {
    pub fn event(&mut self, event: &Event<'_>, say: &mut dyn FnMut(Json<'static>)) {
        let mut writer = MessageWriter::new(event, say);
        let agent = event.agent_id.decode();
        self.interrupted(&agent, &event.kind, &mut writer);
        match &event.kind {
            EventKind::TextChunk(chunk) => {
                let begun = self.begun.entry(agent.to_string()).or_default();
                begun.line.push_str(&chunk.content.decode());
                begun.lines(&mut writer);
                if chunk.is_complete {
                    begun.end(&mut writer);
                }
                self.forget(&agent);
            }
            EventKind::ThinkingChunk(chunk) => {
                let begun = self.begun.entry(agent.to_string()).or_default();
                begun.thought.push_str(&chunk.content.decode());
                if chunk.is_complete || begun.thought.len() > GATHER_LIMIT {
                    begun.end(&mut writer);
                }
                self.forget(&agent);
            }
            EventKind::PlanUpdated(plan) => {
                writer.write("plan", Message { message: &steps(plan) });
            }
            EventKind::ToolStarted(tool) => self.tool_started(tool, &mut writer),
            EventKind::ToolCompleted(tool) => {
                let output = match (&tool.result, &tool.error) {
                    (Some(result), _) => result_text(&mut Scanner::new(), result),
                    (None, Some(error)) => error.to_string(),
                    (None, None) => String::new(),
                };
                self.tool_ended(&tool.tool_id.decode(), tool.success, &output, &mut writer);
            }
            EventKind::ToolFailed(tool) => {
                self.tool_ended(&tool.tool_id.decode(), false, &tool.error.decode(), &mut writer);
            }
            EventKind::FileChanged(change) => changed(change, &mut writer),
            EventKind::Error(failed) => {
                writer.lines(&format!("Error: {}", failed.message.decode()));
            }
            EventKind::TurnStarted(_) => {
                self.rests = false;
                self.report_failed_turn(&mut writer);
            }
            EventKind::TurnCompleted(_) => {
                self.rests = true;
                self.failure = None;
            }
            EventKind::TurnFailed(turn) => self.turn_failed(turn),
            EventKind::SessionEnded(ended) => self.session_ended(ended, &mut writer),
            EventKind::RequestRaised(request) => show_request(request, &mut writer),
            EventKind::AgentSpawned(spawned) => {
                writer.lines(&format!("Subagent: {}", task(spawned)));
            }
            EventKind::StatusChanged(change) => {
                if let (Status::Warning | Status::Notice | Status::Retrying, Some(message)) =
                    (change.status, &change.message)
                {
                    writer.lines(&message.decode());
                }
            }
            _ => {}
        }
    }

    /// Whether there was a turn and none is running: unless the session continues, nothing more comes.
    pub fn rests(&self) -> bool {
        self.rests
    }

    /// The approximate size of a copy in bytes.
    pub fn weight(&self) -> usize {
        let begun = self.begun.iter().map(|(agent, begun)| {
            agent.len() + begun.line.len() + begun.thought.len() + size_of::<PartialText>()
        });
        let tools = self.tools.iter().map(|(id, name)| id.len() + name.len() + 64);
        begun.chain(tools).sum()
    }

    /// An agent's unfinished text is sent before anything else of that agent, unless this event continues
    /// it.
    fn interrupted(&mut self, agent: &str, kind: &EventKind<'_>, writer: &mut MessageWriter<'_>) {
        if let EventKind::SessionEnded(_) = kind {
            for mut begun in std::mem::take(&mut self.begun).into_values() {
                begun.end(writer);
            }
            return;
        }
        let Some(begun) = self.begun.get_mut(agent) else { return };
        let report_failed_turn = match kind {
            EventKind::TextChunk(_) => begun.thought.is_empty(),
            EventKind::ThinkingChunk(_) => begun.line.is_empty(),
            EventKind::UsageReported(_) | EventKind::Other(_) | EventKind::StatusChanged(_) => true,
            _ => false,
        };
        if !report_failed_turn {
            begun.end(writer);
            self.begun.remove(agent);
        }
    }

    /// Removes an agent without unfinished text.
    fn forget(&mut self, agent: &str) {
        if self.begun.get(agent).is_some_and(PartialText::is_empty) {
            self.begun.remove(agent);
        }
    }

    fn tool_started(&mut self, tool: &ToolStarted<'_>, writer: &mut MessageWriter<'_>) {
        let ToolUse { name, input, .. } = tool_use(tool);
        writer.write("action", Action { tool: &name, args: &input });
        if self.tools.len() < TOOL_LIMIT {
            self.tools.insert(tool.tool_id.to_string(), name);
        }
    }

    fn tool_ended(
        &mut self,
        id: &str,
        success: bool,
        output: &str,
        writer: &mut MessageWriter<'_>,
    ) {
        let tool = self.tools.remove(id).unwrap_or_default();
        writer.write("toolResult", ToolResult { tool: &tool, success, output });
    }

    fn turn_failed(&mut self, turn: &TurnFailed<'_>) {
        self.rests = true;
        self.failure = Some(match turn.reason {
            TurnFailure::Interrupted => Failure::Interrupted,
            TurnFailure::Error
            | TurnFailure::MaxTurns
            | TurnFailure::Budget
            | TurnFailure::Refused
            | TurnFailure::Died => Failure::Error(turn.error.to_string()),
        });
    }

    /// The failed turn was not the last.
    fn report_failed_turn(&mut self, writer: &mut MessageWriter<'_>) {
        match self.failure.take() {
            Some(Failure::Interrupted) => writer.log("Turn interrupted"),
            Some(Failure::Error(error)) => writer.lines(&format!("Turn failed: {error}")),
            None => {}
        }
    }

    fn session_ended(&mut self, ended: &SessionEnded<'_>, writer: &mut MessageWriter<'_>) {
        self.rests = true;
        self.tools.clear();
        let own = ended.error.as_ref().map(Text::to_string);
        let error = match (ended.reason, self.failure.take()) {
            (SessionEndReason::Completed, None) => return,
            (SessionEndReason::Completed, Some(Failure::Interrupted))
            | (SessionEndReason::Cancelled, _) => return writer.write("cancelled", Empty {}),
            (SessionEndReason::Completed, Some(Failure::Error(error))) => error,
            (SessionEndReason::Failed | SessionEndReason::Timeout, failure) => {
                own.unwrap_or_else(|| match (failure, ended.reason) {
                    (Some(Failure::Error(error)), _) => error,
                    (_, SessionEndReason::Timeout) => "it took too long".to_owned(),
                    (_, _) => "the agent failed".to_owned(),
                })
            }
        };
        writer.write("error", Message { message: &format!("Session failed: {error}") });
    }
}

impl PartialText {
    fn is_empty(&self) -> bool {
        self.line.is_empty() && self.thought.is_empty()
    }

    /// Sends the complete lines.
    fn lines(&mut self, writer: &mut MessageWriter<'_>) {
        let Some(end) = self.line.rfind('\n') else {
            if self.line.len() > GATHER_LIMIT {
                self.end(writer);
            }
            return;
        };
        let rest = self.line.split_off(end + 1);
        let mut whole = std::mem::replace(&mut self.line, rest);
        whole.pop();
        writer.lines(&whole);
    }

    /// Sends all that is collected.
    fn end(&mut self, writer: &mut MessageWriter<'_>) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            writer.log(&line);
        }
        let thought = std::mem::take(&mut self.thought);
        if !thought.trim().is_empty() {
            writer.write("plan", Message { message: thought.trim() });
        }
    }
}

fn steps(plan: &PlanUpdated<'_>) -> String {
    let explanation = plan.explanation.iter().map(|text| text.to_string());
    let entries = plan.entries.iter().map(|entry| {
        let mark = match entry.status {
            PlanStatus::Pending => ' ',
            PlanStatus::InProgress => '>',
            PlanStatus::Completed => 'x',
            PlanStatus::Cancelled => '-',
        };
        format!("[{mark}] {}", entry.content.decode())
    });
    explanation.chain(entries).collect::<Vec<_>>().join("\n")
}

fn changed(change: &FileChanged<'_>, writer: &mut MessageWriter<'_>) {
    let diff = change.diff.as_ref().map(Text::decode);
    let payload = Diff { file: &change.file_path, diff: diff.as_deref().unwrap_or_default() };
    writer.write("diff", payload);
}

/// Nobody answers on the board, but its readers should see that an answer is needed.
fn show_request(request: &RequestRaised<'_>, writer: &mut MessageWriter<'_>) {
    let what = request.tool_name.as_ref().or(request.title.as_ref()).map(Text::decode);
    let what = what.as_deref().unwrap_or("something");
    let id = request.request_id.decode();
    match request.kind {
        RequestKind::Permission => writer.lines(&format!("Waiting for permission: {what} ({id})")),
        RequestKind::Question if request.questions.is_empty() => {
            writer.lines(&format!("Waiting for an answer: {what} ({id})"));
        }
        RequestKind::Question => {
            for question in &request.questions {
                let question = question.question.decode();
                writer.lines(&format!("Waiting for an answer: {question} ({id})"));
            }
        }
        RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => {}
    }
}

fn task(spawned: &AgentSpawned<'_>) -> String {
    let label = spawned.description.as_ref().or(spawned.name.as_ref()).or(spawned.prompt.as_ref());
    label.map(|label| label.to_string()).unwrap_or_default()
}
