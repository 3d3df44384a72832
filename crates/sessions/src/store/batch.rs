//! The events of a batch, one by one.

use memchr::memchr_iter;

use super::{Batch, StoreError};

impl Batch {
    pub fn last(&self) -> u64 {
        self.first.saturating_add(self.count).saturating_sub(1)
    }

    /// The number and line of each event, without the `\n`.
    pub fn events(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut start = 0;
        let lines = memchr_iter(b'\n', &self.lines).map_while(move |end| {
            let line = self.lines.get(start..end);
            start = end + 1;
            line
        });
        (self.first..).zip(lines)
    }

    /// The events after `seq`, if there are any. The bytes are shared, not copied.
    pub fn after(&self, seq: u64) -> Option<Self> {
        if seq < self.first {
            return Some(self.clone());
        }
        if seq >= self.last() {
            return None;
        }
        let passed = seq - self.first;
        let end = memchr_iter(b'\n', &self.lines).nth(usize::try_from(passed).ok()?)?;
        Some(Self {
            first: seq + 1,
            count: self.count - passed - 1,
            lines: self.lines.slice(end + 1..),
        })
    }

    /// Numbers and lines must agree, or the events could not be separated when read back.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        let lines = memchr_iter(b'\n', &self.lines).count();
        let sound = self.first > 0
            && self.count > 0
            && self.first.checked_add(self.count).is_some()
            && u64::try_from(lines) == Ok(self.count)
            && self.lines.last() == Some(&b'\n');
        if sound {
            return Ok(());
        }
        Err(StoreError::Failed(format!(
            "failed to append: a batch of {} from {} has {lines} whole lines",
            self.count, self.first
        )))
    }
}

/// Where to start reading for the newest events before `before`. `rows` has the first number and the size of
/// each batch that starts before it, the newest first.
pub(super) fn start_before(
    rows: impl IntoIterator<Item = (u64, u64)>,
    before: u64,
    count: u64,
    bytes: u64,
) -> u64 {
    let least = before.saturating_sub(count.saturating_add(1));
    let mut total = 0_u64;
    for (first, size) in rows {
        total = total.saturating_add(size);
        if first <= least.saturating_add(1) {
            break;
        }
        if total >= bytes {
            return first - 1;
        }
    }
    least
}
