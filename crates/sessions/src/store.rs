//! Where a log is kept. A store is blocking and knows nothing of agents: it keeps batches of event
//! lines, one record for each session, and the keys of calls that must count once.

mod append;
mod batch;
pub mod gap;
pub mod memory;
pub mod sqlite;

use std::collections::BTreeMap;

use agentwire_protocol::{SessionConfig, SessionId, SessionSummary};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

/// Keeps logs. All methods block; the log calls them from threads of its own.
pub trait Store: Send + Sync {
    /// Keeps all of these or none, durably: after this returns a power cut takes nothing back.
    ///
    /// A session that is not known yet begins with it. It is a conflict if a batch does not begin
    /// one after the last event kept, if another process owns the session, if the session was
    /// deleted, or if a key was kept before.
    fn append(&self, appends: &[&Append]) -> Result<(), StoreError>;

    /// Keeps one as [`Store::append`] does, if that takes no longer than the disk itself: called
    /// where little may block. `None` if it would wait for somebody, and nothing was kept.
    fn append_at_once(&self, append: &Append) -> Option<Result<(), StoreError>> {
        let _ = append;
        None
    }

    /// Keeps one as [`Store::append`] does, but waits only a moment for others who write: it is busy
    /// then, and nothing was kept. For those who only came to read.
    fn append_soon(&self, append: &Append) -> Result<(), StoreError> {
        self.append(&[append])
    }

    /// The batches that hold the events after `after`, oldest first: at least one if there is one,
    /// and no more once `bytes` are reached. One that is longer than that comes alone. The first may
    /// begin at or before `after`. None if the session is not known.
    fn read(&self, session: &SessionId, after: u64, bytes: usize)
    -> Result<Vec<Batch>, StoreError>;

    /// One session.
    fn session(&self, id: &SessionId) -> Result<Option<Record>, StoreError>;

    /// Sessions, newest first; none if `before` is not known.
    fn sessions(&self, filter: &Filter) -> Result<Vec<Record>, StoreError>;

    /// What a call with that key was answered, if there was one.
    fn remembered(&self, key: &str) -> Result<Option<String>, StoreError>;

    /// Forgets a key: a call with it counts again.
    fn forget_key(&self, key: &str) -> Result<(), StoreError>;

    /// Makes `owner` the owner of a session if it is `expected`'s now, and says whether it did: of
    /// several that try at once exactly one takes over.
    fn claim(
        &self,
        session: &SessionId,
        expected: Option<&str>,
        owner: &str,
    ) -> Result<bool, StoreError>;

    /// Whether an owner of that name still runs, in another process or in this one.
    fn is_alive(&self, owner: &str) -> bool;

    /// Forgets sessions and all that is theirs; those that are not known are passed over.
    fn delete(&self, sessions: &[SessionId]) -> Result<(), StoreError>;

    /// How many bytes of events must be brought into memory to read what comes after that one; none
    /// where they are there already.
    fn next_size(&self, _session: &SessionId, _after: u64) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// How many bytes it takes on disk; `None` where it takes none.
    fn size(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Changes whenever another process may have added events; `None` where there is no other.
    fn version(&self) -> Result<Option<u64>, StoreError>;
}

/// What one session adds in one transaction.
#[derive(Clone, Debug)]
pub struct Append {
    /// The events, if any; the first is one more than the last that was kept.
    pub batch: Option<Batch>,
    /// The session as it is after them.
    pub record: Record,
    /// Calls that must count once: key and answer.
    pub keys: Vec<(String, String)>,
}

/// Events of one session that were made durable together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of the first.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// One JSON text a line, `\n` after each.
    pub lines: Bytes,
}

/// All that is kept of a session beside its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// What clients see.
    pub summary: SessionSummary,
    /// The process that runs it, by the name of its lock; none if nobody does.
    pub owner: Option<String>,
    /// What it runs with, without secrets.
    pub config: SessionConfig,
    /// What is open, so that it can be closed by whoever finds the session without its owner.
    pub open: Open,
    /// The client that started it, where that is known (`NewSession::client`), unless a client stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Why this is only part of what was kept, or not what is kept: it can be shown, and nothing can
    /// go on from it.
    #[serde(skip)]
    pub unfit: Option<String>,
    /// What the operator started it with that is not kept, by the names of the fields.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unkept: Vec<String>,
    /// When the agent told the id of its own session: it made that session before. None where the agent
    /// had it from elsewhere, or has told none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_since: Option<String>,
}

/// What is open in a session: its turn, tool calls, subagents and requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Open {
    /// The number of the turn that runs.
    pub turn: Option<u64>,
    /// Tool calls without a result, by id.
    pub tools: BTreeMap<String, OpenBy>,
    /// Subagents that have not finished, by id.
    pub agents: BTreeMap<String, OpenBy>,
    /// Requests without an answer, by id.
    pub requests: BTreeMap<String, OpenBy>,
}

/// Whose something open is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenBy {
    /// The agent.
    pub agent: String,
    /// The agent that spawned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// Of a request: the number of the event that raised it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

/// Which sessions are wanted.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those that have not ended.
    pub live: bool,
    /// Only those that began before this one did.
    pub before: Option<SessionId>,
    /// At most so many; all if none is given.
    pub limit: Option<usize>,
}

/// Why a store could not do it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// No room; it may be tried again.
    Full(String),
    /// Somebody else holds it; it may be tried again.
    Busy(String),
    /// It does not follow what was kept: another process owns the session, or has used the key.
    Conflict(String),
    /// Anything else.
    Failed(String),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Full(text) | Self::Busy(text) | Self::Conflict(text) | Self::Failed(text) => {
                f.write_str(text)
            }
        }
    }
}

impl std::error::Error for StoreError {}
