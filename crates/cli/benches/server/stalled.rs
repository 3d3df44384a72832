//! One reader that never reads, next to one that does (goal 11).

use std::time::Instant;

use crate::agent::{self, TURN};
use crate::place::{Gateway, Server, memory};
use crate::report::{median, per_second, times};

const TURNS: u64 = 1000;

pub async fn run(rounds: usize) {
    let mut rates: [Vec<f64>; 2] = Default::default();
    let mut held: [Vec<f64>; 2] = Default::default();
    for _ in 0..rounds {
        for stalled in [0, 1] {
            let server = Server::start();
            let session = server.session().await;
            let _stalled = match stalled {
                0 => None,
                _ => Some(server.reader(&session).await),
            };
            let mut reader = server.reader(&session).await;
            let begun = Instant::now();
            server.order(&session, &agent::order(TURNS, 0, 0)).await;
            let seen = reader.read(TURNS * TURN).await;
            assert_eq!(seen.faults, 0, "lines were lost, doubled or out of order");
            rates[stalled].push((TURNS * TURN) as f64 / begun.elapsed().as_secs_f64());
            held[stalled].push(memory(server.pid(), "VmRSS") as f64);
        }
    }
    let [alone, beside] = rates.map(median);
    let [without, with] = held.map(median);
    println!("One reader that stopped reading, {} lines:\n", TURNS * TURN);
    println!("| the other reader, alone | next to it | ratio | added memory |");
    println!("|---|---|---|---|");
    println!(
        "| {} | {} | {} | {:.1} MiB |",
        per_second(alone),
        per_second(beside),
        times(beside / alone),
        (with - without) / 1024.0
    );
}
