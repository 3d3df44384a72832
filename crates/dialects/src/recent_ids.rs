//! Recently used ids, to recognise a repeated one: bounded, with fast lookup.

use std::collections::{HashMap, VecDeque};

/// How many ids are remembered; beyond it the oldest are forgotten.
const LIMIT: usize = 4096;

/// The longest id that is remembered.
const ID_LIMIT: usize = 4096;

#[derive(Debug, Default)]
pub(crate) struct RecentIds {
    counts: HashMap<String, usize>,
    order: VecDeque<String>,
}

impl RecentIds {
    /// Records an id. Returns `false` if it had been used before.
    pub(crate) fn add(&mut self, id: &str) -> bool {
        if id.len() > ID_LIMIT {
            return true;
        }
        if self.order.len() >= LIMIT
            && let Some(oldest) = self.order.pop_front()
            && let Some(count) = self.counts.get_mut(&oldest)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&oldest);
            }
        }
        self.order.push_back(id.to_owned());
        let count = self.counts.entry(id.to_owned()).or_default();
        *count += 1;
        *count == 1
    }

    pub(crate) fn count(&self, id: &str) -> usize {
        self.counts.get(id).copied().unwrap_or(0)
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        self.counts.contains_key(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut recent = RecentIds::default();
        assert!(recent.add("a"));
        assert!(!recent.add("a"));
        assert_eq!(recent.count("a"), 2);
        for number in 0..LIMIT - 1 {
            assert!(recent.add(&number.to_string()));
        }
        assert_eq!(recent.count("a"), 1);
        recent.add("last");
        assert!(!recent.has("a"));
        assert!(recent.has("last"));
    }
}
