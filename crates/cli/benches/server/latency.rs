//! Time from an agent's write of a line to a client's receipt of it (goals 5, 6, 7).

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::agent::{self, TURN};
use crate::place::{Gateway, Relay, Server, cpu};
use crate::reader::Reader;
use crate::report::{least, median, micros, percentile, time, times};

/// Sessions, and lines per second of each.
const PACES: &[(u64, u64)] = &[(1, 100), (1, 2000), (30, 50)];

/// Approximate duration of the lines of one round.
const SECONDS: u64 = 4;

/// Microseconds until the first line: long enough to send all agents their orders.
const DELAY: u64 = 500_000;

/// Syncs timed per round.
const SYNCS: usize = 100;

#[derive(Default)]
struct Rounds {
    middle: Vec<f64>,
    high: Vec<f64>,
    cpu: Vec<f64>,
}

impl Rounds {
    fn note(&mut self, mut ages: Vec<f64>, cpu: Duration) {
        self.middle.push(percentile(&mut ages, 0.5));
        self.high.push(percentile(&mut ages, 0.99));
        self.cpu.push(cpu.as_secs_f64());
    }

    fn show(&self) -> String {
        format!("{} / {}", time(median(self.middle.clone())), time(least(&self.high)))
    }
}

pub async fn run(rounds: usize) {
    println!(
        "From the agent's write of a line to a client's receipt of it over a WebSocket, p50 (median of the rounds) / p99 (best round); CPU is the gateway's, of one core:\n"
    );
    println!(
        "| sessions | lines/s of each | one append + fdatasync at that pace, p50 | rawrelay | agentwire, durable | ratio | rawrelay, CPU | agentwire, CPU | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (sessions, rate) in PACES {
        pace(*sessions, *rate, rounds).await;
    }
}

async fn pace(sessions: u64, rate: u64, rounds: usize) {
    let (relay, server) = (Relay::start(), Server::start());
    let (mut of_relay, mut of_server) =
        (Side::new(&relay, sessions).await, Side::new(&server, sessions).await);
    let mut sync = Vec::new();
    for _ in 0..rounds {
        sync.push(synced(sessions * rate).await);
        of_relay.round(rate).await;
        of_server.round(rate).await;
    }
    let (relay, server) = (of_relay.rounds, of_server.rounds);
    let middle = median(server.middle.clone()) / median(relay.middle.clone());
    let high = least(&server.high) / least(&relay.high);
    let seconds = SECONDS as f64;
    let cpu = |rounds: &Rounds| median(rounds.cpu.clone()) / seconds * 100.0;
    println!(
        "| {sessions} | {rate} | {} | {} | {} | {} / {} | {:.1} % | {:.1} % | {} |",
        time(median(sync)),
        relay.show(),
        server.show(),
        times(middle),
        times(high),
        cpu(&relay),
        cpu(&server),
        times(cpu(&server) / cpu(&relay)),
    );
}

/// A gateway, its sessions, and one reader for each.
struct Side<'g, G> {
    gateway: &'g G,
    sessions: Vec<String>,
    readers: Vec<Reader>,
    rounds: Rounds,
}

impl<'g, G: Gateway> Side<'g, G> {
    async fn new(gateway: &'g G, count: u64) -> Self {
        let (mut sessions, mut readers) = (Vec::new(), Vec::new());
        for _ in 0..count {
            let session = gateway.session().await;
            readers.push(gateway.reader(&session).await);
            sessions.push(session);
        }
        Self { gateway, sessions, readers, rounds: Rounds::default() }
    }

    async fn round(&mut self, rate: u64) {
        let turns = (rate * SECONDS / TURN).max(1);
        let count = self.sessions.len() as u64;
        let reading: Vec<_> = std::mem::take(&mut self.readers)
            .into_iter()
            .map(|mut reader| {
                tokio::spawn(async move { (reader.read(turns * TURN).await, reader) })
            })
            .collect();
        let before = cpu(self.gateway.pid());
        for (at, session) in (0..).zip(&self.sessions) {
            // All agents start after all have their orders, and not at the same moment.
            let phase = DELAY + at * 1_000_000 / rate / count;
            self.gateway.order(session, &agent::order(turns, rate, phase)).await;
        }
        let mut ages = Vec::new();
        for reader in reading {
            let (seen, reader) = reader.await.unwrap();
            assert_eq!(seen.faults, 0, "lines were lost, doubled or out of order");
            ages.extend(seen.ages);
            self.readers.push(reader);
        }
        self.rounds.note(ages, cpu(self.gateway.pid()) - before);
    }
}

/// Median microseconds of one append with a sync, at this many per second: a disk that was idle takes
/// longer.
async fn synced(rate: u64) -> f64 {
    let mut file = tempfile::NamedTempFile::new_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let mut times = Vec::new();
    for _ in 0..SYNCS {
        tokio::time::sleep(Duration::from_secs(1) / u32::try_from(rate).unwrap()).await;
        let begun = Instant::now();
        file.write_all(&[b'x'; 1000]).unwrap();
        File::sync_data(file.as_file()).unwrap();
        times.push(micros(begun.elapsed()));
    }
    median(times)
}
