//! The main agent and its running subagents.

use std::time::Instant;

use super::messages::Message;
use super::usage::Usage;

/// A stack: the main agent, then the running subagents.
pub(super) struct ActiveAgents {
    main: ActiveAgent,
    subagents: Vec<ActiveAgent>,
}

pub(super) struct ActiveAgent {
    /// `None` for the main agent.
    pub(super) spawned: Option<SubagentInfo>,
    /// Its open message.
    pub(super) message: Option<Message>,
    /// How many times it called the model.
    pub(super) calls: u64,
    /// There is a tool result that the model has not seen.
    pub(super) owes_call: bool,
    /// How many bytes its model gets as input.
    pub(super) context: usize,
    pub(super) last_text: String,
    pub(super) tools: u64,
    pub(super) spent: Usage,
    pub(super) begun: Instant,
}

/// How a subagent was started.
#[derive(Clone)]
pub(super) struct SubagentInfo {
    pub(super) tool_use_id: String,
    pub(super) agent_id: String,
    pub(super) kind: String,
    pub(super) description: String,
}

impl ActiveAgents {
    pub(super) fn new(context: usize) -> Self {
        Self { main: ActiveAgent::new(None, context), subagents: Vec::new() }
    }

    pub(super) fn current(&mut self) -> &mut ActiveAgent {
        self.subagents.last_mut().unwrap_or(&mut self.main)
    }

    /// The current subagent, if any.
    pub(super) fn subagent(&self) -> Option<&SubagentInfo> {
        self.subagents.last().and_then(|agent| agent.spawned.as_ref())
    }

    pub(super) fn depth(&self) -> usize {
        self.subagents.len()
    }

    pub(super) fn spawn(&mut self, spawned: SubagentInfo, context: usize) {
        self.subagents.push(ActiveAgent::new(Some(spawned), context));
    }

    /// Removes the subagent that is done.
    pub(super) fn leave(&mut self) -> Option<ActiveAgent> {
        self.subagents.pop()
    }
}

impl ActiveAgent {
    fn new(spawned: Option<SubagentInfo>, context: usize) -> Self {
        Self {
            spawned,
            message: None,
            calls: 0,
            owes_call: false,
            context,
            last_text: String::new(),
            tools: 0,
            spent: Usage::default(),
            begun: Instant::now(),
        }
    }
}
