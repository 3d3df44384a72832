//! Hands events to the log, one batch at a time, and returns what to do once the batch is durable.

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;

use agentwire_protocol::{SessionState, SessionSummary};
use tokio::sync::{oneshot, watch};

use super::CommandReply;
use super::commit::storage;
use super::core::Effect;
use crate::budget::Share;
use crate::log::{Committed, EventLog, LogWriter};
use crate::store::{Append, Batch, Record, StoreError};

pub(super) struct Outbox {
    log: EventLog,
    writer: LogWriter,
    /// The durable state of the session.
    summary: watch::Sender<SessionSummary>,
    in_flight: Option<InFlight>,
    /// Keys that become durable with the next batch.
    keys: Vec<(String, String)>,
    /// The share of a long line whose events are gathering.
    line: Option<Share>,
    /// The shares of commands, held until their effects are handed to the log and sent to the agent.
    shares: Vec<Arc<Share>>,
}

/// The batch that is being made durable, and what follows.
struct InFlight {
    committed: Pin<Box<Committed>>,
    committed_batch: CommittedBatch,
    keys: usize,
    _line: Option<Share>,
    _shares: Vec<Arc<Share>>,
}

#[derive(Debug, Default)]
pub(super) struct CommittedBatch {
    pub(super) effects: Vec<Effect>,
    pub(super) events: u64,
    pub(super) bytes: u64,
}

impl Outbox {
    pub(super) fn new(
        log: EventLog,
        writer: LogWriter,
        summary: watch::Sender<SessionSummary>,
        keys: Vec<(String, String)>,
    ) -> Self {
        Self { log, writer, summary, in_flight: None, keys, line: None, shares: Vec::new() }
    }

    pub(super) fn log(&self) -> &EventLog {
        &self.log
    }

    pub(super) fn last_seq(&self) -> u64 {
        self.summary.borrow().last_seq
    }

    /// Whether a batch is not durable yet. No other batch is handed over meanwhile.
    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// The key becomes durable with the next batch.
    pub(super) fn store_key(&mut self, key: (String, String)) {
        self.keys.push(key);
    }

    pub(super) fn has_keys(&self) -> bool {
        !self.keys.is_empty()
    }

    /// How many keys are not known to be durable yet.
    pub(super) fn undurable(&self) -> usize {
        self.keys.len() + self.in_flight.as_ref().map_or(0, |in_flight| in_flight.keys)
    }

    /// Holds the share of a long line until its events are durable.
    pub(super) fn hold_line(&mut self, share: Share) {
        self.line = Some(share);
    }

    /// Holds the share of a command until its effects are durable.
    pub(super) fn hold_share(&mut self, share: Option<Arc<Share>>) {
        self.shares.extend(share);
    }

    /// There is nothing to hand over, so the commands are done.
    pub(super) fn release(&mut self) {
        self.shares.clear();
    }

    /// Hands a batch to the log. The replies are sent before anyone sees a later event.
    pub(super) fn submit(
        &mut self,
        batch: Option<Batch>,
        record: Record,
        replies: Vec<(oneshot::Sender<CommandReply>, CommandReply)>,
        effects: Vec<Effect>,
    ) {
        let (events, bytes) =
            batch.as_ref().map_or((0, 0), |batch| (batch.count, batch.lines.len() as u64));
        let append = Append { batch, record, keys: std::mem::take(&mut self.keys) };
        let keys = append.keys.len();
        let (watched, summary) = (self.summary.clone(), append.record.summary.clone());
        let committed = self.writer.submit_with(append, move |result| {
            if result.is_ok() {
                watched.send_replace(summary);
            }
            for (caller, mut answered) in replies {
                if let Err(error) = result {
                    answered.reply = Err(storage(error));
                }
                // The caller may be gone.
                let _ = caller.send(answered);
            }
        });
        self.in_flight = Some(InFlight {
            committed: Box::pin(committed),
            committed_batch: CommittedBatch { effects, events, bytes },
            keys,
            _line: self.line.take(),
            _shares: std::mem::take(&mut self.shares),
        });
    }

    /// Waits until the current batch is durable, or forever if there is none.
    pub(super) async fn committed(&mut self) -> Result<(), StoreError> {
        match &mut self.in_flight {
            Some(in_flight) => in_flight.committed.as_mut().await,
            None => std::future::pending().await,
        }
    }

    /// Takes what follows from the batch that is durable.
    pub(super) fn take_committed(&mut self) -> CommittedBatch {
        self.in_flight.take().map(|in_flight| in_flight.committed_batch).unwrap_or_default()
    }

    /// Filters the effects of the batch that is being made durable.
    pub(super) fn retain(&mut self, stays: impl Fn(&Effect) -> bool) {
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.committed_batch.effects.retain(stays);
        }
    }

    /// The log accepts nothing more, so nothing is retried.
    pub(super) fn close(&mut self) {
        self.keys.clear();
        self.summary.send_modify(|summary| summary.state = SessionState::Ended);
    }
}
