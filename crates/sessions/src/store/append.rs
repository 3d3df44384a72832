//! What may be appended: one rule for all stores.

use super::{Append, StoreError};

impl Append {
    /// Checks that this follows what is known about its session: the last stored event, and the owner.
    /// Returns the last event after it.
    pub(super) fn check(&self, known: Option<(u64, Option<&str>)>) -> Result<u64, StoreError> {
        let summary = &self.record.summary;
        let (last, owner) = known.unwrap_or_default();
        if let (Some(owner), Some(ours)) = (owner, self.record.owner.as_deref())
            && owner != ours
        {
            return Err(StoreError::Conflict(format!(
                "failed to append to session {}: {owner} owns it",
                summary.id
            )));
        }
        let Some(batch) = &self.batch else {
            // The owner may not know yet that it was deleted.
            if known.is_none() && summary.last_seq > 0 {
                return Err(StoreError::Conflict(format!(
                    "failed to append to session {}: it was deleted",
                    summary.id
                )));
            }
            return Ok(last);
        };
        batch.check()?;
        if batch.first != last + 1 {
            return Err(StoreError::Conflict(format!(
                "failed to append to session {}: events from {} do not follow {last}, the last stored",
                summary.id, batch.first
            )));
        }
        Ok(batch.last())
    }
}

impl StoreError {
    pub(super) fn used(key: &str) -> Self {
        Self::Conflict(format!(
            "failed to append: the key {key:?} was used before; look up its answer"
        ))
    }
}
