//! Reads the log for readers that must not fail when the store is busy.

use std::time::Duration;

use agentwire_sessions::hub::Events;
use agentwire_sessions::store::{Batch, StoreError};

/// How long to wait before reading a busy or full store again.
const AGAIN: Duration = Duration::from_millis(200);

/// The next events. A busy or full store is read again until it answers.
pub(crate) async fn next(events: &mut Events) -> Result<Option<Batch>, StoreError> {
    loop {
        match events.next().await {
            Err(error @ (StoreError::Busy(_) | StoreError::Full(_))) => {
                tracing::debug!(%error, "failed to read events; retrying");
                tokio::time::sleep(AGAIN).await;
            }
            read => return read,
        }
    }
}
