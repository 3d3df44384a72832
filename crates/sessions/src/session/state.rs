//! The state of a session, derived from its events alone: status, usage, and what is open.

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
use agentwire_protocol::summary::first_words;
use agentwire_protocol::{EventKind, SessionState, Text, TokenUsage, TurnEnd};

use super::pending_request::{Asker, PendingRequest, Tool};
use super::policy::stays_put;
use crate::clock;
use crate::store::{OpenBy, Record};

/// How many items of each kind are remembered as open. If an agent opens more, they are still reported, but
/// the gateway does not close them.
pub(super) const OPEN_LIMIT: usize = 4096;

/// How much of the first prompt the record has, in characters, for lists of sessions.
const PROMPT_KEPT: usize = 240;

#[derive(Debug)]
pub(crate) struct DerivedState {
    pub(crate) record: Record,
    agent_tools: &'static AgentTools,
    /// The turns of earlier processes, because each translator counts from 1.
    turns_before: u64,
    /// The ids of accepted prompts that have no turn yet.
    promised: VecDeque<String>,
    /// The agent folds several prompts into one turn.
    folds_prompts: bool,
    /// The agent reports what happens to each prompt.
    tells_fates: bool,
    is_ready: bool,
    is_silent: bool,
    /// The model has given a complete answer; an agent does not store a partial one.
    pub(super) has_answer: bool,
    /// Something waits for hooks that the gateway raised.
    is_hooked: bool,
    /// The conversation that the agent must report it has opened.
    expected: Option<ExpectedConversation>,
    /// Whether it reported another one instead.
    mismatch: Mismatch,
    /// Open tool calls, for the rules.
    tools: BTreeMap<String, Tool>,
    /// Open shell calls that may change the agent's directory.
    shells: BTreeSet<String>,
    /// Such a call has run.
    moved: bool,
    pub(super) requests: BTreeMap<String, PendingRequest>,
    /// What the running turn has used so far, as far as the agent reports it.
    pub(super) running: Running,
    /// Changed since it was last stored.
    pub(super) changed: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Running {
    /// Model calls by the main agent.
    pub(super) steps: u64,
    has_results: bool,
    /// The cost of the whole session so far, as the agent counts it.
    pub(super) total_cost: Option<f64>,
    pub(super) usage: TokenUsage,
    /// The usage reported for each message. A later report for a message replaces the earlier one.
    counted: BTreeMap<String, TokenUsage>,
}

impl Running {
    fn count(&mut self, message: Option<&Text<'_>>, usage: TokenUsage) {
        // A forgotten message that is reported again counts twice: a limit is reached early rather than
        // late.
        if self.counted.len() >= OPEN_LIMIT {
            self.counted.clear();
        }
        let before = message.and_then(|id| self.counted.insert(id.to_string(), usage));
        self.usage = self.usage.plus(&usage.since(&before.unwrap_or_default()));
    }
}

/// Whether the agent opened a different conversation than requested. From then on, ids that it reports are
/// ignored.
#[derive(Debug, Default, PartialEq, Eq)]
enum Mismatch {
    #[default]
    None,
    /// It did, for this reason, which is not reported yet.
    Due(String),
    /// It did, and that is reported.
    Reported,
}

/// What a process must report about the conversation that it opens.
#[derive(Clone, Debug)]
pub(super) enum ExpectedConversation {
    /// It is this one.
    Same(String),
    /// It is another one: a copy of this one.
    Copy(String),
}

impl DerivedState {
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
            expected: None,
            mismatch: Mismatch::None,
            tools: BTreeMap::new(),
            shells: BTreeSet::new(),
            moved: false,
            requests: BTreeMap::new(),
            running: Running::default(),
            changed: true,
            record,
        }
    }

    /// For a session without a running process: turns are reported with the numbers they have.
    pub(crate) fn closing(record: Record) -> Self {
        Self { turns_before: 0, ..Self::new(record, &AgentTools::UNKNOWN, false) }
    }

    /// A prompt is given to the agent, so work is pending.
    pub(super) fn promise(&mut self, id: &str) {
        self.promised.push_back(id.to_owned());
        self.refresh();
    }

    /// The prompt is no longer pending: its turn has started, or there will be none.
    pub(super) fn keep_promise(&mut self, id: &str) {
        self.promised.retain(|promised| promised != id);
        self.refresh();
    }

    pub(super) fn waiting(&self) -> impl Iterator<Item = &String> {
        self.promised.iter()
    }

    /// The starting process must report that it opened this conversation.
    pub(super) fn expect_conversation(&mut self, expected: Option<ExpectedConversation>) {
        self.expected = expected;
    }

    /// Why the resumed conversation is not the requested one, if it is not. Returned once.
    pub(super) fn take_mismatch(&mut self) -> Option<String> {
        match std::mem::take(&mut self.mismatch) {
            Mismatch::Due(message) => {
                self.mismatch = Mismatch::Reported;
                Some(message)
            }
            other => {
                self.mismatch = other;
                None
            }
        }
    }

    /// The agent reports which of its own sessions it has opened.
    fn conversation_opened(&mut self, id: String) {
        if self.mismatch != Mismatch::None {
            return;
        }
        match self.expected.take() {
            Some(ExpectedConversation::Same(asked)) if asked != id => {
                self.mismatch = Mismatch::Due(format!(
                    "the agent opened its session {id} instead of resuming {asked}"
                ));
            }
            Some(ExpectedConversation::Copy(asked)) if asked == id => {
                self.mismatch = Mismatch::Due(format!(
                    "the agent continued its session {id} instead of a copy of it"
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

    /// The agent accepts prompts, whether it says so or not.
    pub(super) fn ready(&mut self) {
        self.is_ready = true;
        self.refresh();
    }

    /// Whether a turn runs or is pending.
    pub(super) fn is_busy(&self) -> bool {
        !self.promised.is_empty() || self.record.open.turn.is_some()
    }

    /// Whether silence is suspicious: a turn runs and waits for nothing.
    pub(super) fn may_stall(&self) -> bool {
        let waits = |request: &PendingRequest| match request.kind {
            RequestKind::Permission | RequestKind::Question | RequestKind::Hook => true,
            RequestKind::Mcp => request.input.as_ref().and_then(mcp::awaited).is_some(),
            RequestKind::Other => false,
        };
        self.record.open.turn.is_some()
            && !self.is_silent
            && !self.is_hooked
            && !self.requests.values().any(waits)
    }

    /// Sets whether something waits for hooks that the gateway raised.
    pub(super) fn hooked(&mut self, is_hooked: bool) {
        if self.is_hooked != is_hooked {
            self.is_hooked = is_hooked;
            self.refresh();
        }
    }

    /// The agent has been silent for long, or sends again.
    pub(super) fn silent(&mut self, is_silent: bool) {
        if self.is_silent != is_silent {
            self.is_silent = is_silent;
            self.refresh();
        }
    }

    /// The process is gone, and the next one starts fresh.
    pub(super) fn process_ended(&mut self) {
        self.shells.clear();
        self.moved = false;
        self.is_ready = false;
        self.is_silent = false;
        self.refresh();
    }

    /// Records an event that does not raise a request, and puts the session's own count on its turn.
    pub(super) fn note(&mut self, draft: &mut Draft<'_>) {
        let main = draft.agent.parent.is_none();
        match &mut draft.kind {
            // Most events are these. They change nothing that is stored.
            EventKind::TextChunk(_) | EventKind::ThinkingChunk(_) => return self.step(main),
            EventKind::UsageReported(report) => return self.usage_reported(report),
            EventKind::SessionEnded(ended) => return self.session_ended(ended),
            EventKind::TurnStarted(turn) => self.turn_started(turn),
            EventKind::TurnCompleted(turn) => self.turn_completed(turn),
            EventKind::TurnFailed(turn) => {
                turn.turn_number += self.turns_before;
                self.turn_ended(turn.reason.into(), turn.usage, turn.cost_usd);
            }
            EventKind::ToolStarted(tool) => self.tool_started(tool, &draft.agent),
            EventKind::ToolCompleted(tool) => self.tool_ended(&tool.tool_id, main, true),
            EventKind::ToolFailed(tool) => {
                let has_run = match tool.reason {
                    ToolFailure::Interrupted => true,
                    ToolFailure::Denied | ToolFailure::Invalid => false,
                };
                self.tool_ended(&tool.tool_id, main, has_run);
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
            _ => return,
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
        self.turn_ended(TurnEnd::Completed, Some(turn.usage), turn.cost_usd);
        if let Some(ExpectedConversation::Same(asked) | ExpectedConversation::Copy(asked)) =
            self.expected.take()
        {
            self.mismatch =
                Mismatch::Due(format!("the agent never reported that it resumed {asked}"));
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

    /// Records an open request, which event `seq` raises.
    pub(super) fn open_request(&mut self, raised: PendingRequest, seq: u64) {
        open(&mut self.record.open.requests, raised.id.clone(), &raised.agent, Some(seq));
        self.requests.insert(raised.id.clone(), raised);
        self.refresh();
    }

    pub(super) fn asked_as(&self, id: &Text<'_>) -> Option<RequestKind> {
        self.requests.get(&*id.decode()).map(|request| request.kind)
    }

    /// The number of the open turn, or of the next one if none is open.
    pub(super) fn current_turn(&self) -> u64 {
        self.record.open.turn.unwrap_or(self.record.summary.turns + 1)
    }

    /// The number for a turn that the gateway itself reports, as [`Self::note`] expects it.
    pub(super) fn own_turn(&self) -> u64 {
        self.record.summary.turns + 1 - self.turns_before
    }

    /// That turn has ended. The agent does not know about it, so its count is one lower.
    pub(super) fn own_turn_ended(&mut self) {
        self.turns_before += 1;
    }

    /// A request, with what is known about its call.
    pub(super) fn raised(
        &self,
        request: &RequestRaised<'_>,
        agent: &Agent<'_>,
        asker: Asker,
    ) -> PendingRequest {
        let call = request.tool_use_id.as_ref().map(Text::decode);
        let tool = call.as_deref().and_then(|id| self.tools.get(id));
        let raised = PendingRequest::new(request, agent, asker, self.agent_tools);
        PendingRequest { tool: tool.cloned(), moved: self.has_moved(call.as_deref()), ..raised }
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
            Status::Session => message.into_iter().for_each(|id| self.conversation_opened(id)),
            Status::Title => summary.title = message.or(summary.title.take()),
            Status::Prompted => self.prompt_ended(status),
            Status::Queue => match message.as_deref() {
                Some("started") => self.tells_fates = true,
                Some("completed" | "cancelled") => self.prompt_ended(status),
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

    /// A prompt joined a running turn, or there will be no turn for it.
    fn prompt_ended(&mut self, status: &StatusChanged<'_>) {
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
            self.conversation_opened(id.to_string());
        }
    }

    /// The main agent sends something. After tool results, that means another model call.
    fn step(&mut self, main: bool) {
        if main && std::mem::take(&mut self.running.has_results) {
            self.running.steps += 1;
        }
    }

    /// Whether a call other than this one may have changed the directory.
    pub(super) fn has_moved(&self, call: Option<&str>) -> bool {
        self.moved || self.runs_another_shell(call)
    }

    /// Whether a call other than this one may change the directory while it runs.
    pub(super) fn runs_another_shell(&self, call: Option<&str>) -> bool {
        self.shells.iter().any(|id| Some(id.as_str()) != call)
    }

    /// Whether that shell call leaves the agent in its directory.
    fn stays_put(&self, tool: &ToolStarted<'_>) -> bool {
        let facts = CallFacts {
            tool_name: Some(&tool.tool_name.decode()),
            kind: Some(tool.kind),
            input: tool.arguments.as_ref(),
            ..CallFacts::default()
        };
        stays_put(&self.agent_tools.describe(&facts))
    }

    pub(super) fn tools(&self) -> &'static AgentTools {
        self.agent_tools
    }

    pub(super) fn tool(&self, id: &str) -> Option<&Tool> {
        self.tools.get(id)
    }

    fn tool_ended(&mut self, id: &Text<'_>, main: bool, has_run: bool) {
        let id = id.decode();
        self.moved |= self.shells.remove(&*id) && has_run;
        self.tools.remove(&*id);
        self.record.open.tools.remove(&*id);
        self.running.has_results |= main;
    }

    fn turn_ended(&mut self, end: TurnEnd, usage: Option<TokenUsage>, cost: Option<f64>) {
        self.record.summary.turn_over(end, usage, cost);
        self.record.open.turn = None;
        self.running = Running::default();
        // An old version does not report which prompts it folded into the turn.
        if self.folds_prompts && !self.tells_fates {
            self.promised.clear();
        }
    }

    pub(super) fn entitle(&mut self, prompt: &str) {
        self.record.summary.entitle(prompt);
        if self.record.first_prompt.is_none() {
            self.record.first_prompt = first_words(prompt, PROMPT_KEPT);
        }
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
