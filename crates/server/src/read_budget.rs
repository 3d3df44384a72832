//! What is large and on its way to a client, and the shares of the budget that it holds until it is there.

use std::time::Duration;

use agentwire_sessions::budget::{self, Budget, Pool, Share};
use agentwire_sessions::store::Batch;
use bytes::Bytes;

/// The shares of what is being built for a client.
#[derive(Default)]
pub(crate) struct Held {
    share: Option<Share>,
    /// Events that hold shares of their own.
    events: Vec<Bytes>,
}

impl Held {
    /// Whether there may be more than so many bytes. What is small needs no share; where there is none for
    /// a page of `most` bytes, it ends here.
    pub(crate) fn may_grow(&mut self, bytes: usize, most: usize, budget: &Budget) -> bool {
        if bytes <= budget::SMALL || self.share.is_some() {
            return true;
        }
        self.share = budget.read.take_now(most.saturating_mul(budget::READ));
        self.share.is_some()
    }

    /// Keeps the share of events for as long as what is made of them.
    pub(crate) fn keep(&mut self, batch: &Batch) {
        if batch.lines.len() > budget::SMALL {
            self.events.push(batch.lines.clone());
        }
    }

    /// Keeps the shares of events no longer.
    pub(crate) fn let_go(&mut self) {
        self.events.clear();
    }

    /// Text that holds all of it until it is sent.
    pub(crate) fn text(self, text: impl Into<Vec<u8>>) -> Bytes {
        let text = text.into();
        match text.len() > budget::SMALL {
            true => Bytes::from_owner(Text { text, _held: self }),
            false => Bytes::from(text),
        }
    }
}

/// How long a client may take for something large while others wait for the share that it holds, and a
/// second more for each MiB.
const LARGE_TIME: Duration = Duration::from_secs(30);

/// Waits until so many bytes are taken. None if it takes too long, and others wait.
pub(crate) async fn taken<T>(
    pool: &Pool,
    bytes: usize,
    taking: impl Future<Output = T>,
) -> Option<T> {
    let more = u32::try_from(bytes >> 20).unwrap_or(0);
    pool.unless_wanted(LARGE_TIME + Duration::from_secs(1) * more, taking).await
}

struct Text {
    text: Vec<u8>,
    _held: Held,
}

impl AsRef<[u8]> for Text {
    fn as_ref(&self) -> &[u8] {
        &self.text
    }
}
