//! The threads of one app server, and whose events theirs are: the main agent's, or a subagent's
//! named after the call that spawned it.

use agentwire_protocol::event::{AgentFinished, AgentOutcome, AgentSpawned};
use agentwire_protocol::{MAIN_AGENT, Text, TokenUsage};

use crate::tape::{Agent, Out};

/// How many threads are known at once; of more, the oldest subagent is forgotten.
const LIMIT: usize = 1024;

/// The threads, the main one first.
#[derive(Debug)]
pub(super) struct Threads {
    all: Vec<Thread>,
    /// Calls that spawn a subagent and have no result yet.
    spawns: Vec<Spawn>,
}

/// One thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) id: String,
    agent: String,
    parent: Option<String>,
    name: Option<String>,
    prompt: Option<String>,
    spawned: bool,
    finished: bool,
    /// The turn that runs, or ran last.
    pub(super) turn: Option<String>,
    /// What this turn used so far.
    pub(super) usage: TokenUsage,
    /// What the thread used, when it was last told.
    pub(super) total: Option<TokenUsage>,
}

#[derive(Debug)]
struct Spawn {
    call: String,
    parent: String,
    prompt: Option<String>,
    taken: bool,
}

impl Thread {
    /// Whose thread it is.
    pub(super) fn agent(&self) -> Agent<'_> {
        Agent {
            id: Text::from(self.agent.as_str()),
            parent: self.parent.as_deref().map(Text::from),
        }
    }

    /// The same, borrowing nothing.
    pub(super) fn owner(&self) -> Agent<'static> {
        match &self.parent {
            None => Agent::main(),
            Some(parent) => Agent::sub(self.agent.clone(), parent.clone()),
        }
    }

    /// Whether it is a subagent's.
    pub(super) fn is_sub(&self) -> bool {
        self.parent.is_some()
    }

    /// The subagent shows itself: it begins, if it has not.
    pub(super) fn show(&mut self, out: &mut Out<'_>) {
        if self.is_sub() && !std::mem::replace(&mut self.spawned, true) {
            self.finished = false;
            out.emit_as(
                &self.agent(),
                AgentSpawned {
                    name: self.name.as_deref().map(Text::from),
                    description: None,
                    prompt: self.prompt.as_deref().map(Text::from),
                    native_id: Some(Text::from(self.id.as_str())),
                    background: Some(true),
                },
            );
        }
    }

    /// The subagent works again after its end.
    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.finished) {
            self.spawned = false;
        }
    }

    /// The subagent ended. One that never showed itself has no end to tell.
    pub(super) fn finish(&mut self, out: &mut Out<'_>, finished: AgentFinished<'_>) {
        if self.is_sub() && !std::mem::replace(&mut self.finished, true) && self.spawned {
            let native_id = Some(Text::from(self.id.as_str()));
            out.emit_as(&self.agent(), AgentFinished { native_id, ..finished });
        }
    }
}

impl Default for Threads {
    fn default() -> Self {
        let main = Thread { agent: MAIN_AGENT.to_owned(), ..Thread::default() };
        Self { all: vec![main], spawns: Vec::new() }
    }
}

impl Threads {
    /// The main thread.
    pub(super) fn main(&mut self) -> &mut Thread {
        self.at(0)
    }

    /// The id of the main thread, once it is known.
    pub(super) fn main_id(&self) -> Option<&str> {
        self.all.first().map(|main| main.id.as_str()).filter(|id| !id.is_empty())
    }

    /// The thread of that id. The first that is heard of is the main one; a new one while a call
    /// spawns a subagent is that subagent's, for its events come before the call's result
    /// (`real-app-collab-spawn`). Any other is taken as the main one.
    pub(super) fn of(&mut self, id: Option<&str>) -> &mut Thread {
        let at = self.place(id);
        self.at(at)
    }

    fn place(&mut self, id: Option<&str>) -> usize {
        let Some(id) = id.filter(|id| !id.is_empty()) else { return 0 };
        if let Some(at) = self.all.iter().position(|thread| thread.id == id) {
            return at;
        }
        if self.main_id().is_none() {
            self.main().id = id.to_owned();
            return 0;
        }
        match self.spawns.iter_mut().find(|spawn| !spawn.taken) {
            Some(spawn) => {
                spawn.taken = true;
                let (agent, parent, prompt) =
                    (spawn.call.clone(), spawn.parent.clone(), spawn.prompt.clone());
                self.add(id, agent, parent, prompt)
            }
            None => 0,
        }
    }

    /// The subagent's thread of that id, made if it is not known: `agent` is its call, or the thread
    /// itself where no call is told.
    pub(super) fn sub(&mut self, id: &str, agent: &str, parent: &str) -> &mut Thread {
        let at = match self.all.iter().position(|thread| thread.id == id) {
            Some(at) => at,
            None => match self.place(Some(id)) {
                0 => self.add(id, agent.to_owned(), parent.to_owned(), None),
                at => at,
            },
        };
        self.at(at)
    }

    /// A call begins that spawns a subagent.
    pub(super) fn spawning(&mut self, call: &str, parent: &Agent<'_>, prompt: Option<String>) {
        if self.spawns.len() < LIMIT {
            let (call, parent) = (call.to_owned(), parent.id.to_string());
            self.spawns.push(Spawn { call, parent, prompt, taken: false });
        }
    }

    /// The call names the thread that it spawned, or failed to.
    pub(super) fn spawned(&mut self, call: &str, thread: Option<&str>, out: &mut Out<'_>) {
        let at = self.spawns.iter().position(|spawn| spawn.call == call);
        let spawn = at.map(|at| self.spawns.remove(at));
        let (Some(id), Some(spawn)) = (thread, spawn) else { return };
        let at = match self.all.iter().position(|thread| thread.id == id) {
            Some(at) => at,
            None => {
                // Another thread came first and has the call's name.
                let agent = if spawn.taken { id.to_owned() } else { spawn.call };
                self.add(id, agent, spawn.parent, spawn.prompt)
            }
        };
        self.at(at).show(out);
    }

    /// The known subagent's thread of that id.
    pub(super) fn known_sub(&mut self, id: &str) -> Option<&mut Thread> {
        self.all.iter_mut().find(|thread| thread.id == id && thread.is_sub())
    }

    /// The process ended, and all subagents with it.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        self.spawns.clear();
        for thread in self.all.iter_mut().filter(|thread| thread.spawned) {
            thread.finish(out, finished(AgentOutcome::Cancelled));
        }
    }

    fn add(&mut self, id: &str, agent: String, parent: String, prompt: Option<String>) -> usize {
        if self.all.len() >= LIMIT {
            self.all.remove(1);
        }
        let (id, parent) = (id.to_owned(), Some(parent));
        self.all.push(Thread { id, agent, parent, prompt, ..Thread::default() });
        self.all.len() - 1
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "places are this list's own, and it has a main thread"
    )]
    fn at(&mut self, place: usize) -> &mut Thread {
        &mut self.all[place]
    }

    /// The thread of that id, named before it shows itself.
    pub(super) fn named(&mut self, id: &str, name: Option<String>) -> &mut Thread {
        let thread = self.of(Some(id));
        thread.name = thread.name.take().or(name);
        thread
    }
}

/// A subagent's end of which only this is known.
pub(super) fn finished<'a>(outcome: AgentOutcome) -> AgentFinished<'a> {
    AgentFinished { outcome, result: None, native_id: None, usage: None, duration_ms: None }
}

/// What an `agentsStates` entry says of a subagent's end, if it has ended.
pub(super) fn outcome(status: &str) -> Option<AgentOutcome> {
    match status {
        "completed" => Some(AgentOutcome::Completed),
        "errored" | "notFound" | "not_found" => Some(AgentOutcome::Failed),
        "shutdown" | "interrupted" => Some(AgentOutcome::Cancelled),
        _ => None,
    }
}
