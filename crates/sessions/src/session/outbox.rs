//! What a session hands to the log: one batch at a time, and what follows once it is durable.

#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;

use agentwire_protocol::{SessionState, SessionSummary};
use tokio::sync::{oneshot, watch};

use super::Answered;
use super::commit::storage;
use super::core::Effect;
use crate::budget::Share;
use crate::log::{Committed, EventLog, LogWriter};
use crate::store::{Append, Batch, Record, StoreError};

/// A session's way to its log.
pub(super) struct Outbox {
    log: EventLog,
    writer: LogWriter,
    /// The session as it is, as far as that is durable.
    summary: watch::Sender<SessionSummary>,
    in_flight: Option<InFlight>,
    /// Keys that become durable with what gathers.
    keys: Vec<(String, String)>,
    /// The share of a long line whose events gather.
    line: Option<Share>,
    /// Those of commands, until what they did is handed to the log and said to the agent.
    shares: Vec<Arc<Share>>,
}

/// What is being made durable, and what follows then.
struct InFlight {
    committed: Pin<Box<Committed>>,
    landed: Landed,
    keys: usize,
    _line: Option<Share>,
    _shares: Vec<Arc<Share>>,
}

/// What follows from a batch that is durable.
#[derive(Debug, Default)]
pub(super) struct Landed {
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

    /// The last event that is durable.
    pub(super) fn last_seq(&self) -> u64 {
        self.summary.borrow().last_seq
    }

    /// Whether a batch is not durable yet. No other is handed over meanwhile.
    pub(super) fn is_busy(&self) -> bool {
        self.in_flight.is_some()
    }

    /// A key becomes durable with what gathers.
    pub(super) fn keep(&mut self, key: (String, String)) {
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

    /// Holds the share of a command until what it did is.
    pub(super) fn hold(&mut self, share: Option<Arc<Share>>) {
        self.shares.extend(share);
    }

    /// There is nothing to hand over: what commands did is done.
    pub(super) fn release(&mut self) {
        self.shares.clear();
    }

    /// Hands a batch to the log. The replies are given before anybody sees what comes after them.
    pub(super) fn submit(
        &mut self,
        batch: Option<Batch>,
        record: Record,
        replies: Vec<(oneshot::Sender<Answered>, Answered)>,
        effects: Vec<Effect>,
    ) {
        let (events, bytes) =
            batch.as_ref().map_or((0, 0), |batch| (batch.count, batch.lines.len() as u64));
        let append = Append { batch, record, keys: std::mem::take(&mut self.keys) };
        let keys = append.keys.len();
        let (watched, summary) = (self.summary.clone(), append.record.summary.clone());
        let committed = self.writer.submit_telling(append, move |result| {
            if result.is_ok() {
                watched.send_replace(summary);
            }
            for (caller, mut answered) in replies {
                if let Err(error) = result {
                    answered.reply = Err(storage(error));
                }
                // The caller may have gone.
                let _ = caller.send(answered);
            }
        });
        self.in_flight = Some(InFlight {
            committed: Box::pin(committed),
            landed: Landed { effects, events, bytes },
            keys,
            _line: self.line.take(),
            _shares: std::mem::take(&mut self.shares),
        });
    }

    /// Waits until the batch is durable, if one is on its way.
    pub(super) async fn committed(&mut self) -> Result<(), StoreError> {
        match &mut self.in_flight {
            Some(in_flight) => in_flight.committed.as_mut().await,
            None => std::future::pending().await,
        }
    }

    /// What follows from the batch that is durable.
    pub(super) fn landed(&mut self) -> Landed {
        self.in_flight.take().map(|in_flight| in_flight.landed).unwrap_or_default()
    }

    /// Of what follows from the batch that is on its way, only that stays.
    pub(super) fn retain(&mut self, stays: impl Fn(&Effect) -> bool) {
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.landed.effects.retain(stays);
        }
    }

    /// The log takes nothing more: nothing is tried again.
    pub(super) fn close(&mut self) {
        self.keys.clear();
        self.summary.send_modify(|summary| summary.state = SessionState::Ended);
    }
}
