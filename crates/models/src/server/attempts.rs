//! Counts the attempts at each response, for faults that occur only in the first ones.

use std::collections::HashMap;

const MOST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Attempts(HashMap<u64, u32>);

impl Attempts {
    /// The number of this attempt, from 0.
    pub(super) fn next(&mut self, key: u64) -> u32 {
        if self.0.len() >= MOST && !self.0.contains_key(&key) {
            self.0.clear();
        }
        let count = self.0.entry(key).or_default();
        let attempt = *count;
        *count = count.saturating_add(1);
        attempt
    }

    /// The faults are over: the same request later starts at 0 again.
    pub(super) fn forget(&mut self, key: u64) {
        self.0.remove(&key);
    }
}
