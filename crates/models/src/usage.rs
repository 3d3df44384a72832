//! The token counts of a response.

use std::ops::{Add, AddAssign};

/// Tokens of one response or of several. `input` excludes tokens from the cache, even if an API's own
/// format includes them.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Usage {
    /// Tokens read, except those from the cache.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from the cache.
    pub cache_read: u64,
    /// Tokens written to the cache.
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
