//! What a front costs: one round trip through `agentwire claude` compared with the bare agent, in the same
//! run.
//!
//! `cargo bench -p agentwire --bench fronts`
#![expect(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and panics on the unexpected"
)]

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// Rounds of each, alternating.
const ROUNDS: usize = 7;

/// Round trips per round.
const TRIPS: usize = 100;

/// The arguments with which an SDK starts the program.
const STREAM: [&str; 5] =
    ["--output-format", "stream-json", "--verbose", "--input-format", "stream-json"];

fn main() {
    // `cargo test --benches` only checks that it starts.
    if !std::env::args().any(|word| word == "--bench") {
        return;
    }
    let place = tempfile::tempdir().expect("a directory");
    let mut bare = Talk::start(place.path(), &["demo-agent"]);
    let mut through = Talk::start(place.path(), &["claude"]);
    let (mut bare_times, mut through_times) = (Vec::new(), Vec::new());
    // The first trips warm everything up.
    bare.round();
    through.round();
    for _ in 0..ROUNDS {
        bare_times.push(bare.round());
        through_times.push(through.round());
    }
    let (bare, through) = (median(bare_times), median(through_times));
    println!("one prompt to its result, median of {ROUNDS} rounds of {TRIPS} (medians)\n");
    println!("| what | time | ratio |\n|---|---|---|");
    println!("| the demo agent itself | {:.0} µs | 1 |", micros(bare));
    let ratio = through.as_secs_f64() / bare.as_secs_f64();
    println!("| through `agentwire claude`, durable | {:.0} µs | {ratio:.2} |", micros(through));
    println!("| of which added | {:.0} µs | |", micros(through.saturating_sub(bare)));
    let one_sync = sync(place.path());
    println!("| one append and fdatasync here | {:.0} µs | |", micros(one_sync));
}

struct Talk {
    child: Child,
    stdin: ChildStdin,
    lines: BufReader<ChildStdout>,
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Talk {
    fn start(place: &Path, verb: &[&str]) -> Self {
        // Not next to the log, which agentwire keeps agents out of.
        let work = place.join("work");
        std::fs::create_dir_all(&work).expect("a directory");
        let mut child = Command::new(env!("CARGO_BIN_EXE_agentwire"))
            .args(verb)
            .args(STREAM)
            .current_dir(work)
            .env_clear()
            .env("AGENTWIRE_AGENT", "demo")
            .env("AGENTWIRE_DATA_DIR", place.join("data"))
            .env("HOME", place)
            .env("PATH", "/usr/bin:/bin")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let stdin = child.stdin.take().expect("stdin");
        let lines = BufReader::new(child.stdout.take().expect("stdout"));
        Self { child, stdin, lines }
    }

    fn round(&mut self) -> Duration {
        median((0..TRIPS).map(|_| self.trip()).collect())
    }

    fn trip(&mut self) -> Duration {
        let begun = Instant::now();
        let prompt = br#"{"type":"user","message":{"role":"user","content":"/say hi"}}"#;
        self.stdin.write_all(prompt).expect("it reads");
        self.stdin.write_all(b"\n").expect("it reads");
        let mut line = String::new();
        while !line.contains("\"type\":\"result\"") {
            line.clear();
            assert!(self.lines.read_line(&mut line).expect("UTF-8") > 0, "it ended");
        }
        begun.elapsed()
    }
}

/// What one durable write costs here.
fn sync(place: &Path) -> Duration {
    let mut file = std::fs::File::create(place.join("sync")).expect("a file");
    let times = (0..TRIPS).map(|_| {
        let begun = Instant::now();
        file.write_all(&[b'x'; 4096]).expect("room");
        file.sync_data().expect("a disk");
        begun.elapsed()
    });
    median(times.collect())
}

fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}
