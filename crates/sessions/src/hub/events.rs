//! Follows a session to its end, and writes that end if the session's process died.

use std::sync::{Arc, Weak};
use std::time::Duration;

use agentwire_protocol::{GatewayError, SessionId};

use super::{Hub, Shared};
use crate::log::Cursor;
use crate::store::{Batch, StoreError};

/// The events of a session: history first, then live, from the same call. Does not keep the hub open.
#[derive(Debug)]
pub struct Events {
    session: SessionId,
    cursor: Cursor,
    hub: Weak<Shared>,
}

impl Hub {
    /// The events of a session after `after`. The session must exist.
    pub async fn events(&self, id: &SessionId, after: u64) -> Result<Events, GatewayError> {
        self.record(id).await?;
        Ok(self.follow(id, after))
    }

    /// The same without checking that the session exists; an unknown session has no events.
    pub fn follow(&self, id: &SessionId, after: u64) -> Events {
        Events {
            session: id.clone(),
            cursor: self.shared.log.cursor(id, after),
            hub: Arc::downgrade(&self.shared),
        }
    }
}

impl Hub {
    /// The event after which to start, in order to read the newest events before `before`: at most `count`
    /// of them, and not many more than `bytes` bytes.
    pub async fn start_before(
        &self,
        id: &SessionId,
        before: u64,
        count: u64,
        bytes: u64,
    ) -> Result<u64, GatewayError> {
        let id = id.clone();
        self.read_store(move |store| store.start_before(&id, before, count, bytes)).await
    }
}

impl Events {
    /// The number of the last event returned.
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// How long large events may wait for their share of the budget ([`Cursor::wait_for_share`]).
    pub fn wait_for_share(&mut self, longest: Duration) {
        self.cursor.wait_for_share(longest);
    }

    /// The next events ([`Cursor::next`]). A session whose process died is closed if possible, and its end
    /// arrives like any event.
    pub async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        loop {
            if let Some(batch) = self.cursor.next().await? {
                return Ok(Some(batch));
            }
            let hub = self.hub.upgrade().filter(|_| self.cursor.is_left());
            let Some(hub) = hub else { return Ok(None) };
            let last = hub.found(&self.session).await?.map_or(0, |record| record.summary.last_seq);
            if last <= self.position() {
                return Ok(None);
            }
        }
    }
}
