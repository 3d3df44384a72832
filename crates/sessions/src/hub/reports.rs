//! Usage and search over all sessions, whichever process runs them. Before an answer, the index reads what
//! is new in the log; a thread of a server does the same all the time.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use agentwire_protocol::{
    GatewayError, SearchQuery, SearchResult, SessionId, UsageQuery, UsageReport,
};

use super::{Hub, Shared};
use crate::index::{Pace, UsageSpan};
use crate::store::StoreError;

/// How often the thread looks for new events; less often if it takes long to look, as among very many sessions.
const LOOK: Duration = Duration::from_secs(1);
const LOOKS: u32 = 20;

/// How long it works at most before it looks whether the hub is still there.
const ROUND: Duration = Duration::from_millis(500);

impl Hub {
    /// The usage of turns that have ended. The index may read new events for so long first.
    pub async fn usage(
        &self,
        query: &UsageQuery,
        patience: Duration,
    ) -> Result<UsageReport, GatewayError> {
        let span = UsageSpan::new(query)?;
        let shared = Arc::clone(&self.shared);
        let report = self.read_store(move |store| {
            let deadline = Instant::now() + patience;
            let is_complete = shared.index.catch_up(store, deadline, Pace::Full)?;
            let mut report = shared.index.usage(&span, &shared.settings.prices)?;
            report.complete &= is_complete;
            Ok(report)
        });
        report.await
    }

    /// The texts that have the words. The index may read new events for so long first.
    pub async fn search(
        &self,
        query: SearchQuery,
        patience: Duration,
    ) -> Result<SearchResult, GatewayError> {
        let shared = Arc::clone(&self.shared);
        let result = self.read_store(move |store| {
            let deadline = Instant::now() + patience;
            let is_complete = shared.index.catch_up(store, deadline, Pace::Full)?;
            let mut result = shared.index.search(&query)?;
            result.complete &= is_complete;
            let mut titles: HashMap<SessionId, Option<Option<String>>> = HashMap::new();
            for hit in &mut result.hits {
                let title = match titles.entry(hit.session_id.clone()) {
                    Entry::Occupied(known) => known.into_mut(),
                    Entry::Vacant(unknown) => {
                        let summary = store.session(unknown.key())?.map(|record| record.summary);
                        let labels = store.label(unknown.key())?;
                        unknown.insert(summary.map(|summary| labels.title.or(summary.title)))
                    }
                };
                hit.title = title.clone().flatten();
            }
            // A session may have been deleted since.
            result.hits.retain(|hit| matches!(titles.get(&hit.session_id), Some(Some(_))));
            Ok(result)
        });
        result.await
    }

    /// Deletes the index, so that the next question makes it again.
    pub async fn clear_index(&self) -> Result<(), GatewayError> {
        let shared = Arc::clone(&self.shared);
        self.read_store(move |_| shared.index.clear()).await
    }

    /// Starts a thread that keeps the index up to date while the hub is open.
    pub fn follow_index(&self) {
        let shared = Arc::downgrade(&self.shared);
        let started =
            thread::Builder::new().name("index".to_owned()).spawn(move || follow(&shared));
        if let Err(error) = started {
            tracing::warn!(%error, "failed to start the thread of the index; searches take longer");
        }
    }
}

fn follow(shared: &Weak<Shared>) {
    let mut known = None;
    let mut has_failed = false;
    loop {
        let Some(hub) = shared.upgrade() else { return };
        if hub.is_closing.load(Ordering::SeqCst) {
            return;
        }
        let begun = Instant::now();
        let round = round(&hub, &mut known);
        drop(hub);
        match round {
            Ok(true) => has_failed = false,
            // There is more to read.
            Ok(false) => continue,
            Err(error) if has_failed => tracing::debug!(%error, "failed to index events"),
            Err(error) => {
                tracing::warn!(%error, "failed to index events; trying again");
                has_failed = true;
            }
        }
        thread::park_timeout(LOOK.max(begun.elapsed() * LOOKS));
    }
}

/// Returns whether nothing more is to be read.
fn round(hub: &Shared, known: &mut Option<u64>) -> Result<bool, StoreError> {
    let store = hub.log.store();
    // The version comes first: what is added meanwhile shows as a change next time.
    let version = store.version()?;
    if version.is_some() && version == *known {
        return Ok(true);
    }
    let is_complete = hub.index.catch_up(&**store, Instant::now() + ROUND, Pace::Gentle)?;
    *known = version.filter(|_| is_complete);
    Ok(is_complete)
}
