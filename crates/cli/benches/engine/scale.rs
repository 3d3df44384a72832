//! Whether what is stored makes anything slower: 10 million events in one session, then 100,000 sessions in
//! one store. `AGENTWIRE_BENCH_EVENTS` and `AGENTWIRE_BENCH_SESSIONS` choose other numbers.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use agentwire_protocol::SessionId;
use agentwire_sessions::Hub;
use agentwire_sessions::store::sqlite::Sqlite;
use agentwire_sessions::store::{Batch, Filter, Store};

use crate::events;
use crate::gateway::settings;
use crate::report::{median, micros, per_second, time, times};

const EVENTS: u64 = 10_000_000;
const SESSIONS: u64 = 100_000;

/// Measurements are taken after each of these many equal steps.
const STEPS: u64 = 5;

/// Events per batch, and batches per transaction.
const BATCH: usize = 100;
const GROUP: usize = 20;

/// Reads timed per measurement, and the length of a list.
const TIMES: u64 = 50;
const PAGE: usize = 50;

pub async fn run(_rounds: usize) {
    let lines = events::lines(BATCH * GROUP);
    let batches = events::batches(&lines, BATCH);
    one_session(&batches, number("AGENTWIRE_BENCH_EVENTS", EVENTS));
    println!();
    many_sessions(&batches, number("AGENTWIRE_BENCH_SESSIONS", SESSIONS)).await;
}

fn number(variable: &str, usual: u64) -> u64 {
    std::env::var(variable).ok().and_then(|number| number.parse().ok()).unwrap_or(usual)
}

fn one_session(batches: &[Batch], events: u64) {
    let directory = crate::directory();
    let store = open(directory.path());
    let session = SessionId::from("one");
    println!(
        "One session that grows to {events} events, appended durably in batches of {BATCH}:\n"
    );
    println!(
        "| events | appended | of the first step | page at 0 | at the middle | at the end | on disk |"
    );
    println!("|---|---|---|---|---|---|---|");
    let (mut last, mut first_rate) = (0, 0.0);
    for step in 1..=STEPS {
        let (begun, before) = (Instant::now(), last);
        while last < events * step / STEPS {
            let group: Vec<_> = batches
                .iter()
                .map(|batch| {
                    let batch = Batch { first: last + 1, ..batch.clone() };
                    last = batch.last();
                    events::append(&session, agentwire_protocol::SessionState::Working, batch)
                })
                .collect();
            store.append(&group.iter().collect::<Vec<_>>()).expect("room");
        }
        let rate = (last - before) as f64 / begun.elapsed().as_secs_f64();
        if step == 1 {
            first_rate = rate;
        }
        let [start, middle, end] = [0, last / 2, last - PAGE as u64].map(|after| {
            median((0..TIMES).map(|_| timed(|| store.read(&session, after, 1).map(drop))).collect())
        });
        println!(
            "| {last} | {} | {} | {} | {} | {} | {} MB |",
            per_second(rate),
            times(rate / first_rate),
            time(start),
            time(middle),
            time(end),
            store.size().expect("a size").unwrap_or(0) / 1_000_000
        );
    }
}

async fn many_sessions(batches: &[Batch], sessions: u64) {
    let directory = crate::directory();
    println!("A store that grows to {sessions} sessions of {BATCH} events:\n");
    println!(
        "| sessions | appended | of the first step | list of {PAGE}, newest | oldest | live ones | find one | the engine opens |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    let (mut done, mut first_rate) = (0, 0.0);
    for step in 1..=STEPS {
        let store = open(directory.path());
        let (begun, before) = (Instant::now(), done);
        while done < sessions * step / STEPS {
            let group: Vec<_> = (done..done + GROUP as u64)
                .zip(batches)
                .map(|(number, batch)| {
                    let batch = Batch { first: 1, ..batch.clone() };
                    events::append(&id(number), agentwire_protocol::SessionState::Ended, batch)
                })
                .collect();
            done += group.len() as u64;
            store.append(&group.iter().collect::<Vec<_>>()).expect("room");
        }
        let rate = ((done - before) * BATCH as u64) as f64 / begun.elapsed().as_secs_f64();
        if step == 1 {
            first_rate = rate;
        }
        let list = |filter: &Filter| {
            let one = || timed(|| store.sessions(filter).map(drop));
            time(median((0..TIMES).map(|_| one()).collect()))
        };
        let newest = Filter { limit: Some(PAGE), ..Filter::default() };
        let oldest = Filter { before: Some(id(PAGE as u64)), ..newest.clone() };
        let live = Filter { live: true, ..newest.clone() };
        let (newest, oldest, live) = (list(&newest), list(&oldest), list(&live));
        let found = |at: u64| timed(|| store.session(&id(at * done / TIMES)).map(drop));
        let found = median((0..TIMES).map(found).collect());
        drop(store);
        let mut opened = Vec::new();
        for _ in 0..9 {
            let begun = Instant::now();
            let hub = Hub::open(settings(directory.path())).await.expect("a hub");
            opened.push(micros(begun.elapsed()));
            hub.shutdown().await;
        }
        println!(
            "| {done} | {} | {} | {newest} | {oldest} | {live} | {} | {} |",
            per_second(rate),
            times(rate / first_rate),
            time(found),
            time(median(opened)),
        );
    }
}

fn id(number: u64) -> SessionId {
    SessionId::from(format!("session-{number}"))
}

fn open(directory: &Path) -> Arc<dyn Store> {
    Arc::new(Sqlite::open(&settings(directory).data_dir).expect("a store"))
}

fn timed<E: std::fmt::Debug>(read: impl FnOnce() -> Result<(), E>) -> f64 {
    let begun = Instant::now();
    read().expect("the store can be read");
    micros(begun.elapsed())
}
