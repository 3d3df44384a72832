//! Renders the events of one session as the messages of this wire.

use std::collections::BTreeMap;

use agentwire_protocol::event::{
    AgentFinished, AgentInfo, AgentOutcome, AgentSpawned, RequestKind, RequestRaised,
    SessionEndReason, SessionEnded, Status, ToolKind, ToolStarted, TurnCompleted, TurnFailed,
    TurnFailure,
};
use agentwire_protocol::{ApprovalMode, Event, EventKind, Json, MAIN_AGENT, Price, Text};

use super::agents::Agents;
use super::messages::{
    AgentState, Completed, Mode as ModePayload, Output, Spawned, Status as StatusPayload,
    ToolResult, ToolUseMessage, TurnEnded, of_agent,
};
use super::modes::{Mode, Modes};
use super::requests::{AnswerProgress, OpenRequests, UnshownRequest};
use super::usage::SessionUsage;
use super::wire::{Code, Failure, error, frame};
use crate::claude::tools::{ToolCall, ToolUse, overlaid};
use crate::json::Scanner;
use crate::tool_display::{result_text, tool_use};

/// The longest call input that is stored until the result arrives.
const KEPT: usize = 256 << 10;

/// Renders a session's events for a page.
#[derive(Debug, Default)]
pub struct Renderer {
    session: String,
    /// What the main agent is for.
    task: Option<String>,
    agents: Agents,
    /// Calls without a result.
    tools: BTreeMap<String, OpenCall>,
    pub(super) open_requests: OpenRequests,
    /// The `agent.completed` message of finished subagents whose call has no result yet.
    done: BTreeMap<String, Json<'static>>,
    model: Option<String>,
    pub(super) modes: Modes,
    spent: SessionUsage,
    /// A turn is running or about to run.
    is_running: bool,
    /// The error of this turn that was already reported.
    told: Option<String>,
    /// The agent's death was already reported with its turn.
    is_dead: bool,
    scanner: Scanner,
}

#[derive(Debug)]
struct OpenCall {
    agent: String,
    name: String,
    kind: ToolKind,
    server: Option<String>,
    title: Option<String>,
    /// `None` if it is too long to store.
    input: Option<Json<'static>>,
}

type Say<'s> = &'s mut dyn FnMut(Json<'static>);

impl Renderer {
    /// `task`: what the main agent is for.
    pub fn new(session: &str, task: Option<String>, prices: BTreeMap<String, Price>) -> Self {
        Self {
            session: session.to_owned(),
            task,
            spent: SessionUsage::new(prices),
            is_running: true,
            ..Self::default()
        }
    }

    /// Announces the main agent, once.
    pub fn greet(&mut self, say: Say<'_>) {
        if !self.agents.has(MAIN_AGENT) {
            let task = self.task.take();
            self.spawn(MAIN_AGENT, None, task.as_deref(), say);
        }
    }

    /// Renders an event. Requests to the user are shown later. Returns a request that no page can answer.
    pub fn event(&mut self, event: &Event<'_>, say: Say<'_>) -> Option<String> {
        self.greet(say);
        let agent = event.agent_id.decode();
        let agent = &*agent;
        match &event.kind {
            EventKind::SessionStarted(started) => self.update_info(started.info.as_ref()),
            EventKind::StatusChanged(change) => {
                self.update_info(change.info.as_ref());
                let value = change.message.as_ref().map(Text::decode);
                match (change.status, value) {
                    (Status::Mode, Some(mode)) if agent == MAIN_AGENT => {
                        let ours = change.details.as_ref().and_then(approval);
                        let heard = self.modes.heard(&mode, ours);
                        heard.into_iter().for_each(|mode| self.mode(mode, say));
                    }
                    (Status::Model, Some(model)) => self.model = Some(model.into_owned()),
                    _ => {}
                }
            }
            EventKind::TurnStarted(_) => {
                self.prompted();
                self.status(MAIN_AGENT, AgentState::Working, say);
            }
            EventKind::TurnCompleted(turn) => self.turn_completed(turn, say),
            EventKind::TurnFailed(turn) => self.turn_failed(turn, say),
            EventKind::TextChunk(chunk) => self.output(agent, &chunk.content, "text", say),
            EventKind::ThinkingChunk(chunk) => self.output(agent, &chunk.content, "thinking", say),
            EventKind::ToolStarted(tool) => self.tool_started(agent, tool, say),
            EventKind::ToolCompleted(tool) => {
                let text = match (&tool.result, &tool.error) {
                    (Some(result), _) => result_text(&mut self.scanner, result),
                    (None, Some(error)) => error.to_string(),
                    (None, None) => String::new(),
                };
                self.tool_ended(agent, &tool.tool_id.decode(), &text, !tool.success, say);
            }
            EventKind::ToolFailed(tool) => {
                self.tool_ended(agent, &tool.tool_id.decode(), &tool.error.decode(), true, say);
            }
            EventKind::AgentSpawned(spawned) => self.spawned(agent, event, spawned, say),
            EventKind::AgentFinished(finished) => self.finished(agent, finished, say),
            EventKind::RequestRaised(request) => return self.raised(agent, request),
            EventKind::RequestSettled(settled) => {
                if self.open_requests.settled(&settled.request_id.decode()) {
                    self.restate(agent, say);
                }
            }
            EventKind::UsageReported(report) => {
                if agent != MAIN_AGENT {
                    self.spent.report(agent, report, self.model.as_deref());
                }
            }
            EventKind::Error(failed) if failed.will_retry != Some(true) => {
                self.failed(Some(agent), &failed.message.decode(), say);
            }
            EventKind::SessionEnded(ended) => self.session_ended(ended, say),
            EventKind::Error(_)
            | EventKind::ToolProgress(_)
            | EventKind::FileChanged(_)
            | EventKind::PlanUpdated(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => {}
        }
        None
    }

    /// Shows the requests that are still open. A request that a rule has settled since does not concern the
    /// user.
    pub fn pause(&mut self, say: Say<'_>) {
        self.ask(false, say);
    }

    /// The same for a recording: nobody will answer, so all questions are shown at once.
    pub fn pause_recording(&mut self, say: Say<'_>) {
        self.ask(true, say);
    }

    fn ask(&mut self, is_recorded: bool, say: Say<'_>) {
        for raised in self.open_requests.take_raised() {
            self.open_requests.wait(&raised);
            self.restate(&raised.agent, say);
            self.open_requests.ask(&self.session, raised, is_recorded, say);
        }
    }

    fn raised(&mut self, agent: &str, request: &RequestRaised<'_>) -> Option<String> {
        let tool = match request.kind {
            RequestKind::Permission => Some(self.asked(request)),
            RequestKind::Question if !request.questions.is_empty() => None,
            RequestKind::Question | RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => {
                return Some(request.request_id.to_string());
            }
        };
        let request = request.clone().into_owned();
        self.open_requests.raise(UnshownRequest { agent: agent.to_owned(), request, tool });
        None
    }

    /// Answers the question that the agent waits for, if there is one.
    pub(super) fn answer(&mut self, agent: Option<&str>, text: &str) -> Option<AnswerProgress> {
        self.open_requests.answer(&self.session, agent, text)
    }

    pub(super) fn mode(&self, mode: Mode, say: Say<'_>) {
        let payload = ModePayload { session_id: &self.session, permission_mode: mode.as_str() };
        say(frame("permission_mode.changed", payload));
    }

    fn update_info(&mut self, info: Option<&AgentInfo<'_>>) {
        let Some(info) = info else { return };
        if let Some(model) = &info.model {
            self.model = Some(model.to_string());
        }
        info.mode.iter().for_each(|mode| self.modes.update_info(&mode.decode()));
    }

    fn spawn(&mut self, id: &str, parent: Option<&str>, task: Option<&str>, say: Say<'_>) {
        let label = self.agents.add(id, parent);
        let fields = Spawned { parent_id: parent, label: &label, task_description: task };
        say(of_agent("agent.spawned", &self.session, id, fields));
    }

    fn spawned(&mut self, id: &str, event: &Event<'_>, spawned: &AgentSpawned<'_>, say: Say<'_>) {
        if self.agents.has(id) {
            return;
        }
        let parent = event.parent_agent_id.as_ref().map(Text::decode);
        let task = spawned.prompt.as_ref().or(spawned.description.as_ref()).map(Text::decode);
        let parent = parent.as_deref().unwrap_or(MAIN_AGENT);
        self.spawn(id, Some(parent), task.as_deref(), say);
        self.status(id, AgentState::Working, say);
    }

    /// A subagent has finished. The result of the call that spawned it comes first.
    fn finished(&mut self, id: &str, finished: &AgentFinished<'_>, say: Say<'_>) {
        let usage = self.spent.of_agent(id, finished.usage, self.model.as_deref());
        let fields = Completed { result: finished.result.as_ref(), usage };
        let completed = of_agent("agent.completed", &self.session, id, fields);
        let state = match finished.outcome {
            AgentOutcome::Completed | AgentOutcome::Cancelled => AgentState::Completed,
            AgentOutcome::Failed => AgentState::Error,
        };
        self.status(id, state, say);
        match self.tools.contains_key(id) {
            true => drop(self.done.insert(id.to_owned(), completed)),
            false => say(completed),
        }
    }

    fn output(
        &mut self,
        agent: &str,
        content: &Text<'_>,
        content_type: &'static str,
        say: Say<'_>,
    ) {
        if content.is_empty() {
            return;
        }
        say(of_agent("agent.output", &self.session, agent, Output { content, content_type }));
    }

    fn tool_started(&mut self, agent: &str, tool: &ToolStarted<'_>, say: Say<'_>) {
        let ToolUse { name, input, .. } = tool_use(tool);
        let id = tool.tool_id.decode();
        let fields = ToolUseMessage {
            tool_name: &name,
            tool_input: &input,
            tool_use_id: &id,
            model: self.model.as_deref(),
        };
        say(of_agent("agent.tool_use", &self.session, agent, fields));
        let called = OpenCall {
            agent: agent.to_owned(),
            name: tool.tool_name.to_string(),
            kind: tool.kind,
            server: tool.server.as_ref().map(Text::to_string),
            title: tool.title.as_ref().map(Text::to_string),
            input: tool.arguments.clone().map(Json::into_owned).filter(|it| it.get().len() < KEPT),
        };
        self.tools.insert(id.into_owned(), called);
        self.restate(agent, say);
    }

    /// What a permission asks for: the call as it was shown, plus everything that the request adds.
    fn asked(&self, request: &RequestRaised<'_>) -> ToolUse {
        let id = request.tool_use_id.as_ref().map(Text::decode);
        let known = id.and_then(|id| self.tools.get(&*id));
        let own = request.tool_name.as_ref().map(Text::to_string);
        let own = own.or(known.map(|known| known.name.clone()));
        let title = request.title.as_ref().map(Text::to_string);
        let title = title.or(known.and_then(|known| known.title.clone()));
        let input = known.and_then(|known| known.input.as_ref());
        let input = overlaid(input, request.input.as_ref());
        ToolCall {
            name: own.as_deref().or(title.as_deref()).unwrap_or("unknown"),
            kind: known.map(|known| known.kind).unwrap_or_default(),
            server: known.and_then(|known| known.server.as_deref()),
            input: input.as_ref(),
            title: title.as_deref(),
        }
        .as_claude()
    }

    fn tool_ended(&mut self, agent: &str, id: &str, result: &str, is_error: bool, say: Say<'_>) {
        let fields = ToolResult { tool_use_id: id, result, is_error };
        say(of_agent("agent.tool_result", &self.session, agent, fields));
        self.tools.remove(id);
        if let Some(completed) = self.done.remove(id) {
            say(completed);
        }
        self.restate(agent, say);
    }

    /// Reports what a working agent waits for.
    fn restate(&mut self, agent: &str, say: Say<'_>) {
        let state = if self.open_requests.waits(agent) {
            AgentState::WaitingUser
        } else if self.tools.values().any(|called| called.agent == agent) {
            AgentState::WaitingTool
        } else {
            AgentState::Working
        };
        if !self.agents.has_ended(agent) {
            self.status(agent, state, say);
        }
    }

    fn status(&mut self, id: &str, status: AgentState, say: Say<'_>) {
        if self.agents.set(id, status) {
            say(of_agent("agent.status", &self.session, id, StatusPayload { status }));
        }
    }

    fn failed(&mut self, agent: Option<&str>, message: &str, say: Say<'_>) {
        if self.is_dead || self.told.as_deref() == Some(message) {
            return;
        }
        self.told = Some(message.to_owned());
        say(error(Some(&self.session), agent, &Failure::new(Code::HandlerError, message)));
    }

    fn turn_completed(&mut self, turn: &TurnCompleted<'_>, say: Say<'_>) {
        self.spent.turn(&turn.usage, turn.cost_usd, &turn.models, self.model.as_deref());
        self.turn_ended(AgentState::Completed, say);
    }

    fn turn_failed(&mut self, turn: &TurnFailed<'_>, say: Say<'_>) {
        let usage = turn.usage.unwrap_or_default();
        self.spent.turn(&usage, turn.cost_usd, &turn.models, self.model.as_deref());
        // A client that interrupts does not want an error.
        if turn.reason == TurnFailure::Interrupted {
            return self.turn_ended(AgentState::Completed, say);
        }
        self.failed(Some(MAIN_AGENT), &turn.error.decode(), say);
        self.is_dead = turn.reason == TurnFailure::Died;
        self.turn_ended(AgentState::Error, say);
    }

    /// A turn is about to run.
    pub(super) fn prompted(&mut self) {
        if !std::mem::replace(&mut self.is_running, true) {
            self.told = None;
            self.is_dead = false;
        }
    }

    /// The session has ended. A turn that never started ends with it.
    fn session_ended(&mut self, ended: &SessionEnded<'_>, say: Say<'_>) {
        let is_failed = match ended.reason {
            SessionEndReason::Failed | SessionEndReason::Timeout => true,
            SessionEndReason::Completed | SessionEndReason::Cancelled => false,
        };
        if is_failed {
            let message = ended.error.as_ref().map(Text::decode);
            self.failed(None, message.as_deref().unwrap_or("the agent failed"), say);
        }
        if self.is_running {
            self.turn_ended(if is_failed { AgentState::Error } else { AgentState::Completed }, say);
        }
    }

    fn turn_ended(&mut self, state: AgentState, say: Say<'_>) {
        self.is_running = false;
        self.status(MAIN_AGENT, state, say);
        let total_usage = self.spent.total();
        say(frame("session.completed", TurnEnded { session_id: &self.session, total_usage }));
    }
}

/// The gateway's mode behind a change.
fn approval(details: &Json<'_>) -> Option<ApprovalMode> {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Details {
        approval_mode: Option<ApprovalMode>,
    }
    details.read::<Details>().ok()?.approval_mode
}
