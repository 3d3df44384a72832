//! Hands events to the log, and carries out effects once the events are durable.

use std::time::Duration;

use agentwire_dialects::tape::Signal;
use agentwire_protocol::{ErrorCode, GatewayError, SessionState};
use tokio::sync::oneshot;

use super::CommandReply;
use super::actor::{Actor, Refusal};
use super::core::{Effect, Reply};
use super::supervisor::Due;
use crate::log::MUCH_READ;
use crate::process::TreeSignal;
use crate::store::StoreError;

impl Actor {
    /// Hands what has gathered to the log, unless the last commit still runs.
    pub(super) fn submit(&mut self) {
        if self.outbox.is_busy() {
            return;
        }
        if !self.core.has_news() && !self.outbox.has_keys() {
            let effects = std::mem::take(&mut self.core.effects);
            effects.into_iter().for_each(|effect| self.act(effect));
            return self.outbox.release();
        }
        let batch = self.core.journal.take();
        let record = &mut self.core.state.record;
        record.summary.last_seq = self.core.journal.last();
        record.summary.updated_at = self.core.journal.timestamp().to_owned();
        let record = record.clone();
        // Others wait for people, or have ended.
        if record.summary.state != SessionState::Working {
            self.core.journal.release();
        }
        self.core.state.changed = false;
        let (replies, effects) = self.take_replies();
        self.outbox.submit(batch, record, replies, effects);
    }

    /// Separates the replies from the other effects: replies are sent before anyone sees a later event.
    fn take_replies(
        &mut self,
    ) -> (Vec<(oneshot::Sender<CommandReply>, CommandReply)>, Vec<Effect>) {
        let (mut replies, mut others) = (Vec::new(), Vec::new());
        for effect in std::mem::take(&mut self.core.effects) {
            match effect {
                Effect::Reply(Reply { call, result, after }) => {
                    let last_seq = after.unwrap_or(self.core.journal.last());
                    let caller = self.callers.take(call);
                    replies.extend(caller.zip(Some(CommandReply { reply: result, last_seq })));
                }
                effect => others.push(effect),
            }
        }
        (replies, others)
    }

    /// Makes the session's start durable. If there is no room, the caller learns it at once, and then
    /// nothing may start later when there is room again.
    pub(super) async fn first_flush(&mut self) -> Result<(), Refusal> {
        self.submit();
        loop {
            tokio::select! {
                result = self.outbox.committed() => {
                    let told = result.as_ref().map_err(|error| Refusal::Failed(storage(error)));
                    let told = told.copied();
                    self.committed(result);
                    return told;
                }
                () = tokio::time::sleep(Duration::from_millis(50)) => {
                    if let Some(error) = self.outbox.log().stuck() {
                        return Err(Refusal::NoRoom(storage(&error)));
                    }
                }
            }
        }
    }

    pub(super) fn committed(&mut self, result: Result<(), StoreError>) {
        let batch = self.outbox.take_committed();
        match result {
            Ok(()) => {
                let metrics = self.outbox.log().metrics();
                metrics.events.of(self.plan.agent).add(batch.events);
                metrics.bytes.of(self.plan.agent).add(batch.bytes);
                batch.effects.into_iter().for_each(|effect| self.act(effect));
            }
            // The log belongs to another owner, or cannot be written at all. Nothing may continue
            // unrecorded.
            Err(error) => {
                let session = self.core.state.record.summary.id.as_str();
                tracing::error!(session, %error, "session lost: failed to write its log");
                self.phase.lose();
                self.supervisor.end();
                self.prompts.clear_queue();
                let error = storage(&error);
                // Answers that waited here are void too.
                self.core.effects.clear();
                self.fail_calls(None, error.code, &error.message);
                // What cannot be stored must not be retried.
                let _ = self.core.journal.take();
                self.core.state.changed = false;
                self.core.raised.clear();
                self.outbox.close();
            }
        }
    }

    pub(super) fn act(&mut self, effect: Effect) {
        match (effect, self.supervisor.process_mut()) {
            (Effect::Reply(Reply { call, result, .. }), _) => self.reply(call, result),
            (Effect::Write(line), Some(process)) => process.send(&line),
            (Effect::CloseStdin, Some(process)) => process.close_stdin(),
            (Effect::Write(_) | Effect::CloseStdin, None) => {}
            // It is for the process of the next prompt, which gets it when it starts.
            (Effect::Signal(Signal::Interrupt), _) if self.prompts.next_is_interrupted() => {}
            (Effect::Signal(Signal::Interrupt), _) => {
                self.supervisor.signal(TreeSignal::Interrupt);
            }
            (Effect::Signal(Signal::Terminate), _) => {
                self.supervisor.signal(TreeSignal::Terminate);
            }
            (Effect::Relay(connection, message), _) => {
                if let Some(bridge) = &self.bridge {
                    bridge.send(connection, &message);
                }
            }
            (Effect::Start(change), _) => {
                self.prompts.durable(change);
                self.supervisor.want(Due::Process);
            }
            (Effect::Open, _) => self.supervisor.want(Due::Agent),
        }
    }

    /// Drops what was to be sent to the agent before it was told to stop: it must not arrive afterwards.
    pub(super) fn drop_unsent(&mut self) {
        let stays = |effect: &Effect| !matches!(effect, Effect::Write(_) | Effect::Start(_));
        self.core.effects.retain(stays);
        self.outbox.retain(stays);
    }

    /// Drops signals to a process that has ended: they must not reach the next one.
    pub(super) fn drop_signals(&mut self) {
        let stays = |effect: &Effect| !matches!(effect, Effect::Signal(_));
        self.core.effects.retain(stays);
        self.outbox.retain(stays);
    }
}

pub(crate) fn storage(error: &StoreError) -> GatewayError {
    match error {
        StoreError::Full(text) => GatewayError::new(
            ErrorCode::StorageFull,
            format!(
                "no room to store events: {text}; free some space, and work continues by itself"
            ),
        ),
        StoreError::Busy(text) if text == MUCH_READ => {
            GatewayError::new(ErrorCode::Overloaded, MUCH_READ)
        }
        StoreError::Busy(text) => {
            GatewayError::new(ErrorCode::Overloaded, format!("the store is busy: {text}"))
        }
        StoreError::Conflict(text) => GatewayError::new(ErrorCode::Conflict, text.clone()),
        StoreError::Failed(text) => {
            GatewayError::new(ErrorCode::Internal, format!("failed to store events: {text}"))
        }
    }
}
