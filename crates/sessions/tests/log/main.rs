//! What the log promises: durable before visible, history and live without a seam, nobody waits for a slow
//! reader, nothing is lost when there is no room.
#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test that finds something else has failed"
)]

#[path = "../stores/mod.rs"]
mod stores;

mod ends;
mod visible;
mod waiting;
mod writing;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use agentwire_sessions::log::Cursor;
use agentwire_sessions::store::Batch;
use stores::line;
use tokio::time::timeout;

/// Long enough for any machine; a test that needs it has failed.
const LONG: Duration = Duration::from_secs(60);

async fn next(cursor: &mut Cursor) -> Option<Batch> {
    timeout(LONG, cursor.next()).await.expect("no deadlock").unwrap()
}

/// Polls a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    poll_fn(|context| {
        Poll::Ready(match Pin::new(&mut *future).poll(context) {
            Poll::Ready(output) => Some(output),
            Poll::Pending => None,
        })
    })
    .await
}

/// Polls for the next events once, as a caller that then gives up.
async fn glance(cursor: &mut Cursor) -> Option<Option<Batch>> {
    poll_once(&mut pin!(cursor.next())).await.map(Result::unwrap)
}

fn check(session: &str, batch: &Batch, position: u64) -> u64 {
    assert_eq!(batch.first, position + 1);
    let mut last = position;
    for (seq, text) in batch.events() {
        assert_eq!(seq, last + 1);
        assert_eq!(text, line(session, seq).as_bytes());
        last = seq;
    }
    assert_eq!(last, batch.last());
    last
}

/// Reads to the end and returns the last event.
async fn read_out(cursor: &mut Cursor, session: &str) -> u64 {
    let mut position = cursor.position();
    while let Some(batch) = next(cursor).await {
        position = check(session, &batch, position);
        assert_eq!(cursor.position(), position);
    }
    position
}

fn bytes_batch(first: u64, mut text: Vec<u8>) -> Batch {
    text.push(b'\n');
    Batch { first, count: 1, lines: text.into() }
}
