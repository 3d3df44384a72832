//! Durable appends in batches of 1, 10 and 100 events, from one session and from twenty at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use agentwire_protocol::{SessionId, SessionState};
use agentwire_sessions::log::{EventLog, LogWriter};
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Batch, Store};

use crate::events;
use crate::report::{median, per_second, times};
use crate::yardsticks::{Appended, Rows};

/// Duration of each measurement.
const RUN: Duration = Duration::from_millis(300);

const SESSIONS: u64 = 20;

pub async fn run(rounds: usize) {
    println!(
        "Events appended durably; ratios are to SQLite with one row per event, and to the file:\n"
    );
    println!(
        "| events per batch | SQLite, `FULL` | file, fdatasync | log, 1 session | ratios | log, {SESSIONS} sessions | ratios |"
    );
    println!("|---|---|---|---|---|---|---|");
    for size in [1, 10, 100] {
        let lines = events::lines(size);
        let batch = events::batches(&lines, size).remove(0);
        let mut rates: [Vec<f64>; 4] = Default::default();
        for _ in 0..rounds {
            let directory = crate::directory();
            let mut rows = Rows::open(&directory.path().join("rows.db"));
            rates[0].push(repeated(size, || rows.append(&batch.lines)));
            let mut file = Appended::open(&directory.path().join("appended"));
            rates[1].push(repeated(size, || file.append(&batch.lines)));
            rates[2].push(logged(1, &batch).await);
            rates[3].push(logged(SESSIONS, &batch).await);
        }
        let [rows, file, one, many] = rates.map(median);
        let ratios = |rate: f64| format!("{}, {}", times(rate / rows), times(rate / file));
        println!(
            "| {size} | {} | {} | {} | {} | {} | {} |",
            per_second(rows),
            per_second(file),
            per_second(one),
            ratios(one),
            per_second(many),
            ratios(many)
        );
    }
}

/// Returns events per second.
fn repeated(size: usize, mut append: impl FnMut()) -> f64 {
    let begun = Instant::now();
    let mut count = 0;
    while begun.elapsed() < RUN {
        append();
        count += size;
    }
    count as f64 / begun.elapsed().as_secs_f64()
}

/// Returns events per second over all sessions. Each session submits a batch once its previous one is
/// durable.
async fn logged(sessions: u64, batch: &Batch) -> f64 {
    let directory = crate::directory();
    let store = Arc::new(Sqlite::open(directory.path()).expect("a store"));
    logged_in(store, sessions, batch).await
}

/// The same in this store.
pub async fn logged_in(store: Arc<dyn Store>, sessions: u64, batch: &Batch) -> f64 {
    let log = EventLog::new(store);
    let begun = Instant::now();
    let tasks = (0..sessions).map(|number| {
        let session = SessionId::from(format!("session-{number}"));
        let writer = log.open(session.clone(), 0);
        tokio::spawn(appends(writer, session, batch.clone(), begun))
    });
    let mut events = 0;
    for task in tasks.collect::<Vec<_>>() {
        events += task.await.expect("a session");
    }
    let rate = events as f64 / begun.elapsed().as_secs_f64();
    log.shutdown().await;
    rate
}

async fn appends(writer: LogWriter, session: SessionId, mut batch: Batch, begun: Instant) -> u64 {
    while begun.elapsed() < RUN {
        let append = events::append(&session, SessionState::Working, batch.clone());
        writer.submit(append).await.expect("room");
        batch.first += batch.count;
    }
    batch.first - 1
}
