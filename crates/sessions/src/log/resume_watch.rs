//! Waits for ended sessions to be resumed by another process.
//!
//! One task watches for all waiters: it asks the store whether anything has changed, and reads the sessions
//! only if so.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use agentwire_protocol::SessionId;
use tokio::sync::oneshot;

use super::writer::Shared;
use crate::store::{Store, StoreError};

/// How often to check whether the store has changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Default)]
pub(super) struct ResumeWatch(Mutex<State>);

#[derive(Default)]
struct State {
    waiting: Vec<Waiter>,
    /// Whether the watching task runs.
    is_watched: bool,
}

struct Waiter {
    session: SessionId,
    after: u64,
    /// Not checked yet: changes from before it came must not be missed.
    is_new: bool,
    found: oneshot::Sender<()>,
}

/// Waits until a session has events after `after`, from any process. Waits for ever if no other process can
/// write to the store.
pub(super) async fn wait_for_resume(shared: &Arc<Shared>, session: &SessionId, after: u64) {
    let (found, resumed) = oneshot::channel();
    let waiting = Waiter { session: session.clone(), after, is_new: true, found };
    let is_watched = {
        let mut state = shared.resume_watch.state();
        state.waiting.push(waiting);
        std::mem::replace(&mut state.is_watched, true)
    };
    if !is_watched {
        tokio::spawn(watch(Arc::clone(shared)));
    }
    if resumed.await.is_err() {
        std::future::pending::<()>().await;
    }
}

/// Watches until there are no more waiters.
async fn watch(shared: Arc<Shared>) {
    let mut version = None;
    loop {
        let checking = Arc::clone(&shared);
        let checked =
            tokio::task::spawn_blocking(move || checking.resume_watch.check(&checking, version));
        match checked.await {
            Ok(Ok(Some(now))) => version = Some(now),
            // No other process writes to this store.
            Ok(Ok(None)) => return shared.resume_watch.state().end(),
            // The store is busy, or cannot be read for now.
            Ok(Err(_)) | Err(_) => {}
        }
        tokio::time::sleep(CHECK_INTERVAL).await;
        let mut state = shared.resume_watch.state();
        state.waiting.retain(|waiting| !waiting.found.is_closed());
        if state.waiting.is_empty() || shared.has_ended() {
            return state.end();
        }
    }
}

impl ResumeWatch {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notifies the waiters whose sessions have continued. Returns the version of the store before this
    /// check.
    fn check(&self, shared: &Shared, known: Option<u64>) -> Result<Option<u64>, StoreError> {
        let store = &*shared.store;
        let Some(version) = store.version()? else { return Ok(None) };
        let is_same = known == Some(version);
        let due = self.state().waiting.extract_if(.., |it| it.is_new || !is_same).collect();
        let (due, failure) = notify(store, due);
        self.state().waiting.extend(due);
        match failure {
            Some(error) => Err(error),
            None => Ok(Some(version)),
        }
    }
}

/// Notifies the waiters whose sessions have continued. Returns the others, and the error if some could not
/// be checked.
fn notify(store: &dyn Store, due: Vec<Waiter>) -> (Vec<Waiter>, Option<StoreError>) {
    let mut left = Vec::new();
    let mut failure = None;
    for waiting in due {
        match store.session(&waiting.session) {
            Ok(Some(record)) if record.summary.last_seq > waiting.after => {
                // The waiter may be gone.
                let _ = waiting.found.send(());
            }
            Ok(_) => left.push(Waiter { is_new: false, ..waiting }),
            Err(error) => {
                failure = Some(error);
                left.push(waiting);
            }
        }
    }
    (left, failure)
}

impl State {
    fn end(&mut self) {
        self.waiting.clear();
        self.is_watched = false;
    }
}
