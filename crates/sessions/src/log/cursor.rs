//! Reads a session: its history first, then new events, from the same call.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::{SessionId, SessionState};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::EventLog;
use super::live::{Live, Progress};
use crate::budget::{self, Share};
use crate::store::{Batch, Store, StoreError};

/// How many bytes are read from the store at once. A reader that stops holds no more than this and one
/// batch.
const READ_BYTES: usize = 512 * 1024;

/// How often a session of another process is polled: at first, and when it is quiet.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

/// The whole message of the error for large events that got no share of the budget in time.
pub(crate) const MUCH_READ: &str = "too many large events are being read; try again soon";

/// A reader's position in a session's log.
pub struct Cursor {
    log: EventLog,
    session: SessionId,
    position: u64,
    /// Read from the store, not returned yet.
    read: VecDeque<Batch>,
    /// A read of the store in progress; it continues if [`Cursor::next`] is cancelled.
    pending_read: Option<JoinHandle<Result<ReadOutcome, StoreError>>>,
    source: Source,
    /// A pending request for the share that the next events need.
    sharing: Option<Pin<Box<dyn Future<Output = Option<Share>> + Send>>>,
    /// The share with which the next events are read.
    share: Option<Share>,
    /// How long to wait for a share; without it, there is no limit.
    patience: Option<Duration>,
    /// The cursor has read everything and waited for more.
    keeps_up: bool,
    /// The session's owner died without writing an end.
    is_left: bool,
}

enum Source {
    /// The session is live here.
    Here(Arc<Live>, watch::Receiver<Progress>),
    /// Another process runs the session, or none does.
    Elsewhere(Elsewhere),
}

struct Elsewhere {
    /// What the last read found, if it found no events.
    known: Option<StoreSnapshot>,
    /// When to read again.
    due: Instant,
    delay: Duration,
}

/// The version of the store, and the session's owner at that time.
struct StoreSnapshot {
    version: Option<u64>,
    owner: Option<String>,
}

enum ReadOutcome {
    Events(Vec<Batch>),
    /// The next events have this many bytes, and need a share before they are read.
    Large(usize),
    /// No events yet.
    Quiet(StoreSnapshot),
    /// No events, and there will be none.
    End,
    /// No events, and none until someone writes the end: the owner is dead.
    Left,
}

impl Cursor {
    pub(super) fn new(log: EventLog, session: SessionId, after: u64) -> Self {
        Self {
            source: Source::Elsewhere(Elsewhere::now()),
            log,
            session,
            position: after,
            read: VecDeque::new(),
            pending_read: None,
            sharing: None,
            share: None,
            patience: None,
            keeps_up: false,
            is_left: false,
        }
    }

    /// The number of the last event returned.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// Whether the session stopped without an end: its owner is dead, and someone has to close it.
    pub(crate) fn is_left(&self) -> bool {
        self.is_left
    }

    /// The next events, starting one after [`Cursor::position`]. Waits until there are some. Returns `None`
    /// when everything has been read and the session has ended, or no process runs it.
    ///
    /// Cancel safe. After an error it may be called again.
    pub async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        loop {
            if let Some(sharing) = &mut self.sharing {
                self.share = sharing.await;
                self.sharing = None;
                if self.share.is_none() {
                    return Err(StoreError::Busy(MUCH_READ.to_owned()));
                }
            }
            if let Some(batch) = self.read.pop_front() {
                if let Some(batch) = batch.after(self.position) {
                    return self.hand_out(batch).map(Some);
                }
                continue;
            }
            if let Some(pending_read) = &mut self.pending_read {
                let found = pending_read.await;
                self.pending_read = None;
                let found = found.map_err(|error| {
                    StoreError::Failed(format!("failed to read events: {error}"))
                })?;
                if self.apply(found?) {
                    continue;
                }
                return Ok(None);
            }
            match &mut self.source {
                Source::Here(live, progress) => {
                    let Progress { last, ended, is_complete } = *progress.borrow_and_update();
                    if last > self.position {
                        let metrics = self.log.metrics();
                        if let Some((mut batch, since)) = live.after(self.position) {
                            if batch.lines.len() > budget::SMALL {
                                let Some(share) = self.share.take() else {
                                    self.request_share(batch.lines.len());
                                    continue;
                                };
                                batch.lines = share.hold(batch.lines);
                            }
                            self.share = None;
                            if self.keeps_up {
                                metrics.delivery.observe_time(since.elapsed());
                            }
                            return self.hand_out(batch).map(Some);
                        }
                        if self.keeps_up {
                            metrics.fell_behind.add(1);
                        }
                        let is_shared = self.share.is_some();
                        self.start_read(move |store, session, after| {
                            if let Some(size) = large(store, session, after, is_shared)? {
                                return Ok(ReadOutcome::Large(size));
                            }
                            catch_up(store, session, after, last)
                        });
                    } else if ended && !is_complete {
                        // Its owner failed; the process that closes the session writes its end.
                        self.source = Source::Elsewhere(Elsewhere::now());
                    } else {
                        self.keeps_up = true;
                        if ended || progress.changed().await.is_err() {
                            return Ok(None);
                        }
                    }
                }
                Source::Elsewhere(elsewhere) => {
                    if let Some(live) = self.log.shared.live(&self.session) {
                        let progress = live.progress.subscribe();
                        self.source = Source::Here(live, progress);
                        continue;
                    }
                    // The timer rounds up to whole milliseconds, even if it is already due.
                    if elsewhere.due > Instant::now() {
                        sleep_until(elsewhere.due).await;
                    }
                    elsewhere.due = Instant::now() + elsewhere.delay;
                    let known = elsewhere.known.take();
                    let shut = self.log.shared.has_ended();
                    let is_shared = self.share.is_some();
                    self.start_read(move |store, session, after| {
                        if let Some(size) = large(store, session, after, is_shared)? {
                            return Ok(ReadOutcome::Large(size));
                        }
                        read_elsewhere(store, session, after, known, shut)
                    });
                }
            }
        }
    }

    fn hand_out(&mut self, batch: Batch) -> Result<Batch, StoreError> {
        if batch.first != self.position + 1 {
            self.read.clear();
            return Err(StoreError::Failed(format!(
                "failed to read session {}: after event {} comes {}; the store is damaged",
                self.session, self.position, batch.first
            )));
        }
        self.position = batch.last();
        Ok(batch)
    }

    /// Limits how long large events wait for their share of the budget. After that, [`Cursor::next`]
    /// returns an error that the store is busy. A caller that already holds something large in memory must
    /// not wait at all.
    pub fn wait_for_share(&mut self, longest: Duration) {
        self.patience = Some(longest);
    }

    /// Starts to wait for a share of `bytes` bytes. Meanwhile, nothing large is in memory here.
    fn request_share(&mut self, bytes: usize) {
        let pool = self.log.budget().read.clone();
        let bytes = bytes.saturating_mul(budget::READ);
        let patience = self.patience;
        self.sharing = Some(Box::pin(async move {
            match patience {
                None => Some(pool.take(bytes).await),
                Some(longest) => pool.take_within(bytes, longest).await,
            }
        }));
    }

    /// Reads the store on a thread that may block.
    fn start_read(
        &mut self,
        read: impl FnOnce(&dyn Store, &SessionId, u64) -> Result<ReadOutcome, StoreError>
        + Send
        + 'static,
    ) {
        let session = self.session.clone();
        let after = self.position;
        self.pending_read =
            Some(self.log.start_store_read(move |store| read(store, &session, after)));
    }

    /// Takes in the result of a read. Returns whether to continue.
    fn apply(&mut self, outcome: ReadOutcome) -> bool {
        let share = self.share.take();
        self.is_left = matches!(outcome, ReadOutcome::Left);
        match outcome {
            ReadOutcome::Large(size) => {
                if let Source::Elsewhere(elsewhere) = &mut self.source {
                    *elsewhere = Elsewhere::now();
                }
                self.request_share(size);
                true
            }
            ReadOutcome::Events(mut batches) => {
                // The share is released with the largest batch; small batches do not stay in memory for
                // long.
                let largest = batches.iter_mut().max_by_key(|batch| batch.lines.len());
                if let (Some(share), Some(batch)) = (share, largest) {
                    batch.lines = share.hold(std::mem::take(&mut batch.lines));
                }
                self.read.extend(batches);
                if let Source::Elsewhere(elsewhere) = &mut self.source {
                    *elsewhere = Elsewhere::now();
                }
                true
            }
            ReadOutcome::Quiet(known) => {
                if let Source::Elsewhere(elsewhere) = &mut self.source {
                    elsewhere.known = Some(known);
                    elsewhere.delay = (elsewhere.delay * 2).min(POLL.1);
                }
                true
            }
            // The session may have been resumed here during the read.
            ReadOutcome::End | ReadOutcome::Left => {
                matches!(self.source, Source::Elsewhere(_))
                    && self.log.shared.live(&self.session).is_some()
            }
        }
    }
}

impl Elsewhere {
    fn now() -> Self {
        Self { known: None, due: Instant::now(), delay: POLL.0 }
    }
}

/// How many bytes would be read, if that is enough to need a share.
fn large(
    store: &dyn Store,
    session: &SessionId,
    after: u64,
    is_shared: bool,
) -> Result<Option<usize>, StoreError> {
    if is_shared {
        return Ok(None);
    }
    let size = usize::try_from(store.next_size(session, after)?).unwrap_or(usize::MAX);
    Ok((size > budget::SMALL).then_some(size))
}

/// Events of a live session that are no longer in memory. Only a deleted session has none.
fn catch_up(
    store: &dyn Store,
    session: &SessionId,
    after: u64,
    last: u64,
) -> Result<ReadOutcome, StoreError> {
    let mut batches = store.read(session, after, READ_BYTES)?;
    // Events that are durable but not visible yet come later.
    batches.retain(|batch| batch.first <= last);
    Ok(if batches.is_empty() { ReadOutcome::End } else { ReadOutcome::Events(batches) })
}

/// Events of a session that is not live here, and whether there may be more.
fn read_elsewhere(
    store: &dyn Store,
    session: &SessionId,
    after: u64,
    known: Option<StoreSnapshot>,
    shut: bool,
) -> Result<ReadOutcome, StoreError> {
    // Read the version first: anything added later shows as a change next time.
    let version = store.version()?;
    let (owner, changed) = match known {
        Some(known) if version.is_some() && version == known.version => (known.owner, false),
        Some(_) | None => (owner(store, session)?, true),
    };
    let runs = !shut && owner.as_deref().is_some_and(|name| store.is_alive(name));
    // Read the events last: an owner that was already dead has added nothing since.
    if changed || !runs {
        let batches = store.read(session, after, READ_BYTES)?;
        if !batches.is_empty() {
            return Ok(ReadOutcome::Events(batches));
        }
    }
    if runs {
        return Ok(ReadOutcome::Quiet(StoreSnapshot { version, owner }));
    }
    Ok(if owner.is_some() && !shut { ReadOutcome::Left } else { ReadOutcome::End })
}

/// The owner of a session that has not ended, according to its record.
fn owner(store: &dyn Store, session: &SessionId) -> Result<Option<String>, StoreError> {
    Ok(store
        .session(session)?
        .filter(|record| record.summary.state != SessionState::Ended)
        .and_then(|record| record.owner))
}

impl fmt::Debug for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cursor")
            .field("session", &self.session)
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}
