//! 200,000 events in one session: whether the last ones are as fast as the first, and how much memory
//! remains in use.

use std::time::Instant;

use crate::agent::{self, TURN};
use crate::gateway::{Gateway, order};
use crate::memory::resident;
use crate::report::{median, per_second, times};

const EVENTS: u64 = 200_000;
const PARTS: u64 = 5;

/// The fewest stored events per turn: text deltas that arrive together become one event.
const EVENTS_OF_TURN: u64 = 13;

const TURNS: u64 = EVENTS.div_ceil(EVENTS_OF_TURN);
const LINES: u64 = TURNS * TURN;

pub async fn run(rounds: usize) {
    let (mut first, mut last, mut stored) = (Vec::new(), Vec::new(), Vec::new());
    let mut grown = Vec::new();
    for _ in 0..rounds {
        let gateway = Gateway::new().await;
        let session = gateway.session().await;
        let mut reader = gateway.reader(&session).await;
        let reading = tokio::spawn(async move {
            let mut passed = vec![(0, Instant::now(), resident())];
            let seen = reader.read(LINES, |lines| {
                if lines >= passed.len() as u64 * LINES / PARTS {
                    passed.push((lines, Instant::now(), resident()));
                }
            });
            (seen.await, passed)
        });
        order(&session, agent::order(TURNS, 0, 0)).await;
        let (seen, passed) = reading.await.expect("a reader");
        assert_eq!(seen.faults, 0, "lines were lost, doubled or out of order");
        gateway.end().await;
        let rate = |part: usize| {
            let ((from, begun, _), (to, ended, _)) = (passed[part], passed[part + 1]);
            (to - from) as f64 / (ended - begun).as_secs_f64()
        };
        first.push(rate(0));
        last.push(rate(passed.len() - 2));
        grown.push((passed[passed.len() - 1].2 as f64 - passed[1].2 as f64) / 1000.0);
        stored.push(seen.events as f64);
    }
    let ratio = median(last.iter().zip(&first).map(|(last, first)| last / first).collect());
    println!(
        "One session with {LINES} lines at full speed, {:.0} events stored:\n",
        median(stored)
    );
    println!(
        "| first fifth, lines | last fifth, lines | ratio | resident memory after the first fifth, and at the end |"
    );
    println!("|---|---|---|---|");
    println!(
        "| {} | {} | {} | {:+.1} MB |",
        per_second(median(first)),
        per_second(median(last)),
        times(ratio),
        median(grown)
    );
}
