//! Input: lines from the client, and events of child processes, in one bounded queue.

use std::io::{self, BufRead as _, BufReader};
use std::process::ExitStatus;
use std::sync::mpsc::SyncSender;
use std::thread;

use agentwire_dialects::json::repair;
use serde_json::Value;

/// Length of the queue. A client that writes faster than it is served has to wait.
pub(super) const QUEUE: usize = 16;

pub(super) enum Input {
    /// A line from the client.
    Line(Vec<u8>),
    /// The end of the client's input.
    End,
    /// An event of a tool's command, with its number.
    Command(u64, CommandEvent),
    /// A line from an MCP server, with its number.
    Server(usize, Vec<u8>),
    /// The end of an MCP server's output.
    ServerEnd(usize),
}

pub(super) enum CommandEvent {
    Exited(io::Result<ExitStatus>),
    /// One of its two outputs ended.
    Closed,
}

pub(super) fn read_stdin(inbox: SyncSender<Input>) -> io::Result<()> {
    spawn("stdin", move || {
        lines(io::stdin().lock(), |line| inbox.send(Input::Line(line)).is_ok());
        let _ = inbox.send(Input::End);
    })
}

/// Sends each line of a stream, until it ends or the receiver is gone.
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

/// Parses a line from the client as Claude's parser does, which accepts some invalid JSON.
pub(super) fn parse(line: &[u8]) -> Result<Value, String> {
    let text = String::from_utf8_lossy(line);
    let text = text.trim();
    let read = serde_json::from_str(text).ok();
    read.or_else(|| serde_json::from_str(&repair(text).ok()?).ok()).ok_or_else(|| {
        let length = text.chars().count();
        format!("Error parsing streaming input line (type=unknown, {length} chars): SyntaxError")
    })
}
