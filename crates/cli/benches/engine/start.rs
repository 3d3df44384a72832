//! How fast the engine starts with 1,000 stored sessions of 1,000 events, and with none.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Instant;

use agentwire_protocol::SessionId;
use agentwire_sessions::Hub;
use agentwire_sessions::store::Store;
use agentwire_sessions::store::sqlite::Sqlite;

use crate::events;
use crate::gateway::{AGENTWIRE, settings};
use crate::report::{median, micros, time, times};

const SESSIONS: usize = 1000;
const EVENTS: usize = 1000;
const BATCH: usize = 10;

/// Starts of each kind timed per round.
const STARTS: usize = 5;

pub async fn run(rounds: usize) {
    let (empty, full) = (crate::directory(), crate::directory());
    opened(empty.path()).await;
    let store = Sqlite::open(&settings(full.path()).data_dir).expect("a store");
    let store: Arc<dyn Store> = Arc::new(store);
    let batches = events::batches(&events::lines(EVENTS), BATCH);
    for number in 0..SESSIONS {
        events::fill(&store, &SessionId::from(format!("session-{number}")), &batches);
    }
    drop(store);
    let database = settings(full.path()).data_dir.join("agentwire.db");
    let bytes = std::fs::metadata(database).expect("the database").len();
    let has_ls = listed(empty.path()).is_some();
    let mut times_of: [Vec<f64>; 4] = Default::default();
    for _ in 0..rounds * STARTS {
        times_of[0].push(opened(empty.path()).await);
        times_of[1].push(opened(full.path()).await);
        if has_ls {
            times_of[2].extend(listed(empty.path()));
            times_of[3].extend(listed(full.path()));
        }
    }
    let [open_empty, open_full, list_empty, list_full] = times_of.map(median);
    println!("Start with {SESSIONS} sessions of {EVENTS} events ({} MB):\n", bytes / 1_000_000);
    println!("| | with none | with {SESSIONS} | ratio |");
    println!("|---|---|---|---|");
    let row = |name: &str, empty: f64, full: f64| {
        println!("| {name} | {} | {} | {} |", time(empty), time(full), times(full / empty));
    };
    row("the engine opens", open_empty, open_full);
    if has_ls {
        row("`agentwire ls`, the whole process", list_empty, list_full);
    }
}

/// Microseconds until the engine is open.
async fn opened(directory: &Path) -> f64 {
    let begun = Instant::now();
    let hub = Hub::open(settings(directory)).await.expect("a hub");
    let time = micros(begun.elapsed());
    hub.shutdown().await;
    time
}

/// Microseconds of `agentwire ls`, if that command exists.
fn listed(directory: &Path) -> Option<f64> {
    let begun = Instant::now();
    let status = Command::new(AGENTWIRE)
        .arg("ls")
        .env("AGENTWIRE_DATA_DIR", settings(directory).data_dir)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success()).then(|| micros(begun.elapsed()))
}
