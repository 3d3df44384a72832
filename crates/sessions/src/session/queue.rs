//! The prompts that wait for their turn: listed, cancelled or changed one by one, wherever they wait.

use agentwire_dialects::prompt_queue::not_queued;
use agentwire_protocol::event::{Status, StatusChanged};
use agentwire_protocol::reply::{PromptQueue, QueuedPrompt};
use agentwire_protocol::{Call, Command, ErrorCode, GatewayError, Json, Prompt, Text};

use super::actor::Actor;
use super::commands::{check_prompt, taken};
use super::core::Effect;

/// How much of a waiting prompt is listed, in bytes.
const SHOWN: usize = 64 << 10;

/// A prompt as it is listed.
pub(super) fn shown(prompt: &Prompt) -> QueuedPrompt {
    let end = prompt.text.floor_char_boundary(SHOWN);
    QueuedPrompt {
        message_id: prompt.message_id.clone().unwrap_or_default(),
        prompt: prompt.text.get(..end).unwrap_or_default().to_owned(),
        images: prompt.images.len(),
    }
}

impl Actor {
    /// Lists the prompts that wait: first those that the agent has, then those that wait here.
    pub(super) fn list_queue(&mut self, call: Call) {
        let given = self.core.state.waiting().filter_map(|id| self.prompts.given(id)).cloned();
        let mut queued: Vec<QueuedPrompt> = given.collect();
        let answers = self.core.structured.iter().flat_map(|it| it.waiting_prompts());
        let held = self.core.hooks.held_prompts().chain(answers);
        let held = held.chain(self.limits.held_prompts()).chain(self.trust_gate.prompts());
        queued.extend(held.map(shown));
        self.core.answer(call, Ok(Json::of(&PromptQueue { queued })));
    }

    /// Cancels a prompt that waits.
    pub(super) fn cancel_prompt(&mut self, call: Call, id: &str) -> Result<(), GatewayError> {
        let is_held = self.core.hooks.drop_prompt(id)?
            || self.core.structured.as_mut().is_some_and(|it| it.drop_prompt(id))
            || self.limits.drop_prompt(id)
            || self.trust_gate.drop_prompt(id);
        if is_held {
            let status = StatusChanged::new(Status::Queue).message(Text::fixed("cancelled"));
            self.core.emit(status.details(taken(id)));
            self.core.answer(call, Ok(Json::EMPTY));
            return Ok(());
        }
        self.check_given(id)?;
        let command = Command::Cancel { message_id: id.to_owned() };
        self.tape.command(call, &command, &mut self.core)?;
        self.prompts.drop_queued(id);
        Ok(())
    }

    /// Gives a prompt that waits another text.
    pub(super) fn edit_prompt(
        &mut self,
        call: Call,
        id: &str,
        text: &str,
    ) -> Result<(), GatewayError> {
        check_prompt(&Prompt::text(text), self.plan.agent, self.plan.dialect)?;
        let is_held = self.core.hooks.edit_prompt(id, text)?
            || match &mut self.core.structured {
                Some(structured) => structured.edit_prompt(id, text)?,
                None => false,
            }
            || self.limits.edit_prompt(id, text)?
            || self.trust_gate.edit_prompt(id, text)?;
        if is_held {
            self.core.answer(call, Ok(Json::EMPTY));
        } else {
            self.check_given(id)?;
            if self.core.structured.is_some() {
                return Err(conflict("the prompt is about to start; it cannot be changed"));
            }
            self.prompts.check_edit(id, text)?;
            let command = Command::Edit { message_id: id.to_owned(), text: text.to_owned() };
            self.tape.command(call, &command, &mut self.core)?;
            if self.prompts.edit_queued(id, text) {
                self.core.effects.push(Effect::Start(self.prompts.change()));
            }
        }
        let status = StatusChanged::new(Status::Queue).message(Text::fixed("edited"));
        self.core.emit(status.details(taken(id)));
        Ok(())
    }

    /// Refuses what concerns a prompt that does not wait, or whose process has started with it.
    fn check_given(&self, id: &str) -> Result<(), GatewayError> {
        let per_turn = self.plan.dialect.capabilities().process_per_turn;
        let is_given = self.core.state.waiting().any(|waiting| waiting == id);
        match is_given && (!per_turn || self.prompts.is_queued(id)) {
            true => Ok(()),
            false => Err(not_queued(id)),
        }
    }
}

fn conflict(message: &str) -> GatewayError {
    GatewayError::new(ErrorCode::Conflict, message)
}
