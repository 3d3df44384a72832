//! Subagents at any depth, named by the tool call that spawned them. Claude has its own ids for them.

use std::collections::VecDeque;

use agentwire_protocol::event::{AgentFinished, AgentOutcome, AgentSpawned, Status, StatusChanged};
use agentwire_protocol::{MAIN_AGENT, Text, TokenUsage};

use super::turns::usage;
use super::{Translator, details, plain_text};
use crate::claude::wire::{AgentResult, Task};
use crate::json::Value;
use crate::tape::{Agent, Out};

/// How many subagents are remembered. Beyond that, the oldest finished one is forgotten, or the oldest if
/// none has finished.
const AGENT_LIMIT: usize = 4096;

/// How many messages are remembered, to report the usage of each once.
const MESSAGE_LIMIT: usize = 64;

const CUT: &str = "the agent ended without its result";

#[derive(Debug, Default)]
pub(super) struct SubAgents {
    all: Vec<SubAgent>,
    messages: VecDeque<String>,
}

#[derive(Debug)]
struct SubAgent {
    /// The tool call that spawned it.
    id: String,
    /// The agent that made the call.
    parent: String,
    /// Claude's own id for it, once known.
    native: Option<String>,
    live: bool,
    /// How its task ended, if reported before its result.
    outcome: Option<AgentOutcome>,
}

impl SubAgent {
    fn agent(&self) -> Agent<'static> {
        Agent::sub(self.id.clone(), self.parent.clone())
    }
}

impl SubAgents {
    fn get(&mut self, id: &str) -> Option<&mut SubAgent> {
        self.all.iter_mut().find(|agent| agent.id == id)
    }

    /// The agent that Claude calls by this id.
    pub(super) fn by_native(&self, native: &str) -> Option<Agent<'static>> {
        let agent = self.all.iter().find(|agent| agent.native.as_deref() == Some(native));
        agent.map(SubAgent::agent)
    }

    fn set_native_id(&mut self, id: &str, native: Option<&str>) {
        if let (Some(agent), Some(native)) = (self.get(id), native) {
            agent.native.get_or_insert_with(|| native.to_owned());
        }
    }

    fn is_live(&mut self, id: &str) -> bool {
        self.get(id).is_some_and(|agent| agent.live)
    }

    /// Whether the usage of that message has not been reported yet; from now on it has.
    pub(super) fn counts(&mut self, message: &str) -> bool {
        if self.messages.iter().any(|known| known == message) {
            return false;
        }
        if self.messages.len() >= MESSAGE_LIMIT {
            self.messages.pop_front();
        }
        self.messages.push_back(message.to_owned());
        true
    }
}

impl Translator {
    /// The agent that wrote a line, by the tool call that spawned it.
    pub(super) fn speaker(
        &mut self,
        spawned_by: Option<&str>,
        out: &mut Out<'_>,
    ) -> Agent<'static> {
        self.named_speaker(spawned_by, None, None, None, out)
    }

    /// The agent that wrote a line. One that was not seen to be spawned is added under the agent that made
    /// the call, or under the main agent if that call is not open.
    pub(super) fn named_speaker(
        &mut self,
        spawned_by: Option<&str>,
        native: Option<&str>,
        name: Option<Text<'_>>,
        description: Option<Text<'_>>,
        out: &mut Out<'_>,
    ) -> Agent<'static> {
        let Some(id) = spawned_by else { return Agent::main() };
        if self.agents.get(id).is_none() {
            let spawned = AgentSpawned {
                name,
                description,
                native_id: native.map(Text::from),
                ..AgentSpawned::default()
            };
            let parent = self.owner(id);
            self.spawn(id, &parent, spawned, out);
        }
        self.agents.set_native_id(id, native);
        self.agents.get(id).map_or(Agent::main(), |agent| agent.agent())
    }

    /// The agent that made that tool call, or the main agent if the call is not open.
    pub(super) fn owner(&mut self, tool: &str) -> Agent<'static> {
        self.ledger.tools.get(tool).map_or(Agent::main(), |tool| tool.agent.clone())
    }

    pub(super) fn spawn(
        &mut self,
        id: &str,
        parent: &Agent<'_>,
        spawned: AgentSpawned<'_>,
        out: &mut Out<'_>,
    ) {
        if self.agents.all.len() >= AGENT_LIMIT {
            let done = self.agents.all.iter().position(|agent| !agent.live);
            self.agents.all.remove(done.unwrap_or(0));
        }
        let agent = SubAgent {
            id: id.to_owned(),
            parent: parent.id.to_string(),
            native: None,
            live: true,
            outcome: None,
        };
        out.emit_as(&agent.agent(), spawned);
        self.agents.all.push(agent);
    }

    /// The tool call that spawned an agent has its result. An agent in the background continues.
    pub(super) fn spawn_result(
        &mut self,
        id: &str,
        ended: AgentOutcome,
        content: Option<Value<'_>>,
        structured: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        if !self.agents.is_live(id) {
            return;
        }
        let told: AgentResult<'_> = structured.and_then(Value::to).unwrap_or_default();
        self.agents.set_native_id(id, told.agent_id.as_ref().map(Text::decode).as_deref());
        if told.status.as_deref() == Some("async_launched") {
            return;
        }
        let spent = told.usage.as_ref().map(usage);
        let finished = AgentFinished {
            outcome: ended,
            result: told.content.or(content).and_then(plain_text),
            native_id: told.agent_id,
            usage: match (spent, told.total_tokens) {
                (Some(spent), total) => {
                    Some(TokenUsage { total_tokens: total.unwrap_or(spent.total_tokens), ..spent })
                }
                (None, total) => total.map(tokens),
            },
            duration_ms: told.duration_ms,
        };
        self.finish(id, finished, out);
    }

    fn finish(&mut self, id: &str, finished: AgentFinished<'_>, out: &mut Out<'_>) {
        let Some(agent) = self.agents.get(id).filter(|agent| agent.live) else { return };
        agent.live = false;
        let agent = agent.agent();
        self.cut_foreground_agents_of(id, out);
        self.close_stream(id, out);
        self.ledger.close_agent(out, id, CUT);
        out.emit_as(&agent, finished);
    }

    /// The agent ended and will not report how.
    fn cut(&mut self, id: &str, out: &mut Out<'_>) {
        let Some(agent) = self.agents.get(id) else { return };
        let finished = AgentFinished {
            native_id: agent.native.clone().map(Text::from),
            ..AgentFinished::new(agent.outcome.unwrap_or(AgentOutcome::Cancelled))
        };
        self.finish(id, finished, out);
    }

    fn cut_foreground_agents_of(&mut self, parent: &str, out: &mut Out<'_>) {
        let children: Vec<String> = self
            .agents
            .all
            .iter()
            .filter(|agent| agent.live && agent.parent == parent)
            .map(|agent| agent.id.clone())
            .collect();
        for id in children {
            if self.ledger.tools.get(&id).is_some() {
                self.cut(&id, out);
            }
        }
    }

    /// The turn ended, and with it the agents that it waited for.
    pub(super) fn cut_foreground_agents(&mut self, out: &mut Out<'_>) {
        self.cut_foreground_agents_of(MAIN_AGENT, out);
    }

    /// The process ended.
    pub(super) fn cut_agents(&mut self, out: &mut Out<'_>) {
        let live = self.agents.all.iter().rev().filter(|agent| agent.live);
        let live: Vec<String> = live.map(|agent| agent.id.clone()).collect();
        live.iter().for_each(|id| self.cut(id, out));
    }

    /// `system/task_…`, for a subagent or a command in the background.
    pub(super) fn task(&mut self, subtype: &str, message: Value<'_>, out: &mut Out<'_>) {
        let line: Task<'_> = message.to().unwrap_or_default();
        let by_tool = line.tool_use_id.as_deref().filter(|id| self.agents.get(id).is_some());
        let by_tool = by_tool.map(str::to_owned);
        if let (Some(id), Some("local_agent")) = (&by_tool, line.task_type.as_deref()) {
            self.agents.set_native_id(id, line.task_id.as_deref());
        }
        let by_task = line.task_id.as_deref().and_then(|native| self.agents.by_native(native));
        let id = by_tool.or_else(|| by_task.map(|agent| agent.id.to_string()));
        let agent = match (&id, line.tool_use_id.as_deref()) {
            (Some(id), _) => self.speaker(Some(id), out),
            (None, Some(tool)) => self.owner(tool),
            (None, None) => Agent::main(),
        };
        let patch = line.patch.unwrap_or_default();
        let text = line.summary.clone().or(patch.error).or(line.description);
        let details = details(message, "");
        out.emit_as(&agent, StatusChanged::new(Status::Task).message(text).details(details));
        let told = subtype == "task_notification";
        if told && !self.ledger.turn_is_open() {
            self.prompts.task_ended();
        }
        let outcome = line.status.or(patch.status).as_deref().and_then(outcome);
        let (Some(id), Some(outcome)) = (id, outcome) else { return };
        if let Some(agent) = self.agents.get(&id) {
            agent.outcome = Some(outcome);
        }
        // For an agent in the foreground, the result says more and comes next.
        if told && self.ledger.tools.get(&id).is_none() {
            let spent = line.usage.unwrap_or_default();
            let finished = AgentFinished {
                outcome,
                result: line.summary,
                native_id: line.task_id.map(Text::new),
                usage: spent.total_tokens.map(tokens),
                duration_ms: spent.duration_ms,
            };
            self.finish(&id, finished, out);
        }
    }
}

fn tokens(total_tokens: u64) -> TokenUsage {
    TokenUsage { total_tokens, ..TokenUsage::default() }
}

fn outcome(status: &str) -> Option<AgentOutcome> {
    match status {
        "completed" => Some(AgentOutcome::Completed),
        "failed" => Some(AgentOutcome::Failed),
        "stopped" | "killed" | "cancelled" => Some(AgentOutcome::Cancelled),
        _ => None,
    }
}
