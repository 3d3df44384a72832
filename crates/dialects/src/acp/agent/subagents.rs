//! Subagents, as far as the agent reports them. The protocol has no field for them: claude-agent-acp marks
//! in `_meta` which call runs a subagent and whose each update is (fixture real-claude-subagent). Gemini's
//! call is recognised by its name (fixture real-gemini-subagent), and nothing is reported about what the
//! subagent does.

use agentwire_protocol::event::{AgentFinished, AgentOutcome, AgentSpawned};
use agentwire_protocol::{MAIN_AGENT, Text, TokenUsage};
use serde::Deserialize;

use super::super::wire::ToolCall;
use super::Translator;
use crate::tape::{Agent, Out};

const AGENT_LIMIT: usize = 256;

/// Subagents that were reported, and calls whose subagent is yet to be reported.
#[derive(Debug, Default)]
pub(super) struct SubAgents {
    all: Vec<SubAgent>,
    /// Calls that run a subagent and may not be fully described yet.
    waiting: Vec<String>,
}

#[derive(Debug)]
struct SubAgent {
    id: String,
    parent: String,
    is_live: bool,
    /// It outlives its call and its turn.
    in_background: bool,
}

/// What is reported about a subagent before its call ends.
#[derive(Debug, Default)]
pub(super) struct SpawnReport {
    native_id: Option<String>,
    tokens: Option<u64>,
    duration_ms: Option<u64>,
    in_background: bool,
}

impl SubAgents {
    /// The call runs a subagent.
    pub(super) fn wait(&mut self, call: &str) {
        if self.waiting.len() < AGENT_LIMIT {
            self.waiting.push(call.to_owned());
        }
    }

    fn get(&self, id: &str) -> Option<Agent<'static>> {
        let agent = self.all.iter().find(|agent| agent.id == id)?;
        Some(Agent::sub(agent.id.clone(), agent.parent.clone()))
    }

    fn remove_waiting(&mut self, call: &str) -> bool {
        let at = self.waiting.iter().position(|waiting| waiting == call);
        at.map(|at| self.waiting.remove(at)).is_some()
    }
}

impl Translator {
    /// The sender of an update. A subagent that was not seen to spawn is reported now, as a child of its
    /// call's owner.
    pub(super) fn speaker(
        &mut self,
        spawned_by: Option<&str>,
        out: &mut Out<'_>,
    ) -> Agent<'static> {
        let Some(id) = spawned_by else { return Agent::main() };
        self.spawn(id, out);
        if let Some(agent) = self.agents.get(id) {
            return agent;
        }
        let parent = self.owner(Some(id));
        self.report_spawned(id, &parent.id.to_string(), AgentSpawned::default(), out);
        Agent::sub(id.to_owned(), parent.id)
    }

    /// Who made the call; the main agent if the call is not open.
    pub(super) fn owner(&mut self, call: Option<&str>) -> Agent<'static> {
        let call = call.and_then(|call| self.ledger.tools.get(call));
        call.map_or(Agent::main(), |call| call.agent.clone())
    }

    /// An update of something else arrives, so nothing more will be known about the waiting calls: reports
    /// their subagents. A call that somebody is asked about is skipped, since it may never run.
    pub(super) fn spawn_waiting(&mut self, but: Option<&str>, out: &mut Out<'_>) {
        if self.agents.waiting.is_empty() {
            return;
        }
        let asked = self.ledger.requests.iter().filter_map(|request| request.memo.tool());
        let asked: Vec<&str> = asked.collect();
        let is_due = |call: &&String| Some(call.as_str()) != but && !asked.contains(&call.as_str());
        let due: Vec<String> = self.agents.waiting.iter().filter(is_due).cloned().collect();
        due.iter().for_each(|call| self.spawn(call, out));
    }

    /// Reports the subagent of the call as spawned, unless that was done.
    pub(super) fn spawn(&mut self, call: &str, out: &mut Out<'_>) {
        #[derive(Default, Deserialize)]
        struct Input {
            subagent_type: Option<String>,
            description: Option<String>,
            prompt: Option<String>,
            run_in_background: Option<bool>,
        }
        if !self.agents.remove_waiting(call) {
            return;
        }
        let Some(tool) = self.ledger.tools.get(call) else { return };
        let parent = tool.agent.id.to_string();
        let input = tool.memo.input.as_ref().and_then(|input| input.read::<Input>().ok());
        let input = input.unwrap_or_default();
        let name = input.subagent_type.or_else(|| delegate(&tool.memo.title));
        let spawned = AgentSpawned {
            name: name.map(Text::from),
            description: input.description.map(Text::from),
            prompt: input.prompt.map(Text::from),
            native_id: None,
            background: input.run_in_background,
        };
        self.report_spawned(call, &parent, spawned, out);
    }

    fn report_spawned(
        &mut self,
        id: &str,
        parent: &str,
        spawned: AgentSpawned<'_>,
        out: &mut Out<'_>,
    ) {
        if self.agents.all.len() >= AGENT_LIMIT {
            let done = self.agents.all.iter().position(|agent| !agent.is_live);
            self.agents.all.remove(done.unwrap_or(0));
        }
        out.emit_as(&Agent::sub(id, parent), spawned);
        self.agents.all.push(SubAgent {
            id: id.to_owned(),
            parent: parent.to_owned(),
            is_live: true,
            in_background: false,
        });
    }

    /// Records what an update of the call says about its subagent.
    pub(super) fn update_spawn(&mut self, id: &str, call: &ToolCall<'_>) {
        let claude = call.meta.as_ref().and_then(|meta| meta.claude.as_ref());
        let Some(response) = claude.and_then(|claude| claude.response.as_ref()) else { return };
        let tool = self.ledger.tools.get(id).and_then(|tool| tool.memo.spawns.as_mut());
        if let Some(report) = tool {
            report.native_id = response.agent_id.as_deref().map(str::to_owned);
            report.tokens = response.total_tokens;
            report.duration_ms = response.duration_ms;
            report.in_background = response.status.as_deref() == Some("async_launched");
        }
    }

    /// The call has its result. A subagent in the background continues.
    pub(super) fn spawn_result(
        &mut self,
        id: &str,
        report: SpawnReport,
        is_well: bool,
        text: &str,
        out: &mut Out<'_>,
    ) {
        if report.in_background && is_well {
            let agent = self.agents.all.iter_mut().find(|agent| agent.id == id);
            agent.into_iter().for_each(|agent| agent.in_background = true);
            return;
        }
        let outcome = if is_well { AgentOutcome::Completed } else { AgentOutcome::Failed };
        let usage = |total_tokens| TokenUsage { total_tokens, ..TokenUsage::default() };
        let finished = AgentFinished {
            outcome,
            result: (!text.is_empty()).then(|| Text::from(text)),
            native_id: report.native_id.map(Text::from),
            usage: report.tokens.map(usage),
            duration_ms: report.duration_ms,
        };
        self.finish_agent(id, finished, out);
    }

    /// The call did not run, or was cut off, and its subagent with it.
    pub(super) fn cut_agent(&mut self, id: &str, out: &mut Out<'_>) {
        self.agents.remove_waiting(id);
        self.finish_agent(id, AgentFinished::new(AgentOutcome::Cancelled), out);
    }

    /// Ends the subagents that the turn waited for, or all of them.
    pub(super) fn end_agents(&mut self, all: bool, out: &mut Out<'_>) {
        self.agents.waiting.clear();
        self.cut_agents_of(MAIN_AGENT, out);
        if all {
            let live = self.agents.all.iter().filter(|agent| agent.is_live);
            let ids: Vec<String> = live.map(|agent| agent.id.clone()).collect();
            ids.iter().for_each(|id| self.cut_agent(id, out));
        }
    }

    fn cut_agents_of(&mut self, parent: &str, out: &mut Out<'_>) {
        let of =
            |agent: &&SubAgent| agent.is_live && !agent.in_background && agent.parent == parent;
        let ids: Vec<String> =
            self.agents.all.iter().filter(of).map(|agent| agent.id.clone()).collect();
        ids.iter().for_each(|id| self.cut_agent(id, out));
    }

    fn finish_agent(&mut self, id: &str, finished: AgentFinished<'_>, out: &mut Out<'_>) {
        let agent = self.agents.all.iter_mut().find(|agent| agent.id == id && agent.is_live);
        let Some(agent) = agent else { return };
        agent.is_live = false;
        let agent = Agent::sub(agent.id.clone(), agent.parent.clone());
        self.close_block(out);
        self.cut_agents_of(id, out);
        self.ledger.close_agent(out, id, "the subagent ended");
        out.emit_as(&agent, finished);
    }
}

/// The name in `Delegating to agent 'NAME'`, as Gemini titles the call.
fn delegate(title: &str) -> Option<String> {
    let (_, name) = title.split_once('\'')?;
    name.split_once('\'').map(|(name, _)| name.to_owned())
}
