//! A session of a page: how it lives, and what waits while nobody can hear it.

use std::collections::VecDeque;

use agentwire_protocol::{AgentType, SessionId};

use crate::front::Outbox;
use crate::insights::render::Renderer;
use crate::insights::wire::{Code, Failure};

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
    pub(super) waiting: VecDeque<Waiting>,
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
pub(super) enum Waiting {
    Input(String),
    Interrupt,
}

impl Session {
    /// One that runs, of which nothing was shown after that event.
    pub(super) fn new(agent: AgentType, renderer: Renderer, seen: u64) -> Self {
        let (life, waiting) = (Life::Running, VecDeque::new());
        Self { agent, life, renderer, seen, is_lost: false, is_others: false, waiting }
    }

    /// What comes next cannot be read.
    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    pub(super) fn wait(&mut self, waiting: Waiting) -> Result<(), Failure> {
        if self.waiting.len() >= WAITING_LIMIT {
            let text = "too much waits for the session; try again later";
            let code = match waiting {
                Waiting::Input(_) => Code::InputFailed,
                Waiting::Interrupt => Code::InterruptFailed,
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
