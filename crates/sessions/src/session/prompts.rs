//! Prompts that the agent does not have yet, and the ids of accepted prompts: a prompt that is sent twice
//! counts once.

mod ids;

use std::collections::VecDeque;

use agentwire_protocol::{ErrorCode, GatewayError, Prompt};

use self::ids::Ids;
use super::pending_prompt::{PendingPrompt, bytes, has_room};

/// How many prompts may wait for their process, or at a limit.
const QUEUE_LIMIT: usize = 1024;

/// How many bytes of prompts may wait, for their process or for anything else.
pub(super) const BYTES_LIMIT: usize = 256 << 20;

#[derive(Debug, Default)]
pub(super) struct Prompts {
    ids: Ids,
    /// Prompts that wait for their process, with one process per turn.
    queue: VecDeque<Prompt>,
    /// Prompts that wait until a client allows more than a limit.
    held: VecDeque<PendingPrompt>,
}

impl Prompts {
    /// Whether a prompt with that id was accepted before.
    pub(super) fn was_accepted(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// The store has that id: the prompt was accepted long ago.
    pub(super) fn recall(&mut self, id: Option<String>) {
        self.ids.recall(id);
    }

    /// A prompt is accepted. The store does not know the last `undurable` ids yet.
    pub(super) fn take(&mut self, id: String, undurable: usize) {
        self.ids.insert(id, undurable);
    }

    /// Refuses a prompt if there is no room to wait for its process.
    pub(super) fn check_room(&self, prompt: &Prompt) -> Result<(), GatewayError> {
        let waiting: usize = self.queue.iter().map(bytes).sum();
        match self.queue.len() < QUEUE_LIMIT && waiting + bytes(prompt) <= BYTES_LIMIT {
            true => Ok(()),
            false => Err(too_many()),
        }
    }

    pub(super) fn queue(&mut self, prompt: Prompt) {
        self.queue.push_back(prompt);
    }

    pub(super) fn next(&mut self) -> Option<Prompt> {
        self.queue.pop_front()
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn clear_queue(&mut self) {
        self.queue.clear();
    }

    /// Refuses a prompt if there is no room to wait at a limit.
    pub(super) fn check_hold(&self, pending: &PendingPrompt) -> Result<(), GatewayError> {
        match self.held.len() < QUEUE_LIMIT && has_room(self.held.iter(), pending) {
            true => Ok(()),
            false => Err(too_many()),
        }
    }

    pub(super) fn hold(&mut self, pending: PendingPrompt) {
        self.held.push_back(pending);
    }

    /// Takes the prompts that wait at a limit, in order.
    pub(super) fn take_held(&mut self) -> VecDeque<PendingPrompt> {
        std::mem::take(&mut self.held)
    }

    pub(super) fn has_waiting(&self) -> bool {
        self.has_queued() || !self.held.is_empty()
    }
}

fn too_many() -> GatewayError {
    GatewayError::new(ErrorCode::Overloaded, "too many prompts wait")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prompt(text: String) -> Prompt {
        Prompt::text(text)
    }

    #[test]
    fn prompts_wait_in_order_and_are_given_up_together() {
        let mut prompts = Prompts::default();
        for text in ["a", "b", "c"] {
            prompts.check_room(&prompt(text.to_owned())).unwrap();
            prompts.queue(prompt(text.to_owned()));
        }
        assert_eq!(prompts.next().unwrap().text, "a");
        prompts.hold(PendingPrompt::from(prompt("d".to_owned())));
        prompts.clear_queue();
        assert!(prompts.next().is_none() && prompts.has_waiting());
        assert_eq!(prompts.take_held().len(), 1);
        assert!(!prompts.has_waiting());
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_in_bytes() {
        let mut prompts = Prompts::default();
        for _ in 0..QUEUE_LIMIT {
            prompts.queue(prompt(String::new()));
            prompts.hold(PendingPrompt::from(prompt(String::new())));
        }
        let one = prompt("x".to_owned());
        assert_eq!(prompts.check_room(&one).unwrap_err().code, ErrorCode::Overloaded);
        let pending = PendingPrompt::from(one.clone());
        assert_eq!(prompts.check_hold(&pending).unwrap_err().code, ErrorCode::Overloaded);
        let mut prompts = Prompts::default();
        let half = prompt("x".repeat(BYTES_LIMIT / 2));
        prompts.queue(half.clone());
        assert!(prompts.check_room(&half).is_ok());
        prompts.queue(half);
        assert!(prompts.check_room(&one).is_err());
        assert!(prompts.check_hold(&pending).is_ok(), "the limit has its own queue");
    }

    #[test]
    fn an_id_counts_once_whether_it_is_known_here_or_to_the_store() {
        let mut prompts = Prompts::default();
        prompts.take("new".to_owned(), 1);
        assert!(prompts.was_accepted("new") && !prompts.was_accepted("old"));
        prompts.recall(Some("old".to_owned()));
        assert!(prompts.was_accepted("old"));
        prompts.recall(None);
        assert!(!prompts.was_accepted("old") && prompts.was_accepted("new"));
    }
}
