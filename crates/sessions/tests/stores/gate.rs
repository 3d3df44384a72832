//! A store that can be stopped, can refuse, and knows what it has made durable.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use agentwire_protocol::{LabelChange, Labels, SessionId};
use agentwire_sessions::store::{
    Append, Batch, Brief, End, Filter, ListOrder, Place, Record, Store, StoreError,
};
use tokio::sync::watch;

pub(crate) struct Gate {
    inner: Arc<dyn Store>,
    /// The last event of each session whose append has returned.
    durable: Mutex<HashMap<SessionId, u64>>,
    refusal: Mutex<Option<StoreError>>,
    pub(crate) refused: watch::Sender<usize>,
    stops: Mutex<Vec<Stop>>,
    go: Condvar,
    pub(crate) stopped_at: watch::Sender<Option<Stop>>,
    pub(crate) reads: AtomicUsize,
    pub(crate) groups: Mutex<Vec<usize>>,
    /// Whether it also accepts direct appends from callers.
    at_once: bool,
    pub(crate) taken_at_once: AtomicUsize,
}

/// Where an append stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    Before,
    /// It is durable, but the call has not returned.
    After,
}

impl Gate {
    pub(crate) fn new(inner: Arc<dyn Store>) -> Arc<Self> {
        Self::with(inner, false)
    }

    /// One that also accepts direct appends from callers.
    pub(crate) fn at_once(inner: Arc<dyn Store>) -> Arc<Self> {
        Self::with(inner, true)
    }

    fn with(inner: Arc<dyn Store>, at_once: bool) -> Arc<Self> {
        Arc::new(Self {
            inner,
            at_once,
            taken_at_once: AtomicUsize::new(0),
            durable: Mutex::default(),
            refusal: Mutex::default(),
            refused: watch::Sender::new(0),
            stops: Mutex::default(),
            go: Condvar::new(),
            stopped_at: watch::Sender::new(None),
            reads: AtomicUsize::new(0),
            groups: Mutex::default(),
        })
    }

    pub(crate) fn durable(&self, session: &SessionId) -> u64 {
        self.durable.lock().unwrap().get(session).copied().unwrap_or(0)
    }

    pub(crate) fn refuse(&self, error: Option<StoreError>) {
        *self.refusal.lock().unwrap() = error;
    }

    pub(crate) async fn refused(&self, times: usize) {
        let mut refused = self.refused.subscribe();
        refused.wait_for(|count| *count >= times).await.unwrap();
    }

    /// Appends stop at these places until they may continue.
    pub(crate) fn stop_at(&self, stops: &[Stop]) {
        *self.stops.lock().unwrap() = stops.to_vec();
        self.go.notify_all();
    }

    pub(crate) async fn stopped(&self, stop: Stop) {
        let mut stopped = self.stopped_at.subscribe();
        stopped.wait_for(|at| *at == Some(stop)).await.unwrap();
    }

    fn pass(&self, stop: Stop) {
        let stops = self.stops.lock().unwrap();
        if stops.contains(&stop) {
            self.stopped_at.send_replace(Some(stop));
            drop(self.go.wait_while(stops, |stops| stops.contains(&stop)).unwrap());
            self.stopped_at.send_replace(None);
        }
    }

    fn keep(
        &self,
        appends: &[&Append],
        inner: impl FnOnce() -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.pass(Stop::Before);
        if let Some(error) = self.refusal.lock().unwrap().clone() {
            self.refused.send_modify(|count| *count += 1);
            return Err(error);
        }
        inner()?;
        self.pass(Stop::After);
        self.groups.lock().unwrap().push(appends.len());
        let mut durable = self.durable.lock().unwrap();
        for append in appends {
            if let Some(batch) = &append.batch {
                durable.insert(append.record.summary.id.clone(), batch.last());
            }
        }
        Ok(())
    }
}

impl Store for Gate {
    fn append(&self, appends: &[&Append]) -> Result<(), StoreError> {
        self.keep(appends, || self.inner.append(appends))
    }

    fn append_at_once(&self, append: &Append) -> Option<Result<(), StoreError>> {
        self.at_once.then(|| {
            self.taken_at_once.fetch_add(1, Ordering::Relaxed);
            self.keep(&[append], || {
                let busy = StoreError::Busy("somebody writes".to_owned());
                self.inner.append_at_once(append).unwrap_or(Err(busy))
            })
        })
    }

    fn read(
        &self,
        session: &SessionId,
        after: u64,
        bytes: usize,
    ) -> Result<Vec<Batch>, StoreError> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.inner.read(session, after, bytes)
    }

    fn session(&self, id: &SessionId) -> Result<Option<Record>, StoreError> {
        self.inner.session(id)
    }

    fn sessions(&self, filter: &Filter) -> Result<Vec<Record>, StoreError> {
        self.inner.sessions(filter)
    }

    fn briefs(
        &self,
        order: ListOrder,
        after: Place,
        limit: usize,
    ) -> Result<Vec<Brief>, StoreError> {
        self.inner.briefs(order, after, limit)
    }

    fn brief(&self, session: &SessionId) -> Result<Option<Brief>, StoreError> {
        self.inner.brief(session)
    }

    fn ends(&self) -> Result<Vec<End>, StoreError> {
        self.inner.ends()
    }

    fn label(&self, session: &SessionId) -> Result<Labels, StoreError> {
        self.inner.label(session)
    }

    fn labels(&self) -> Result<HashMap<SessionId, Labels>, StoreError> {
        self.inner.labels()
    }

    fn set_label(&self, session: &SessionId, change: LabelChange) -> Result<bool, StoreError> {
        self.inner.set_label(session, change)
    }

    fn remembered(&self, key: &str) -> Result<Option<String>, StoreError> {
        self.inner.remembered(key)
    }

    fn forget_key(&self, key: &str) -> Result<(), StoreError> {
        self.inner.forget_key(key)
    }

    fn claim(
        &self,
        session: &SessionId,
        expected: Option<&str>,
        owner: &str,
    ) -> Result<bool, StoreError> {
        self.inner.claim(session, expected, owner)
    }

    fn is_alive(&self, owner: &str) -> bool {
        self.inner.is_alive(owner)
    }

    fn delete(&self, sessions: &[SessionId]) -> Result<(), StoreError> {
        self.inner.delete(sessions)
    }

    fn version(&self) -> Result<Option<u64>, StoreError> {
        self.inner.version()
    }
}
