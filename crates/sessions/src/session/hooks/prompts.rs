//! Prompts that wait for hooks. They reach the agent in the order in which they were accepted.

use agentwire_protocol::event::TurnFailure;
use agentwire_protocol::{Call, ErrorCode, GatewayError, Json, Prompt};

use super::super::actor::Actor;
use super::super::callers::NOBODY;
use super::super::commands::taken;
use super::super::pending_prompt::{
    HELD_BYTES, PendingPrompt, check_growth, check_room, place, replace_text,
};
use super::output::Output;
use super::{HookEvent, Hooks};

#[derive(Debug)]
pub(super) struct HeldPrompt {
    pending: PendingPrompt,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// Its hooks have not been raised yet.
    Taken,
    /// Its hooks are open.
    Asked,
    /// It may go to the agent, with this text appended.
    Free(Option<String>),
    /// It must not go to the agent. That is reported as a separate turn, between two turns.
    Blocked(TurnFailure, String),
}

impl Hooks {
    pub(in super::super) fn hold_prompts(&self) -> bool {
        !self.prompts.is_empty()
    }

    pub(in super::super) fn held_prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.prompts.iter().map(|held| &held.pending.prompt)
    }

    /// The place of a prompt that waits here and whose hooks are not raised yet.
    fn untouched(&self, id: &str) -> Result<Option<usize>, GatewayError> {
        let at = place(self.prompts.iter().map(|held| &held.pending), id);
        match at.and_then(|at| self.prompts.get(at)).map(|held| &held.stage) {
            None | Some(Stage::Taken) => Ok(at),
            Some(Stage::Asked | Stage::Free(_) | Stage::Blocked(_, _)) => {
                let message = "hooks have seen this prompt; interrupt its turn instead";
                Err(GatewayError::new(ErrorCode::Conflict, message))
            }
        }
    }

    /// Drops a prompt that waits. Returns whether it did wait.
    pub(in super::super) fn drop_prompt(&mut self, id: &str) -> Result<bool, GatewayError> {
        let at = self.untouched(id)?;
        Ok(at.and_then(|at| self.prompts.remove(at)).is_some())
    }

    pub(in super::super) fn edit_prompt(
        &mut self,
        id: &str,
        text: &str,
    ) -> Result<bool, GatewayError> {
        let Some(at) = self.untouched(id)? else { return Ok(false) };
        check_growth(self.held_prompts(), text, HELD_BYTES)?;
        let Some(held) = self.prompts.get_mut(at) else { return Ok(false) };
        replace_text(&mut held.pending.prompt, text)?;
        Ok(true)
    }

    fn gate_prompts(&self) -> bool {
        self.wants(HookEvent::UserPromptSubmit, &[])
            || self.preface.is_some()
            || self.barred.is_some()
            || self.is_starting()
            || self.hold_turn_end()
            || self.hold_prompts()
    }
}

impl Actor {
    /// Gives a prompt to the agent, once its hooks let it pass.
    pub(in super::super) fn offer(
        &mut self,
        call: Call,
        pending: PendingPrompt,
    ) -> Result<(), GatewayError> {
        if pending.has_passed || !self.core.hooks.gate_prompts() {
            self.core.hooks.continued = 0;
            return self.deliver(call, pending);
        }
        let waiting = &self.core.hooks.prompts;
        let waiting = waiting.iter().map(|waiting| &waiting.pending.prompt);
        check_room(waiting, &pending.prompt, HELD_BYTES)?;
        self.core.state.entitle(&pending.prompt.text);
        self.core.answer(call, Ok(taken(&pending.id())));
        self.core.hooks.prompts.push_back(HeldPrompt { pending, stage: Stage::Taken });
        Ok(())
    }

    /// Moves prompts on as far as possible.
    pub(super) fn pump_prompts(&mut self) {
        while !self.core.hooks.is_starting()
            && !self.core.hooks.hold_turn_end()
            && let Some(mut first) = self.core.hooks.prompts.pop_front()
        {
            match first.stage {
                Stage::Taken => {
                    first.stage = match self.core.hooks.barred.take() {
                        Some(reason) => Stage::Blocked(TurnFailure::Error, reason),
                        None if self.core.raise_prompt(&first.pending.prompt.text) => Stage::Asked,
                        None => Stage::Free(None),
                    };
                    self.core.hooks.prompts.push_front(first);
                }
                Stage::Asked => return self.core.hooks.prompts.push_front(first),
                Stage::Free(context) => self.give(first.pending, context),
                Stage::Blocked(_, _) if self.core.state.record.open.turn.is_some() => {
                    return self.core.hooks.prompts.push_front(first);
                }
                Stage::Blocked(failure, reason) => {
                    self.fail_prompt(first.pending.prompt, failure, &reason);
                }
            }
        }
    }

    pub(super) fn prompt_answered(&mut self, output: &Output) {
        let Some(first) = self.core.hooks.prompts.front_mut() else { return };
        first.stage = match output.blocked() {
            Some(reason) => Stage::Blocked(TurnFailure::Error, reason),
            None => Stage::Free(output.context.clone()),
        };
    }

    pub(super) fn fail_first_prompt(&mut self, failure: TurnFailure, reason: &str) {
        if let Some(first) = self.core.hooks.prompts.front_mut() {
            first.stage = Stage::Blocked(failure, reason.to_owned());
        }
    }

    pub(super) fn block_prompts(&mut self, failure: TurnFailure, reason: &str) {
        for waiting in &mut self.core.hooks.prompts {
            if !matches!(waiting.stage, Stage::Blocked(_, _)) {
                waiting.stage = Stage::Blocked(failure, reason.to_owned());
            }
        }
    }

    fn give(&mut self, mut pending: PendingPrompt, context: Option<String>) {
        let before = self.core.hooks.preface.take();
        let text = pending.prompt.text.clone();
        add(&mut pending.prompt, before, context);
        pending.has_passed = true;
        self.core.hooks.continued = 0;
        let message_id = pending.prompt.message_id.clone();
        if let Err(error) = self.deliver(NOBODY, pending) {
            // The sender already has its reply, so the turn reports what happened to the prompt.
            let pending = PendingPrompt::from(Prompt { message_id, ..Prompt::text(text) });
            let stage = Stage::Blocked(TurnFailure::Error, error.message);
            self.core.hooks.prompts.push_front(HeldPrompt { pending, stage });
        }
    }
}

/// Adds the text of hooks or of the gateway before and after a prompt.
pub(in super::super) fn add(prompt: &mut Prompt, before: Option<String>, after: Option<String>) {
    let block = |text: &String| Json::of(&serde_json::json!({ "type": "text", "text": text }));
    let content = prompt.content.as_ref().and_then(|content| content.read::<Vec<_>>().ok());
    if let Some(content) = content {
        let before = before.as_ref().map(block).into_iter();
        let content = before.chain(content).chain(after.as_ref().map(block));
        prompt.content = Some(Json::of(&content.collect::<Vec<Json<'static>>>()));
    }
    let text = std::mem::take(&mut prompt.text);
    let parts = [before, Some(text), after].into_iter().flatten();
    prompt.text = parts.collect::<Vec<_>>().join("\n\n");
}
