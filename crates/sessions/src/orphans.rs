//! Closes sessions that no process runs any more: open requests are denied, whatever else was open fails,
//! and the end becomes an event. A prompt is never sent again.

use agentwire_dialects::tape::Agent;
use agentwire_protocol::event::{
    AgentFinished, AgentOutcome, RequestOutcome, RequestSettled, SessionEndReason, SessionEnded,
    SettledBy, ToolFailed, ToolFailure, TurnFailed, TurnFailure,
};
use agentwire_protocol::{SessionState, Text};

use crate::session::{Core, DerivedState, Hooks, Journal};
use crate::store::{Append, Filter, Open, OpenBy, Record, Store, StoreError};

/// The reason reported for a session whose process died.
pub(crate) const DIED: &str = "agentwire ended while the session ran";

/// Closes every session whose owner is dead.
pub(crate) fn sweep(store: &dyn Store) -> Result<(), StoreError> {
    for record in store.sessions(&Filter { live: true, ..Filter::default() })? {
        // Another process that holds the store for long must not delay the start.
        if is_left(store, &record, None) && tidy(store, record, DIED) == Tidied::Busy {
            break;
        }
    }
    Ok(())
}

/// The result of closing a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tidied {
    /// The session is closed, or will be the next time it is looked at.
    Done,
    /// Another writer is busy: trying another session now is pointless.
    Busy,
}

/// Whether a session has not ended although its owner is dead, or is `own`. The caller must know that it
/// does not run the session itself.
pub(crate) fn is_left(store: &dyn Store, record: &Record, own: Option<&str>) -> bool {
    let runs = |owner: &str| Some(owner) != own && store.is_alive(owner);
    record.summary.state != SessionState::Ended && !record.owner.as_deref().is_some_and(runs)
}

/// Closes this session if possible. What cannot be closed now, for example on a full disk or while another
/// process writes, is closed later; reading continues.
pub(crate) fn tidy(store: &dyn Store, record: Record, reason: &str) -> Tidied {
    let id = record.summary.id.clone();
    match store.append_soon(&closing(record, reason)) {
        // If several processes close it at once, one of them succeeds.
        Ok(()) | Err(StoreError::Conflict(_)) => Tidied::Done,
        Err(StoreError::Busy(error)) => {
            tracing::debug!(session = id.as_str(), %error, "the store is busy; the session is closed later");
            Tidied::Busy
        }
        Err(error @ (StoreError::Full(_) | StoreError::Failed(_))) => {
            tracing::warn!(session = id.as_str(), %error, "failed to close a session whose owner is dead");
            Tidied::Done
        }
    }
}

/// An abandoned session, as it will be once its end is written.
pub(crate) fn derived(mut record: Record, reason: &str) -> Record {
    record.owner = None;
    record.open = Open::default();
    record.unfit = Some("its end is not written yet; try again".to_owned());
    let summary = &mut record.summary;
    summary.state = SessionState::Ended;
    summary.reason = Some(SessionEndReason::Failed);
    summary.error = Some(format!("{reason}; it can be resumed"));
    summary.open_requests = 0;
    record
}

/// Closes this abandoned session. Its end follows the last event of the record: if there are more events by
/// now, this is a conflict and nothing is done.
pub(crate) fn close(store: &dyn Store, record: Record, reason: &str) -> Result<(), StoreError> {
    if record.summary.state == SessionState::Ended {
        return Ok(());
    }
    store.append(&[&closing(record, reason)])
}

fn closing(record: Record, reason: &str) -> Append {
    let open = record.open.clone();
    let journal = Journal::new(record.summary.id.clone(), record.summary.last_seq);
    let mut core = Core::new(journal, DerivedState::closing(record), Hooks::default(), None, None);
    for (id, by) in &open.requests {
        let settled = RequestSettled {
            request_id: Text::from(id.as_str()),
            outcome: RequestOutcome::Denied,
            by: SettledBy::Gateway,
            client: None,
            reason: Some(Text::from(reason)),
            updated_input: None,
        };
        core.emit_as(agent(by), settled);
    }
    for (id, by) in &open.tools {
        let failed = ToolFailed {
            tool_id: Text::from(id.as_str()),
            error: Text::from(reason),
            reason: ToolFailure::Interrupted,
            result: None,
        };
        core.emit_as(agent(by), failed);
    }
    for by in open.agents.values() {
        let finished = AgentFinished {
            outcome: AgentOutcome::Cancelled,
            result: None,
            native_id: None,
            usage: None,
            duration_ms: None,
        };
        core.emit_as(agent(by), finished);
    }
    if let Some(turn_number) = open.turn {
        core.emit(TurnFailed::new(turn_number, TurnFailure::Died, reason));
    }
    core.emit(SessionEnded {
        reason: SessionEndReason::Failed,
        error: Some(Text::from(format!("{reason}; it can be resumed"))),
    });
    let batch = core.journal.take();
    let last = core.journal.last();
    let mut record = core.state.record;
    record.owner = None;
    record.summary.last_seq = last;
    record.summary.updated_at = core.journal.timestamp().to_owned();
    Append { batch, record, keys: Vec::new() }
}

fn agent(by: &OpenBy) -> Agent<'_> {
    Agent { id: Text::from(by.agent.as_str()), parent: by.parent.as_deref().map(Text::from) }
}
