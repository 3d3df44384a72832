//! Notices changes of sessions that other processes run, while somebody watches.
//!
//! One task looks for all watchers. It asks the store whether anything was written, and lists sessions only
//! if so: those that have not ended, and the newest, which may have ended since.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use agentwire_protocol::{GatewayError, SessionId, SessionSummary};
use tokio::time::Instant;

use super::super::{Hub, Shared};
use crate::store::Filter;

/// How often to look, at most.
const INTERVAL: Duration = Duration::from_millis(250);

/// A look may take this part of the time at most.
const SHARE: u32 = 20;

/// How long changes are recorded after the last watcher left: it may come back and continue.
const LINGER: Duration = Duration::from_secs(120);

/// How many of the newest sessions are compared.
const NEWEST: usize = 100;

/// Who watches.
#[derive(Default)]
pub(in super::super) struct Watching {
    state: Mutex<State>,
    /// Held until the first look is over.
    starting: tokio::sync::Mutex<()>,
}

#[derive(Default)]
struct State {
    watchers: usize,
    /// When the last watcher left.
    left_at: Option<Instant>,
    /// Whether the task runs.
    is_looking: bool,
}

/// One watcher, until it is dropped.
pub(super) struct WatchGuard(Weak<Shared>);

impl Drop for WatchGuard {
    fn drop(&mut self) {
        let Some(shared) = self.0.upgrade() else { return };
        let mut state = shared.watching.state();
        state.watchers -= 1;
        state.left_at = Some(Instant::now());
    }
}

impl Watching {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a watcher. Returns whether the task has to be started.
    fn enter(&self) -> bool {
        let mut state = self.state();
        state.watchers += 1;
        !std::mem::replace(&mut state.is_looking, true)
    }
}

impl Hub {
    /// Watches the sessions of other processes. What changes after this is noticed.
    pub(super) async fn watching(&self) -> WatchGuard {
        let shared = &self.shared;
        let _starting = shared.watching.starting.lock().await;
        let is_first = shared.watching.enter();
        let guard = WatchGuard(Arc::downgrade(shared));
        if is_first {
            shared.log.changes().record();
            let mut seen = Seen::default();
            if let Err(error) = self.look_elsewhere(&mut seen, false).await {
                tracing::debug!(%error.message, "failed to look for sessions");
            }
            tokio::spawn(look(Arc::downgrade(shared), seen));
        }
        guard
    }
}

/// What the last look found.
#[derive(Default)]
struct Seen {
    version: Option<u64>,
    sessions: HashMap<SessionId, SessionSummary>,
}

/// Looks until nobody has watched for a while.
async fn look(shared: Weak<Shared>, mut seen: Seen) {
    loop {
        let started = Instant::now();
        let Some(hub) = shared.upgrade().map(|shared| Hub { shared }) else { return };
        if hub.has_left() {
            return;
        }
        if let Err(error) = hub.look_elsewhere(&mut seen, true).await {
            tracing::debug!(%error.message, "failed to look for changed sessions");
        }
        drop(hub);
        tokio::time::sleep(INTERVAL.max(started.elapsed() * SHARE)).await;
    }
}

impl Hub {
    /// Whether the last watcher left long ago. Then no more changes are recorded.
    fn has_left(&self) -> bool {
        let mut state = self.shared.watching.state();
        let is_over = state.watchers == 0 && state.left_at.is_some_and(|at| at.elapsed() > LINGER);
        if is_over {
            state.is_looking = false;
            self.shared.log.changes().expire();
        }
        is_over
    }

    async fn look_elsewhere(&self, seen: &mut Seen, reports: bool) -> Result<(), GatewayError> {
        let now = self.read_store(|store| store.version()).await?;
        // Without a version, no other process writes to the store.
        if now.is_none() || seen.version == now {
            return Ok(());
        }
        let live = self.sessions(Filter { live: true, ..Filter::default() }).await?;
        let newest = Filter { limit: Some(NEWEST), ..Filter::default() };
        let newest = self.sessions(newest).await?;
        let found = live.into_iter().chain(newest);
        let mut found: HashMap<_, _> = found.map(|it| (it.id.clone(), it)).collect();
        {
            // What runs here reports its changes itself.
            let here = self.shared.live();
            found.retain(|id, _| !here.contains_key(id));
            seen.sessions.retain(|id, _| !here.contains_key(id));
        }
        let changes = self.shared.log.changes();
        if reports {
            let known = &seen.sessions;
            let changed = found.iter().filter(|(id, now)| known.get(*id) != Some(now));
            let gone = known.keys().filter(|id| !found.contains_key(*id));
            changed.map(|(id, _)| id).chain(gone).for_each(|id| changes.mark(id));
        }
        *seen = Seen { version: now, sessions: found };
        Ok(())
    }
}
