//! From what a session says to the log, and from there to what follows.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_dialects::tape::Signal;
use agentwire_protocol::{ErrorCode, GatewayError, SessionState};
use tokio::sync::oneshot;

use super::Answered;
use super::actor::{Actor, Refusal};
use super::core::{Effect, Reply};
use crate::budget::Share;
use crate::log::{Committed, MUCH_READ};
use crate::process::TreeSignal;
use crate::store::{Append, StoreError};

/// What is being made durable, and what follows then.
pub(super) struct InFlight {
    committed: Pin<Box<Committed>>,
    effects: Vec<Effect>,
    keys: usize,
    /// How many events, and their bytes.
    size: (u64, u64),
    /// What a long line among them takes of the budget.
    _share: Option<Share>,
    /// What the commands take that they are from.
    _shares: Vec<Arc<Share>>,
}

impl Actor {
    /// Hands to the log what has gathered, unless it is still at the last.
    pub(super) fn submit(&mut self) {
        if self.in_flight.is_some() {
            return;
        }
        if !self.core.has_news() && self.keys.is_empty() {
            let effects = std::mem::take(&mut self.core.effects);
            effects.into_iter().for_each(|effect| self.act(effect));
            self.shares.clear();
            return;
        }
        let batch = self.core.journal.take();
        let record = &mut self.core.book.record;
        record.summary.last_seq = self.core.journal.last();
        record.summary.updated_at = self.core.journal.timestamp().to_owned();
        let append = Append { batch, record: record.clone(), keys: std::mem::take(&mut self.keys) };
        let keys = append.keys.len();
        let size = append.batch.as_ref();
        let size = size.map_or((0, 0), |batch| (batch.count, batch.lines.len() as u64));
        self.core.book.changed = false;
        let (told, summary) = (self.summary.clone(), append.record.summary.clone());
        let (replies, effects) = self.take_replies();
        let committed = self.writer.submit_telling(append, move |result| {
            if result.is_ok() {
                told.send_replace(summary);
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
            effects,
            keys,
            size,
            _share: self.share.take(),
            _shares: std::mem::take(&mut self.shares),
        });
    }

    /// Parts the replies from what else is to be done: they are given before anybody sees what comes
    /// after them.
    fn take_replies(&mut self) -> (Vec<(oneshot::Sender<Answered>, Answered)>, Vec<Effect>) {
        let (mut replies, mut others) = (Vec::new(), Vec::new());
        for effect in std::mem::take(&mut self.core.effects) {
            match effect {
                Effect::Reply(Reply { call, result, after }) => {
                    let last_seq = after.unwrap_or(self.core.journal.last());
                    let caller = self.calls.remove(&call.0).map(|waiting| waiting.reply);
                    replies.extend(caller.zip(Some(Answered { reply: result, last_seq })));
                }
                effect @ (Effect::Write(_)
                | Effect::CloseStdin
                | Effect::Signal(_)
                | Effect::Relay(..)
                | Effect::Start
                | Effect::Open) => others.push(effect),
            }
        }
        (replies, others)
    }

    /// How many keys are not known to be durable yet, beside those that gather.
    pub(super) fn keys_in_flight(&self) -> usize {
        self.in_flight.as_ref().map_or(0, |in_flight| in_flight.keys)
    }

    /// Makes the session's beginning durable. If there is no room, whoever starts the session hears of
    /// it at once; then nothing may start later, when there is room again.
    pub(super) async fn first_flush(&mut self) -> Result<(), Refusal> {
        self.submit();
        loop {
            tokio::select! {
                result = committed(&mut self.in_flight) => {
                    let told = result.as_ref().map_err(|error| Refusal::Failed(storage(error)));
                    let told = told.copied();
                    self.committed(result);
                    return told;
                }
                () = tokio::time::sleep(Duration::from_millis(50)) => {
                    if let Some(error) = self.log.stuck() {
                        return Err(Refusal::NoRoom(storage(&error)));
                    }
                }
            }
        }
    }

    pub(super) fn committed(&mut self, result: Result<(), StoreError>) {
        let Some(in_flight) = self.in_flight.take() else { return };
        match result {
            Ok(()) => {
                let figures = self.log.figures();
                figures.events.of(self.plan.agent).add(in_flight.size.0);
                figures.bytes.of(self.plan.agent).add(in_flight.size.1);
                in_flight.effects.into_iter().for_each(|effect| self.act(effect));
            }
            // The log is no longer ours, or cannot be written at all: nothing may go on unseen.
            Err(error) => {
                let session = self.core.book.record.summary.id.as_str();
                tracing::error!(session, %error, "session lost: its log cannot be written");
                self.is_over = true;
                self.is_lost = true;
                self.process = None;
                self.prompts.clear();
                self.wants_process = false;
                let error = storage(&error);
                // No call has its answer any more, also if one waits here.
                self.core.effects.clear();
                self.fail_calls(|_| true, error.code, &error.message);
                // What cannot be kept must not be tried again.
                let _ = self.core.journal.take();
                self.core.book.changed = false;
                self.core.raised.clear();
                self.keys.clear();
                self.summary.send_modify(|summary| summary.state = SessionState::Ended);
            }
        }
    }

    pub(super) fn act(&mut self, effect: Effect) {
        match (effect, &mut self.process) {
            (Effect::Reply(Reply { call, result, .. }), _) => self.reply(call, result),
            (Effect::Write(line), Some(process)) => process.send(&line),
            (Effect::CloseStdin, Some(process)) => process.close_stdin(),
            (Effect::Signal(Signal::Interrupt), Some(_)) => self.signal(TreeSignal::Interrupt),
            (Effect::Signal(Signal::Terminate), Some(_)) => self.signal(TreeSignal::Terminate),
            (Effect::Relay(connection, message), _) => {
                if let Some(bridge) = &self.bridge {
                    bridge.send(connection, &message);
                }
            }
            (Effect::Start, _) => self.wants_process = true,
            (Effect::Open, _) => self.trusting.wants_open = true,
            (Effect::Write(_) | Effect::CloseStdin | Effect::Signal(_), None) => {}
        }
    }

    /// What was to be said to the agent before it was told to stop is not said after it.
    pub(super) fn take_back(&mut self) {
        let stays = |effect: &Effect| !matches!(effect, Effect::Write(_) | Effect::Start);
        self.core.effects.retain(stays);
        if let Some(in_flight) = &mut self.in_flight {
            in_flight.effects.retain(stays);
        }
    }
}

/// A store's error, for clients.
pub(crate) fn storage(error: &StoreError) -> GatewayError {
    match error {
        StoreError::Full(text) => GatewayError::new(
            ErrorCode::StorageFull,
            format!("no room to keep events: {text}; free some space, it goes on by itself"),
        ),
        StoreError::Busy(text) if text == MUCH_READ => {
            GatewayError::new(ErrorCode::Overloaded, MUCH_READ)
        }
        StoreError::Busy(text) => {
            GatewayError::new(ErrorCode::Overloaded, format!("the store is busy: {text}"))
        }
        StoreError::Conflict(text) => GatewayError::new(ErrorCode::Conflict, text.clone()),
        StoreError::Failed(text) => {
            GatewayError::new(ErrorCode::Internal, format!("failed to keep events: {text}"))
        }
    }
}

pub(super) async fn committed(in_flight: &mut Option<InFlight>) -> Result<(), StoreError> {
    match in_flight {
        Some(in_flight) => in_flight.committed.as_mut().await,
        None => std::future::pending().await,
    }
}
