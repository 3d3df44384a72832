//! The client library over each of its transports, compared with the bare socket: reading a whole stored
//! session of 100,000 events, and the age of a line when its event arrives.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use agentwire_client::transport::in_process::Settings;
use agentwire_client::{
    AgentClient, AgentType, HttpTransport, InProcessTransport, Session, SessionRequest,
    SessionState, StdioTransport, Streaming, Update,
};
use agentwire_sessions::settings::AgentCommand;
use tempfile::TempDir;

use crate::agent::{self, TURN};
use crate::place::{Gateway as _, Relay, Server, directory, work};
use crate::replay::written;
use crate::report::{least, median, micros, percentile, time, times};

const EVENTS: u64 = 100_000;

/// Turns printed at a time, few enough that lines become separate events.
const PIECE: u64 = 200;

/// Lines per second while ages are measured, and the approximate number of seconds.
const RATE: u64 = 100;
const SECONDS: u64 = 4;

/// Microseconds until the first line.
const DELAY: u64 = 100_000;

const WAYS: [(&str, Way); 5] = [
    ("WebSocket", Way::Http(Streaming::Socket)),
    ("SSE", Way::Http(Streaming::Events)),
    ("long polls", Way::Http(Streaming::Polling)),
    ("child, stdio", Way::Stdio),
    ("in-process", Way::InProcess),
];

#[derive(Clone, Copy)]
enum Way {
    Http(Streaming),
    Stdio,
    InProcess,
}

/// A session over one transport, and what it runs on.
struct Place {
    client: AgentClient,
    session: Session,
    _server: Option<Server>,
    _directory: Option<TempDir>,
}

impl Place {
    async fn new(way: Way) -> Self {
        let (client, server, directory) = match way {
            Way::Http(streaming) => {
                let server = Server::start();
                let transport = HttpTransport::new(server.at()).with_streaming(streaming);
                (AgentClient::over(transport), Some(server), None)
            }
            Way::Stdio => {
                let directory = directory();
                let transport = StdioTransport::new(env!("CARGO_BIN_EXE_agentwire"))
                    .env("AGENTWIRE_DATA_DIR", directory.path().join("data"))
                    .env("AGENTWIRE_CONFIG", directory.path().join("config.toml"))
                    .env("AGENTWIRE_LOG", "error")
                    .directory(work(&directory));
                (AgentClient::over(transport), None, Some(directory))
            }
            Way::InProcess => {
                let directory = directory();
                let agent = AgentCommand {
                    program: Some(own().to_string_lossy().into_owned()),
                    args: vec![agent::VERB.to_owned()],
                    ..AgentCommand::default()
                };
                let settings = Settings {
                    data_dir: directory.path().join("data"),
                    keeper: Some(env!("CARGO_BIN_EXE_agentwire").into()),
                    agents: [("claude", agent)].into(),
                    ..Settings::default()
                };
                let transport = InProcessTransport::with_settings(settings).await.unwrap();
                (AgentClient::over(transport), None, Some(directory))
            }
        };
        let session = client.create(SessionRequest::new(AgentType::Claude, "")).await.unwrap();
        while session.summary().await.unwrap().state != SessionState::Idle {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        Self { client, session, _server: server, _directory: directory }
    }

    /// Orders and reads this many turns. Returns the age of each line, in microseconds, when its event
    /// arrived.
    async fn ages(&self, turns: u64, rate: u64, delay: u64) -> Vec<f64> {
        let last = self.session.summary().await.unwrap().last_seq;
        let mut events = self.session.events_after(last);
        let finder = agent::finder();
        let (mut ages, mut next) = (Vec::new(), 0);
        self.session.prompt(agent::order(turns, rate, delay)).await.unwrap();
        while next < turns * TURN {
            let event = events.try_next().await.unwrap().unwrap();
            let now = agent::now();
            for (number, written) in agent::marks(&finder, event.raw().as_bytes()) {
                assert_eq!(number, next, "lines were lost, doubled or out of order");
                next += 1;
                ages.push(now.saturating_sub(written) as f64 / 1000.0);
            }
        }
        ages
    }

    /// Fills the log with 100,000 events and returns the number of the last.
    async fn fill(&self) -> u64 {
        loop {
            let last = self.session.summary().await.unwrap().last_seq;
            if last >= EVENTS {
                return last;
            }
            self.ages(PIECE, 0, 0).await;
        }
    }

    /// Reads everything up to this event as raw bytes. Returns microseconds and bytes.
    async fn read_bytes(&self, last: u64) -> (f64, u64) {
        let begun = Instant::now();
        let mut updates = self.session.updates_after(0).up_to(last);
        let (mut bytes, mut count) = (0, 0);
        while let Some(update) = updates.try_next().await.unwrap() {
            let Update::Events(lines) = update else { panic!("{update:?}") };
            bytes += lines.text().len() as u64;
            count += lines.len() as u64;
        }
        assert_eq!(count, last);
        (micros(begun.elapsed()), bytes)
    }

    /// Reads the same as typed events.
    async fn read_events(&self, last: u64) -> f64 {
        let begun = Instant::now();
        let mut events = self.session.events_after(0).up_to(last);
        let mut count = 0;
        while let Some(event) = events.try_next().await.unwrap() {
            count += 1;
            assert_eq!(event.seq, count);
        }
        assert_eq!(count, last);
        micros(begun.elapsed())
    }
}

fn own() -> PathBuf {
    std::env::current_exe().unwrap()
}

pub async fn run(rounds: usize) {
    latency(rounds).await;
    throughput(rounds).await;
}

async fn latency(rounds: usize) {
    println!(
        "From the agent's write of a line to the arrival of its event in a program, {RATE} lines/s, p50 (median of the rounds) / p99 (best round); the bare socket stores nothing:\n"
    );
    println!("| transport | age | ratio to the bare socket |");
    println!("|---|---|---|");
    let turns = (RATE * SECONDS / TURN).max(1);
    let relay = Relay::start();
    let bare = relay.session().await;
    let mut reader = relay.reader(&bare).await;
    let mut places = Vec::new();
    for (name, way) in WAYS {
        places.push((name, Place::new(way).await, (Vec::new(), Vec::new())));
    }
    let mut of_bare = (Vec::new(), Vec::new());
    let note = |to: &mut (Vec<f64>, Vec<f64>), mut ages: Vec<f64>| {
        to.0.push(percentile(&mut ages, 0.5));
        to.1.push(percentile(&mut ages, 0.99));
    };
    for _ in 0..rounds {
        relay.order(&bare, &agent::order(turns, RATE, DELAY)).await;
        let seen = reader.read(turns * TURN).await;
        assert_eq!(seen.faults, 0);
        note(&mut of_bare, seen.ages);
        for (_, place, found) in &mut places {
            note(found, place.ages(turns, RATE, DELAY).await);
        }
    }
    let figures = |found: &(Vec<f64>, Vec<f64>)| (median(found.0.clone()), least(&found.1));
    let (middle, high) = figures(&of_bare);
    println!("| the bare socket | {} / {} | 1 |", time(middle), time(high));
    for (name, place, found) in places {
        let (own, own_high) = figures(&found);
        println!(
            "| {name} | {} / {} | {} / {} |",
            time(own),
            time(own_high),
            times(own / middle),
            times(own_high / high)
        );
        place.client.close().await;
    }
    println!();
}

async fn throughput(rounds: usize) {
    println!(
        "A stored session of {EVENTS} events, read whole; the bare socket has the same bytes in memory:\n"
    );
    println!(
        "| transport | bare socket | in the gateway's bytes | MB/s | ratio | as typed events | events/s | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (name, way) in WAYS {
        let place = Place::new(way).await;
        let last = place.fill().await;
        let (mut bare, mut plain, mut typed, mut size) = (vec![], vec![], vec![], 0);
        for _ in 0..rounds {
            let (taken, bytes) = place.read_bytes(last).await;
            size = bytes;
            bare.push(written(bytes).await);
            plain.push(taken);
            typed.push(place.read_events(last).await);
        }
        let (bare, plain, typed) = (median(bare), median(plain), median(typed));
        println!(
            "| {name} | {} | {} | {:.0} | {} | {} | {:.0} | {} |",
            time(bare),
            time(plain),
            size as f64 / plain,
            times(plain / bare),
            time(typed),
            last as f64 / typed * 1e6,
            times(typed / bare)
        );
        place.client.close().await;
    }
}
