//! What an agent writes on stderr: kept as events, within bounds, and its last words for whoever asks
//! why it ended.

use std::borrow::Cow;

use agentwire_dialects::tape::{Agent, Draft};
use agentwire_protocol::event::Other;
use agentwire_protocol::{Native, NativeLine, Stream, Text};

/// The longest piece of a line that is one event.
const LINE_LIMIT: usize = 16 << 10;

/// How much of one process is kept.
const KEPT_LIMIT: usize = 1 << 20;

/// How much of the end is remembered.
const TAIL_LIMIT: usize = 2 << 10;

/// One process's stderr.
#[derive(Debug, Default)]
pub(super) struct Stderr {
    partial: Vec<u8>,
    kept: usize,
    /// Bytes that were not kept.
    lost: u64,
    tail: Vec<u8>,
}

impl Stderr {
    /// Takes the next bytes and gives each line that is whole, or as long as a piece may be.
    pub(super) fn feed(&mut self, mut bytes: &[u8], each: &mut dyn FnMut(&[u8], bool)) {
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            bytes = rest.get(1..).unwrap_or_default();
            self.partial.extend_from_slice(line);
            self.line(false, each);
        }
        self.partial.extend_from_slice(bytes);
        while self.partial.len() > LINE_LIMIT {
            let rest = self.partial.split_off(LINE_LIMIT);
            self.line(true, each);
            self.partial = rest;
        }
    }

    /// The stream is over.
    pub(super) fn end(&mut self, each: &mut dyn FnMut(&[u8], bool)) {
        if !self.partial.is_empty() {
            self.line(true, each);
        }
    }

    /// How much was not kept.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// The last words, on one line.
    pub(super) fn last_words(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.tail);
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let words = lines.get(lines.len().saturating_sub(3)..).unwrap_or_default().join("; ");
        (!words.is_empty()).then_some(words)
    }

    fn line(&mut self, unterminated: bool, each: &mut dyn FnMut(&[u8], bool)) {
        let line = std::mem::take(&mut self.partial);
        self.tail.extend_from_slice(&line);
        self.tail.push(b'\n');
        let excess = self.tail.len().saturating_sub(TAIL_LIMIT);
        self.tail.drain(..excess);
        if self.kept + line.len() > KEPT_LIMIT {
            self.lost += line.len() as u64 + 1;
            return;
        }
        self.kept += line.len() + 1;
        each(&line, unterminated);
    }
}

/// The event of a line.
pub(super) fn draft<'a>(dialect: &'static str, line: &'a [u8], unterminated: bool) -> Draft<'a> {
    let line = match std::str::from_utf8(line) {
        Ok(text) => NativeLine::Text(Cow::Borrowed(text)),
        Err(_) => NativeLine::Bytes(Cow::Borrowed(line)),
    };
    let native =
        Native { dialect: Cow::Borrowed(dialect), stream: Stream::Stderr, line, unterminated };
    let kind = Other { name: Some(Text::fixed("stderr")) };
    Draft { agent: Agent::main(), kind: kind.into(), native: Some(native) }
}
