//! The agents of a session: their labels and their states.

use std::collections::BTreeMap;

use super::messages::AgentState;

/// How many are remembered; the labels continue to count.
const LIMIT: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Agents {
    all: BTreeMap<String, Agent>,
}

#[derive(Debug)]
struct Agent {
    label: String,
    children: u32,
    status: AgentState,
}

impl Agents {
    pub(super) fn has(&self, id: &str) -> bool {
        self.all.contains_key(id)
    }

    /// Adds an agent and returns its label, by order of appearance: Main, Sub1, Sub1.1.
    pub(super) fn add(&mut self, id: &str, parent: Option<&str>) -> String {
        let label = match parent.and_then(|parent| self.all.get_mut(parent)) {
            None if parent.is_none() => "Main".to_owned(),
            None => format!("Sub{}", self.all.len()),
            Some(parent) => {
                parent.children += 1;
                match parent.label.strip_prefix("Sub") {
                    Some(number) => format!("Sub{number}.{}", parent.children),
                    None => format!("Sub{}", parent.children),
                }
            }
        };
        if self.all.len() >= LIMIT {
            self.all.retain(|_, agent| !agent.has_ended() || agent.label == "Main");
        }
        let agent = Agent { label: label.clone(), children: 0, status: AgentState::New };
        self.all.insert(id.to_owned(), agent);
        label
    }

    pub(super) fn has_ended(&self, id: &str) -> bool {
        self.all.get(id).is_some_and(Agent::has_ended)
    }

    /// Returns whether the state changed.
    pub(super) fn set(&mut self, id: &str, status: AgentState) -> bool {
        let Some(agent) = self.all.get_mut(id) else { return false };
        std::mem::replace(&mut agent.status, status) != status
    }
}

impl Agent {
    fn has_ended(&self) -> bool {
        matches!(self.status, AgentState::Completed | AgentState::Error)
    }
}
