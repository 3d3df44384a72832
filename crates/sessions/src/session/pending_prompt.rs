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
