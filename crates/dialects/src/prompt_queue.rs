//! Prompts that wait here until their agent is free: one of them is cancelled, or gets another text.

use std::collections::VecDeque;

use agentwire_protocol::{ErrorCode, GatewayError, Prompt};

use crate::agent::report_cancelled;
use crate::tape::Out;

/// Cancels the prompt with this id, if it waits here. Returns whether it was the next.
pub(crate) fn cancel(
    queue: &mut VecDeque<Prompt>,
    message_id: &str,
    out: &mut Out<'_>,
) -> Result<bool, GatewayError> {
    let at = place(queue, message_id)?;
    queue.remove(at);
    report_cancelled(message_id, out);
    Ok(at == 0)
}

/// Gives the prompt with this id another text, if it waits here.
pub(crate) fn edit(
    queue: &mut VecDeque<Prompt>,
    message_id: &str,
    text: &str,
) -> Result<(), GatewayError> {
    let at = place(queue, message_id)?;
    if let Some(prompt) = queue.get_mut(at) {
        text.clone_into(&mut prompt.text);
    }
    Ok(())
}

fn place(queue: &VecDeque<Prompt>, message_id: &str) -> Result<usize, GatewayError> {
    let fits = |prompt: &Prompt| prompt.message_id.as_deref() == Some(message_id);
    queue.iter().position(fits).ok_or_else(|| not_queued(message_id))
}

/// The error for a prompt that does not wait, or no longer.
pub fn not_queued(message_id: &str) -> GatewayError {
    let message = format!("no prompt with the messageId {message_id} is queued");
    GatewayError::new(ErrorCode::Conflict, message)
}
