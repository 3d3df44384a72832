//! Who calls, and how each gets one answer.

use std::collections::BTreeSet;

use agentwire_protocol::{Call, Command, ErrorCode, GatewayError, Json};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::actor::Actor;
use super::commit::storage;
use super::core::Effect;
use super::{Answered, Client, Message};
use crate::apart::apart_if_long;

/// A caller who waits for the agent's answer.
pub(super) struct Waiting {
    pub(super) reply: oneshot::Sender<Answered>,
    pub(super) deadline: Instant,
}

impl Actor {
    /// Takes a command, once it is known whether it was taken before.
    pub(super) async fn hear(&mut self, message: Message) {
        let id = match &message.command {
            Command::Prompt(prompt) => prompt.message_id.as_deref(),
            Command::Start(_)
            | Command::Attach { .. }
            | Command::Interrupt { .. }
            | Command::Stop
            | Command::Finish
            | Command::Settle(_)
            | Command::Configure(_)
            | Command::Query { .. }
            | Command::Rewind { .. } => None,
        };
        match self.recall(id).await {
            Ok(()) => self.take(message),
            Err(error) => drop(message.reply.send(self.answered(Err(error)))),
        }
    }

    fn take(&mut self, message: Message) {
        if self.is_over {
            let _ = message.reply.send(self.answered(Err(over())));
            return;
        }
        self.shares.extend(message.share);
        let call = Call(self.next_call);
        self.next_call += 1;
        let deadline = Instant::now() + self.plan.settings.timing.call;
        self.calls.insert(call.0, Waiting { reply: message.reply, deadline });
        self.core.journal.tick();
        // With no room to write, only what makes an agent stop is taken.
        let stuck = self.log.stuck();
        if let Some(error) = stuck.as_ref().filter(|_| !is_brake(&message.command)) {
            return self.reply(call, Err(storage(error)));
        }
        let before = self.core.effects.len();
        let ends_turn = matches!(message.command, Command::Interrupt { .. } | Command::Stop);
        self.caller = message.client;
        let load = weight(&message.command);
        self.load = self.load.max(load);
        match apart_if_long(load, || self.command(call, message.command)) {
            Ok(()) => self.keys.extend(message.key),
            Err(error) => self.core.answer(call, Err(error)),
        }
        self.caller = Client::default();
        if stuck.is_some() {
            let brakes = self.core.effects.split_off(before);
            if ends_turn {
                self.take_back();
            }
            for effect in brakes {
                match effect {
                    // Nothing starts before its beginning can be written.
                    Effect::Open => self.core.effects.push(effect),
                    effect => self.act(effect),
                }
            }
        }
    }

    pub(super) fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        if let Some(waiting) = self.calls.remove(&call.0) {
            let _ = waiting.reply.send(self.answered(result));
        }
    }

    pub(super) fn answered(&self, reply: Result<Json<'static>, GatewayError>) -> Answered {
        Answered { reply, last_seq: self.summary.borrow().last_seq }
    }

    pub(super) fn fail_calls(
        &mut self,
        which: impl Fn(&Waiting) -> bool,
        code: ErrorCode,
        message: &str,
    ) {
        // A call whose reply waits for the store has its answer.
        let queued = self.core.effects.iter();
        let answered: BTreeSet<u64> = queued
            .filter_map(|effect| match effect {
                Effect::Reply(reply) => Some(reply.call.0),
                Effect::Write(_)
                | Effect::CloseStdin
                | Effect::Signal(_)
                | Effect::Relay(..)
                | Effect::Start
                | Effect::Open => None,
            })
            .collect();
        let over: Vec<u64> = self
            .calls
            .iter()
            .filter(|(call, waiting)| !answered.contains(call) && which(waiting))
            .map(|(call, _)| *call)
            .collect();
        for call in over {
            self.reply(Call(call), Err(GatewayError::new(code, message)));
        }
    }
}

/// What makes an agent stop is taken at any time.
fn is_brake(command: &Command) -> bool {
    match command {
        Command::Interrupt { .. } | Command::Stop | Command::Finish => true,
        Command::Settle(settlement) => {
            settlement.behavior == Some(agentwire_protocol::command::Behavior::Deny)
        }
        Command::Start(_)
        | Command::Attach { .. }
        | Command::Prompt(_)
        | Command::Configure(_)
        | Command::Query { .. }
        | Command::Rewind { .. } => false,
    }
}

/// About how many bytes a command has.
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
        Command::Rewind { message_id, .. } => message_id.len(),
        Command::Configure(change) => {
            let names =
                [change.model.as_ref().and_then(Option::as_ref), change.permission_mode.as_ref()];
            names.into_iter().flatten().map(String::len).sum()
        }
        Command::Start(_)
        | Command::Attach { .. }
        | Command::Interrupt { .. }
        | Command::Stop
        | Command::Finish => 0,
    }
}

pub(super) fn over() -> GatewayError {
    GatewayError::new(ErrorCode::Conflict, "the session is over; it can be resumed")
}
