//! Prompts that the agent does not have yet, and the ids of accepted prompts: a prompt that is sent twice
//! counts once.

mod ids;

use std::collections::{BTreeMap, VecDeque};

use agentwire_protocol::reply::QueuedPrompt;
use agentwire_protocol::{GatewayError, Prompt};

use self::ids::Ids;
use super::pending_prompt::{
    HELD_BYTES, HELD_LIMIT, PendingPrompt, check_growth, check_room, seen_by_hooks,
};
use super::queue::shown;

#[derive(Debug, Default)]
pub(super) struct Prompts {
    ids: Ids,
    /// Prompts that wait for their process, with one process per turn.
    queue: VecDeque<Queued>,
    /// Counts what was added to the queue or edited in it, and how much of that is durable.
    change: u64,
    durable: u64,
    /// The turn of the first of them was interrupted.
    is_interrupted: bool,
    /// Prompts that the agent has and whose turn has not started, as they are listed.
    given: BTreeMap<String, GivenPrompt>,
}

#[derive(Debug)]
struct Queued {
    prompt: Prompt,
    /// Its process starts once this change is durable.
    change: u64,
}

impl Queued {
    fn is(&self, id: &str) -> bool {
        self.prompt.message_id.as_deref() == Some(id)
    }
}

#[derive(Debug)]
pub(super) struct GivenPrompt {
    shown: QueuedPrompt,
    /// Hooks have let it pass, so its text stays.
    has_passed: bool,
}

impl GivenPrompt {
    pub(super) fn new(pending: &PendingPrompt) -> Self {
        Self { shown: shown(&pending.prompt), has_passed: pending.has_passed }
    }
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
        check_room(self.prompts(), prompt, HELD_BYTES)
    }

    /// Remembers a prompt that the agent got, for lists. Those that no longer wait are forgotten.
    pub(super) fn give(&mut self, prompt: GivenPrompt, waits: impl Fn(&String) -> bool) {
        self.given.retain(|id, _| waits(id));
        if waits(&prompt.shown.message_id) && self.given.len() < HELD_LIMIT {
            self.given.insert(prompt.shown.message_id.clone(), prompt);
        }
    }

    /// A prompt that the agent has.
    pub(super) fn given(&self, id: &str) -> Option<&QueuedPrompt> {
        self.given.get(id).map(|given| &given.shown)
    }

    /// Refuses another text for a prompt that the agent has, if hooks know the text or there is no room.
    pub(super) fn check_edit(&self, id: &str, text: &str) -> Result<(), GatewayError> {
        if self.given.get(id).is_none_or(|given| given.has_passed) {
            return Err(seen_by_hooks());
        }
        check_growth(self.prompts(), text, HELD_BYTES)
    }

    fn prompts(&self) -> impl Iterator<Item = &Prompt> {
        self.queue.iter().map(|queued| &queued.prompt)
    }

    /// Whether the prompt waits for its process.
    pub(super) fn is_queued(&self, id: &str) -> bool {
        self.queue.iter().any(|queued| queued.is(id))
    }

    pub(super) fn drop_queued(&mut self, id: &str) {
        self.is_interrupted &= !self.queue.front().is_some_and(|queued| queued.is(id));
        self.queue.retain(|queued| !queued.is(id));
    }

    /// Returns whether the prompt waits for its process.
    pub(super) fn edit_queued(&mut self, id: &str, text: &str) -> bool {
        let found = self.queue.iter_mut().find(|queued| queued.is(id));
        let is_queued = found.is_some();
        if let Some(queued) = found {
            self.change += 1;
            queued.change = self.change;
            text.clone_into(&mut queued.prompt.text);
        }
        if let Some(given) = self.given.get_mut(id) {
            let images = given.shown.images;
            let message_id = Some(id.to_owned());
            let prompt = Prompt { message_id, ..Prompt::text(text) };
            given.shown = QueuedPrompt { images, ..shown(&prompt) };
        }
        is_queued
    }

    pub(super) fn queue(&mut self, prompt: Prompt) {
        self.change += 1;
        self.queue.push_back(Queued { prompt, change: self.change });
    }

    /// The last change of the queue.
    pub(super) fn change(&self) -> u64 {
        self.change
    }

    /// The queue is durable up to this change.
    pub(super) fn durable(&mut self, change: u64) {
        self.durable = self.durable.max(change);
    }

    /// The next prompt, if it is durable.
    pub(super) fn next(&mut self) -> Option<Prompt> {
        let durable = self.durable;
        let queued = self.queue.pop_front_if(|queued| queued.change <= durable)?;
        self.is_interrupted = false;
        Some(queued.prompt)
    }

    /// The turn of the next prompt is interrupted before its process starts.
    pub(super) fn interrupt_next(&mut self) {
        self.is_interrupted = self.has_queued();
    }

    pub(super) fn next_is_interrupted(&self) -> bool {
        self.is_interrupted
    }

    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    pub(super) fn clear_queue(&mut self) {
        self.is_interrupted = false;
        self.queue.clear();
    }
}

#[cfg(test)]
mod tests {
    use agentwire_protocol::ErrorCode;

    use super::super::pending_prompt::HELD_LIMIT;
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
        assert!(prompts.next().is_none(), "none is durable");
        prompts.durable(prompts.change());
        assert_eq!(prompts.next().unwrap().text, "a");
        assert!(prompts.has_queued());
        prompts.clear_queue();
        assert!(prompts.next().is_none() && !prompts.has_queued());
    }

    #[test]
    fn an_interrupt_is_for_one_prompt() {
        let mut prompts = Prompts::default();
        prompts.interrupt_next();
        assert!(!prompts.next_is_interrupted(), "none waits");
        for text in ["a", "b"] {
            prompts.queue(prompt(text.to_owned()));
        }
        prompts.interrupt_next();
        assert!(prompts.next().is_none() && prompts.next_is_interrupted(), "it is not durable");
        prompts.durable(prompts.change());
        prompts.next().unwrap();
        assert!(!prompts.next_is_interrupted());
        prompts.interrupt_next();
        prompts.clear_queue();
        prompts.queue(prompt("c".to_owned()));
        assert!(!prompts.next_is_interrupted());
    }

    /// A prompt that comes or changes after a start was ordered does not go with that start.
    #[test]
    fn a_prompt_waits_until_its_last_change_is_durable() {
        let mut prompts = Prompts::default();
        let mut add = |id: &str| {
            prompts.queue(Prompt { message_id: Some(id.to_owned()), ..Prompt::text(id) });
            prompts.change()
        };
        let [first, second] = ["a", "b"].map(&mut add);
        prompts.drop_queued("a");
        prompts.durable(first);
        assert!(prompts.next().is_none(), "only what was cancelled is durable");
        assert!(prompts.edit_queued("b", "changed") && !prompts.edit_queued("a", "x"));
        prompts.durable(second);
        assert!(prompts.next().is_none(), "its text is not durable");
        prompts.durable(prompts.change());
        assert_eq!(prompts.next().unwrap().text, "changed");
    }

    #[test]
    fn one_prompt_is_dropped_with_its_interrupt_or_changed() {
        let mut prompts = Prompts::default();
        for id in ["a", "b", "c"] {
            let prompt = Prompt { message_id: Some(id.to_owned()), ..Prompt::text(id) };
            prompts.give(GivenPrompt::new(&PendingPrompt::from(prompt.clone())), |_| true);
            prompts.queue(prompt);
        }
        prompts.interrupt_next();
        prompts.drop_queued("b");
        prompts.edit_queued("a", "changed");
        assert!(prompts.next_is_interrupted(), "it is still for the first");
        assert_eq!(prompts.given("a").unwrap().prompt, "changed");
        prompts.drop_queued("a");
        assert!(!prompts.next_is_interrupted() && !prompts.is_queued("a"));
        let passed = PendingPrompt { has_passed: true, ..PendingPrompt::from(prompt("d".into())) };
        prompts.give(GivenPrompt::new(&passed), |_| true);
        assert!(prompts.check_edit("c", "other").is_ok());
        assert_eq!(prompts.check_edit("", "other").unwrap_err().code, ErrorCode::Conflict);
        prompts.durable(prompts.change());
        assert_eq!(prompts.next().unwrap().text, "c");
        assert!(prompts.next().is_none());
    }

    #[test]
    fn what_waits_is_bounded_in_number_and_in_bytes() {
        let mut prompts = Prompts::default();
        for _ in 0..HELD_LIMIT {
            prompts.queue(prompt(String::new()));
        }
        let one = prompt("x".to_owned());
        assert_eq!(prompts.check_room(&one).unwrap_err().code, ErrorCode::Overloaded);
        let mut prompts = Prompts::default();
        let half = prompt("x".repeat(HELD_BYTES / 2));
        prompts.queue(half.clone());
        assert!(prompts.check_room(&half).is_ok());
        prompts.queue(half);
        assert!(prompts.check_room(&one).is_err());
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
