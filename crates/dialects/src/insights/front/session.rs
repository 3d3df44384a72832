//! A session of a page: its state, and what waits while the session cannot receive it.

use std::collections::{BTreeSet, VecDeque};

use agentwire_protocol::{AgentType, Event, EventKind, SessionId};

use crate::front::Outbox;
use crate::insights::render::Renderer;
use crate::insights::wire::{Code, Failure, SessionOp};

/// How many inputs may wait for a session that is being resumed.
const WAITING_LIMIT: usize = 64;

#[derive(Debug)]
pub(super) struct Session {
    pub(super) agent: AgentType,
    pub(super) phase: SessionPhase,
    pub(super) renderer: Renderer,
    /// The number of the last event that was shown.
    pub(super) seen: u64,
    /// The next events could not be read.
    is_lost: bool,
    /// It is assumed to be resumed by someone else, and no event has arrived since.
    pub(super) is_others: bool,
    /// What arrived while the session could not receive it.
    pub(super) waiting: VecDeque<QueuedInput>,
    /// Set while the events of an earlier connection are read again.
    catching_up: Option<CatchUp>,
}

/// Reads the events that an earlier connection showed, to know what is open. Shows nothing.
#[derive(Debug)]
struct CatchUp {
    /// The last event to read again.
    until: u64,
    /// Messages that arrived in the meantime.
    held: VecDeque<SessionOp>,
    /// Open requests that no page can answer.
    unanswerable: BTreeSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SessionPhase {
    Running,
    /// It accepts nothing more, and its last events are not shown yet.
    Ending,
    /// It has ended; the next input resumes it.
    Ended,
    Resuming,
    /// It was told to end; for its page it no longer exists.
    Killed,
}

/// What a session gets once it runs again.
#[derive(Debug)]
pub(super) enum QueuedInput {
    Input(String),
    Interrupt,
}

impl Session {
    /// A running session; `seen` is the last event that was shown.
    pub(super) fn new(agent: AgentType, renderer: Renderer, seen: u64) -> Self {
        let (phase, waiting) = (SessionPhase::Running, VecDeque::new());
        let (is_lost, is_others, catching_up) = (false, false, None);
        Self { agent, phase, renderer, seen, is_lost, is_others, waiting, catching_up }
    }

    /// A session that an earlier connection of this client started. Its events up to `until` were shown.
    pub(super) fn earlier(agent: AgentType, renderer: Renderer, until: u64) -> Self {
        let (held, unanswerable) = Default::default();
        let catching_up = Some(CatchUp { until, held, unanswerable });
        Self { catching_up, ..Self::new(agent, renderer, 0) }
    }

    pub(super) fn is_catching_up(&self) -> bool {
        self.catching_up.is_some()
    }

    /// Whether that must wait until it is known what is open. A message that stops a session never waits.
    pub(super) fn holds(&self, wanted: &SessionOp) -> bool {
        self.is_catching_up() && !matches!(wanted, SessionOp::Kill | SessionOp::Interrupt)
    }

    pub(super) fn hold(&mut self, wanted: SessionOp) -> Result<(), Failure> {
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

    /// If that was the last event to read again: the held messages, and the open requests that no page can
    /// answer.
    pub(super) fn caught_up(
        &mut self,
        seq: u64,
    ) -> Option<(VecDeque<SessionOp>, BTreeSet<String>)> {
        let is_last = self.catching_up.as_ref().is_some_and(|it| seq >= it.until);
        let CatchUp { held, unanswerable, .. } = self.catching_up.take_if(|_| is_last)?;
        Some((held, unanswerable))
    }

    pub(super) fn lose(&mut self) {
        self.is_lost = true;
    }

    pub(super) fn wait(&mut self, waiting: QueuedInput) -> Result<(), Failure> {
        if self.waiting.len() >= WAITING_LIMIT {
            let text = "too much is waiting for the session; try again later";
            let code = match waiting {
                QueuedInput::Input(_) => Code::InputFailed,
                QueuedInput::Interrupt => Code::InterruptFailed,
            };
            return Err(Failure::new(code, text));
        }
        self.waiting.push_back(waiting);
        Ok(())
    }

    /// Follows the session again from the point where its events could not be read.
    pub(super) fn look_again(&mut self, id: &SessionId, out: &mut Outbox) {
        if std::mem::take(&mut self.is_lost) {
            out.follow(id, self.seen);
        }
    }
}

/// Holds a message for later, up to a limit.
pub(super) fn hold(held: &mut VecDeque<SessionOp>, wanted: SessionOp) -> Result<(), Failure> {
    if held.len() >= WAITING_LIMIT {
        let text = "too many messages are waiting for the session; try again later";
        return Err(Failure::new(wanted.code(), text));
    }
    held.push_back(wanted);
    Ok(())
}
