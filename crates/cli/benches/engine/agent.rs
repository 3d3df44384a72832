//! A benchmark agent that only prints turns in Claude's format. Each line is marked with its number and the
//! time it was written. The agent is this same program, started with [`VERB`].
//!
//! The prompt `emit TURNS RATE PHASE` asks for TURNS turns at RATE lines per second (0: as fast as the pipe
//! allows), starting PHASE microseconds later.

use std::io::{self, BufRead as _, Write};

use memchr::memmem;
use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};
use serde_json::{Value, json};

/// The argument that makes this program the agent.
pub const VERB: &str = "emit";

/// Lines per turn.
pub const TURN: u64 = 24;

/// The start of a mark. No unified field carries it, so it appears in the log exactly once per line.
const MARK: &[u8] = b"{\"mark\":\"";

/// Digits of a line's number and of its time.
const NUMBER: usize = 10;
const TIME: usize = 20;

/// Length of a whole mark.
pub const WHOLE: usize = MARK.len() + NUMBER + 1 + TIME;

/// Placeholder for the turn number in values that must differ between turns.
const PLACE: &str = "@@@@@@@@";

const SESSION: &str = "e76dfe97-b723-463d-bcb8-554ac59228c9";

/// Bytes per write at full speed.
const BLOCK: usize = 64 << 10;

/// The first line to send to the agent when driving it by hand, and below it the line that orders output.
pub fn greeting() -> String {
    json!({"type":"control_request","request_id":"1","request":{"subtype":"initialize"}})
        .to_string()
}

pub fn order(turns: u64, rate: u64, phase: u64) -> String {
    format!("{VERB} {turns} {rate} {phase}")
}

pub fn ordering(order: &str) -> String {
    json!({"type":"user","message":{"role":"user","content":order}}).to_string()
}

/// Nanoseconds on a clock that all processes share.
pub fn now() -> u64 {
    nanoseconds(clock_gettime(ClockId::Monotonic))
}

pub fn nanoseconds(time: Timespec) -> u64 {
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Yields the number and time of each mark.
pub fn marks<'a>(
    finder: &'a memmem::Finder<'_>,
    bytes: &'a [u8],
) -> impl Iterator<Item = (u64, u64)> + 'a {
    finder.find_iter(bytes).filter_map(|at| mark(&bytes[at..]))
}

/// Parses the mark at the start of these bytes; `None` if it is cut off.
pub fn mark(bytes: &[u8]) -> Option<(u64, u64)> {
    let (number, rest) = bytes.get(MARK.len()..WHOLE)?.split_at(NUMBER);
    Some((value(number), value(&rest[1..])))
}

pub fn finder() -> memmem::Finder<'static> {
    memmem::Finder::new(MARK)
}

fn value(digits: &[u8]) -> u64 {
    digits.iter().fold(0, |value, digit| value * 10 + u64::from(digit - b'0'))
}

fn write_digits(slot: &mut [u8], mut value: u64) {
    for digit in slot.iter_mut().rev() {
        *digit = b'0' + (value % 10) as u8;
        value /= 10;
    }
}

/// Serves stdin until it ends.
pub fn run() -> io::Result<()> {
    let mut lines = lines();
    let mut stdout = io::stdout().lock();
    for told in io::stdin().lock().lines() {
        let told: Value = serde_json::from_str(&told?)?;
        if told["request"]["subtype"] == "initialize" {
            let response = json!({"subtype":"success","request_id":told["request_id"],"response":{"commands":[],"models":[]}});
            writeln!(stdout, "{}", json!({"type":"control_response","response":response}))?;
            stdout.flush()?;
        } else if let Some(order) = told["message"]["content"].as_str() {
            let mut numbers = order.split(' ').skip(1).map_while(|word| word.parse().ok());
            let mut number = || numbers.next().unwrap_or(0);
            emit(&mut lines, number(), number(), number(), &mut stdout)?;
        }
    }
    Ok(())
}

fn emit(
    lines: &mut [Line],
    turns: u64,
    rate: u64,
    phase: u64,
    out: &mut impl Write,
) -> io::Result<()> {
    let begun = now() + phase * 1000;
    let mut block = Vec::with_capacity(2 * BLOCK);
    for turn in 0..turns {
        for (at, line) in (0..).zip(&mut *lines) {
            let number = turn * TURN + at;
            if let Some(after) = (number * 1_000_000_000).checked_div(rate) {
                wait_until(begun + after);
            }
            block.extend_from_slice(line.fill(turn, number, now()));
            if rate > 0 || block.len() > BLOCK {
                out.write_all(&block)?;
                out.flush()?;
                block.clear();
            }
        }
    }
    out.write_all(&block)?;
    out.flush()
}

/// Sleeps until this time on the clock of [`now`].
pub fn wait_until(time: u64) {
    let time =
        Timespec { tv_sec: (time / 1_000_000_000) as i64, tv_nsec: (time % 1_000_000_000) as i64 };
    while clock_nanosleep_absolute(ClockId::Monotonic, &time).is_err() {}
}

/// The printed lines of one turn, for benchmarks that need no process.
pub fn turn(number: u64) -> Vec<u8> {
    let lines = lines();
    let numbered = (number * TURN..).zip(lines);
    numbered.flat_map(|(at, mut line)| line.fill(number, at, 0).to_vec()).collect()
}

/// A line with placeholders for the mark and the turn number.
struct Line {
    bytes: Vec<u8>,
    turns: Vec<usize>,
}

impl Line {
    fn new(value: &Value) -> Self {
        let text = value.to_string();
        let mut bytes = MARK.to_vec();
        bytes.extend_from_slice(&[b'0'; NUMBER]);
        bytes.push(b' ');
        bytes.extend_from_slice(&[b'0'; TIME]);
        bytes.extend_from_slice(b"\",");
        bytes.extend_from_slice(&text.as_bytes()[1..]);
        bytes.push(b'\n');
        let turns = memmem::find_iter(&bytes, PLACE).collect();
        Self { bytes, turns }
    }

    fn fill(&mut self, turn: u64, number: u64, time: u64) -> &[u8] {
        for at in &self.turns {
            write_digits(&mut self.bytes[*at..][..PLACE.len()], turn);
        }
        let mark = &mut self.bytes[MARK.len()..];
        write_digits(&mut mark[..NUMBER], number);
        write_digits(&mut mark[NUMBER + 1..][..TIME], time);
        &self.bytes
    }
}

/// The lines of a turn: text deltas, the whole text, three tool calls with their results.
fn lines() -> Vec<Line> {
    let usage = json!({"input_tokens":100,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1,"service_tier":"standard"});
    let message = format!("msg_{PLACE}");
    let uuid = |line: usize| format!("b8b8492b-6804-46c5-{line:04x}-0000{PLACE}");
    let mut values = Vec::new();
    values.push(json!({"type":"system","subtype":"init","cwd":"/workspace","session_id":SESSION,"tools":["Bash","Edit","Read"],"mcp_servers":[],"model":"claude-opus-5-5","permissionMode":"default","uuid":uuid(0)}));
    let event = |event: Value, line: usize| json!({"type":"stream_event","event":event,"session_id":SESSION,"parent_tool_use_id":null,"uuid":uuid(line)});
    values.push(event(json!({"type":"message_start","message":{"id":message,"type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"usage":usage}}), 1));
    values.push(event(
        json!({"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}),
        2,
    ));
    let pieces = ["The function ", "`parse` should ", "keep its \"path\", ", "so we move it. "];
    for at in 0..12 {
        let piece = pieces[at % pieces.len()];
        values.push(event(json!({"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":piece}}), at + 3));
    }
    let block = |block: Value, line: usize| json!({"type":"assistant","message":{"id":message,"type":"message","role":"assistant","model":"claude-opus-5-5","content":[block],"stop_reason":null,"stop_sequence":null,"usage":usage},"parent_tool_use_id":null,"session_id":SESSION,"uuid":uuid(line),"timestamp":"2026-11-15T18:23:13.272Z"});
    values.push(block(json!({"type":"text","text":pieces.concat().repeat(3)}), 20));
    values.push(event(json!({"type":"content_block_stop","index":0}), 21));
    for (at, rows) in [8, 33, 90].into_iter().enumerate() {
        let id = format!("toolu_{PLACE}_{at}");
        values.push(block(json!({"type":"tool_use","id":id,"name":"Bash","input":{"command":"cargo test --package parse","description":"Run it"}}), 22 + at));
        let output =
            "   1234  -rw-r--r--  1 user user  5120 Nov 15 18:23 \"src/lib.rs\"\n".repeat(rows);
        values.push(json!({"type":"user","message":{"role":"user","content":[{"tool_use_id":id,"type":"tool_result","content":output,"is_error":false}]},"parent_tool_use_id":null,"session_id":SESSION,"uuid":uuid(30 + at),"timestamp":"2026-11-15T18:23:13.419Z"}));
    }
    values.push(json!({"type":"result","subtype":"success","is_error":false,"duration_ms":900,"num_turns":2,"result":"Done.","stop_reason":"end_turn","session_id":SESSION,"total_cost_usd":0.002012,"usage":{"input_tokens":200,"cache_creation_input_tokens":40,"cache_read_input_tokens":60,"output_tokens":50},"permission_denials":[],"uuid":uuid(40)}));
    assert_eq!(values.len() as u64, TURN);
    values.iter().map(Line::new).collect()
}
