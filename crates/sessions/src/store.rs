//! The store of a log. It blocks, and knows nothing about agents: it stores batches of event lines, one
//! record per session, and the keys of calls that must count once.

mod append;
mod batch;
mod brief;
mod codec;
pub mod gap;
pub mod memory;
pub mod sqlite;

use std::collections::{BTreeMap, HashMap};

use agentwire_protocol::{LabelChange, Labels, SessionConfig, SessionId, SessionSummary};
use bytes::Bytes;
use serde::{Deserialize, Serialize};

pub use self::brief::{Brief, ListOrder, Place};

/// Stores logs. All methods block; the log calls them from its own threads.
pub trait Store: Send + Sync {
    /// Stores all of these or none, durably: after this returns, a power cut loses nothing.
    ///
    /// An unknown session starts with its first append. It is a conflict if a batch does not start one
    /// after the last stored event, if another process owns the session, if the session was deleted, or if
    /// a key was stored before.
    fn append(&self, appends: &[&Append]) -> Result<(), StoreError>;

    /// Stores one as [`Store::append`] does, if that takes no longer than the disk itself: for callers that
    /// must hardly block. Returns `None` if it would have to wait for someone, and nothing was stored.
    fn append_at_once(&self, append: &Append) -> Option<Result<(), StoreError>> {
        let _ = append;
        None
    }

    /// Stores one as [`Store::append`] does, but waits only a moment for other writers. After that it fails
    /// as busy, and nothing was stored. For callers that actually want to read.
    fn append_soon(&self, append: &Append) -> Result<(), StoreError> {
        self.append(&[append])
    }

    /// The batches with the events after `after`, oldest first: at least one if there is one, and no more
    /// once `bytes` are reached. A batch longer than that comes alone. The first may start at or before
    /// `after`. Empty if the session is unknown.
    fn read(&self, session: &SessionId, after: u64, bytes: usize)
    -> Result<Vec<Batch>, StoreError>;

    /// The event after which [`Store::read`] starts in order to get the newest events before `before`: at
    /// most `count` of them, and no further batch once `bytes` are reached. Reads no events.
    fn start_before(
        &self,
        _session: &SessionId,
        before: u64,
        count: u64,
        _bytes: u64,
    ) -> Result<u64, StoreError> {
        Ok(before.saturating_sub(count.saturating_add(1)))
    }

    fn session(&self, id: &SessionId) -> Result<Option<Record>, StoreError>;

    /// Sessions, newest first; none if `before` is unknown.
    fn sessions(&self, filter: &Filter) -> Result<Vec<Record>, StoreError>;

    /// The sessions that come after a place in this order, as far as lists are filtered by them. If there
    /// are fewer than `limit`, no more follow.
    fn briefs(
        &self,
        order: ListOrder,
        after: Place,
        limit: usize,
    ) -> Result<Vec<Brief>, StoreError>;

    /// One session, as far as lists are filtered and sorted by it.
    fn brief(&self, session: &SessionId) -> Result<Option<Brief>, StoreError>;

    /// Every session's number in the store and its last event. In no particular order.
    fn ends(&self) -> Result<Vec<End>, StoreError>;

    /// What people call a session.
    fn label(&self, session: &SessionId) -> Result<Labels, StoreError>;

    /// The labels of all sessions that have any.
    fn labels(&self) -> Result<HashMap<SessionId, Labels>, StoreError>;

    /// Changes the labels of a session, whichever process owns it. Returns whether there is such a session.
    fn set_label(&self, session: &SessionId, change: LabelChange) -> Result<bool, StoreError>;

    /// The answer to an earlier call with this key, if there was one.
    fn remembered(&self, key: &str) -> Result<Option<String>, StoreError>;

    /// Forgets a key: a call with it counts again.
    fn forget_key(&self, key: &str) -> Result<(), StoreError>;

    /// Makes `owner` the owner of a session if `expected` owns it now. Returns whether it did: if several
    /// try at once, exactly one succeeds.
    fn claim(
        &self,
        session: &SessionId,
        expected: Option<&str>,
        owner: &str,
    ) -> Result<bool, StoreError>;

    /// Whether this owner still runs, in another process or in this one.
    fn is_alive(&self, owner: &str) -> bool;

    /// Deletes sessions and everything that belongs to them; unknown sessions are skipped.
    fn delete(&self, sessions: &[SessionId]) -> Result<(), StoreError>;

    /// How many bytes of events must be read into memory to get what comes after `after`; 0 if they are in
    /// memory already.
    fn next_size(&self, _session: &SessionId, _after: u64) -> Result<u64, StoreError> {
        Ok(0)
    }

    /// How many bytes the store takes on disk; `None` if it is not on disk.
    fn size(&self) -> Result<Option<u64>, StoreError> {
        Ok(None)
    }

    /// Changes whenever another process may have added events; `None` if there can be no other.
    fn version(&self) -> Result<Option<u64>, StoreError>;
}

/// Where the log of a session ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct End {
    pub id: SessionId,
    /// A number that no other session gets, even if this one is deleted and its id is used again.
    pub number: i64,
    /// The number of the last event.
    pub last: u64,
}

/// What one session adds in one transaction.
#[derive(Clone, Debug)]
pub struct Append {
    /// The events, if any; the first number is one more than the last stored.
    pub batch: Option<Batch>,
    /// The session after these events.
    pub record: Record,
    /// Calls that must count once: key and answer.
    pub keys: Vec<(String, String)>,
}

/// Events of one session that became durable together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The number of the first event.
    pub first: u64,
    pub count: u64,
    /// One JSON text per line, each followed by `\n`.
    pub lines: Bytes,
}

/// Everything stored about a session except its events.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    pub summary: SessionSummary,
    /// The process that runs it, by the name of its lock; `None` if no process does.
    pub owner: Option<String>,
    /// The configuration without secrets.
    pub config: SessionConfig,
    /// What is open, so that another process can close it if the owner is gone.
    pub open: Open,
    /// The client that started it, if known (`NewSession::client`), unless a client stopped it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// Why this record is only a part of what was stored, or differs from it. Such a record can be shown,
    /// but nothing can continue from it.
    #[serde(skip)]
    pub unfit: Option<String>,
    /// The operator's options that are not stored, by field name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unkept: Vec<String>,
    /// When the agent reported the id of its own session, which it had created before. `None` if the agent
    /// got the session from elsewhere, or has reported no id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub native_since: Option<String>,
    /// How the first prompt starts, on one line.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_prompt: Option<String>,
}

/// What is open in a session: its turn, tool calls, subagents and requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Open {
    /// The number of the running turn.
    pub turn: Option<u64>,
    /// Tool calls without a result, by id.
    pub tools: BTreeMap<String, OpenBy>,
    /// Subagents that have not finished, by id.
    pub agents: BTreeMap<String, OpenBy>,
    /// Requests without an answer, by id.
    pub requests: BTreeMap<String, OpenBy>,
}

/// The agent that something open belongs to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OpenBy {
    pub agent: String,
    /// The agent that spawned it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// For a request: the number of the event that raised it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
}

#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Only those that have not ended.
    pub live: bool,
    /// Only those that started before this one.
    pub before: Option<SessionId>,
    /// At most this many; all if `None`.
    pub limit: Option<usize>,
}

/// Why a store operation failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreError {
    /// No room; may be retried.
    Full(String),
    /// Another writer holds the store; may be retried.
    Busy(String),
    /// It does not follow what is stored: another process owns the session, or has used the key.
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
