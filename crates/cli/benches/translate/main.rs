//! Translation as a ratio to parsing JSON, in the same run: `cargo bench --bench translate`.
//!
//! For each wire, interleaved rounds over one corpus; the median of each measurement counts. Compared with
//! (a) splitting lines and checking their syntax with serde_json, and (b) the naive way: parse to a
//! `Value`, build another, write it. Next to them, what other JSON libraries need for the parse alone. Then
//! the speed and peak memory of the program over 1 GB. `cargo bench --bench allocations` counts allocations:
//! counting takes time.
//!
//! `AGENTWIRE_BENCH_MB` sets the corpus size (64), `AGENTWIRE_BENCH_ROUNDS` the number of rounds (7),
//! `AGENTWIRE_BENCH_PIPE_MB` the piped input (1024).
#![allow(
    clippy::allow_attributes,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    unreachable_pub,
    reason = "a benchmark, not the product"
)]

mod corpus;
mod writer;

use std::fs;
use std::hint::black_box;
use std::io::{Read, Write};
use std::process::{Command, Stdio};
use std::time::Instant;

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::json::Scanner;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::writer::{Writer, translate};

fn main() {
    let megabytes = setting("AGENTWIRE_BENCH_MB", 64);
    let rounds = setting("AGENTWIRE_BENCH_ROUNDS", 7);
    println!("corpus {megabytes} MB per wire, median of {rounds} interleaved rounds\n");
    println!(
        "| wire | mean line | syntax only | naive | scan | translate | events/s | of syntax | of naive | sonic-rs | simd-json |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for (name, say) in corpus::WIRES {
        let Some(dialect) = agentwire_dialects::agent(name) else { continue };
        let bytes = corpus::recording(*say, 1, megabytes << 20);
        row(name, dialect, &bytes, rounds);
    }
    pipe(setting("AGENTWIRE_BENCH_PIPE_MB", 1024));
}

fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).ok().and_then(|value| value.parse().ok()).unwrap_or(default)
}

type Measure<'a> = Box<dyn FnMut() + 'a>;

fn row(name: &str, dialect: &dyn AgentDialect, bytes: &[u8], rounds: usize) {
    let lines = memchr::memchr_iter(b'\n', bytes).count();
    let mut writer = Writer::default();
    translate(dialect, bytes, &mut writer);
    let events = writer.seq;

    let mut measures: Vec<Measure<'_>> = vec![
        Box::new(|| syntax(bytes)),
        Box::new(|| naive(bytes)),
        Box::new(|| scan(bytes)),
        Box::new(|| translate(dialect, bytes, &mut writer)),
        Box::new(|| sonic(bytes)),
        Box::new(|| simd(bytes)),
    ];
    let mut times = vec![Vec::new(); measures.len()];
    for _ in 0..rounds {
        for (measure, times) in measures.iter_mut().zip(&mut times) {
            let begun = Instant::now();
            measure();
            times.push(begun.elapsed().as_secs_f64());
        }
    }
    let speed: Vec<f64> =
        times.iter_mut().map(|times| bytes.len() as f64 / median(times) / 1e6).collect();
    println!(
        "| {name} | {} B | {:.0} MB/s | {:.0} MB/s | {:.0} MB/s | {:.0} MB/s | {:.2} M | {:.2} × | {:.1} × | {:.0} MB/s | {:.0} MB/s |",
        bytes.len() / lines,
        speed[0],
        speed[1],
        speed[2],
        speed[3],
        events as f64 / (bytes.len() as f64 / speed[3]),
        speed[3] / speed[0],
        speed[3] / speed[1],
        speed[4],
        speed[5],
    );
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn each_line(bytes: &[u8], mut each: impl FnMut(&[u8])) {
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', bytes) {
        each(&bytes[start..end]);
        start = end + 1;
    }
}

fn syntax(bytes: &[u8]) {
    each_line(bytes, |line| {
        black_box(serde_json::from_slice::<IgnoredAny>(line).unwrap());
    });
}

fn naive(bytes: &[u8]) {
    let mut out = Vec::with_capacity(1 << 20);
    let mut seq = 0u64;
    each_line(bytes, |line| {
        seq += 1;
        let value: Value = serde_json::from_slice(line).unwrap();
        let kind =
            value["type"].as_str().or(value["method"].as_str()).unwrap_or("other").to_owned();
        let event = json!({"id": format!("s-{seq}"), "sessionId": "s", "seq": seq, "timestamp": "2026-11-15T18:23:13.272Z", "type": kind, "agentId": "main", "native": [{"dialect": "d", "stream": "stdout", "json": value}]});
        out.clear();
        out.extend_from_slice(serde_json::to_string(&event).unwrap().as_bytes());
        out.push(b'\n');
        black_box(&out);
    });
}

fn scan(bytes: &[u8]) {
    let mut scanner = Scanner::new();
    each_line(bytes, |line| {
        let text = std::str::from_utf8(line).unwrap();
        black_box(scanner.scan(text).unwrap().root());
    });
}

fn sonic(bytes: &[u8]) {
    each_line(bytes, |line| {
        black_box(sonic_rs::from_slice::<sonic_rs::Value>(line).unwrap());
    });
}

fn simd(bytes: &[u8]) {
    let mut copy = Vec::new();
    let mut buffers = simd_json::Buffers::default();
    each_line(bytes, |line| {
        copy.clear();
        copy.extend_from_slice(line);
        black_box(simd_json::to_tape_with_buffers(&mut copy, &mut buffers).unwrap());
    });
}

/// The program over a long pipe: speed and peak memory.
fn pipe(megabytes: usize) {
    let (name, say) = corpus::WIRES[0];
    let mut child = Command::new(env!("CARGO_BIN_EXE_agentwire"))
        .args(["translate", "--from", name])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let block = corpus::recording(say, 2, 16 << 20);
    let begun = Instant::now();
    let writer = std::thread::spawn(move || {
        for _ in 0..megabytes.div_ceil(16) {
            stdin.write_all(&block).unwrap();
        }
    });
    let mut sink = vec![0; 1 << 20];
    let mut out = 0;
    let mut peak = 0;
    loop {
        let read = stdout.read(&mut sink).unwrap();
        if read == 0 {
            break;
        }
        out += read;
        if out / (64 << 20) != (out - read) / (64 << 20) {
            peak = peak.max(peak_memory(child.id()));
        }
    }
    writer.join().unwrap();
    assert!(child.wait().unwrap().success());
    println!(
        "\n`agentwire translate` over {megabytes} MB in a pipe: {:.0} MB/s in, {} MB out, peak resident memory {:.1} MB (limit 64 MB)",
        megabytes as f64 * 1.048_576 / begun.elapsed().as_secs_f64(),
        out >> 20,
        peak as f64 / 1024.0,
    );
}

/// Peak resident memory of a process, in KiB.
fn peak_memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").trim().parse().ok()).unwrap_or(0)
}
