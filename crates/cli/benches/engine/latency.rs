//! Time from an agent's write of a line to a reader's receipt of it, with many sessions at a moderate rate.

use tokio::task::JoinSet;

use crate::agent::{self, TURN};
use crate::gateway::{self, Gateway, Reader};
use crate::report::{least, median, percentile, time, times};
use crate::yardsticks::{Relay, syncs};

/// Sessions, and lines per second of each.
const PACES: &[(u64, u64)] = &[(1, 100), (20, 100), (200, 10)];

/// Approximate duration of the lines of one round.
const SECONDS: u64 = 3;

/// Microseconds until the first line: long enough to send all agents their orders.
const DELAY: u64 = 500_000;

/// Syncs timed per round.
const SYNCS: usize = 100;

/// Median and 99th percentile of each round.
#[derive(Default)]
struct Ages {
    middle: Vec<f64>,
    high: Vec<f64>,
}

impl Ages {
    fn note(&mut self, mut ages: Vec<f64>) {
        self.middle.push(percentile(&mut ages, 0.5));
        self.high.push(percentile(&mut ages, 0.99));
    }

    fn show(&self) -> String {
        format!("{} / {}", time(median(self.middle.clone())), time(least(&self.high)))
    }

    fn over(&self, other: &Self) -> String {
        let middle = median(self.middle.clone()) / median(other.middle.clone());
        format!("{} / {}", times(middle), times(least(&self.high) / least(&other.high)))
    }
}

pub async fn run(rounds: usize) {
    println!(
        "From the agent's write of a line to a reader's receipt of it, p50 (median of the rounds) / p99 (best round):\n"
    );
    println!(
        "| sessions | lines/s of each | one append + fdatasync | relay | engine, durable | ratio |"
    );
    println!("|---|---|---|---|---|---|");
    for (sessions, rate) in PACES {
        pace(*sessions, *rate, rounds).await;
    }
}

async fn pace(sessions: u64, rate: u64, rounds: usize) {
    let turns = (rate * SECONDS / TURN).max(1);
    // All agents start after all have their orders, and not at the same moment.
    let order =
        |session: u64| agent::order(turns, rate, DELAY + session * 1_000_000 / rate / sessions);
    let gateway = Gateway::new().await;
    let (mut relays, mut relay_readers) = (Vec::new(), Vec::new());
    let (mut handles, mut log_readers) = (Vec::new(), Vec::new());
    for _ in 0..sessions {
        let (relay, readers) = Relay::start(1).await;
        relays.push(relay);
        relay_readers.extend(readers);
        let session = gateway.session().await;
        log_readers.push(gateway.reader(&session).await);
        handles.push(session);
    }
    let disk = crate::directory();
    let (mut sync, mut relay, mut engine) = (Ages::default(), Ages::default(), Ages::default());
    for _ in 0..rounds {
        sync.note(syncs(disk.path().join("synced"), SYNCS).await);
        let orders = async {
            for (session, relay) in (0..).zip(&mut relays) {
                relay.order(&order(session)).await;
            }
        };
        let (readers, ages) = read(relay_readers, turns, orders).await;
        relay_readers = readers;
        relay.note(ages);
        let orders = async {
            let mut orders = JoinSet::new();
            for (session, handle) in (0..).zip(&handles) {
                let (handle, order) = (handle.clone(), order(session));
                orders.spawn(async move { gateway::order(&handle, order).await });
            }
            orders.join_all().await;
        };
        let (readers, ages) = read(log_readers, turns, orders).await;
        log_readers = readers;
        engine.note(ages);
    }
    for relay in relays {
        relay.end().await;
    }
    gateway.end().await;
    println!(
        "| {sessions} | {rate} | {} | {} | {} | {} |",
        sync.show(),
        relay.show(),
        engine.show(),
        engine.over(&relay)
    );
}

/// Runs `give`, which sends the orders, and reads all their lines. Returns the readers and the ages of the
/// lines.
async fn read(
    readers: Vec<Reader>,
    turns: u64,
    give: impl Future<Output = ()>,
) -> (Vec<Reader>, Vec<f64>) {
    let readers = readers.into_iter().map(|mut reader| {
        tokio::spawn(async move { (reader.read(turns * TURN, |_| {}).await, reader) })
    });
    let reading: Vec<_> = readers.collect();
    give.await;
    let mut ages = Vec::new();
    let mut readers = Vec::new();
    for reader in reading {
        let (seen, reader) = reader.await.expect("a reader");
        assert_eq!(seen.faults, 0, "lines were lost, doubled or out of order");
        ages.extend(seen.ages);
        readers.push(reader);
    }
    (readers, ages)
}
