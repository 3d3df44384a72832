//! Budget shares for large data on its way to a client, held until the client has it.

use std::time::Duration;

use agentwire_sessions::budget::{self, Budget, Pool, Share};
use agentwire_sessions::store::Batch;
use bytes::Bytes;

/// The shares of a response that is being built.
#[derive(Default)]
pub(crate) struct ReadShares {
    share: Option<Share>,
    /// Events that hold their own shares.
    events: Vec<Bytes>,
}

impl ReadShares {
    /// Whether the response may grow to this size. A small one needs no share. If there is no share for a
    /// page of `most` bytes, the page ends here.
    pub(crate) fn may_grow(&mut self, bytes: usize, most: usize, budget: &Budget) -> bool {
        if bytes <= budget::SMALL || self.share.is_some() {
            return true;
        }
        self.share = budget.read.take_now(most.saturating_mul(budget::READ));
        self.share.is_some()
    }

    /// Holds the share of these events as long as the response made from them.
    pub(crate) fn add(&mut self, batch: &Batch) {
        if batch.lines.len() > budget::SMALL {
            self.events.push(batch.lines.clone());
        }
    }

    /// Releases the shares of events.
    pub(crate) fn release_events(&mut self) {
        self.events.clear();
    }

    /// The text, which holds all shares until it is sent.
    pub(crate) fn into_bytes(self, text: impl Into<Vec<u8>>) -> Bytes {
        let text = text.into();
        match text.len() > budget::SMALL {
            true => Bytes::from_owner(TextWithShares { text, _shares: self }),
            false => Bytes::from(text),
        }
    }
}

/// How long a client may take for large data while others wait for its share, plus one second per MiB.
const LARGE_TIME: Duration = Duration::from_secs(30);

/// Waits until the data is delivered. Returns `None` if that takes too long while others wait.
pub(crate) async fn unless_stalled<T>(
    pool: &Pool,
    bytes: usize,
    delivery: impl Future<Output = T>,
) -> Option<T> {
    let more = u32::try_from(bytes >> 20).unwrap_or(0);
    pool.unless_wanted(LARGE_TIME + Duration::from_secs(1) * more, delivery).await
}

struct TextWithShares {
    text: Vec<u8>,
    _shares: ReadShares,
}

impl AsRef<[u8]> for TextWithShares {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
