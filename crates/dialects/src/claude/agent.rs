//! Drives Claude: its lines become events, our commands become its lines.

mod board;
mod calls;
mod commands;
mod files;
mod messages;
mod requests;
mod screening;
mod settle;
mod subagents;
mod system;
mod tasks;
mod text;
mod tools;
mod turns;

use std::borrow::Cow;
use std::fmt::Display;

use agentwire_protocol::event::{
    ErrorEvent, SessionEndReason, Status, StatusChanged, ToolProgress, TurnFailure,
};
use agentwire_protocol::{Call, Command, GatewayError, Json, JsonObject, SessionConfig, Text};

pub(super) use board::is_board;

use self::board::Board;
use self::calls::Calls;
use self::requests::PendingRequest;
use self::subagents::SubAgents;
use self::tasks::Tasks;
use self::text::Streams;
use self::tools::ToolState;
use self::turns::{Prompts, Totals};
use super::wire::{Failure, Progress};
use super::{Claude, modes};
use crate::agent::{AgentTranslator, Exit, Setup};
use crate::json::Value;
use crate::ledger::{Ledger, completed_turn};
use crate::recent_ids::RecentIds;
use crate::tape::Out;

pub(super) const NAME: &str = "claude";

/// The state of one session.
pub(super) struct Translator {
    config: SessionConfig,
    ledger: Ledger<ToolState, PendingRequest>,
    streams: Streams,
    agents: SubAgents,
    tasks: Tasks,
    prompts: Prompts,
    totals: Totals,
    calls: Calls,
    board: Board,
    /// Calls that the gateway's own hook has not answered yet: the request id and the call id.
    judged: Vec<(String, Option<String>)>,
    /// The mode that a client set and the gateway applies, while Claude runs in the mode that asks.
    kept_mode: Option<String>,
    /// The mode in which Claude itself runs.
    running_mode: String,
    claude: Claude,
    /// Claude's own session id, as requested or as last reported.
    session_id: Option<String>,
    /// Tool calls that were reported, open or not.
    reported_tools: RecentIds,
    /// The turn was interrupted, according to a message to the model.
    interrupted: bool,
    /// The error that the last message of this turn reported.
    error_code: Option<String>,
    /// How a recording ends if it ends now.
    ending: Option<(SessionEndReason, Option<String>)>,
    /// We told the process to end.
    stopped: bool,
}

impl Translator {
    fn name(&self) -> &'static str {
        self.claude.agent.as_str()
    }

    fn unsupported(&self, what: impl Display) -> GatewayError {
        GatewayError::unsupported(self.name(), what)
    }

    pub(super) fn new(claude: Claude, setup: &Setup) -> Self {
        Self {
            config: setup.config.clone(),
            ledger: Ledger::keeping(PendingRequest::outlives_turn),
            streams: Streams::default(),
            agents: SubAgents::default(),
            tasks: Tasks::default(),
            prompts: Prompts::default(),
            totals: Totals::of_process(setup.resume.is_some()),
            calls: Calls::default(),
            board: Board::default(),
            judged: Vec::new(),
            kept_mode: modes::shown(
                setup.config.permission_mode.as_deref(),
                setup.config.approval_mode,
            )
            .map(str::to_owned),
            running_mode: {
                let mode = setup.config.permission_mode.as_deref().unwrap_or(modes::ASKING);
                if modes::is_applied_by_gateway(mode) { modes::ASKING } else { mode }.to_owned()
            },
            claude,
            session_id: match (&setup.resume, setup.fork) {
                (Some(id), false) => Some(id.clone()),
                (Some(_), true) | (None, _) => setup.native_session_id.clone(),
            },
            reported_tools: RecentIds::default(),
            interrupted: false,
            error_code: None,
            ending: None,
            stopped: false,
        }
    }
}

impl AgentTranslator for Translator {
    fn on_start(&mut self, out: &mut Out<'_>) {
        self.initialize(out);
    }

    fn on_line(&mut self, message: Value<'_>, out: &mut Out<'_>) {
        let Some(name) = message.get("type").and_then(Value::string) else { return };
        match &*name {
            "stream_event" => message.to().into_iter().for_each(|line| self.stream(line, out)),
            "assistant" => message.to().into_iter().for_each(|line| self.assistant(line, out)),
            "user" => message.to().into_iter().for_each(|line| self.user(line, out)),
            "system" => self.system(message, out),
            "result" => message.to().into_iter().for_each(|outcome| self.outcome(outcome, out)),
            "control_request" => {
                message.to().into_iter().for_each(|line| self.control_request(line, out));
            }
            "callback.request" => {
                message.to().into_iter().for_each(|line| self.callback_request(line, out));
            }
            "control_cancel_request" => {
                if let Some(id) = message.read::<Cow<'_, str>>("request_id") {
                    self.judged.retain(|(open, _)| *open != id);
                    self.withdraw(&id, out);
                }
            }
            "control_response" => {
                message.to().into_iter().for_each(|line| self.control_response(line, out));
            }
            "command_lifecycle" => {
                message.to().into_iter().for_each(|line| self.lifecycle(line, out));
            }
            "tool_progress" => message.to().into_iter().for_each(|line| self.progress(&line, out)),
            board if board::TYPES.contains(&board) && is_board(message) => {
                message.to().into_iter().for_each(|line| self.board(board, line, out));
            }
            "error" => message.read("error").into_iter().for_each(|error| fail(error, out)),
            _ => Self::notice(&name, message, out),
        }
    }

    fn on_command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        self.command(call, command, out)
    }

    fn on_exit(&mut self, exit: Exit, out: &mut Out<'_>) {
        let stopped = std::mem::take(&mut self.stopped)
            || matches!(exit, Exit::Signal(2 | 15) | Exit::Code(130 | 143));
        let (reason, ending, error) = if stopped {
            (TurnFailure::Interrupted, SessionEndReason::Cancelled, "the agent was stopped")
        } else {
            let error = "the output ended before the result";
            (TurnFailure::Died, SessionEndReason::Failed, error)
        };
        let said = self.ending.as_ref().and_then(|(_, error)| error.clone());
        self.calls.fail_all(said.as_deref(), out);
        self.judged.clear();
        self.close_streams(out);
        self.cut_agents(out);
        if out.is_recording() {
            self.resolve_requests(out);
        }
        if self.ledger.turn_is_open() {
            let whole = !stopped && matches!(exit, Exit::Code(0) | Exit::Unknown);
            if whole && self.board.has_turn() {
                // The board has no message for the successful end of a turn.
                self.ledger.complete_turn(out, completed_turn(Default::default()));
                self.ending = None;
            } else {
                self.ledger.fail_turn(out, reason, Text::from(error));
                self.ending = Some((ending, Some(error.to_owned())));
            }
        }
        self.ledger.close_all(out, error);
        self.fail_prompts(reason, out);
        self.board.process_ended();
        // The next process, if any, resumes.
        self.totals = Totals::of_process(true);
        if let Some((reason, error)) = self.ending.take() {
            out.end(reason, error.map(Text::from));
        }
    }
}

impl Translator {
    /// A heartbeat has its own id; its parent is the running tool call (`real-q6-long-tool-progress`).
    fn progress(&mut self, line: &Progress<'_>, out: &mut Out<'_>) {
        let parent = line.parent_tool_use_id.as_deref();
        let running = parent.filter(|id| self.ledger.tools.get(id).is_some());
        let own = line.tool_use_id.as_deref();
        let id = match (own, running) {
            (Some(own), Some(running)) if self.ledger.tools.get(own).is_none() => running,
            (Some(own), _) => own,
            (None, Some(running)) => running,
            (None, None) => return,
        };
        let agent = self.owner(id);
        let elapsed_ms = line.elapsed_time_seconds.map(|seconds| (seconds * 1000.0) as u64);
        out.emit_as(&agent, ToolProgress { elapsed_ms, ..ToolProgress::new(id, None, None) });
    }

    /// Lines that carry one fact each.
    fn notice(name: &str, message: Value<'_>, out: &mut Out<'_>) {
        let (status, field) = match name {
            "rate_limit_event" => {
                let details = message.read::<Json<'_>>("rate_limit_info");
                return out.emit(StatusChanged::new(Status::RateLimit).details(details));
            }
            "auth_status" => (Status::Account, "error"),
            // The new id is in the next `system/init`; the id on this line is a different one.
            "conversation_reset" => (Status::Session, ""),
            "prompt_suggestion" => (Status::Suggestion, "suggestion"),
            "tool_use_summary" => (Status::Notice, "summary"),
            "active_goal" => (Status::Notice, ""),
            "session_notice" => (Status::Notice, "text"),
            _ => return,
        };
        plain(status, field, message, out);
    }
}

/// A line that carries one fact: `field` has its text, the rest becomes the details.
fn plain(status: Status, field: &str, message: Value<'_>, out: &mut Out<'_>) {
    let text = message.read::<Text<'_>>(field).filter(|text| !text.is_empty());
    out.emit(StatusChanged::new(status).message(text).details(details(message, field)));
}

fn fail(error: Failure<'_>, out: &mut Out<'_>) {
    let message = error.message.unwrap_or(Text::from("an error without a message"));
    out.emit(ErrorEvent { code: error.kind, ..ErrorEvent::new(message) });
}

/// The fields of a line other than its envelope and the one already used as text, as one object; `None` if
/// there are no others.
fn details(message: Value<'_>, told: &str) -> Option<Json<'static>> {
    let mut object = JsonObject::new();
    for (key, value) in message.fields() {
        let envelope = matches!(&*key, "type" | "subtype" | "uuid" | "session_id");
        if envelope || key == told || value.is_null() {
            continue;
        }
        object.add(&key, &value.json());
    }
    object.unless_empty()
}

/// The text of a string or of content blocks.
fn plain_text(content: Value<'_>) -> Option<Text<'_>> {
    if content.is_string() {
        return content.to();
    }
    let mut texts = content.items().filter_map(|block| block.read::<Text<'_>>("text"));
    let first = texts.next()?;
    let rest: Vec<_> = texts.collect();
    if rest.is_empty() {
        return Some(first);
    }
    let joined = rest.iter().fold(first.to_string(), |joined, text| joined + "\n" + &text.decode());
    Some(Text::from(joined))
}
