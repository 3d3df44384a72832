//! How the log is read where nobody is to hear that its store was busy.

use std::time::Duration;

use agentwire_sessions::hub::Events;
use agentwire_sessions::store::{Batch, StoreError};

/// How long to wait before a store that is busy or full is read again.
const AGAIN: Duration = Duration::from_millis(200);

/// The next events. A store that is busy or full is read again until it is not.
pub(crate) async fn next(events: &mut Events) -> Result<Option<Batch>, StoreError> {
    loop {
        match events.next().await {
            Err(error @ (StoreError::Busy(_) | StoreError::Full(_))) => {
                tracing::debug!(%error, "events cannot be read yet");
                tokio::time::sleep(AGAIN).await;
            }
            read => return read,
        }
    }
}
