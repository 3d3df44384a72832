//! The threads of one app server, and whose events theirs are: the main agent's, or a subagent's
//! named after the call that spawned it. A thread that no call is known to have spawned is a subagent
//! named after itself. Once an event was told of a thread, its agent stays the same.

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
    /// How many such calls there were.
    calls: u64,
}

/// One thread.
#[derive(Debug, Default)]
pub(super) struct Thread {
    pub(super) id: String,
    agent: String,
    parent: Option<String>,
    name: Option<String>,
    prompt: Option<String>,
    /// One of the calls up to this one may have spawned it, and nothing shows yet which.
    undecided: Option<u64>,
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
    number: u64,
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
        self.parent.is_some() || self.is_undecided()
    }

    /// Whether it is not known whose thread it is.
    pub(super) fn is_undecided(&self) -> bool {
        self.undecided.is_some()
    }

    /// The subagent shows itself: it begins, if it has not.
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

    /// It has that name, unless it has one.
    pub(super) fn named(&mut self, name: Option<Text<'_>>) {
        self.name = self.name.take().or(name.map(|name| name.to_string()));
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
        Self { all: vec![main], spawns: Vec::new(), calls: 0 }
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

    /// The thread of that id, of which something is told now: whose it is gets decided. The first
    /// that is heard of is the main one; a new one while a call spawns a subagent is that
    /// subagent's, for its events come before the call's result (`real-app-collab-spawn`). Where
    /// several calls may have spawned it, or none, it is named after itself.
    pub(super) fn of(&mut self, id: Option<&str>) -> &mut Thread {
        let at = self.place(id);
        if self.at(at).is_undecided() && !self.decide(at, |_| true) {
            self.name_itself(at);
        }
        self.at(at)
    }

    /// The thread of that id, of which nothing need be told yet: whose it is stays open while
    /// several calls may have spawned it, or none.
    pub(super) fn heard(&mut self, id: Option<&str>) -> &mut Thread {
        let at = self.place(id);
        self.decide(at, |_| true);
        self.at(at)
    }

    /// The thread began with this prompt, which may tell the call that spawned it.
    pub(super) fn prompted(&mut self, id: Option<&str>, prompt: &str) {
        let at = self.place(id);
        self.decide(at, |spawn| spawn.prompt.as_deref() == Some(prompt));
    }

    /// The thread is a child of that agent; `name` names it where no call may have spawned it.
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

    /// No call spawned the thread: it began by itself.
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

    /// The calls that may have spawned the thread.
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

    /// Gives an undecided thread to the one call that may have spawned it and fits, if it is one.
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

    /// An undecided thread becomes a subagent of its own name: a child of whom it is known to be, or
    /// of whom all that may have spawned it are.
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

    /// A call begins that spawns a subagent.
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
            // Another thread may have come first and have the call's name.
            let agent = if spawn.taken { id.to_owned() } else { spawn.call };
            self.bind(at, agent, spawn.parent, spawn.prompt);
        }
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

    #[expect(
        clippy::indexing_slicing,
        reason = "places are this list's own, and it has a main thread"
    )]
    fn at(&mut self, place: usize) -> &mut Thread {
        &mut self.all[place]
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
