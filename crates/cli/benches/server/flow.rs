//! One session at full speed to 1 and 50 readers, and what it takes on disk (goals 1, 3, 4, 10).

use std::time::Instant;

use crate::agent::{self, TURN};
use crate::place::{Gateway, Relay, Server, builds, cpu};
use crate::report::{median, per_second, time, times};
use crate::sdk::{Sdk, Seen};

const READERS: [usize; 2] = [1, 50];

struct Run {
    lines: f64,
    seconds: f64,
    /// Microseconds of the gateway's processor time per line.
    cpu: f64,
    faults: u64,
}

pub async fn run(rounds: usize) {
    println!(
        "One session at full speed over WebSockets, durable, compared with a relay that stores nothing:\n"
    );
    println!(
        "| readers | gateway | lines | ratio | CPU per line | ratio | on disk, of the agent's output | lost, doubled or reordered |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for readers in READERS {
        // Fifty readers are fifty times the work.
        let turns = if readers == 1 { 24_000 } else { 400 };
        let builds = builds();
        let mut relay = Vec::new();
        let mut of_sdk = Vec::new();
        // The SDK has one reader: its own program.
        let mut sdk = if readers == 1 { Sdk::start().await } else { None };
        let mut ours: Vec<(Vec<Run>, Vec<f64>)> =
            builds.iter().map(|_| Default::default()).collect();
        for _ in 0..rounds {
            relay.push(measure(&Relay::start(), readers, turns).await);
            of_sdk.extend(sdk.as_mut().map(|sdk| through(sdk, turns)));
            for ((_, program), (runs, disk)) in builds.iter().zip(&mut ours) {
                let server = Server::of(program);
                runs.push(measure(&server, readers, turns).await);
                disk.push(server.stored() as f64 / printed(turns));
            }
        }
        let (relay_rate, relay_cpu) = (rate(&relay), cpu_of(&relay));
        row(readers, "rawrelay", &relay, (relay_rate, relay_cpu), None);
        if sdk.is_some() {
            row(readers, "TypeScript SDK", &of_sdk, (relay_rate, relay_cpu), None);
        }
        for ((name, _), (runs, disk)) in builds.iter().zip(ours) {
            row(readers, name, &runs, (relay_rate, relay_cpu), Some(median(disk)));
        }
    }
}

fn rate(runs: &[Run]) -> f64 {
    median(runs.iter().map(|run| run.lines / run.seconds).collect())
}

fn cpu_of(runs: &[Run]) -> f64 {
    median(runs.iter().map(|run| run.cpu).collect())
}

fn row(readers: usize, name: &str, runs: &[Run], relay: (f64, f64), disk: Option<f64>) {
    let faults: u64 = runs.iter().map(|run| run.faults).sum();
    println!(
        "| {readers} | {name} | {} | {} | {} | {} | {} | {faults} |",
        per_second(rate(runs)),
        times(rate(runs) / relay.0),
        time(cpu_of(runs)),
        times(cpu_of(runs) / relay.1),
        disk.map_or_else(String::new, times),
    );
    assert_eq!(faults, 0, "lines were lost, doubled or out of order");
}

fn through(sdk: &mut Sdk, turns: u64) -> Run {
    let Seen { seconds, faults, cpu, .. } = sdk.order(&agent::order(turns, 0, 0));
    let lines = (turns * TURN) as f64;
    Run { lines, seconds, cpu: cpu / lines, faults }
}

/// Bytes that the agent prints in this many turns.
fn printed(turns: u64) -> f64 {
    agent::turn(0).len() as f64 * turns as f64
}

async fn measure(gateway: &impl Gateway, readers: usize, turns: u64) -> Run {
    let session = gateway.session().await;
    let mut all = Vec::new();
    for _ in 0..readers {
        all.push(gateway.reader(&session).await);
    }
    let (begun, before) = (Instant::now(), cpu(gateway.pid()));
    let reading: Vec<_> = all
        .into_iter()
        .map(|mut reader| tokio::spawn(async move { (reader.read(turns * TURN).await, reader) }))
        .collect();
    gateway.order(&session, &agent::order(turns, 0, 0)).await;
    let mut faults = 0;
    for reader in reading {
        faults += reader.await.unwrap().0.faults;
    }
    let seconds = begun.elapsed().as_secs_f64();
    let lines = (turns * TURN) as f64;
    let used = (cpu(gateway.pid()) - before).as_secs_f64() * 1e6;
    Run { lines, seconds, cpu: used / lines, faults }
}
