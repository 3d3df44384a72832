//! The server over real sockets, as a ratio to a bare relay in the same run: `cargo bench -p agentwire
//! --bench server`.
//!
//! The server is the built program with its own log on disk. Its agents are this program, started again
//! (`agent.rs`). `rawrelay`, also this program, runs next to it: it starts the same agent, splits its lines
//! and pushes each unparsed to WebSockets, and stores nothing. Both have the same readers.
//!
//! `-- PART…` selects parts (flow latency stalled replay idle start client). `AGENTWIRE_BENCH_ROUNDS` sets
//! the number of rounds (5). `AGENTWIRE_BENCH_DIR` sets where logs are written, which must be a real disk
//! (default: the target directory). `AGENTWIRE_BENCH_OTHER` is another build of `agentwire` to measure in the
//! same rounds. With `AGENTWIRE_TEST_SDKS=1` the official TypeScript SDK, which it downloads, is one more
//! yardstick.
#![allow(
    dead_code,
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    clippy::result_large_err,
    unreachable_pub,
    reason = "a benchmark, not the product"
)]

#[path = "../engine/agent.rs"]
mod agent;
#[path = "../../tests/sdks/child.rs"]
mod child;
mod client;
mod flow;
mod idle;
#[path = "../../tests/sdks/install.rs"]
mod install;
mod latency;
mod place;
mod rawrelay;
mod reader;
mod replay;
#[path = "../engine/report.rs"]
mod report;
mod sdk;
#[expect(unused_imports, reason = "the benchmark uses a part of it")]
#[path = "../../tests/shared/mod.rs"]
mod shared;
mod stalled;
mod start;

use std::pin::Pin;
use std::process::ExitCode;
use std::time::Instant;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

type Part = fn(usize) -> Pin<Box<dyn Future<Output = ()>>>;

const PARTS: &[(&str, Part)] = &[
    ("flow", |rounds| Box::pin(flow::run(rounds))),
    ("latency", |rounds| Box::pin(latency::run(rounds))),
    ("stalled", |rounds| Box::pin(stalled::run(rounds))),
    ("replay", |rounds| Box::pin(replay::run(rounds))),
    ("idle", |_| Box::pin(idle::run())),
    ("start", |rounds| Box::pin(start::run(rounds))),
    ("client", |rounds| Box::pin(client::run(rounds))),
];

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    // A thousand readers need a thousand sockets.
    let most = getrlimit(Resource::Nofile).maximum;
    let _ = setrlimit(Resource::Nofile, Rlimit { current: most, maximum: most });
    match args.first().map(String::as_str) {
        Some(agent::VERB) => {
            // The reader is gone: there is nobody to report an error to.
            let _ = agent::run();
            return ExitCode::SUCCESS;
        }
        Some(rawrelay::VERB) => {
            runtime().block_on(rawrelay::run());
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    if let Some(unknown) = args.iter().find(|name| !PARTS.iter().any(|(part, _)| part == name)) {
        let names: Vec<_> = PARTS.iter().map(|(part, _)| *part).collect();
        eprintln!("unknown part {unknown}; parts are {}", names.join(" "));
        return ExitCode::from(2);
    }
    let rounds = std::env::var("AGENTWIRE_BENCH_ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(5);
    let begun = Instant::now();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("{cores} cores, load {}", load());
    for (name, part) in PARTS {
        if args.is_empty() || args.iter().any(|arg| arg == name) {
            println!();
            runtime().block_on(part(rounds));
        }
    }
    println!("\n{:.0} s in all, load {}", begun.elapsed().as_secs_f64(), load());
    ExitCode::SUCCESS
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime")
}

fn load() -> String {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ').take(2).collect::<Vec<_>>().join(" ")
}
