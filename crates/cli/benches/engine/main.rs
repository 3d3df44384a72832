//! The engine as a ratio to simple alternatives, measured in the same run: `cargo bench -p agentwire
//! --bench engine`.
//!
//! The engine runs as a library in this process. Its keepers are the built program; its agents are this
//! program, started again (`agent.rs`). Next to each figure is a yardstick that was measured in the same
//! interleaved rounds: a copy of the pipe, a relay that stores nothing, SQLite with one row per event, a
//! file with `fdatasync`.
//!
//! `-- PART…` selects parts (flow latency append history index start growth memory
//! scale). `AGENTWIRE_BENCH_ROUNDS`
//! sets the number of rounds (5). `AGENTWIRE_BENCH_DIR` sets where logs are written, which must be a real
//! disk (default: the target directory).
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a benchmark, not the product"
)]

mod agent;
mod append;
mod events;
mod flow;
mod gateway;
mod growth;
mod history;
mod index;
mod latency;
mod memory;
mod report;
mod scale;
mod start;
mod yardsticks;

use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::{Command, ExitCode};
use std::time::Instant;

use rustix::process::{
    Resource, Rlimit, Signal, getrlimit, set_parent_process_death_signal, setrlimit,
};
use tempfile::TempDir;

/// The argument that makes this program one part. Each part has its own process, so that it does not start
/// with memory left by another.
const PART: &str = "part";

type Part = fn(usize) -> Pin<Box<dyn Future<Output = ()>>>;

const PARTS: &[(&str, Part)] = &[
    ("flow", |rounds| Box::pin(flow::run(rounds))),
    ("latency", |rounds| Box::pin(latency::run(rounds))),
    ("append", |rounds| Box::pin(append::run(rounds))),
    ("history", |rounds| Box::pin(history::run(rounds))),
    ("index", |rounds| Box::pin(index::run(rounds))),
    ("start", |rounds| Box::pin(start::run(rounds))),
    ("growth", |rounds| Box::pin(growth::run(rounds))),
    ("memory", |rounds| Box::pin(memory::run(rounds))),
    ("scale", |rounds| Box::pin(scale::run(rounds))),
];

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.first().map(String::as_str) {
        Some(agent::VERB) => {
            // The reader is gone: there is nobody to report an error to.
            let _ = agent::run();
            ExitCode::SUCCESS
        }
        Some(PART) => {
            part(&args[1]);
            ExitCode::SUCCESS
        }
        _ => all(&args),
    }
}

fn part(name: &str) {
    // If the parent is killed, this process and its agents end too.
    let _ = set_parent_process_death_signal(Some(Signal::TERM));
    // Hundreds of sessions need thousands of pipes.
    let most = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
    let (_, run) = PARTS.iter().find(|(part, _)| *part == name).expect("a part of that name");
    let rounds = std::env::var("AGENTWIRE_BENCH_ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    runtime.block_on(run(rounds));
}

fn all(wanted: &[String]) -> ExitCode {
    if let Some(unknown) = wanted.iter().find(|name| !PARTS.iter().any(|(part, _)| part == name)) {
        let names: Vec<_> = PARTS.iter().map(|(part, _)| *part).collect();
        eprintln!("unknown part {unknown}; parts are {}", names.join(" "));
        return ExitCode::from(2);
    }
    let own = std::env::current_exe().expect("this program");
    let begun = Instant::now();
    println!("{}, load {}", machine(), load());
    let mut failed = false;
    for (name, _) in PARTS {
        if wanted.is_empty() || wanted.iter().any(|part| part == name) {
            println!();
            let status = Command::new(&own).args([PART, name]).status();
            failed |= !status.is_ok_and(|status| status.success());
        }
    }
    println!("\n{:.0} s in all, load {}", begun.elapsed().as_secs_f64(), load());
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// A directory for one log on the measured disk, removed on drop.
pub fn directory() -> TempDir {
    tempfile::Builder::new().prefix("engine-").tempdir_in(disk()).expect("a directory")
}

fn disk() -> PathBuf {
    std::env::var_os("AGENTWIRE_BENCH_DIR")
        .map_or_else(|| PathBuf::from(env!("CARGO_TARGET_TMPDIR")), PathBuf::from)
}

fn machine() -> String {
    const TMPFS: u64 = 0x0102_1994;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kind = rustix::fs::statfs(disk()).map_or(0, |found| found.f_type as u64);
    let warning = if kind == TMPFS { " (memory: nothing here is durable)" } else { "" };
    format!("{cores} cores, logs in {}{warning}", disk().display())
}

fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(2).collect::<Vec<_>>().join(" ")
}
