//! A session of a page: how it lives, and what waits while nobody can hear it.

use std::collections::{BTreeSet, VecDeque};

use agentwire_protocol::{AgentType, Event, EventKind, SessionId};

use crate::front::Outbox;
use crate::insights::render::Renderer;
use crate::insights::wire::{Code, Failure, Wanted};

/// How many inputs may wait for a session that is being resumed.
const WAITING_LIMIT: usize = 64;

/// A session of a page.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) agent: AgentType,
    pub(super) life: Life,
    pub(super) renderer: Renderer,
    /// The number of the last event that was shown.
    pub(super) seen: u64,
    /// What comes next could not be read.
    is_lost: bool,
    /// It was taken for one that somebody else resumed, and nothing was seen of that yet.
    pub(super) is_others: bool,
    /// What came while nobody could hear it.
    pub(super) waiting: VecDeque<Pending>,
    /// Set while the events of an earlier connection are read again.
    catching_up: Option<CatchUp>,
}

/// Reads the events that an earlier connection showed, to know what is open. Shows nothing.
#[derive(Debug)]
struct CatchUp {
    /// The last event to read so.
    until: u64,
    /// What is wanted of the session meanwhile.
    held: VecDeque<Wanted>,
    /// Open requests that no page can answer.
    unanswerable: BTreeSet<String>,
}

/// Whether anybody hears what is said to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    Running,
    /// It takes no more, and its last events are still to be shown.
    Ending,
    /// It ended; the next input goes on with it.
    Over,
    Resuming,
    /// It was told to end, and is no more to its page.
    Killed,
}

/// What a session is told once it runs again.
#[derive(Debug)]
pub(super) enum Pending {
    Input(String),
    Interrupt,
}

impl Session {
    /// One that runs, of which nothing was shown after that event.
    pub(super) fn new(agent: AgentType, renderer: Renderer, seen: u64) -> Self {
        let (life, waiting) = (Life::Running, VecDeque::new());
        let (is_lost, is_others, catching_up) = (false, false, None);
        Self { agent, life, renderer, seen, is_lost, is_others, waiting, catching_up }
    }

    /// One that an earlier connection of this client started. Its events up to that number were shown.
    pub(super) fn earlier(agent: AgentType, renderer: Renderer, until: u64) -> Self {
        let (held, unanswerable) = Default::default();
        let catching_up = Some(CatchUp { until, held, unanswerable });
        Self { catching_up, ..Self::new(agent, renderer, 0) }
    }

    pub(super) fn is_catching_up(&self) -> bool {
        self.catching_up.is_some()
    }

    /// Whether that has to wait until it is known what is open. What stops a session never waits.
    pub(super) fn holds(&self, wanted: &Wanted) -> bool {
        self.is_catching_up() && !matches!(wanted, Wanted::Kill | Wanted::Interrupt)
    }

    pub(super) fn hold(&mut self, wanted: Wanted) -> Result<(), Failure> {
        match &mut self.catching_up {
            Some(catching_up) => hold(&mut catching_up.held, wanted),
            None => Ok(()),
        }
    }

    /// Reads an event that was shown before.
    pub(super) fn catch_up(&mut self, event: &Event<'_>) {
        let Some(catching_up) = &mut self.catching_up else { return };
        if let Some(id) = self.renderer.event(event, &mut |_| {}) {
            catching_up.unanswerable.insert(id);
        }
        if let EventKind::RequestSettled(settled) = &event.kind {
            catching_up.unanswerable.remove(&*settled.request_id.decode());
        }
    }

    /// If that was the last event to read again: what was wanted meanwhile, and the open requests that no
    /// page can answer.
    pub(super) fn caught_up(&mut self, seq: u64) -> Option<(VecDeque<Wanted>, BTreeSet<String>)> {
        let is_last = self.catching_up.as_ref().is_some_and(|it| seq >= it.until);
        let CatchUp { held, unanswerable, .. } = self.catching_up.take_if(|_| is_last)?;
        Some((held, unanswerable))
    }

    /// What comes next cannot be read.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    pub(super) fn wait(&mut self, waiting: Pending) -> Result<(), Failure> {
        if self.waiting.len() >= WAITING_LIMIT {
            let text = "too much waits for the session; try again later";
            let code = match waiting {
                Pending::Input(_) => Code::InputFailed,
                Pending::Interrupt => Code::InterruptFailed,
            };
            return Err(Failure::new(code, text));
        }
        self.waiting.push_back(waiting);
        Ok(())
    }

    /// Shows what could not be read, from there on.
    pub(super) fn look_again(&mut self, id: &SessionId, out: &mut Outbox) {
        if std::mem::take(&mut self.is_lost) {
            out.follow(id, self.seen);
        }
    }
}

/// Keeps what is wanted of a session for later, up to a limit.
pub(super) fn hold(held: &mut VecDeque<Wanted>, wanted: Wanted) -> Result<(), Failure> {
    if held.len() >= WAITING_LIMIT {
        let text = "too many messages wait for the session; try again later";
        return Err(Failure::new(wanted.code(), text));
    }
    held.push_back(wanted);
    Ok(())
}
