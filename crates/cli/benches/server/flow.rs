//! One session at full speed to 1 and 50 readers (goals 1, 3, 4, 10).

use std::time::Instant;

use crate::agent::{self, TURN};
use crate::place::{Gateway, Relay, Server, cpu};
use crate::report::{median, per_second, time, times};

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
        "| readers | rawrelay, lines | agentwire, lines | ratio | rawrelay, CPU per line | agentwire, CPU per line | ratio | lost, doubled or reordered |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for readers in READERS {
        // Fifty readers are fifty times the work.
        let turns = if readers == 1 { 2000 } else { 400 };
        let (mut relay, mut server) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            relay.push(measure(&Relay::start(), readers, turns).await);
            server.push(measure(&Server::start(), readers, turns).await);
        }
        let rate = |runs: &[Run]| median(runs.iter().map(|run| run.lines / run.seconds).collect());
        let cpu = |runs: &[Run]| median(runs.iter().map(|run| run.cpu).collect());
        let faults: u64 = relay.iter().chain(&server).map(|run| run.faults).sum();
        println!(
            "| {readers} | {} | {} | {} | {} | {} | {} | {faults} |",
            per_second(rate(&relay)),
            per_second(rate(&server)),
            times(rate(&server) / rate(&relay)),
            time(cpu(&relay)),
            time(cpu(&server)),
            times(cpu(&server) / cpu(&relay)),
        );
        assert_eq!(faults, 0, "lines were lost, doubled or out of order");
    }
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
