//! Time from an agent's write of a line to a client's receipt of it (goals 5, 6, 7).

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use crate::agent::{self, TURN};
use crate::place::{Gateway, Relay, Server, builds, cpu, directory};
use crate::reader::Reader;
use crate::report::{least, median, micros, percentile, time, times};
use crate::sdk::Sdk;

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
        "From the agent's write of a line to a client's receipt of it over a WebSocket, p50 (median of the rounds) / p99 (best round). The limit is rawrelay plus one append with fdatasync at that pace (p50). CPU is the gateway's:\n"
    );
    println!(
        "| sessions | lines/s of each | gateway | age | of the limit | CPU, of one core | CPU per line | of rawrelay |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (sessions, rate) in PACES {
        pace(*sessions, *rate, rounds).await;
    }
}

async fn pace(sessions: u64, rate: u64, rounds: usize) {
    let builds = builds();
    let relay = Relay::start();
    let servers: Vec<Server> = builds.iter().map(|(_, program)| Server::of(program)).collect();
    let mut of_relay = Side::new(&relay, sessions).await;
    let mut of_servers = Vec::new();
    for server in &servers {
        of_servers.push(Side::new(server, sessions).await);
    }
    let mut sdk = if sessions == 1 { Sdk::start().await } else { None };
    let mut of_sdk = Rounds::default();
    let mut sync = Vec::new();
    for _ in 0..rounds {
        sync.push(synced(sessions * rate).await);
        of_relay.round(rate).await;
        if let Some(sdk) = &mut sdk {
            let seen = sdk.order(&agent::order(lines(rate) / TURN, rate, DELAY));
            assert_eq!(seen.faults, 0, "lines were lost, doubled or out of order");
            of_sdk.note(seen.ages, Duration::from_secs_f64(seen.cpu / 1e6));
        }
        for side in &mut of_servers {
            side.round(rate).await;
        }
    }
    let sync = median(sync);
    let relay = of_relay.rounds;
    let limit = median(relay.middle.clone()) + sync;
    let used = |rounds: &Rounds| median(rounds.cpu.clone());
    let row = |name: &str, rounds: &Rounds| {
        let (middle, high) = (median(rounds.middle.clone()), least(&rounds.high));
        println!(
            "| {sessions} | {rate} | {name} | {} | {} / {} | {:.1} % | {} | {} |",
            rounds.show(),
            times(middle / limit),
            times(high / limit),
            used(rounds) / SECONDS as f64 * 100.0,
            time(used(rounds) * 1e6 / (lines(rate) * sessions) as f64),
            times(used(rounds) / used(&relay)),
        );
    };
    row("rawrelay", &relay);
    println!("| {sessions} | {rate} | one append + fdatasync | {} | | | | |", time(sync));
    if sdk.is_some() {
        row("TypeScript SDK", &of_sdk);
    }
    for ((name, _), side) in builds.iter().zip(&of_servers) {
        row(name, &side.rounds);
    }
}

/// Lines of one session in a round.
fn lines(rate: u64) -> u64 {
    (rate * SECONDS / TURN).max(1) * TURN
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
        let turns = lines(rate) / TURN;
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
    let directory = directory();
    let mut file = tempfile::NamedTempFile::new_in(directory.path()).unwrap();
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
