//! Accepts calls and makes sure that each gets one answer.

use std::collections::BTreeSet;

use agentwire_protocol::command::Behavior;
use agentwire_protocol::{Call, Command, ErrorCode, GatewayError, Json};
use tokio::time::Instant;

use super::actor::Actor;
use super::commit::storage;
use super::core::Effect;
use super::{Client, CommandReply, Message};
use crate::blocking::blocking_if_long;

impl Actor {
    /// Handles a command, after checking whether it was accepted before.
    pub(super) async fn receive(&mut self, message: Message) {
        let id = prompt_id(&message.command);
        match self.recall(id).await {
            Ok(()) => self.accept(message),
            Err(error) => drop(message.reply.send(self.command_reply(Err(error)))),
        }
    }

    fn accept(&mut self, message: Message) {
        if self.phase.is_ended() {
            let _ = message.reply.send(self.command_reply(Err(session_ended())));
            return;
        }
        self.outbox.hold_share(message.share);
        let deadline = Instant::now() + self.plan.settings.timing.call;
        let call = self.callers.add(message.reply, deadline);
        self.core.journal.tick();
        // Without room to write, only commands that make an agent stop are accepted.
        let stuck = self.outbox.log().stuck();
        if let Some(error) = stuck.as_ref().filter(|_| !is_brake(&message.command)) {
            return self.reply(call, Err(storage(error)));
        }
        let before = self.core.effects.len();
        let ends_turn = matches!(message.command, Command::Interrupt { .. } | Command::Stop);
        self.callers.set_current(message.client);
        let load = weight(&message.command);
        self.load = self.load.max(load);
        // A repeated prompt changes nothing: its key is already stored, or belongs to another call.
        let was_accepted =
            prompt_id(&message.command).is_some_and(|id| self.prompts.was_accepted(id));
        let key = message.key.filter(|_| !was_accepted);
        match blocking_if_long(load, || self.command(call, message.command)) {
            Ok(()) => key.into_iter().for_each(|key| self.outbox.store_key(key)),
            Err(error) => self.core.answer(call, Err(error)),
        }
        self.callers.set_current(Client::default());
        if stuck.is_some() {
            let brakes = self.core.effects.split_off(before);
            if ends_turn {
                self.drop_unsent();
            }
            for effect in brakes {
                match effect {
                    // Nothing starts before its start can be written.
                    Effect::Open => self.core.effects.push(effect),
                    effect => self.act(effect),
                }
            }
        }
    }

    pub(super) fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        if let Some(caller) = self.callers.take(call) {
            let _ = caller.send(self.command_reply(result));
        }
    }

    pub(super) fn command_reply(&self, reply: Result<Json<'static>, GatewayError>) -> CommandReply {
        CommandReply { reply, last_seq: self.outbox.last_seq() }
    }

    /// Sends the error to callers that have waited until `until`, or to all. Callers whose answer only
    /// waits for the store still get that answer.
    pub(super) fn fail_calls(&mut self, until: Option<Instant>, code: ErrorCode, message: &str) {
        let answered = self.core.effects.iter().filter_map(|effect| match effect {
            Effect::Reply(reply) => Some(reply.call.0),
            _ => None,
        });
        let answered: BTreeSet<u64> = answered.collect();
        for call in self.callers.waiting(until) {
            if !answered.contains(&call.0) {
                self.reply(call, Err(GatewayError::new(code, message)));
            }
        }
    }
}

/// The id by which a prompt counts once.
fn prompt_id(command: &Command) -> Option<&str> {
    if let Command::Prompt(prompt) = command { prompt.message_id.as_deref() } else { None }
}

/// Whether a command makes an agent stop. Such commands are accepted at any time.
fn is_brake(command: &Command) -> bool {
    match command {
        Command::Interrupt { .. }
        | Command::Stop
        | Command::Finish
        | Command::Cancel { .. }
        | Command::Queue => true,
        Command::Settle(settlement) => settlement.behavior == Some(Behavior::Deny),
        _ => false,
    }
}

pub(super) fn weight(command: &Command) -> usize {
    let json = |json: &Option<Json<'_>>| json.as_ref().map_or(0, |json| json.get().len());
    match command {
        Command::Prompt(prompt) => {
            let images: usize = prompt.images.iter().map(|image| image.data.len()).sum();
            prompt.text.len() + images + json(&prompt.content) + json(&prompt.native)
        }
        Command::Settle(answer) => {
            let answers = answer.answers.iter().flat_map(|answers| answers.values());
            let answers: usize = answers.map(|answer| answer.get().len()).sum();
            let texts = [&answer.message, &answer.error].into_iter().flatten();
            json(&answer.updated_input)
                + json(&answer.updated_permissions)
                + json(&answer.hook_output)
                + answers
                + texts.map(String::len).sum::<usize>()
        }
        Command::Query { method, args } => {
            method.len() + args.iter().map(|arg| arg.get().len()).sum::<usize>()
        }
        Command::Rewind { message_id, .. } | Command::Cancel { message_id } => message_id.len(),
        Command::Edit { message_id, text } => message_id.len() + text.len(),
        Command::Configure(change) => {
            let names =
                [change.model.as_ref().and_then(Option::as_ref), change.permission_mode.as_ref()];
            names.into_iter().flatten().map(String::len).sum()
        }
        Command::Start(_)
        | Command::Attach { .. }
        | Command::Interrupt { .. }
        | Command::Stop
        | Command::Queue
        | Command::Finish => 0,
    }
}

pub(super) fn session_ended() -> GatewayError {
    GatewayError::new(ErrorCode::Conflict, "the session has ended; it can be resumed")
}
