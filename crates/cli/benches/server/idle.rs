//! What an idle server costs: by itself, with 200 sessions, with 1,000 readers (goals 8, 9).

use std::time::Duration;

use crate::place::{Gateway, Server, cpu, memory};

const SESSIONS: u64 = 200;
const READERS: u64 = 1000;

/// How long processor time is measured.
const WATCHED: Duration = Duration::from_secs(10);

pub async fn run() {
    let server = Server::start();
    let pid = server.pid();
    // One request, so that one-time initialization is done.
    server.ask("GET", "/v1/sessions", "").await;
    let empty = memory(pid, "VmRSS");
    let mut sessions = Vec::new();
    for _ in 0..SESSIONS {
        sessions.push(server.session().await);
    }
    let full = memory(pid, "VmRSS");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = cpu(pid);
    tokio::time::sleep(WATCHED).await;
    let idle = (cpu(pid) - before).as_secs_f64() / WATCHED.as_secs_f64() * 100.0;
    let mut readers = Vec::new();
    for number in 0..READERS {
        readers.push(server.reader(&sessions[(number % SESSIONS) as usize]).await);
    }
    let watched = memory(pid, "VmRSS");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let before = cpu(pid);
    tokio::time::sleep(WATCHED).await;
    let busy = (cpu(pid) - before).as_secs_f64() / WATCHED.as_secs_f64() * 100.0;
    println!("An idle server, resident memory of its process:\n");
    println!("| | memory | each | CPU over {} s |", WATCHED.as_secs());
    println!("|---|---|---|---|");
    println!("| no session | {:.1} MB | | |", empty as f64 / 1024.0);
    let each = (full - empty) / SESSIONS;
    println!(
        "| {SESSIONS} idle sessions | {:.1} MB | {each} kB | {idle:.2} % |",
        full as f64 / 1024.0
    );
    let each = (watched.saturating_sub(full)) as f64 / READERS as f64;
    println!(
        "| and {READERS} idle WebSockets | {:.1} MB | {each:.1} kB | {busy:.2} % |",
        watched as f64 / 1024.0
    );
}
