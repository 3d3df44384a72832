//! A client that does not read while its agent prints more than any pipe holds.

use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::every_front::program::start_quiet;
use crate::recording::DEMO;
use crate::shared::{Ended, PATIENCE, Program};
use crate::speaker::front;

/// How often another process checks whether the agent is done.
const PAUSE: Duration = Duration::from_millis(200);

const WORDS: usize = 200_000;

/// Far less than the output, which is some hundred MB on the wire.
const MEMORY_KIB: u64 = 300 << 10;

/// Sends these frames, reads nothing until the agent is done, then everything. `words` returns a frame's
/// part of the agent's text; `is_last` finds the last frame to read.
fn flood(
    name: &str,
    frames: &[Value],
    words: impl Fn(&Value) -> Option<&str>,
    is_last: impl Fn(&Value) -> bool,
) {
    let mut program = start_quiet(front(name).args, DEMO);
    for frame in frames {
        program.say(frame);
    }
    let begun = Instant::now();
    while !is_done(&program) {
        assert!(begun.elapsed() < 3 * PATIENCE, "the agent is held up by the client");
        std::thread::park_timeout(PAUSE);
    }
    let peak = memory(program.pid());
    assert!(peak < MEMORY_KIB, "{peak} KiB for a client that does not read");
    program.listen();
    let mut count = 0;
    loop {
        let line = program.line().expect("the rest of the flood");
        let frame: Value = serde_json::from_str(&line).expect("a line is JSON");
        let text = words(&frame).unwrap_or_default();
        assert!(text.len().is_multiple_of("word ".len()), "cut: {line}");
        count += text.matches("word ").count();
        if is_last(&frame) {
            break;
        }
    }
    assert_eq!(count, WORDS);
    let peak = memory(program.pid());
    assert!(peak < MEMORY_KIB, "{peak} KiB");
    program.hang_up();
    while program.line().is_some() {}
    assert_eq!(program.end_alone(), Ended { code: Some(0), stderr: String::new() });
}

/// Asks another process whether the log contains the end of the turn.
fn is_done(program: &Program) -> bool {
    let listed = Command::new(env!("CARGO_BIN_EXE_agentwire"))
        .args(["ls", "--json"])
        .env("AGENTWIRE_DATA_DIR", program.home().data())
        .output()
        .expect("the list of sessions");
    let listed: Value = serde_json::from_slice(&listed.stdout).expect("JSON");
    let session = &listed["sessions"][0];
    session["state"] == "idle" && session["turns"] == 1
}

/// Peak memory in KiB.
fn memory(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("it runs");
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a peak");
    peak.trim().trim_end_matches(" kB").parse().expect("a number")
}

fn prompt() -> String {
    format!("/repeat {WORDS} word ")
}

#[test]
fn unified() {
    let start = json!({ "id": 1, "command": "start", "agentType": "demo", "prompt": prompt() });
    flood(
        "unified",
        &[start],
        |frame| frame["content"].as_str().filter(|_| frame["type"] == "textChunk"),
        |frame| frame["type"] == "turnCompleted",
    );
}

#[test]
fn claude() {
    let user = json!({ "type": "user", "message": { "role": "user", "content": prompt() } });
    flood(
        "claude",
        &[user],
        |frame| frame["event"]["delta"]["text"].as_str(),
        |frame| frame["type"] == "result",
    );
}

#[test]
fn backend() {
    let payload = json!({ "prompt": prompt(), "options": { "include_partial_messages": true } });
    let create = json!({ "type": "session.create", "id": "c", "payload": payload });
    flood(
        "backend",
        &[create],
        |frame| frame["payload"]["event"]["delta"]["text"].as_str(),
        |frame| frame["payload"]["type"] == "result",
    );
}

#[test]
fn rpc() {
    let params = json!({ "agent": "demo", "prompt": prompt(),
        "options": { "includePartialMessages": true } });
    let run = json!({ "jsonrpc": "2.0", "id": 1, "method": "run", "params": params });
    flood(
        "rpc",
        &[run],
        |frame| frame["params"]["message"]["event"]["delta"]["text"].as_str(),
        |frame| frame["id"] == 1,
    );
}
