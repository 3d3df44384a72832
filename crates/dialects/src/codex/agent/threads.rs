//! The threads of one app server, and the agent of each: the main agent, or a subagent named after the call
//! that spawned it. A thread that no call is known to have spawned is a subagent named after itself. Once
//! an event of a thread is reported, its agent stays the same.

use agentwire_protocol::event::{AgentFinished, AgentOutcome, AgentSpawned};
use agentwire_protocol::{MAIN_AGENT, Text, TokenUsage};

use crate::json::Value;
use crate::tape::{Agent, Out};

/// How many threads are known at once; beyond that, the oldest subagent is forgotten.
const LIMIT: usize = 1024;

#[derive(Debug)]
pub(super) struct Threads {
    all: Vec<Thread>,
    /// Calls that spawn a subagent and have no result yet.
    spawns: Vec<Spawn>,
    /// How many such calls there were.
    calls: u64,
}

#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) id: String,
    agent: String,
    parent: Option<String>,
    name: Option<String>,
    prompt: Option<String>,
    /// One of the calls up to this number may have spawned it, and nothing shows yet which.
    undecided: Option<u64>,
    spawned: bool,
    finished: bool,
    /// The running turn, or the last one.
    pub(super) turn: Option<String>,
    pub(super) usage: TokenUsage,
    /// The thread's total usage, as last reported.
    pub(super) total: Option<TokenUsage>,
}

#[derive(Debug)]
struct Spawn {
    number: u64,
    call: String,
    parent: String,
    prompt: Option<String>,
    taken: bool,
}

impl Thread {
    pub(super) fn agent(&self) -> Agent<'_> {
        Agent {
            id: Text::from(self.agent.as_str()),
            parent: self.parent.as_deref().map(Text::from),
        }
    }

    /// Like [`Self::agent`], without borrowing.
    pub(super) fn owner(&self) -> Agent<'static> {
        match &self.parent {
            None => Agent::main(),
            Some(parent) => Agent::sub(self.agent.clone(), parent.clone()),
        }
    }

    pub(super) fn is_sub(&self) -> bool {
        self.parent.is_some() || self.is_undecided()
    }

    /// Whether its agent is not known yet.
    pub(super) fn is_undecided(&self) -> bool {
        self.undecided.is_some()
    }

    /// Reports the subagent as spawned, unless that was done.
    pub(super) fn show(&mut self, out: &mut Out<'_>) {
        if self.is_sub() && !self.is_undecided() && !std::mem::replace(&mut self.spawned, true) {
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

    /// Sets the name, unless it has one.
    pub(super) fn named(&mut self, name: Option<Text<'_>>) {
        self.name = self.name.take().or(name.map(|name| name.to_string()));
    }

    /// The subagent works again after its end.
    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.finished) {
            self.spawned = false;
        }
    }

    /// Reports the end of the subagent, unless its start was not reported.
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
        Self { all: vec![main], spawns: Vec::new(), calls: 0 }
    }
}

impl Threads {
    pub(super) fn main(&mut self) -> &mut Thread {
        self.at(0)
    }

    pub(super) fn main_id(&self) -> Option<&str> {
        self.all.first().map(|main| main.id.as_str()).filter(|id| !id.is_empty())
    }

    /// The thread of that id. An event of it is reported now, so its agent is decided. The first thread is
    /// the main one. A new thread while a call spawns a subagent is that subagent's, because its events
    /// arrive before the call's result (`real-app-collab-spawn`). If several calls may have spawned it, or
    /// none, it is named after itself.
    pub(super) fn of(&mut self, id: Option<&str>) -> &mut Thread {
        let at = self.place(id);
        if self.at(at).is_undecided() && !self.decide(at, |_| true) {
            self.name_itself(at);
        }
        self.at(at)
    }

    /// The thread of that id. No event of it has to be reported yet, so its agent stays undecided while
    /// several calls may have spawned it, or none.
    pub(super) fn mentioned(&mut self, id: Option<&str>) -> &mut Thread {
        let at = self.place(id);
        self.decide(at, |_| true);
        self.at(at)
    }

    /// The thread started with this prompt, which may identify the call that spawned it.
    pub(super) fn prompted(&mut self, id: Option<&str>, prompt: &str) {
        let at = self.place(id);
        self.decide(at, |spawn| spawn.prompt.as_deref() == Some(prompt));
    }

    /// The thread is a child of that agent; `name` names it if no call may have spawned it.
    pub(super) fn child(&mut self, id: &str, name: &str, parent: &Agent<'_>) -> &mut Thread {
        let at = self.place(Some(id));
        if self.at(at).is_undecided() {
            let parent = parent.id.to_string();
            self.at(at).parent = Some(parent.clone());
            if self.candidates(at).next().is_none() {
                self.bind(at, name.to_owned(), parent, None);
            }
            self.decide(at, |_| true);
        }
        self.at(at)
    }

    /// No call spawned the thread: it started by itself.
    pub(super) fn root(&mut self, id: &str) -> &mut Thread {
        let at = self.place(Some(id));
        if self.at(at).is_undecided() {
            self.at(at).parent = Some(MAIN_AGENT.to_owned());
            self.name_itself(at);
        }
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
        if self.all.len() >= LIMIT {
            self.all.remove(1);
        }
        let undecided = Some(self.calls);
        self.all.push(Thread { id: id.to_owned(), undecided, ..Thread::default() });
        self.all.len() - 1
    }

    fn candidates(&self, at: usize) -> impl Iterator<Item = &Spawn> {
        let thread = self.all.get(at);
        let last = thread.and_then(|thread| thread.undecided);
        let parent = thread.and_then(|thread| thread.parent.as_deref());
        self.spawns.iter().filter(move |spawn| {
            last.is_some_and(|last| spawn.number <= last)
                && !spawn.taken
                && parent.is_none_or(|parent| spawn.parent == parent)
        })
    }

    /// Assigns an undecided thread to the call that may have spawned it, if exactly one matches.
    fn decide(&mut self, at: usize, fits: impl Fn(&Spawn) -> bool) -> bool {
        let mut fitting = self.candidates(at).filter(|spawn| fits(spawn)).map(|spawn| spawn.number);
        let only = fitting.next().filter(|_| fitting.next().is_none());
        drop(fitting);
        let spawn = self.spawns.iter_mut().find(|spawn| Some(spawn.number) == only);
        let Some(spawn) = spawn else { return false };
        spawn.taken = true;
        let agent = spawn.call.clone();
        let (parent, prompt) = (spawn.parent.clone(), spawn.prompt.clone());
        self.bind(at, agent, parent, prompt);
        true
    }

    /// Makes an undecided thread a subagent named after itself. Its parent is the known one, or the one
    /// that all calls that may have spawned it share, or the main agent.
    fn name_itself(&mut self, at: usize) {
        let parents = || self.candidates(at).map(|spawn| &spawn.parent);
        let shared = parents().next().filter(|first| parents().all(|parent| parent == *first));
        let known = self.all.get(at).and_then(|thread| thread.parent.clone());
        let parent = known.or(shared.cloned()).unwrap_or(MAIN_AGENT.to_owned());
        let agent = self.at(at).id.clone();
        self.bind(at, agent, parent, None);
    }

    fn bind(&mut self, at: usize, agent: String, parent: String, prompt: Option<String>) {
        let thread = self.at(at);
        thread.undecided = None;
        (thread.agent, thread.parent, thread.prompt) = (agent, Some(parent), prompt);
    }

    /// A call starts that spawns a subagent.
    pub(super) fn spawning(&mut self, call: &str, parent: &Agent<'_>, prompt: Option<String>) {
        if self.spawns.len() < LIMIT {
            self.calls += 1;
            let (call, parent) = (call.to_owned(), parent.id.to_string());
            self.spawns.push(Spawn { number: self.calls, call, parent, prompt, taken: false });
        }
    }

    /// The call names the thread that it spawned, or failed to.
    pub(super) fn spawned(&mut self, call: &str, thread: Option<&str>, out: &mut Out<'_>) {
        let at = self.spawns.iter().position(|spawn| spawn.call == call);
        let spawn = at.map(|at| self.spawns.remove(at));
        let (Some(id), Some(spawn)) = (thread, spawn) else { return };
        let at = self.place(Some(id));
        if self.at(at).is_undecided() {
            // Another thread may have taken the call's name first.
            let agent = if spawn.taken { id.to_owned() } else { spawn.call };
            self.bind(at, agent, spawn.parent, spawn.prompt);
        }
        self.at(at).show(out);
    }

    /// Reports which subagents have ended, by the states that a call lists.
    pub(super) fn report_states(&mut self, states: Option<Value<'_>>, out: &mut Out<'_>) {
        for (id, state) in states.into_iter().flat_map(Value::fields) {
            let Some(status) = state.get("status").and_then(Value::string) else { continue };
            let thread = self.all.iter_mut().find(|thread| thread.id == *id && thread.is_sub());
            if let (Some(outcome), Some(thread)) = (outcome(&status), thread) {
                let result = state.read("message");
                thread.finish(out, AgentFinished { result, ..AgentFinished::new(outcome) });
            }
        }
    }

    /// The process ended, and all subagents with it.
    pub(super) fn end(&mut self, out: &mut Out<'_>) {
        self.spawns.clear();
        for thread in self.all.iter_mut().filter(|thread| thread.spawned) {
            thread.finish(out, AgentFinished::new(AgentOutcome::Cancelled));
        }
    }

    #[expect(
        clippy::indexing_slicing,
        reason = "indexes come from this list, which always has a main thread"
    )]
    fn at(&mut self, place: usize) -> &mut Thread {
        &mut self.all[place]
    }
}

/// The outcome in an `agentsStates` entry, if the subagent has ended.
fn outcome(status: &str) -> Option<AgentOutcome> {
    match status {
        "completed" => Some(AgentOutcome::Completed),
        "errored" | "notFound" | "not_found" => Some(AgentOutcome::Failed),
        "shutdown" | "interrupted" => Some(AgentOutcome::Cancelled),
        _ => None,
    }
}
