//! Message ids of accepted prompts: a prompt that is sent twice counts once.

use std::collections::{BTreeSet, VecDeque};

/// How many ids are remembered without asking the store.
const LIMIT: usize = 4096;

/// The most recently accepted ids.
#[derive(Debug, Default)]
pub(super) struct Ids {
    ids: BTreeSet<String>,
    /// Oldest first.
    order: VecDeque<String>,
    /// The id that the store was last asked for, if the store has it.
    recalled: Option<String>,
}

impl Ids {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.ids.contains(id) || self.recalled.as_deref() == Some(id)
    }

    pub(super) fn recall(&mut self, id: Option<String>) {
        self.recalled = id;
    }

    /// Adds an id. The last `undurable` ids are never dropped, because the store does not know them yet.
    pub(super) fn insert(&mut self, id: String, undurable: usize) {
        if self.ids.insert(id.clone()) {
            self.order.push_back(id);
        }
        while self.order.len() > LIMIT.max(undurable)
            && let Some(oldest) = self.order.pop_front()
        {
            self.ids.remove(&oldest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_unless_the_store_does_not_know_them() {
        let mut ids = Ids::default();
        for number in 0..LIMIT + 10 {
            ids.insert(number.to_string(), 1);
        }
        assert!(!ids.contains("9") && ids.contains("10"));
        assert!(ids.contains(&(LIMIT + 9).to_string()));
        let mut ids = Ids::default();
        for number in 0..LIMIT + 10 {
            ids.insert(number.to_string(), number + 1);
        }
        assert!(ids.contains("0"));
        ids.insert("last".to_owned(), 1);
        assert!(!ids.contains("10") && ids.contains("11"));
        assert_eq!(ids.ids.len(), ids.order.len());
    }
}
