//! How the log is read where nobody is to hear that its store was busy.

use std::time::Duration;

use agentwire_sessions::log::Cursor;
use agentwire_sessions::store::{Batch, StoreError};

/// How long to wait before a store that is busy or full is read again.
const AGAIN: Duration = Duration::from_millis(200);

/// The next events. A store that is busy or full is read again until it is not.
pub(crate) async fn next(cursor: &mut Cursor) -> Result<Option<Batch>, StoreError> {
    loop {
        match cursor.next().await {
            Err(error @ (StoreError::Busy(_) | StoreError::Full(_))) => {
                tracing::debug!(%error, "events cannot be read yet");
                tokio::time::sleep(AGAIN).await;
            }
            read => return read,
        }
    }
}

/// How long the first events of a page may wait for a share of the budget.
const PATIENCE: Duration = Duration::from_secs(10);

/// The next events of a page. The first wait for a share if they are large, but not for ever; with some
/// in memory, a page waits for none.
pub(crate) async fn first_or_next(
    cursor: &mut Cursor,
    has_some: bool,
) -> Result<Option<Batch>, StoreError> {
    cursor.wait_for_share(if has_some { Duration::ZERO } else { PATIENCE });
    cursor.next().await
}
