//! What clients want of a session.

use agentwire_dialects::agent::Exit;
use agentwire_protocol::event::{SessionEndReason, Status, StatusChanged, TurnFailure};
use agentwire_protocol::session::PROMPT_LIMIT;
use agentwire_protocol::{Call, Command, Configure, ErrorCode, GatewayError, Json, Prompt, Text};
use tokio::time::Instant;
use uuid::Uuid;

use super::actor::{Actor, NOBODY};
use super::core::Effect;
use super::hosted::MCP_MESSAGE;
use crate::process::TreeSignal;

/// How much may wait to be written to an agent that does not read.
const OUTGOING_LIMIT: usize = 64 << 20;

/// How many prompts may wait for their process.
const PROMPT_QUEUE: usize = 1024;

/// How many message ids are remembered without asking the store.
const TAKEN_LIMIT: usize = 4096;

impl Actor {
    /// Does what is wanted. An error is the reply; else the reply comes by an effect.
    pub(super) fn command(&mut self, call: Call, command: Command) -> Result<(), GatewayError> {
        if self.process.as_ref().is_some_and(|process| process.waiting() > OUTGOING_LIMIT)
            && !matches!(command, Command::Interrupt | Command::Stop | Command::Finish)
        {
            let message = "the agent does not read what it is told; interrupt or stop it";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        }
        match command {
            Command::Prompt(prompt) => self.prompt(call, prompt),
            Command::Interrupt => self.interrupt(call),
            Command::Stop => self.stop(call),
            Command::Finish => self.finish(call),
            Command::Settle(settlement) => self.settle(call, &settlement),
            Command::Configure(change) => self.configure(call, &change),
            Command::Query { method, args } if self.bridge.is_some() && method == MCP_MESSAGE => {
                self.server_says(call, &args)
            }
            Command::Query { .. } | Command::Rewind { .. } => {
                self.needs_process()?;
                self.tape.command(call, &command, &mut self.core)
            }
            Command::Start(_) | Command::Attach { .. } => Err(GatewayError::new(
                ErrorCode::InvalidMessage,
                format!("the command {} is not for a session that runs", command.name()),
            )),
        }
    }

    /// Takes a prompt. While a turn runs it waits for its end, unless `delivery` says otherwise.
    pub(super) fn prompt(&mut self, call: Call, mut prompt: Prompt) -> Result<(), GatewayError> {
        if self.ending.is_some() {
            return Err(GatewayError::new(ErrorCode::Conflict, "the session is being stopped"));
        }
        if prompt.text.is_empty() && prompt.images.is_empty() {
            return Err(GatewayError::new(ErrorCode::InvalidMessage, "the prompt is empty"));
        }
        if prompt.text.len() > 4 * PROMPT_LIMIT * 64 {
            let message = format!("the prompt has {} bytes, that is too many", prompt.text.len());
            return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
        }
        if prompt.content.is_some() && !self.plan.dialect.capabilities().content_blocks {
            let what = "content blocks other than text and images in base64";
            return Err(GatewayError::unsupported(self.plan.agent.as_str(), what));
        }
        if !prompt.wants_answer() && !self.plan.dialect.capabilities().content_blocks {
            return Err(GatewayError::unsupported(self.plan.agent.as_str(), "shouldQuery: false"));
        }
        match &prompt.message_id {
            Some(id) if self.has_taken(id)? => {
                self.core.effects.push(Effect::Reply(call, Ok(taken(id))));
                return Ok(());
            }
            Some(_) => {}
            None => prompt.message_id = Some(Uuid::new_v4().to_string()),
        }
        if let Some(reached) = self
            .limits
            .reached(&self.core.book)
            .filter(|_| self.core.book.record.open.turn.is_none() && !self.core.book.is_busy())
        {
            return self.hold(call, prompt, reached);
        }
        self.offer(call, prompt)
    }

    /// Gives a prompt to the agent.
    pub(super) fn deliver(&mut self, call: Call, prompt: Prompt) -> Result<(), GatewayError> {
        let per_turn = self.plan.dialect.capabilities().process_per_turn;
        if per_turn && self.prompts.len() >= PROMPT_QUEUE {
            return Err(GatewayError::new(ErrorCode::Overloaded, "too many prompts wait"));
        }
        let text = prompt.text.clone();
        let id = prompt.message_id.clone().unwrap_or_default();
        let steers = prompt.delivery == Some(agentwire_protocol::command::Delivery::Steer)
            && self.core.book.record.open.turn.is_some();
        let waits = self.core.book.is_busy();
        let before = self.core.effects.len();
        // The turn may begin within the command, and then keeps the promise.
        if !steers {
            self.core.book.promise();
        }
        let taken = self.tape.command(call, &Command::Prompt(prompt), &mut self.core);
        if taken.is_err() && !steers {
            self.core.book.take_back();
        }
        taken?;
        self.touch();
        self.remember(&id);
        name_message(self.core.effects.get_mut(before..).unwrap_or_default(), call, &id);
        if !steers {
            self.core.book.entitle(&text);
        }
        if waits {
            self.queued(&text, &id);
        }
        if per_turn {
            self.prompts.push_back(text);
            self.core.effects.push(Effect::Start);
        }
        Ok(())
    }

    /// Tells that a prompt waits.
    pub(super) fn queued(&mut self, text: &str, id: &str) {
        let details = Json::of(&serde_json::json!({ "messageId": id }));
        let status = StatusChanged::new(Status::Queue).message(Text::from(text));
        self.core.emit(status.details(details));
    }

    fn has_taken(&mut self, id: &str) -> Result<bool, GatewayError> {
        if self.taken.contains(id) {
            return Ok(true);
        }
        let key = self.prompt_key(id);
        let found = self.log.store().remembered(&key);
        found.map(|found| found.is_some()).map_err(|error| super::actor::storage(&error))
    }

    fn prompt_key(&self, id: &str) -> String {
        format!("{}/prompt/{id}", self.core.book.record.summary.id)
    }

    pub(super) fn remember(&mut self, id: &str) {
        // A prompt that was held has its key.
        if self.taken.contains(id) {
            return;
        }
        if self.taken.len() >= TAKEN_LIMIT {
            self.taken.clear();
        }
        self.taken.insert(id.to_owned());
        self.keys.push((self.prompt_key(id), String::new()));
    }

    /// Stops the turn. What it waits for is denied first: an agent may not heed the interrupt before.
    fn interrupt(&mut self, call: Call) -> Result<(), GatewayError> {
        self.interrupt_hooks("the turn was interrupted");
        self.deny_all("the turn was interrupted");
        self.go_on();
        // A denied limit has cut the turn off already.
        if self.core.book.is_busy() && self.core.cut.is_none() {
            self.tape.command(call, &Command::Interrupt, &mut self.core)?;
            self.escalate();
        } else {
            self.core.effects.push(Effect::Reply(call, Ok(nothing())));
        }
        Ok(())
    }

    /// Ends the session.
    fn stop(&mut self, call: Call) -> Result<(), GatewayError> {
        let waits = self.core.hooks.hold_prompts();
        self.end_hooks(TurnFailure::Interrupted, "the session was stopped");
        self.deny_all("the session was stopped");
        self.deny_messages("the session was stopped");
        self.go_on();
        self.prompts.clear();
        let reason = if self.core.book.is_busy() || waits {
            SessionEndReason::Cancelled
        } else {
            SessionEndReason::Completed
        };
        if self.process.is_none() {
            self.tape.end(Exit::Unknown, &mut self.core);
            self.core.effects.push(Effect::Reply(call, Ok(nothing())));
            self.end(reason, None);
            return Ok(());
        }
        if self.ending.is_none() {
            self.ending = Some((reason, None));
            let at = Instant::now() + self.plan.settings.timing.stop;
            self.escalation = Some((at, TreeSignal::Terminate));
        }
        self.tape.command(call, &Command::Stop, &mut self.core)
    }

    /// Ends the session once its work is done. An agent that takes several prompts into one turn knows
    /// best when that is: it is told that no more come.
    fn finish(&mut self, call: Call) -> Result<(), GatewayError> {
        self.is_alone = true;
        self.deny_alone();
        if self.ending.is_some() {
            self.core.effects.push(Effect::Reply(call, Ok(nothing())));
            return Ok(());
        }
        if self.process.is_some() && self.plan.dialect.capabilities().folds_prompts {
            self.ending = Some((SessionEndReason::Completed, None));
            return self.tape.command(call, &Command::Finish, &mut self.core);
        }
        self.core.effects.push(Effect::Reply(call, Ok(nothing())));
        Ok(())
    }

    /// Nobody has anything more for the session, and it has done what it was given.
    pub(super) fn end_if_done(&mut self) {
        let waits = !self.prompts.is_empty() || !self.held.is_empty();
        let is_done = !self.core.book.is_busy() && !waits && !self.core.hooks.hold_something();
        if self.is_alone && is_done && self.ending.is_none() && !self.is_over {
            let _ = self.stop(NOBODY);
        }
    }

    fn configure(&mut self, call: Call, change: &Configure) -> Result<(), GatewayError> {
        self.tape.command(call, &Command::Configure(change.clone()), &mut self.core)?;
        if let Some(mode) = change.approval_mode {
            self.policy.set_mode(mode);
            self.config.approval_mode = Some(mode);
        }
        if let Some(mode) = &change.permission_mode {
            self.policy.set_own_mode(mode);
        }
        if change.permission_mode.is_some() || change.approval_mode.is_some() {
            self.config.permission_mode.clone_from(&change.permission_mode);
        }
        if let Some(model) = &change.model {
            self.config.model = Some(model.clone());
        }
        if let Some(tokens) = change.max_thinking_tokens {
            self.config.max_thinking_tokens = Some(tokens);
        }
        let record = &mut self.core.book.record;
        record.config = self.config.kept();
        record.summary.approval_mode = self.config.approval_mode;
        record.summary.model = change.model.clone().or(record.summary.model.take());
        self.core.book.changed = true;
        Ok(())
    }

    fn needs_process(&self) -> Result<(), GatewayError> {
        match self.process {
            Some(_) => Ok(()),
            None => Err(GatewayError::new(
                ErrorCode::Conflict,
                format!(
                    "{} runs only while it works on a prompt; there is nobody to ask now",
                    self.plan.agent.as_str()
                ),
            )),
        }
    }
}

/// The reply to a prompt names its message.
fn name_message(effects: &mut [Effect], call: Call, id: &str) {
    for effect in effects {
        if let Effect::Reply(of, Ok(reply)) = effect
            && *of == call
        {
            *reply = taken(id);
        }
    }
}

fn taken(id: &str) -> Json<'static> {
    Json::of(&serde_json::json!({ "messageId": id }))
}

fn nothing() -> Json<'static> {
    Json::checked("{}")
}
