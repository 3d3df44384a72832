//! OpenTelemetry traces: one for each turn, made from the log by a separate reader.
//!
//! Sessions know nothing about tracing. Their events are read with a cursor, as any client reads them. The
//! spans wait in a queue that is bounded in number and in bytes. A receiver that is down, slow or silent
//! costs that queue and one log line.

mod export;
mod otlp;
pub mod settings;
pub mod spans;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use agentwire_protocol::{Event, SessionId};
use agentwire_sessions::Hub;
use agentwire_sessions::blocking::blocking_if_long;
use agentwire_sessions::hub::SessionStart;
use agentwire_sessions::metrics::Counter;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{broadcast, mpsc};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::task::TaskTracker;

pub use self::settings::Settings;
use self::spans::{Span, Translator};
use crate::log_reads;

/// How many bytes of spans may wait, including those being sent.
const QUEUE_BYTES: usize = 8 << 20;

#[derive(Debug, Default)]
pub struct SpanCounts {
    /// Accepted by the receiver.
    pub exported: Counter,
    /// Discarded.
    pub dropped: Counter,
    waiting: AtomicUsize,
}

pub struct Traces {
    counts: Arc<SpanCounts>,
    follower: JoinHandle<()>,
    readers: TaskTracker,
    exporter: JoinHandle<()>,
    queue: SpanQueue,
}

#[derive(Clone)]
struct SpanQueue {
    sender: mpsc::Sender<Span>,
    counts: Arc<SpanCounts>,
}

impl Traces {
    /// Traces every session that starts here from now on.
    pub fn start(hub: &Hub, settings: Settings) -> Self {
        let settings = Arc::new(settings);
        let counts = Arc::new(SpanCounts::default());
        let (sender, receiver) = mpsc::channel(settings.queue);
        let queue = SpanQueue { sender, counts: Arc::clone(&counts) };
        let exporter = export::Exporter::new(Arc::clone(&settings), Arc::clone(&counts));
        let exporter = tokio::spawn(exporter.run(receiver));
        let readers = TaskTracker::new();
        let follower = follow(hub.clone(), hub.starts(), settings, queue.clone(), readers.clone());
        let follower = tokio::spawn(follower);
        Self { counts, follower, readers, exporter, queue }
    }

    pub fn spans(&self) -> &Arc<SpanCounts> {
        &self.counts
    }

    /// Call this when all sessions have ended. Sends the remaining spans, for at most `limit`.
    pub async fn finish(self, limit: Duration) {
        let Self { follower, readers, exporter, queue, .. } = self;
        follower.abort();
        readers.close();
        let stop = exporter.abort_handle();
        let left = timeout(limit, async {
            readers.wait().await;
            // The last sender: the exporter sends what is left, and ends.
            drop(queue);
            let _ = exporter.await;
        });
        if left.await.is_err() {
            tracing::debug!("some spans were not sent in time");
            stop.abort();
        }
    }
}

impl SpanQueue {
    /// Never waits: a span that does not fit is discarded.
    fn push(&self, span: Span) {
        let cost = span.cost();
        let before = self.counts.waiting.fetch_add(cost, Ordering::Relaxed);
        if before + cost > QUEUE_BYTES || self.sender.try_send(span).is_err() {
            self.counts.waiting.fetch_sub(cost, Ordering::Relaxed);
            self.counts.dropped.add(1);
        }
    }
}

async fn follow(
    hub: Hub,
    mut starts: broadcast::Receiver<SessionStart>,
    settings: Arc<Settings>,
    queue: SpanQueue,
    readers: TaskTracker,
) {
    loop {
        match starts.recv().await {
            Ok(SessionStart { session, after }) => {
                let translator = Translator::new(&settings.options);
                readers.spawn(read(hub.clone(), session, after, translator, queue.clone()));
            }
            Err(RecvError::Lagged(count)) => {
                tracing::warn!(count, "some sessions are not traced: too many started at once");
            }
            Err(RecvError::Closed) => return,
        }
    }
}

async fn read(
    hub: Hub,
    session: SessionId,
    after: u64,
    mut translator: Translator,
    queue: SpanQueue,
) {
    let mut cursor = hub.follow(&session, after);
    // A reader must not keep the hub open.
    drop(hub);
    loop {
        let batch = match log_reads::next(&mut cursor).await {
            Ok(Some(batch)) => batch,
            Ok(None) => return,
            Err(error) => {
                tracing::warn!(session = session.as_str(), %error, "the trace is incomplete");
                return;
            }
        };
        for (_, line) in batch.events() {
            if !translator.wants(line) {
                continue;
            }
            blocking_if_long(line.len(), || {
                let text = std::str::from_utf8(line).ok();
                if let Some(event) = text.and_then(|text| Event::from_json(text).ok()) {
                    translator.event(&event, &mut |span| queue.push(span));
                }
            });
        }
    }
}
