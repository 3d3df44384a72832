//! What the tests of stores and of the log share: records, batches, random numbers.
#![expect(dead_code, reason = "each test file uses what it needs, none uses all")]

pub(crate) mod gate;

use std::fmt::Write as _;
use std::sync::Arc;

use agentwire_protocol::{
    AgentType, SessionConfig, SessionId, SessionState, SessionSummary, TokenUsage,
};
use agentwire_sessions::store::memory::Memory;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Append, Batch, Open, Record, Store};
use tempfile::TempDir;

pub(crate) fn record(id: &str, state: SessionState, owner: Option<&str>, last: u64) -> Record {
    Record {
        summary: SessionSummary {
            id: id.into(),
            agent_type: AgentType::Demo,
            state,
            reason: None,
            error: None,
            title: Some("a title".to_owned()),
            working_directory: None,
            model: None,
            approval_mode: None,
            driver: None,
            native_session_id: None,
            agent_version: None,
            gateway_version: None,
            created_at: "2026-01-02T03:04:05Z".to_owned(),
            updated_at: "2026-01-02T03:04:05Z".to_owned(),
            last_seq: last,
            turns: 0,
            last_turn: None,
            usage: TokenUsage::default(),
            cost_usd: None,
            open_requests: 0,
            pinned: false,
            tags: Vec::new(),
        },
        owner: owner.map(str::to_owned),
        config: SessionConfig::default(),
        open: Open::default(),
        client: None,
        unfit: None,
        unkept: Vec::new(),
        native_since: None,
        first_prompt: None,
    }
}

/// The line of an event: it names its session and number, and its length varies.
pub(crate) fn line(session: &str, seq: u64) -> String {
    let mut line = format!("{session} {seq} ");
    for word in 0..(seq * 7919) % 40 {
        let _ = write!(line, "\u{2028}{word:x}");
    }
    line
}

pub(crate) fn batch(session: &str, first: u64, count: u64) -> Batch {
    let mut lines = String::new();
    for seq in first..first + count {
        lines.push_str(&line(session, seq));
        lines.push('\n');
    }
    Batch { first, count, lines: lines.into() }
}

/// Events of a session that works.
pub(crate) fn append(session: &str, first: u64, count: u64) -> Append {
    of_batch(session, batch(session, first, count))
}

pub(crate) fn of_batch(session: &str, batch: Batch) -> Append {
    Append {
        record: record(session, SessionState::Working, None, batch.last()),
        batch: Some(batch),
        keys: Vec::new(),
    }
}

/// A change of a session, without events.
pub(crate) fn change(record: Record) -> Append {
    Append { batch: None, record, keys: Vec::new() }
}

pub(crate) fn id(session: &str) -> SessionId {
    session.into()
}

pub(crate) fn sqlite() -> (Arc<dyn Store>, TempDir) {
    let directory = tempfile::tempdir().unwrap();
    (Arc::new(Sqlite::open(directory.path()).unwrap()), directory)
}

/// Runs a test with each kind of store.
pub(crate) fn with_each(test: impl Fn(&dyn Store)) {
    test(&Memory::new());
    let (store, _directory) = sqlite();
    test(&*store);
}

/// Random numbers, the same for the same seed.
pub(crate) struct Chance(pub(crate) u64);

impl Chance {
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}
