//! A prompt on its way to the agent, and what has been done for it already. It may have to wait more than
//! once, for trust, hooks, a turn or a limit; nothing is done for it twice.

use agentwire_protocol::{ErrorCode, GatewayError, Prompt};

/// How many prompts may wait for their process, hooks, a turn or a limit, each counted by itself.
pub(super) const HELD_LIMIT: usize = 1024;

/// How many bytes of prompts may wait for their process or at a limit.
pub(super) const HELD_BYTES: usize = 256 << 20;

#[derive(Clone, Debug)]
pub(super) struct PendingPrompt {
    pub(super) prompt: Prompt,
    /// The log says that it waits.
    pub(super) is_queued: bool,
    /// Its hooks have let it pass.
    pub(super) has_passed: bool,
}

impl PendingPrompt {
    /// Its message id. Every accepted prompt has one.
    pub(super) fn id(&self) -> String {
        self.prompt.message_id.clone().unwrap_or_default()
    }

    /// A prompt that has waited, as the log says.
    pub(super) fn queued(prompt: Prompt) -> Self {
        Self { is_queued: true, ..Self::from(prompt) }
    }
}

impl From<Prompt> for PendingPrompt {
    fn from(prompt: Prompt) -> Self {
        Self { prompt, is_queued: false, has_passed: false }
    }
}

/// The place of the prompt with this id.
pub(super) fn place<'e>(
    mut waiting: impl Iterator<Item = &'e PendingPrompt>,
    id: &str,
) -> Option<usize> {
    waiting.position(|pending| pending.prompt.message_id.as_deref() == Some(id))
}

/// Gives the prompt with this id another text. Returns whether it waits here.
pub(super) fn edit(
    waiting: &mut [PendingPrompt],
    id: &str,
    text: &str,
    most_bytes: usize,
) -> Result<bool, GatewayError> {
    let Some(at) = place(waiting.iter(), id) else { return Ok(false) };
    if waiting.get(at).is_some_and(|pending| pending.has_passed) {
        return Err(seen_by_hooks());
    }
    check_growth(waiting.iter().map(|pending| &pending.prompt), text, most_bytes)?;
    let Some(pending) = waiting.get_mut(at) else { return Ok(false) };
    replace_text(&mut pending.prompt, text)?;
    Ok(true)
}

/// The error for a prompt whose text hooks have judged, or have added something to.
pub(super) fn seen_by_hooks() -> GatewayError {
    let message = "hooks have seen this prompt; cancel it and send another";
    GatewayError::new(ErrorCode::Conflict, message)
}

/// Gives a prompt another text, unless it is more than text and images.
pub(super) fn replace_text(prompt: &mut Prompt, text: &str) -> Result<(), GatewayError> {
    if prompt.content.is_some() {
        let message = "this prompt has content blocks; cancel it and send another";
        return Err(GatewayError::new(ErrorCode::Conflict, message));
    }
    text.clone_into(&mut prompt.text);
    Ok(())
}

/// Refuses a text that replaces one of those that wait, if there is no room for it next to all of them.
pub(super) fn check_growth<'e>(
    waiting: impl Iterator<Item = &'e Prompt>,
    text: &str,
    most_bytes: usize,
) -> Result<(), GatewayError> {
    match waiting.map(bytes).sum::<usize>() + text.len() <= most_bytes {
        true => Ok(()),
        false => Err(GatewayError::new(ErrorCode::Overloaded, "too many prompts wait")),
    }
}

/// Refuses a prompt if there is no room for it next to those that wait.
pub(super) fn check_room<'e>(
    waiting: impl Iterator<Item = &'e Prompt>,
    more: &Prompt,
    most_bytes: usize,
) -> Result<(), GatewayError> {
    let (count, size) =
        waiting.fold((0, bytes(more)), |(count, size), prompt| (count + 1, size + bytes(prompt)));
    match count < HELD_LIMIT && size <= most_bytes {
        true => Ok(()),
        false => Err(GatewayError::new(ErrorCode::Overloaded, "too many prompts wait")),
    }
}

fn bytes(prompt: &Prompt) -> usize {
    let content = prompt.content.as_ref().map_or(0, |content| content.get().len());
    let images = prompt.images.iter().map(|image| image.data.len()).sum::<usize>();
    prompt.text.len() + content + images
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pending(id: &str, text: &str) -> PendingPrompt {
        let message_id = Some(id.to_owned());
        PendingPrompt::from(Prompt { message_id, ..Prompt::text(text) })
    }

    #[test]
    fn another_text_is_for_one_prompt_that_nobody_has_judged() {
        let mut waiting = [pending("a", "one"), pending("b", "two")];
        assert_eq!(edit(&mut waiting, "b", "other", 100), Ok(true));
        assert_eq!(edit(&mut waiting, "c", "other", 100), Ok(false));
        let texts = |waiting: &[PendingPrompt]| -> Vec<String> {
            waiting.iter().map(|pending| pending.prompt.text.clone()).collect()
        };
        assert_eq!(texts(&waiting), ["one", "other"]);
        assert_eq!(edit(&mut waiting, "a", "long", 11).unwrap_err().code, ErrorCode::Overloaded);
        waiting[0].has_passed = true;
        assert_eq!(edit(&mut waiting, "a", "more", 100).unwrap_err().code, ErrorCode::Conflict);
        waiting[1].prompt.content = Some(agentwire_protocol::Json::EMPTY);
        assert_eq!(edit(&mut waiting, "b", "more", 100).unwrap_err().code, ErrorCode::Conflict);
        assert_eq!(texts(&waiting), ["one", "other"]);
    }
}
