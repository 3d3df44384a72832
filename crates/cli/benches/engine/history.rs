//! A stored session of 100,000 events: pages at its start, middle and end, and the whole session.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use agentwire_protocol::SessionId;
use agentwire_sessions::log::EventLog;
use agentwire_sessions::store::Store;
use agentwire_sessions::store::sqlite::Sqlite;

use crate::events;
use crate::report::{median, micros, time, times};

const EVENTS: u64 = 100_000;
const PAGE: u64 = 50;

/// Where pages start, apart from 0. A cursor reads ahead; only at the end is there nothing ahead.
const MIDDLE: u64 = EVENTS / 2;
const LAST: u64 = EVENTS - PAGE;

/// Pages read per place and round.
const PAGES: usize = 100;

/// Bytes per read of the file.
const READ: usize = 512 << 10;

pub async fn run(rounds: usize) {
    let directory = crate::directory();
    let lines = events::lines(EVENTS as usize);
    let file = directory.path().join("lines");
    std::fs::write(&file, lines.concat()).expect("room");
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(directory.path()).expect("a store"));
    let sizes = [1, 10, 100].map(|size| (size, SessionId::from(format!("batches-of-{size}"))));
    for (size, session) in &sizes {
        events::fill(&store, session, &events::batches(&lines, *size));
    }
    drop(lines);
    let bytes = std::fs::metadata(&file).expect("the file").len();
    let log = EventLog::new(store);
    println!(
        "A stored session of {EVENTS} events, {} MB, each read with a new cursor, compared with a plain file of the same bytes:\n",
        bytes / 1_000_000
    );
    println!(
        "| events per batch | page of {PAGE} at 0 | at {MIDDLE} | at {LAST} | ratios to 0 | all from a file | all from the log | ratio |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for (size, session) in &sizes {
        let mut times_of: [Vec<f64>; 5] = Default::default();
        for _ in 0..rounds {
            let mut pages: [Vec<f64>; 3] = Default::default();
            for _ in 0..PAGES {
                for (page, place) in pages.iter_mut().zip([0, MIDDLE, LAST]) {
                    page.push(read(&log, session, place, PAGE).await);
                }
            }
            let pages = pages.map(median);
            let whole = [plain(file.clone(), bytes).await, read(&log, session, 0, EVENTS).await];
            for (times, time) in times_of.iter_mut().zip(pages.into_iter().chain(whole)) {
                times.push(time);
            }
        }
        let [first, middle, last, plain, all] = times_of.map(median);
        println!(
            "| {size} | {} | {} | {} | {}, {} | {} | {} | {} |",
            time(first),
            time(middle),
            time(last),
            times(middle / first),
            times(last / first),
            time(plain),
            time(all),
            times(all / plain)
        );
    }
    log.shutdown().await;
}

/// Reads `count` events in a separate task and returns the microseconds it took.
async fn read(log: &EventLog, session: &SessionId, after: u64, count: u64) -> f64 {
    let (log, session) = (log.clone(), session.clone());
    let reader = tokio::spawn(async move {
        let begun = Instant::now();
        let mut cursor = log.cursor(&session, after);
        while cursor.position() < after + count {
            let batch = cursor.next().await.expect("the log can be read").expect("the events");
            std::hint::black_box(&batch.lines);
        }
        micros(begun.elapsed())
    });
    reader.await.expect("a reader")
}

/// Reads the file on a blocking thread, as the log does, and returns the microseconds it took.
async fn plain(path: PathBuf, expected: u64) -> f64 {
    let reader = tokio::task::spawn_blocking(move || {
        let begun = Instant::now();
        assert_eq!(drain(&path), expected);
        micros(begun.elapsed())
    });
    reader.await.expect("a reader")
}

fn drain(path: &Path) -> u64 {
    let mut file = File::open(path).expect("the file");
    let mut buffer = vec![0; READ];
    let mut total = 0;
    loop {
        match file.read(&mut buffer).expect("a file that reads") {
            0 => return total,
            count => total += count as u64,
        }
        std::hint::black_box(&buffer);
    }
}
