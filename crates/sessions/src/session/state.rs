//! What is known of a session, derived from its events alone: state, usage, and what is open.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agentwire_dialects::describe::{AgentTools, CallFacts};
use agentwire_dialects::mcp;
use agentwire_dialects::tape::{Agent, Draft};
use agentwire_protocol::event::{
    AgentInfo, RequestKind, RequestRaised, SessionEnded, Status, StatusChanged, ToolFailure,
    ToolKind, ToolStarted, TurnCompleted, TurnOrigin, TurnStarted, UsageReported,
};
use agentwire_protocol::{EventKind, SessionState, Text, TokenUsage, TurnEnd};

use super::policy::stays_put;
use super::raised::{Asker, Raised, Tool};
use crate::clock;
use crate::store::{OpenBy, Record};

/// How many things of a sort are remembered as open; an agent that opens more is told of all the
/// same, only not closed by us.
pub(super) const OPEN_LIMIT: usize = 4096;

/// What is known of a session.
#[derive(Debug)]
pub(crate) struct Book {
    pub(crate) record: Record,
    agent_tools: &'static AgentTools,
    /// Turns that earlier processes had: each translator counts from 1.
    turns_before: u64,
    /// Prompts that were taken and have no turn yet, by their ids.
    promised: VecDeque<String>,
    /// The agent takes several prompts into one turn.
    folds_prompts: bool,
    /// It tells what becomes of each.
    tells_fates: bool,
    is_ready: bool,
    is_silent: bool,
    /// The model has given a whole answer: an agent keeps no part of one.
    pub(super) has_answer: bool,
    /// Something waits for hooks that the gateway raised.
    is_hooked: bool,
    /// What it must say that it opened.
    asked: Option<Wanted>,
    /// Whether it said something else instead.
    refusal: Refusal,
    /// Open tool calls, for the rules.
    tools: BTreeMap<String, Tool>,
    /// Open shell calls that may change the directory that the agent is in.
    shells: BTreeSet<String>,
    /// Such a call has run.
    moved: bool,
    /// Open requests.
    pub(super) requests: BTreeMap<String, Raised>,
    /// What the running turn has cost so far, as far as the agent tells.
    pub(super) running: Running,
    /// Changed since the store last had it.
    pub(super) changed: bool,
}

/// What the running turn has taken so far.
#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    /// Calls of the model by the main agent.
    pub(super) steps: u64,
    has_results: bool,
    /// What the whole session has cost so far, as the agent counts.
    pub(super) total_cost: Option<f64>,
    pub(super) usage: TokenUsage,
    /// What was reported of each message; a later report of it is all of it.
    counted: BTreeMap<String, TokenUsage>,
}

impl Running {
    fn count(&mut self, message: Option<&Text<'_>>, usage: TokenUsage) {
        // What is forgotten, and reported again, counts twice: a limit comes early rather than late.
        if self.counted.len() >= OPEN_LIMIT {
            self.counted.clear();
        }
        let before = message.and_then(|id| self.counted.insert(id.to_string(), usage));
        self.usage = self.usage.plus(&usage.since(&before.unwrap_or_default()));
    }
}

/// Whether the agent opened another conversation than it was to. From then on no id of it counts.
#[derive(Debug, Default, PartialEq, Eq)]
enum Refusal {
    #[default]
    None,
    /// It did, for that reason, which nobody has heard yet.
    Due(String),
    /// It did, and that is reported.
    Reported,
}

/// What a process must say of the conversation that it opens.
#[derive(Clone, Debug)]
pub(super) enum Wanted {
    /// That it is this one.
    Same(String),
    /// That it is another: a copy of this one.
    Copy(String),
}

impl Book {
    pub(crate) fn new(
        record: Record,
        agent_tools: &'static AgentTools,
        folds_prompts: bool,
    ) -> Self {
        Self {
            agent_tools,
            turns_before: record.summary.turns,
            promised: VecDeque::new(),
            folds_prompts,
            tells_fates: false,
            is_ready: false,
            is_silent: false,
            has_answer: record.summary.usage.output_tokens > 0,
            is_hooked: false,
            asked: None,
            refusal: Refusal::None,
            tools: BTreeMap::new(),
            shells: BTreeSet::new(),
            moved: false,
            requests: BTreeMap::new(),
            running: Running::default(),
            changed: true,
            record,
        }
    }

    /// Of a session that nobody runs: its turns are told by the numbers they have.
    pub(crate) fn closing(record: Record) -> Self {
        Self { turns_before: 0, ..Self::new(record, &AgentTools::UNKNOWN, false) }
    }

    /// A prompt is given to the agent: work is to come.
    pub(super) fn promise(&mut self, id: &str) {
        self.promised.push_back(id.to_owned());
        self.refresh();
    }

    /// It is to come no longer: its turn has begun, or there will be none.
    pub(super) fn keep_promise(&mut self, id: &str) {
        self.promised.retain(|promised| promised != id);
        self.refresh();
    }

    /// Prompts that have no turn yet.
    pub(super) fn waiting(&self) -> impl Iterator<Item = &String> {
        self.promised.iter()
    }

    /// The process that starts must say that it opened that.
    pub(super) fn ask_for(&mut self, wanted: Option<Wanted>) {
        self.asked = wanted;
    }

    /// Why what was resumed is not what was asked for, if it is not; once.
    pub(super) fn take_refusal(&mut self) -> Option<String> {
        match std::mem::take(&mut self.refusal) {
            Refusal::Due(message) => {
                self.refusal = Refusal::Reported;
                Some(message)
            }
            other => {
                self.refusal = other;
                None
            }
        }
    }

    /// The agent says which of its own sessions it has.
    fn told(&mut self, id: String) {
        if self.refusal != Refusal::None {
            return;
        }
        match self.asked.take() {
            Some(Wanted::Same(asked)) if asked != id => {
                self.refusal = Refusal::Due(format!(
                    "the agent opened its session {id} in place of {asked}, which was to be resumed"
                ));
            }
            Some(Wanted::Copy(asked)) if asked == id => {
                self.refusal = Refusal::Due(format!(
                    "the agent went on with its session {id} itself, which was to be copied"
                ));
            }
            Some(_) | None => {
                let known = self.record.summary.native_session_id.replace(id);
                if known != self.record.summary.native_session_id {
                    self.record.native_since = Some(clock::now());
                }
            }
        }
    }

    /// The agent takes prompts, whether it says so or not.
    pub(super) fn ready(&mut self) {
        self.is_ready = true;
        self.refresh();
    }

    /// Whether a turn runs or is to come.
    pub(super) fn is_busy(&self) -> bool {
        !self.promised.is_empty() || self.record.open.turn.is_some()
    }

    /// Whether silence would mean something: a turn runs and waits for nobody.
    pub(super) fn may_stall(&self) -> bool {
        let waits = |request: &Raised| match request.kind {
            RequestKind::Permission | RequestKind::Question | RequestKind::Hook => true,
            RequestKind::Mcp => request.input.as_ref().and_then(mcp::awaited).is_some(),
            RequestKind::Other => false,
        };
        self.record.open.turn.is_some()
            && !self.is_silent
            && !self.is_hooked
            && !self.requests.values().any(waits)
    }

    /// Whether something waits for hooks that the gateway raised.
    pub(super) fn hooked(&mut self, is_hooked: bool) {
        if self.is_hooked != is_hooked {
            self.is_hooked = is_hooked;
            self.refresh();
        }
    }

    /// The agent has said nothing for long, or speaks again.
    pub(super) fn silent(&mut self, is_silent: bool) {
        if self.is_silent != is_silent {
            self.is_silent = is_silent;
            self.refresh();
        }
    }

    /// The process is gone; the next starts from nothing.
    pub(super) fn process_ended(&mut self) {
        self.shells.clear();
        self.moved = false;
        self.is_ready = false;
        self.is_silent = false;
        self.refresh();
    }

    /// Takes note of an event that raises no request, and puts the session's own count on its turn.
    pub(super) fn note(&mut self, draft: &mut Draft<'_>) {
        let main = draft.agent.parent.is_none();
        match &mut draft.kind {
            // Most events are these; they change nothing that is kept.
            EventKind::TextChunk(_) | EventKind::ThinkingChunk(_) => return self.step(main),
            EventKind::ToolProgress(_)
            | EventKind::FileChanged(_)
            | EventKind::Error(_)
            | EventKind::PlanUpdated(_)
            | EventKind::Other(_)
            | EventKind::SessionStarted(_)
            | EventKind::RequestRaised(_)
            | EventKind::Unknown(_) => return,
            EventKind::UsageReported(report) => return self.usage_reported(report),
            EventKind::SessionEnded(ended) => return self.session_ended(ended),
            EventKind::TurnStarted(turn) => self.turn_started(turn),
            EventKind::TurnCompleted(turn) => self.turn_completed(turn),
            EventKind::TurnFailed(turn) => {
                turn.turn_number += self.turns_before;
                self.turn_over(turn.reason.into(), turn.usage, turn.cost_usd);
            }
            EventKind::ToolStarted(tool) => self.tool_started(tool, &draft.agent),
            EventKind::ToolCompleted(tool) => self.tool_over(&tool.tool_id, main, true),
            EventKind::ToolFailed(tool) => {
                let has_run = match tool.reason {
                    ToolFailure::Interrupted => true,
                    ToolFailure::Denied | ToolFailure::Invalid => false,
                };
                self.tool_over(&tool.tool_id, main, has_run);
            }
            EventKind::AgentSpawned(_) => {
                let id = draft.agent.id.to_string();
                open(&mut self.record.open.agents, id, &draft.agent, None);
            }
            EventKind::AgentFinished(_) => {
                self.record.open.agents.remove(&*draft.agent.id.decode());
            }
            EventKind::RequestSettled(request) => {
                let id = request.request_id.decode();
                self.requests.remove(&*id);
                self.record.open.requests.remove(&*id);
            }
            EventKind::StatusChanged(status) => self.status(status),
        }
        self.refresh();
    }

    fn turn_started(&mut self, turn: &mut TurnStarted<'_>) {
        turn.turn_number += self.turns_before;
        self.record.open.turn = Some(turn.turn_number);
        self.record.summary.turns = self.record.summary.turns.max(turn.turn_number);
        self.is_ready = true;
        if turn.message_ids.is_empty() && turn.origin == TurnOrigin::Prompt {
            self.promised.pop_front();
        }
        turn.message_ids.iter().for_each(|id| self.keep_promise(&id.decode()));
        if let Some(prompt) = &turn.prompt {
            let prompt = prompt.to_string();
            self.entitle(&prompt);
        }
        self.running = Running { steps: 1, ..Running::default() };
    }

    fn turn_completed(&mut self, turn: &mut TurnCompleted<'_>) {
        turn.turn_number += self.turns_before;
        self.has_answer = true;
        self.turn_over(TurnEnd::Completed, Some(turn.usage), turn.cost_usd);
        if let Some(Wanted::Same(asked) | Wanted::Copy(asked)) = self.asked.take() {
            self.refusal = Refusal::Due(format!("the agent never said that it resumed {asked}"));
        }
    }

    fn tool_started(&mut self, tool: &ToolStarted<'_>, agent: &Agent<'_>) {
        self.has_answer = true;
        self.step(agent.parent.is_none());
        let id = tool.tool_id.to_string();
        let may_move = self.agent_tools.shell_moves && tool.kind == ToolKind::Execute;
        if may_move && !self.stays_put(tool) {
            self.moved |= self.shells.len() >= OPEN_LIMIT;
            if !self.moved {
                self.shells.insert(id.clone());
            }
        }
        if self.tools.len() < OPEN_LIMIT {
            let known = Tool {
                name: tool.tool_name.to_string(),
                is_title: tool.title.as_ref() == Some(&tool.tool_name),
                kind: tool.kind,
                server: tool.server.as_ref().map(Text::to_string),
            };
            self.tools.insert(id.clone(), known);
        }
        open(&mut self.record.open.tools, id, agent, None);
    }

    fn usage_reported(&mut self, report: &UsageReported<'_>) {
        if let Some(cost) = report.total_cost_usd {
            self.running.total_cost = Some(cost);
        }
        if let Some(usage) = report.usage {
            self.running.count(report.message_id.as_ref(), usage);
        }
    }

    fn session_ended(&mut self, ended: &SessionEnded<'_>) {
        self.record.summary.reason = Some(ended.reason);
        self.record.summary.error = ended.error.as_ref().map(Text::to_string);
        self.record.summary.state = SessionState::Ended;
        self.record.open = Default::default();
        self.requests.clear();
        self.changed = true;
    }

    /// A request waits from now on; the event of that number raises it.
    pub(super) fn open_request(&mut self, raised: Raised, seq: u64) {
        open(&mut self.record.open.requests, raised.id.clone(), &raised.agent, Some(seq));
        self.requests.insert(raised.id.clone(), raised);
        self.refresh();
    }

    /// The kind of an open request.
    pub(super) fn asked_as(&self, id: &Text<'_>) -> Option<RequestKind> {
        self.requests.get(&*id.decode()).map(|request| request.kind)
    }

    /// The number of a turn that the gateway itself tells of, as [`Self::note`] takes it.
    pub(super) fn own_turn(&self) -> u64 {
        self.record.summary.turns + 1 - self.turns_before
    }

    /// That turn is over; the agent, which does not know of it, counts one less.
    pub(super) fn own_turn_over(&mut self) {
        self.turns_before += 1;
    }

    /// A request, with what is known of the call that it is about.
    pub(super) fn raised(
        &self,
        request: &RequestRaised<'_>,
        agent: &Agent<'_>,
        asker: Asker,
    ) -> Raised {
        let call = request.tool_use_id.as_ref().map(Text::decode);
        let tool = call.as_deref().and_then(|id| self.tools.get(id));
        let raised = Raised::new(request, agent, asker, self.agent_tools);
        Raised { tool: tool.cloned(), moved: self.has_moved(call.as_deref()), ..raised }
    }

    fn status(&mut self, status: &StatusChanged<'_>) {
        if let Some(info) = &status.info {
            self.info(info);
        }
        let summary = &mut self.record.summary;
        let message = status.message.as_ref().map(Text::to_string);
        match status.status {
            Status::Ready => self.is_ready = true,
            Status::Model => summary.model = message.or(summary.model.take()),
            Status::Session => message.into_iter().for_each(|id| self.told(id)),
            Status::Title => summary.title = message.or(summary.title.take()),
            Status::Prompted => self.prompt_over(status),
            Status::Queue => match message.as_deref() {
                Some("started") => self.tells_fates = true,
                Some("completed" | "cancelled") => self.prompt_over(status),
                Some(_) | None => {}
            },
            Status::Working
            | Status::Idle
            | Status::Waiting
            | Status::Compacting
            | Status::Compacted
            | Status::Retrying
            | Status::RateLimit
            | Status::Mode
            | Status::Commands
            | Status::McpServer
            | Status::Hook
            | Status::Task
            | Status::Diff
            | Status::Account
            | Status::Suggestion
            | Status::Notice
            | Status::Warning => {}
        }
    }

    /// A prompt joined a turn that runs, or there will be none for it.
    fn prompt_over(&mut self, status: &StatusChanged<'_>) {
        #[derive(serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Details {
            message_id: String,
        }
        let details = status.details.as_ref().and_then(|details| details.read::<Details>().ok());
        if let Some(details) = details {
            self.keep_promise(&details.message_id);
        }
    }

    fn info(&mut self, info: &AgentInfo<'_>) {
        self.record.summary.inform(info);
        if let Some(id) = &info.native_session_id {
            self.told(id.to_string());
        }
    }

    /// The main agent speaks; after results of tools that is a further call of the model.
    fn step(&mut self, main: bool) {
        if main && std::mem::take(&mut self.running.has_results) {
            self.running.steps += 1;
        }
    }

    /// Whether another call than this one may have left the directory.
    pub(super) fn has_moved(&self, call: Option<&str>) -> bool {
        self.moved || self.shells.iter().any(|id| Some(id.as_str()) != call)
    }

    /// Whether that shell call leaves the agent where it is.
    fn stays_put(&self, tool: &ToolStarted<'_>) -> bool {
        let facts = CallFacts {
            tool_name: Some(&tool.tool_name.decode()),
            kind: Some(tool.kind),
            input: tool.arguments.as_ref(),
            ..CallFacts::default()
        };
        stays_put(&self.agent_tools.describe(&facts))
    }

    /// What is known of the agent's tools.
    pub(super) fn tools(&self) -> &'static AgentTools {
        self.agent_tools
    }

    /// An open tool call.
    pub(super) fn tool(&self, id: &str) -> Option<&Tool> {
        self.tools.get(id)
    }

    fn tool_over(&mut self, id: &Text<'_>, main: bool, has_run: bool) {
        let id = id.decode();
        self.moved |= self.shells.remove(&*id) && has_run;
        self.tools.remove(&*id);
        self.record.open.tools.remove(&*id);
        self.running.has_results |= main;
    }

    fn turn_over(&mut self, end: TurnEnd, usage: Option<TokenUsage>, cost: Option<f64>) {
        self.record.summary.turn_over(end, usage, cost);
        self.record.open.turn = None;
        self.running = Running::default();
        // Which of them it took into the turn, an old version does not say.
        if self.folds_prompts && !self.tells_fates {
            self.promised.clear();
        }
    }

    pub(super) fn entitle(&mut self, prompt: &str) {
        self.record.summary.entitle(prompt);
    }

    fn refresh(&mut self) {
        self.changed = true;
        let asks = |kind| self.requests.values().any(|request| request.kind == kind);
        let summary = &mut self.record.summary;
        summary.open_requests = self.requests.len() as u64;
        if summary.state == SessionState::Ended {
            return;
        }
        summary.state = if asks(RequestKind::Permission) {
            SessionState::WaitingPermission
        } else if asks(RequestKind::Question) {
            SessionState::WaitingQuestion
        } else if self.is_silent && self.record.open.turn.is_some() {
            SessionState::Stalled
        } else if self.record.open.turn.is_some()
            || ((!self.promised.is_empty() || self.is_hooked) && self.is_ready)
        {
            SessionState::Working
        } else if self.is_ready {
            SessionState::Idle
        } else {
            SessionState::Starting
        };
    }
}

fn open(map: &mut BTreeMap<String, OpenBy>, id: String, agent: &Agent<'_>, seq: Option<u64>) {
    if map.len() < OPEN_LIMIT {
        let parent = agent.parent.as_ref().map(Text::to_string);
        map.insert(id, OpenBy { agent: agent.id.to_string(), parent, seq });
    }
}
