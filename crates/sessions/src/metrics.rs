//! What the engine counts about itself, for monitoring.
//!
//! On the path of events, counting is an atomic addition: no lock, no allocation. What happens once per
//! turn or request is stored by its labels in a map.

mod tally;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agentwire_protocol::AgentType;
use agentwire_protocol::event::{RequestKind, RequestOutcome, SettledBy};

pub(crate) use self::tally::Tally;

/// How many pairs of agent and model are counted separately; the rest is `other`.
const MODELS: usize = 64;

/// How many bytes of a model's name are stored.
const MODEL_NAME: usize = 100;

/// What the engine of this process has done, and holds in memory.
#[derive(Debug, Default)]
pub struct Metrics {
    /// Sessions started or resumed.
    pub sessions_started: ByAgent<Counter>,
    /// Events that became durable.
    pub events: ByAgent<Counter>,
    /// Bytes of durable events.
    pub bytes: ByAgent<Counter>,
    /// Nanoseconds per transaction, from handing it to the store until it is durable.
    pub commit_time: Histogram<TIMES>,
    /// Events per transaction.
    pub commit_events: Histogram<SIZES>,
    /// Transactions that the store did not accept.
    pub commit_failures: Counter,
    /// Nanoseconds from when a batch is durable until a reader takes it.
    pub delivery: Histogram<TIMES>,
    /// How often a reader that kept up fell behind and had to read from the store.
    pub fell_behind: Counter,
    /// Bytes submitted to the log that are not durable yet.
    pub queue_bytes: Gauge,
    /// Appends submitted to the log that are not durable yet.
    pub queue_appends: Gauge,
    pub open_requests: ByKind<Gauge>,
    pub processes: ByAgent<Gauge>,
    pub processes_started: ByAgent<Counter>,
    labeled: Mutex<LabeledCounts>,
}

/// Counts that rarely change, by their labels.
#[derive(Clone, Debug, Default)]
pub struct LabeledCounts {
    /// Sessions that ended: agent, reason.
    pub ended: BTreeMap<(&'static str, &'static str), u64>,
    /// Turns that ended: agent, outcome.
    pub turns: BTreeMap<(&'static str, &'static str), u64>,
    /// Requests that were settled: kind, outcome, settled by.
    pub settled: BTreeMap<(&'static str, &'static str, &'static str), u64>,
    /// Usage of turns: agent, model.
    pub spent: BTreeMap<(&'static str, String), UsageTotal>,
}

/// Usage. The tokens do not overlap: tokens read from a cache are not in `input`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UsageTotal {
    /// Tokens read, not from a cache.
    pub input: u64,
    /// Tokens written.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_creation: u64,
    /// The cost, as far as it is known.
    pub dollars: f64,
}

impl Metrics {
    pub fn labeled(&self) -> LabeledCounts {
        self.labeled.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn count(&self, change: impl FnOnce(&mut LabeledCounts)) {
        change(&mut self.labeled.lock().unwrap_or_else(PoisonError::into_inner));
    }

    pub(crate) fn settled(&self, kind: RequestKind, outcome: RequestOutcome, by: SettledBy) {
        self.count(|labeled| {
            *labeled.settled.entry((kind.as_str(), outcome.as_str(), by.as_str())).or_default() +=
                1;
        });
    }

    fn spent(&self, agent: AgentType, model: &str, spent: UsageTotal) {
        let name: String = model.chars().take(MODEL_NAME).collect();
        self.count(|labeled| {
            let key = (agent.as_str(), name);
            let is_known = labeled.spent.contains_key(&key);
            let key = match is_known || labeled.spent.len() < MODELS {
                true => key,
                false => (agent.as_str(), "other".to_owned()),
            };
            let sum = labeled.spent.entry(key).or_default();
            sum.input = sum.input.saturating_add(spent.input);
            sum.output = sum.output.saturating_add(spent.output);
            sum.cache_read = sum.cache_read.saturating_add(spent.cache_read);
            sum.cache_creation = sum.cache_creation.saturating_add(spent.cache_creation);
            sum.dollars += spent.dollars;
        });
    }

    /// Counts a process of this agent as running until the returned guard is dropped.
    pub(crate) fn process(self: &Arc<Self>, agent: AgentType) -> RunningProcessGuard {
        self.processes_started.of(agent).add(1);
        self.processes.of(agent).add(1);
        RunningProcessGuard { metrics: Arc::clone(self), agent }
    }
}

#[derive(Debug)]
pub(crate) struct RunningProcessGuard {
    metrics: Arc<Metrics>,
    agent: AgentType,
}

impl Drop for RunningProcessGuard {
    fn drop(&mut self) {
        self.metrics.processes.of(self.agent).add(-1);
    }
}

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Counter(AtomicU64);

impl Counter {
    pub fn add(&self, count: u64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Counter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.get())
    }
}

/// A number that goes up and down.
#[derive(Debug, Default)]
pub struct Gauge(AtomicI64);

impl Gauge {
    pub fn add(&self, count: i64) {
        self.0.fetch_add(count, Ordering::Relaxed);
    }

    pub fn get(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl fmt::Display for Gauge {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}", self.get())
    }
}

/// How many buckets a histogram of times has, besides the last.
pub const TIMES: usize = 16;

/// How many buckets a histogram of sizes has, besides the last.
pub const SIZES: usize = 10;

/// From 50 µs to 10 s, in µs.
const TIME_BOUNDS: [u64; TIMES] = [
    50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000,
    1_000_000, 2_500_000, 10_000_000,
];

const SIZE_BOUNDS: [u64; SIZES] = [1, 2, 5, 10, 25, 50, 100, 500, 1_000, 10_000];

#[derive(Debug)]
pub struct Histogram<const N: usize> {
    bounds: [u64; N],
    counts: [AtomicU64; N],
    beyond: AtomicU64,
    sum: AtomicU64,
}

impl<const N: usize> Histogram<N> {
    fn new(bounds: [u64; N]) -> Self {
        let counts = std::array::from_fn(|_| AtomicU64::new(0));
        Self { bounds, counts, beyond: AtomicU64::new(0), sum: AtomicU64::new(0) }
    }

    pub fn observe(&self, value: u64) {
        let place = self.bounds.partition_point(|bound| *bound < value);
        let count = self.counts.get(place).unwrap_or(&self.beyond);
        count.fetch_add(1, Ordering::Relaxed);
        self.sum.fetch_add(value, Ordering::Relaxed);
    }

    pub fn observe_time(&self, time: Duration) {
        self.observe(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
    }

    /// For each bound, how many values were not above it; then the number of values, and their sum.
    pub fn read(&self) -> (Vec<(u64, u64)>, u64, u64) {
        let mut so_far = 0;
        let counted = self.bounds.iter().zip(&self.counts).map(|(bound, count)| {
            so_far += count.load(Ordering::Relaxed);
            (*bound, so_far)
        });
        let buckets: Vec<_> = counted.collect();
        (buckets, so_far + self.beyond.load(Ordering::Relaxed), self.sum.load(Ordering::Relaxed))
    }
}

impl Default for Histogram<TIMES> {
    fn default() -> Self {
        Self::new(TIME_BOUNDS.map(|micros| micros * 1000))
    }
}

impl Default for Histogram<SIZES> {
    fn default() -> Self {
        Self::new(SIZE_BOUNDS)
    }
}

#[derive(Debug, Default)]
pub struct ByAgent<T>([T; AgentType::ALL.len()]);

impl<T> ByAgent<T> {
    #[expect(clippy::indexing_slicing, reason = "there is one for each agent")]
    pub fn of(&self, agent: AgentType) -> &T {
        &self.0[agent as usize]
    }

    pub fn each(&self) -> impl Iterator<Item = (&'static str, &T)> {
        AgentType::ALL.into_iter().map(|agent| (agent.as_str(), self.of(agent)))
    }
}

#[derive(Debug, Default)]
pub struct ByKind<T>([T; KINDS.len()]);

const KINDS: [RequestKind; 5] = [
    RequestKind::Permission,
    RequestKind::Question,
    RequestKind::Hook,
    RequestKind::Mcp,
    RequestKind::Other,
];

impl<T> ByKind<T> {
    #[expect(clippy::indexing_slicing, reason = "there is one for each kind")]
    pub fn of(&self, kind: RequestKind) -> &T {
        &self.0[kind as usize]
    }

    pub fn each(&self) -> [(&'static str, &T); 5] {
        KINDS.map(|kind| (kind.as_str(), self.of(kind)))
    }
}
