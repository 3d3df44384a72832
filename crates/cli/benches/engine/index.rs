//! The index of texts and usage: what it costs appends, how fast it is made, and how fast it answers,
//! compared with `grep` over an export of the same sessions.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use agentwire_protocol::{SearchQuery, SessionId, UsageBy, UsageQuery};
use agentwire_sessions::index::{Index, Pace, UsageSpan};
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Batch, Store};

use crate::events;
use crate::report::{median, micros, per_second, time, times};

/// Events of each session.
const EVENTS: usize = 1000;

/// Events in each batch of a session.
const BATCH: usize = 20;

pub async fn run(rounds: usize) {
    appends(rounds).await;
    let sessions = std::env::var("AGENTWIRE_BENCH_SESSIONS").ok();
    search(sessions.and_then(|sessions| sessions.parse().ok()).unwrap_or(1000), rounds);
}

/// The same appends with and without a thread that follows the log.
async fn appends(rounds: usize) {
    println!("Events appended durably, without and with the index, in turn:\n");
    println!("| events per batch | sessions | without | with | ratio |");
    println!("|---|---|---|---|---|");
    for (size, sessions) in [(1, 1), (1, 20), (10, 1), (10, 20)] {
        let lines = events::lines(size);
        let batch = events::batches(&lines, size).remove(0);
        let mut rates: [Vec<f64>; 2] = Default::default();
        for round in 0..rounds * 2 {
            let is_on = round % 2 == 1;
            rates[usize::from(is_on)].push(logged(sessions, &batch, is_on).await);
        }
        let [off, on] = rates.map(median);
        let ratio = times(on / off);
        println!("| {size} | {sessions} | {} | {} | {ratio} |", per_second(off), per_second(on));
    }
}

async fn logged(sessions: u64, batch: &Batch, is_on: bool) -> f64 {
    let directory = crate::directory();
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(directory.path()).expect("a store"));
    let is_over = Arc::new(AtomicBool::new(false));
    let follower = is_on.then(|| {
        let (store, is_over) = (Arc::clone(&store), Arc::clone(&is_over));
        let index = Index::new(Some(directory.path()));
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                let until = Instant::now() + Duration::from_millis(500);
                index.catch_up(&*store, until, Pace::Gentle).expect("the index follows");
                thread::park_timeout(Duration::from_millis(100));
            }
        })
    });
    let rate = crate::append::logged_in(store, sessions, batch).await;
    is_over.store(true, Ordering::Relaxed);
    if let Some(follower) = follower {
        follower.join().expect("the follower ends");
    }
    rate
}

fn search(sessions: usize, rounds: usize) {
    let directory = crate::directory();
    let store: Arc<dyn Store> = Arc::new(Sqlite::open(directory.path()).expect("a store"));
    let lines = events::lines(EVENTS);
    let export = directory.path().join("export.jsonl");
    let mut file = BufWriter::new(File::create(&export).expect("room"));
    for number in 0..sessions {
        let session = SessionId::from(format!("{number:08}-0000-4000-8000-000000000000"));
        let mut lines = lines.clone();
        if number == sessions / 2 {
            lines[EVENTS / 2] = needle(EVENTS / 2 + 1);
        }
        file.write_all(&lines.concat()).expect("room");
        events::fill(&store, &session, &events::batches(&lines, BATCH));
    }
    file.flush().expect("room");
    drop(file);
    let index = Index::new(Some(directory.path()));
    let begun = Instant::now();
    let far = begun + Duration::from_secs(3600);
    assert!(index.catch_up(&*store, far, Pace::Full).expect("the index"), "all is read");
    let made = begun.elapsed();
    let count = (sessions * EVENTS) as f64;
    println!(
        "\n{sessions} sessions of {EVENTS} events: export {} MB, log {} MB, index {} MB, made in {:.1} s ({}).\n",
        size(&export),
        size(&directory.path().join("agentwire.db")),
        size(&directory.path().join("index.db")),
        made.as_secs_f64(),
        per_second(count / made.as_secs_f64()),
    );
    println!("| question | index | with a look for new events | grep over the export | ratio |");
    println!("|---|---|---|---|---|");
    for (name, word) in [("a word in one event", "xylophonist"), ("a word in most sessions", "the")]
    {
        let mut figures: [Vec<f64>; 3] = Default::default();
        for _ in 0..rounds {
            figures[0].push(timed(|| assert!(!find(&index, word).is_empty())));
            figures[1].push(timed(|| {
                index
                    .catch_up(&*store, Instant::now() + far_off(), Pace::Full)
                    .expect("nothing new");
                find(&index, word);
            }));
            figures[2].push(timed(|| grep(&export, word)));
        }
        let [search, fresh, grep] = figures.map(median);
        let ratio = times(grep / fresh);
        println!("| {name} | {} | {} | {} | {ratio} |", time(search), time(fresh), time(grep));
    }
    let span = UsageSpan::new(&UsageQuery { by: Some(UsageBy::Model), ..UsageQuery::default() });
    let span = span.expect("a question");
    let usage = (0..rounds)
        .map(|_| timed(|| drop(index.usage(&span, &Default::default()).expect("the usage"))));
    println!("\nUsage of all turns by model: {}.", time(median(usage.collect())));
}

fn far_off() -> Duration {
    Duration::from_secs(600)
}

fn find(index: &Index, word: &str) -> Vec<u64> {
    let query = SearchQuery { q: word.to_owned(), ..SearchQuery::default() };
    let found = index.search(&query).expect("an answer");
    found.hits.into_iter().map(|hit| hit.seq).collect()
}

/// All lines with the word.
fn grep(export: &Path, word: &str) {
    let output = Command::new("grep").args(["-i", "-w", word]).arg(export).output();
    assert!(!output.expect("grep").stdout.is_empty(), "grep finds {word}");
}

fn timed(work: impl FnOnce()) -> f64 {
    let begun = Instant::now();
    work();
    micros(begun.elapsed())
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).map_or(0, |file| file.len()) / 1_000_000
}

fn needle(seq: usize) -> Vec<u8> {
    let line = format!(
        r#"{{"id":"n","sessionId":"s","seq":{seq},"timestamp":"2026-11-15T18:23:13.272Z","type":"textChunk","content":"a xylophonist","isComplete":true,"agentId":"main"}}"#
    );
    format!("{line}\n").into_bytes()
}
