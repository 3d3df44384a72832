//! Events as the engine writes them, and stores filled with them.

use std::fmt::Write as _;
use std::sync::Arc;

use agentwire_dialects::tape::{Draft, Sink, Stamp, Tape};
use agentwire_protocol::{AgentType, SessionConfig, SessionId, SessionState, SessionSummary};
use agentwire_sessions::store::{Append, Batch, Open, Record, Store};
use bytes::Bytes;

use crate::agent;

/// Appends per transaction when filling a store.
const GROUP: usize = 500;

/// The first `count` event lines of a session, each with its `\n`.
pub fn lines(count: usize) -> Vec<Vec<u8>> {
    let mut written = Written { lines: Vec::new(), id: String::new() };
    let mut tape = Tape::recording(agentwire_dialects::agent("claude").expect("the dialect"));
    let mut turn = 0;
    while written.lines.len() < count {
        tape.feed(&agent::turn(turn), &mut written);
        turn += 1;
    }
    written.lines.truncate(count);
    written.lines
}

pub fn batches(lines: &[Vec<u8>], size: usize) -> Vec<Batch> {
    let numbered = (1..).step_by(size).zip(lines.chunks(size));
    let batch = |(first, lines): (u64, &[Vec<u8>])| Batch {
        first,
        count: lines.len() as u64,
        lines: Bytes::from(lines.concat()),
    };
    numbered.map(batch).collect()
}

pub fn append(session: &SessionId, state: SessionState, batch: Batch) -> Append {
    let mut record = record(session, state);
    record.summary.last_seq = batch.last();
    Append { batch: Some(batch), record, keys: Vec::new() }
}

/// Adds a session that has ended.
pub fn fill(store: &Arc<dyn Store>, session: &SessionId, batches: &[Batch]) {
    for batches in batches.chunks(GROUP) {
        let append = |batch: &Batch| append(session, SessionState::Ended, batch.clone());
        let appends: Vec<Append> = batches.iter().map(append).collect();
        store.append(&appends.iter().collect::<Vec<_>>()).expect("room");
    }
}

fn record(session: &SessionId, state: SessionState) -> Record {
    let time = "2026-11-15T18:23:13.272Z";
    Record {
        summary: SessionSummary {
            id: session.clone(),
            agent_type: AgentType::Claude,
            state,
            reason: None,
            error: None,
            title: Some("a session of the benchmark".to_owned()),
            working_directory: Some("/workspace".to_owned()),
            model: Some("claude-opus-5-5".to_owned()),
            approval_mode: None,
            driver: Some("claude".to_owned()),
            native_session_id: None,
            agent_version: None,
            gateway_version: None,
            created_at: time.to_owned(),
            updated_at: time.to_owned(),
            last_seq: 0,
            turns: 1,
            last_turn: None,
            usage: Default::default(),
            cost_usd: None,
            open_requests: 0,
            pinned: false,
            tags: Vec::new(),
        },
        owner: None,
        config: SessionConfig::default(),
        open: Open::default(),
        client: None,
        unfit: None,
        unkept: Vec::new(),
        native_since: None,
        first_prompt: None,
    }
}

struct Written {
    lines: Vec<Vec<u8>>,
    id: String,
}

impl Sink for Written {
    fn event(&mut self, draft: Draft<'_>) {
        let seq = self.lines.len() as u64 + 1;
        self.id.clear();
        let _ = write!(self.id, "e76dfe97-b723-463d-bcb8-554ac59228c9-{seq}");
        let stamp = Stamp {
            id: &self.id,
            session_id: "e76dfe97-b723-463d-bcb8-554ac59228c9",
            seq,
            timestamp: "2026-11-15T18:23:13.272Z",
        };
        let mut line = Vec::new();
        draft.stamp(stamp, |event| event.write_line(&mut line).expect("JSON"));
        self.lines.push(line);
    }
}
