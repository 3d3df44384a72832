//! Closes sessions that nobody runs any more: their requests are denied, what was open has failed, and
//! their end is an event. A prompt is never sent again.

use std::path::Path;

use agentwire_dialects::tape::Agent;
use agentwire_protocol::event::{
    AgentFinished, AgentOutcome, RequestOutcome, RequestSettled, SessionEndReason, SessionEnded,
    SettledBy, ToolFailed, ToolFailure, TurnFailed, TurnFailure,
};
use agentwire_protocol::{SessionId, SessionState, Text};

use crate::owner;
use crate::session::{Book, Core, Hooks, Journal};
use crate::store::{Append, Filter, OpenBy, Record, Store, StoreError};

/// Closes every session whose owner is dead.
pub(crate) fn sweep(store: &dyn Store, data_dir: &Path, owner: &str) -> Result<(), StoreError> {
    for record in store.sessions(&Filter { live: true, ..Filter::default() })? {
        let is_alive = record.owner.as_deref().is_some_and(|name| owner::is_alive(data_dir, name));
        let id = &record.summary.id;
        if is_alive {
            continue;
        }
        // What cannot be closed now, such as on a full disk, is closed later; reading goes on.
        let closed = store.claim(id, record.owner.as_deref(), owner).and_then(|ours| match ours {
            true => close(store, id, "agentwire ended while the session ran"),
            false => Ok(()),
        });
        if let Err(error) = closed {
            tracing::warn!(session = id.as_str(), %error, "a session without its owner stays open");
        }
    }
    Ok(())
}

/// Closes that session.
pub(crate) fn close(store: &dyn Store, id: &SessionId, reason: &str) -> Result<(), StoreError> {
    let Some(record) = store.session(id)? else { return Ok(()) };
    if record.summary.state == SessionState::Ended {
        return Ok(());
    }
    store.append(&[&closing(record, reason)])
}

fn closing(record: Record, reason: &str) -> Append {
    let open = record.open.clone();
    let journal = Journal::new(record.summary.id.clone(), record.summary.last_seq);
    let mut core = Core::new(journal, Book::closing(record), Hooks::default(), None);
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
    let mut record = core.book.record;
    record.owner = None;
    record.summary.last_seq = last;
    record.summary.updated_at = core.journal.timestamp().to_owned();
    Append { batch, record, keys: Vec::new() }
}

fn agent(by: &OpenBy) -> Agent<'_> {
    Agent { id: Text::from(by.agent.as_str()), parent: by.parent.as_deref().map(Text::from) }
}
