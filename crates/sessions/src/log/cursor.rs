//! Reading a session: its history first, then what comes, by the same call.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use agentwire_protocol::{SessionId, SessionState};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};

use super::EventLog;
use super::live::{Live, Progress};
use crate::store::{Batch, Store, StoreError};
use crate::sweep;

/// How much is read from the store at once. A reader that stops holds no more than this and one
/// batch.
const READ_BYTES: usize = 512 * 1024;

/// How often a session of another process is looked after: at first, and when it is quiet.
const POLL: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

/// A place in a session's log.
pub struct Cursor {
    log: EventLog,
    session: SessionId,
    position: u64,
    /// Read from the store and not handed out yet.
    read: VecDeque<Batch>,
    /// A look at the store that is under way; it goes on if [`Cursor::next`] is cancelled.
    looking: Option<JoinHandle<Result<Found, StoreError>>>,
    source: Source,
    /// It has read all there was and waited for more.
    keeps_up: bool,
}

enum Source {
    /// The session is live here.
    Here(Arc<Live>, watch::Receiver<Progress>),
    /// It is not: another process runs it, or nobody.
    Elsewhere(Elsewhere),
}

struct Elsewhere {
    /// What the last look found, if it found no events.
    known: Option<Known>,
    /// When to look again.
    due: Instant,
    delay: Duration,
}

/// The version of the store, and who ran the session then.
struct Known {
    version: Option<u64>,
    owner: Option<String>,
}

enum Found {
    Events(Vec<Batch>),
    /// None yet.
    Quiet(Known),
    /// None, and there will be none.
    End,
}

impl Cursor {
    pub(super) fn new(log: EventLog, session: SessionId, after: u64) -> Self {
        Self {
            source: Source::Elsewhere(Elsewhere::now()),
            log,
            session,
            position: after,
            read: VecDeque::new(),
            looking: None,
            keeps_up: false,
        }
    }

    /// The number of the last event that was handed out.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next events: they begin one after [`Cursor::position`]. Waits until there are some;
    /// none if the session has ended, or nobody runs it, and all has been read.
    ///
    /// Nothing is lost if this is cancelled. After an error it may be called again.
    pub async fn next(&mut self) -> Result<Option<Batch>, StoreError> {
        loop {
            if let Some(batch) = self.read.pop_front() {
                if let Some(batch) = batch.after(self.position) {
                    return self.hand_out(batch).map(Some);
                }
                continue;
            }
            if let Some(looking) = &mut self.looking {
                let found = looking.await;
                self.looking = None;
                let found = found.map_err(|error| {
                    StoreError::Failed(format!("failed to read events: {error}"))
                })?;
                if self.take_in(found?) {
                    continue;
                }
                return Ok(None);
            }
            match &mut self.source {
                Source::Here(live, progress) => {
                    let Progress { last, ended, is_whole } = *progress.borrow_and_update();
                    if last > self.position {
                        let figures = self.log.figures();
                        if let Some((batch, since)) = live.after(self.position) {
                            if self.keeps_up {
                                figures.delivery.observe_time(since.elapsed());
                            }
                            return self.hand_out(batch).map(Some);
                        }
                        if self.keeps_up {
                            figures.fell_behind.add(1);
                        }
                        self.look(move |store, session, after| {
                            catch_up(store, session, after, last)
                        });
                    } else if ended && !is_whole {
                        // Whoever ran it failed; its end is told by whoever closes it.
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
                    // The timer rounds up to whole milliseconds, even what is due already.
                    if elsewhere.due > Instant::now() {
                        sleep_until(elsewhere.due).await;
                    }
                    elsewhere.due = Instant::now() + elsewhere.delay;
                    let known = elsewhere.known.take();
                    let shut = self.log.shared.has_ended();
                    self.look(move |store, session, after| {
                        look(store, session, after, known, shut)
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

    /// Looks at the store on a thread that may block.
    fn look(
        &mut self,
        look: impl FnOnce(&dyn Store, &SessionId, u64) -> Result<Found, StoreError> + Send + 'static,
    ) {
        let session = self.session.clone();
        let after = self.position;
        self.looking = Some(self.log.asking(move |store| look(store, &session, after)));
    }

    /// Takes in what a look found, and says whether to go on.
    fn take_in(&mut self, found: Found) -> bool {
        match found {
            Found::Events(batches) => {
                self.read.extend(batches);
                if let Source::Elsewhere(elsewhere) = &mut self.source {
                    *elsewhere = Elsewhere::now();
                }
                true
            }
            Found::Quiet(known) => {
                if let Source::Elsewhere(elsewhere) = &mut self.source {
                    elsewhere.known = Some(known);
                    elsewhere.delay = (elsewhere.delay * 2).min(POLL.1);
                }
                true
            }
            // It may have been resumed here while we looked.
            Found::End => {
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

/// What a live session has that is no longer in memory. Only a deleted one has none.
fn catch_up(
    store: &dyn Store,
    session: &SessionId,
    after: u64,
    last: u64,
) -> Result<Found, StoreError> {
    let mut batches = store.read(session, after, READ_BYTES)?;
    // What is durable and not shown yet comes when it is.
    batches.retain(|batch| batch.first <= last);
    Ok(if batches.is_empty() { Found::End } else { Found::Events(batches) })
}

/// What a session has that is not live here, and whether more may come.
fn look(
    store: &dyn Store,
    session: &SessionId,
    after: u64,
    known: Option<Known>,
    shut: bool,
) -> Result<Found, StoreError> {
    // First: what is added later than this is seen as a change the next time.
    let version = store.version()?;
    let (owner, changed) = match known {
        Some(known) if version.is_some() && version == known.version => (known.owner, false),
        Some(_) | None => (owner(store, session)?, true),
    };
    let runs = !shut && owner.as_deref().is_some_and(|name| store.is_alive(name));
    // Last: an owner that was gone before has added nothing since.
    if changed || !runs {
        let batches = store.read(session, after, READ_BYTES)?;
        if !batches.is_empty() {
            return Ok(Found::Events(batches));
        }
    }
    if runs {
        return Ok(Found::Quiet(Known { version, owner }));
    }
    // Its owner is dead: its end is told now, here or by whoever was faster.
    if owner.is_some() && !shut {
        let record = store.session(session)?;
        if let Some(record) = record.filter(|record| sweep::is_left(store, record, None)) {
            sweep::tidy(store, record, sweep::DIED);
        }
        let batches = store.read(session, after, READ_BYTES)?;
        if !batches.is_empty() {
            return Ok(Found::Events(batches));
        }
    }
    Ok(Found::End)
}

/// Who runs a session, by its record.
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
