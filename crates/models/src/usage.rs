//! What a response says it cost.

use std::ops::{Add, AddAssign};

/// Tokens of one response, or of several. `input` is what was read anew: tokens from the cache are
/// not in it, whatever an API's own form adds up.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Usage {
    /// Tokens read, without those from the cache.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens put into the cache.
    pub cache_create: u64,
}

impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cache_read: self.cache_read.saturating_add(other.cache_read),
            cache_create: self.cache_create.saturating_add(other.cache_create),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}
