//! Counts how often a response was tried, for the troubles that pass.

use std::collections::HashMap;

const MOST: usize = 4096;

/// The attempts at each response that is still troubled.
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

    /// The trouble has passed: who asks the same again begins anew.
    pub(super) fn forget(&mut self, key: u64) {
        self.0.remove(&key);
    }
}
