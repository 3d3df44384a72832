//! Ids that were used before, to know one that comes again: bounded, and quick to ask.

use std::collections::{HashMap, VecDeque};

/// How many ids are remembered; of more, the oldest are forgotten.
const LIMIT: usize = 4096;

/// How long an id may be to be remembered.
const ID_LIMIT: usize = 4096;

/// The ids that were used last.
#[derive(Debug, Default)]
pub(crate) struct Recent {
    counts: HashMap<String, usize>,
    order: VecDeque<String>,
}

impl Recent {
    /// It was used. `false` if it had been before.
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

    /// How often it was used.
    pub(crate) fn count(&self, id: &str) -> usize {
        self.counts.get(id).copied().unwrap_or(0)
    }

    /// Whether it was used.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.counts.contains_key(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten() {
        let mut recent = Recent::default();
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
