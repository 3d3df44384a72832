//! The agent's process, and what is to become of it: one for the session, or one for each turn.

use super::agent::{Happening, Origin, Running};
use super::escalation::Escalation;
use crate::process::TreeSignal;

/// Holds the process of a session.
#[derive(Default)]
pub(super) struct Supervisor {
    process: Option<Running>,
    /// Signals that follow if it does not do what it must.
    pub(super) escalation: Escalation,
    /// What its next process goes on with.
    origin: Origin,
    due: Option<Due>,
}

/// What is to be started, once what led to it is durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// The agent: it is known whether the project is trusted, or its time has come.
    Agent,
    /// The process of the next prompt.
    Process,
}

impl Supervisor {
    pub(super) fn new(origin: Origin) -> Self {
        Self { origin, ..Self::default() }
    }

    pub(super) fn process(&self) -> Option<&Running> {
        self.process.as_ref()
    }

    pub(super) fn process_mut(&mut self) -> Option<&mut Running> {
        self.process.as_mut()
    }

    pub(super) fn has_process(&self) -> bool {
        self.process.is_some()
    }

    /// A process runs.
    pub(super) fn started(&mut self, process: Running) {
        self.process = Some(process);
    }

    /// The process has ended and all it said is read.
    pub(super) fn take_over(&mut self) -> Option<Running> {
        let process = self.process.take_if(|process| process.is_over());
        if process.is_some() {
            self.escalation.clear();
        }
        process
    }

    /// Nobody hears what it still says. A process that is dropped is killed; nothing starts any more.
    pub(super) fn end(&mut self) {
        self.process = None;
        self.due = None;
    }

    pub(super) fn signal(&self, signal: TreeSignal) {
        if let Some(process) = &self.process {
            process.control.signal(signal);
        }
    }

    /// The conversation that the next process goes on with.
    pub(super) fn origin(&self) -> &Origin {
        &self.origin
    }

    pub(super) fn resume_from(&mut self, id: String) {
        self.origin = Origin { resume: Some(id), fork: false };
    }

    /// Something is to be started. The agent comes before the processes of its prompts.
    pub(super) fn want(&mut self, due: Due) {
        if self.due != Some(Due::Agent) {
            self.due = Some(due);
        }
    }

    pub(super) fn take_due(&mut self) -> Option<Due> {
        self.due.take()
    }

    /// The next that happens to the process. Cancelling it loses nothing.
    pub(super) async fn next(&mut self, may_gather: bool) -> Happening {
        match &mut self.process {
            Some(process) => process.next(may_gather).await,
            None => std::future::pending().await,
        }
    }
}
