//! One session at full speed to 1, 10 and 50 readers: lines per second, processor time per line, and
//! whether any line was lost, doubled or out of order.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

use crate::agent::{self, TURN};
use crate::gateway::{Gateway, Reader, Seen, order};
use crate::report::{median, per_second, time, times};
use crate::yardsticks::{Relay, copy_pipe};

const TURNS: u64 = 2000;
const LINES: u64 = TURNS * TURN;

struct Run {
    seconds: f64,
    /// Microseconds of this process's processor time per line.
    cpu: f64,
    faults: u64,
    events: u64,
}

pub async fn run(rounds: usize) {
    let mut pipe = Vec::new();
    let readers = [1, 10, 50];
    let mut runs: Vec<(Vec<Run>, Vec<Run>)> = readers.iter().map(|_| Default::default()).collect();
    for _ in 0..rounds {
        pipe.push(copy_pipe(&agent::order(TURNS, 0, 0)));
        for (readers, (relay, engine)) in readers.iter().zip(&mut runs) {
            relay.push(relayed(*readers).await);
            engine.push(logged(*readers).await);
        }
    }
    let bytes = pipe[0].0;
    let speed =
        median(pipe.iter().map(|(_, time)| bytes as f64 / time.as_secs_f64() / 1e6).collect());
    println!(
        "One session at full speed: {LINES} lines of {} bytes on average. The pipe alone, read and dropped: {speed:.0} MB/s, {}.\n",
        bytes / LINES,
        per_second(speed * 1e6 / (bytes / LINES) as f64),
    );
    println!(
        "| readers | relay, lines | engine, lines, durable | ratio | relay, CPU per line | engine, CPU per line | ratio | events per line | lost, doubled or reordered |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for (readers, (relay, engine)) in readers.iter().zip(&runs) {
        let rate =
            |runs: &[Run]| median(runs.iter().map(|run| LINES as f64 / run.seconds).collect());
        let cpu = |runs: &[Run]| median(runs.iter().map(|run| run.cpu).collect());
        let events = median(engine.iter().map(|run| run.events as f64 / LINES as f64).collect());
        println!(
            "| {readers} | {} | {} | {} | {} | {} | {} | {events:.2} | {} |",
            per_second(rate(relay)),
            per_second(rate(engine)),
            times(rate(engine) / rate(relay)),
            time(cpu(relay)),
            time(cpu(engine)),
            times(cpu(engine) / cpu(relay)),
            engine.iter().map(|run| run.faults).sum::<u64>(),
        );
    }
    let faults = |runs: &[Run]| runs.iter().map(|run| run.faults).sum::<u64>();
    let faults: u64 = runs.iter().map(|(relay, engine)| faults(relay) + faults(engine)).sum();
    assert_eq!(faults, 0, "lines were lost, doubled or out of order");
}

async fn relayed(readers: usize) -> Run {
    let (mut relay, readers) = Relay::start(readers).await;
    let begun = Begun::now();
    relay.order(&agent::order(TURNS, 0, 0)).await;
    let run = begun.until(readers).await;
    relay.end().await;
    run
}

async fn logged(readers: usize) -> Run {
    let gateway = Gateway::new().await;
    let session = gateway.session().await;
    let mut cursors = Vec::new();
    for _ in 0..readers {
        cursors.push(gateway.reader(&session).await);
    }
    let begun = Begun::now();
    order(&session, agent::order(TURNS, 0, 0)).await;
    let run = begun.until(cursors).await;
    gateway.end().await;
    run
}

struct Begun {
    time: Instant,
    cpu: Duration,
}

impl Begun {
    fn now() -> Self {
        Self { time: Instant::now(), cpu: cpu() }
    }

    async fn until(self, readers: Vec<Reader>) -> Run {
        let readers = readers.into_iter().map(|mut reader| {
            tokio::spawn(async move { (reader.read(LINES, |_| {}).await, reader) })
        });
        let mut all = Seen::default();
        for reader in readers.collect::<Vec<_>>() {
            // Keep the reader until the end: the relay does not wait for one that is gone.
            let (seen, _reader) = reader.await.expect("a reader");
            all.faults += seen.faults;
            all.events = seen.events;
        }
        let seconds = self.time.elapsed().as_secs_f64();
        let cpu = (cpu() - self.cpu).as_secs_f64() * 1e6 / LINES as f64;
        Run { seconds, cpu, faults: all.faults, events: all.events }
    }
}

/// User and kernel time of all threads of this process.
fn cpu() -> Duration {
    Duration::from_nanos(agent::nanoseconds(clock_gettime(ClockId::ProcessCPUTime)))
}
