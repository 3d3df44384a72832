//! Closes sessions that no process runs any more when somebody looks at them.

use std::sync::Arc;

use agentwire_protocol::SessionId;

use super::{FAILED, Shared};
use crate::orphans::{self, Tidied};
use crate::owner::Owner;
use crate::store::{Record, Store, StoreError};

impl Shared {
    /// The current record, closed if no process runs the session: its process may have died after this one
    /// started, or its end could not be written at the time. If the end cannot be written now either, the
    /// record is shown as if it were. `may_write` becomes false once another writer was in the way.
    pub(super) fn looked_after(
        &self,
        store: &dyn Store,
        mut record: Record,
        may_write: &mut bool,
    ) -> Result<Record, StoreError> {
        let own = self.owner.as_ref().map(Owner::name);
        if let Some(live) = self.live().get(&record.summary.id) {
            // The record is damaged, but the live session has the correct summary.
            if record.unfit.is_some() {
                record.summary = live.summary();
            }
            return Ok(record);
        }
        if !orphans::is_left(store, &record, own) {
            return Ok(record);
        }
        let is_own = own.is_some() && record.owner.as_deref() == own;
        let reason = if is_own { FAILED } else { orphans::DIED };
        if *may_write {
            *may_write = orphans::tidy(store, record.clone(), reason) == Tidied::Done;
            record = store.session(&record.summary.id)?.unwrap_or(record);
        }
        match orphans::is_left(store, &record, own) {
            true => Ok(orphans::derived(record, reason)),
            false => Ok(record),
        }
    }

    /// Everything stored about a session except its events; closed first if no process runs it.
    pub(super) async fn found(
        self: &Arc<Self>,
        id: &SessionId,
    ) -> Result<Option<Record>, StoreError> {
        let (id, shared) = (id.clone(), Arc::clone(self));
        let found = self.log.read_store(move |store| {
            let record = store.session(&id)?;
            record.map(|record| shared.looked_after(store, record, &mut true)).transpose()
        });
        found.await
    }
}
