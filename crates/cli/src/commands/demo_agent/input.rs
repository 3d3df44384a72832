//! What comes in: lines of the client, and what children did. One bounded queue for all.

use std::io::{self, BufRead as _, BufReader};
use std::process::ExitStatus;
use std::sync::mpsc::SyncSender;
use std::thread;

use agentwire_dialects::json::repair;
use serde_json::Value;

/// How many may wait. A client that writes faster than it is served waits with them.
pub(super) const QUEUE: usize = 16;

pub(super) enum Input {
    /// A line of the client.
    Line(Vec<u8>),
    /// The client says no more.
    End,
    /// A command that a tool runs, by its number.
    Command(u64, Happened),
    /// A line of an MCP server, by its number.
    Server(usize, Vec<u8>),
    /// An MCP server says no more.
    ServerEnd(usize),
}

/// What happened to a command.
pub(super) enum Happened {
    Exited(io::Result<ExitStatus>),
    /// One of its two outputs came to its end.
    Closed,
}

/// Reads stdin to its end.
pub(super) fn read_stdin(inbox: SyncSender<Input>) -> io::Result<()> {
    spawn("stdin", move || {
        lines(io::stdin().lock(), |line| inbox.send(Input::Line(line)).is_ok());
        let _ = inbox.send(Input::End);
    })
}

/// Hands over each line of a stream, until it ends or nobody takes them.
pub(super) fn lines(stream: impl io::Read, mut take: impl FnMut(Vec<u8>) -> bool) {
    let mut stream = BufReader::with_capacity(64 << 10, stream);
    loop {
        let mut line = Vec::new();
        match stream.read_until(b'\n', &mut line) {
            Ok(0) => return,
            Ok(_) => {
                if !take(line) {
                    return;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return,
        }
    }
}

pub(super) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// A line of the client, read as Claude's parser would: what strict parsers differ on is mended.
pub(super) fn parse(line: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    let read = serde_json::from_str(text).ok();
    read.or_else(|| serde_json::from_str(&repair(text).ok()?).ok()).ok_or_else(|| {
        let length = text.chars().count();
        format!("Error parsing streaming input line (type=unknown, {length} chars): SyntaxError")
    })
}
