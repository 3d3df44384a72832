//! Message ids of prompts that were taken: one that is sent twice counts once.

use std::collections::{BTreeSet, VecDeque};

/// How many are remembered without asking the store.
const LIMIT: usize = 4096;

/// The ids that were taken last.
#[derive(Debug, Default)]
pub(super) struct Taken {
    ids: BTreeSet<String>,
    /// Oldest first.
    order: VecDeque<String>,
}

impl Taken {
    pub(super) fn contains(&self, id: &str) -> bool {
        self.ids.contains(id)
    }

    /// Takes note of one more. The last `undurable` of them the store does not know yet: they stay.
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
        let mut taken = Taken::default();
        for number in 0..LIMIT + 10 {
            taken.insert(number.to_string(), 1);
        }
        assert!(!taken.contains("9") && taken.contains("10"));
        assert!(taken.contains(&(LIMIT + 9).to_string()));
        let mut taken = Taken::default();
        for number in 0..LIMIT + 10 {
            taken.insert(number.to_string(), number + 1);
        }
        assert!(taken.contains("0"));
        taken.insert("last".to_owned(), 1);
        assert!(!taken.contains("10") && taken.contains("11"));
        assert_eq!(taken.ids.len(), taken.order.len());
    }
}
