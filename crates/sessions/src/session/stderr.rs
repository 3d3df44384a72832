//! An agent's stderr: stored as events, within limits. Its last lines explain why the agent ended.

use std::borrow::Cow;

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::tape::{Agent, Draft};
use agentwire_protocol::event::Other;
use agentwire_protocol::{Native, NativeLine, Stream, Text};

/// The longest piece of a line that becomes one event.
const LINE_LIMIT: usize = 16 << 10;

/// How many bytes of one process are stored.
const KEPT_LIMIT: usize = 1 << 20;

/// How many bytes of the end are remembered.
const TAIL_LIMIT: usize = 2 << 10;

#[derive(Debug, Default)]
pub(super) struct Stderr {
    partial: Vec<u8>,
    kept: usize,
    lost: u64,
    tail: Vec<u8>,
}

impl Stderr {
    /// Processes the next bytes, and passes on each line that is complete or as long as a piece may be.
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

    pub(super) fn end(&mut self, each: &mut dyn FnMut(&[u8], bool)) {
        if !self.partial.is_empty() {
            self.line(true, each);
        }
    }

    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// The last output, on one line: the last line that starts with "error" and what follows it, or else
    /// the end. Colours, stack frames and lines that only point at a place are left out.
    pub(super) fn last_lines(&self) -> Option<String> {
        const LINES: usize = 3;
        let text = String::from_utf8_lossy(&self.tail);
        let says =
            |line: &String| line.chars().any(char::is_alphanumeric) && !line.starts_with("at ");
        let lines: Vec<String> = text.lines().map(plain).filter(says).collect();
        let is_error =
            |line: &String| line.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("error"));
        let end = lines.len().saturating_sub(LINES);
        let begin = lines.iter().rposition(is_error).unwrap_or(end);
        let words: Vec<&str> = lines.iter().skip(begin).take(LINES).map(String::as_str).collect();
        (!words.is_empty()).then(|| words.join("; "))
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

/// A line without its colour sequences.
fn plain(line: &str) -> String {
    let mut pieces = line.split("\u{1b}[");
    let mut text = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        let rest = piece.split_once(|end: char| end.is_ascii_alphabetic());
        text.push_str(rest.map_or("", |(_, rest)| rest));
    }
    text.trim().to_owned()
}

pub(super) fn draft<'a>(
    dialect: &dyn AgentDialect,
    line: &'a [u8],
    unterminated: bool,
) -> Draft<'a> {
    let text = std::str::from_utf8(line).ok();
    let line = match text {
        Some(text) => NativeLine::Text(Cow::Borrowed(text)),
        None => NativeLine::Bytes(Cow::Borrowed(line)),
    };
    let native = Native {
        dialect: Cow::Borrowed(dialect.name()),
        stream: Stream::Stderr,
        line,
        unterminated,
    };
    let kind = match text.and_then(|text| dialect.overhear(text)) {
        Some(error) => error.into(),
        None => Other { name: Some(Text::fixed("stderr")) }.into(),
    };
    Draft { agent: Agent::main(), kind, native: Some(native) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_words_are_words() {
        let mut said = Stderr::default();
        let text = "one\n\u{1b}[2m09:00\u{1b}[0m \u{1b}[31mERROR\u{1b}[0m it broke\n\n  |\n\
                    1 | a = [\n  |     ^\n    at main (file.js:1:2)\n    at async f\nthe end";
        said.feed(text.as_bytes(), &mut |_, _| {});
        said.end(&mut |_, _| {});
        let words = said.last_lines().expect("words");
        assert_eq!(words, "09:00 ERROR it broke; 1 | a = [; the end");
        assert_eq!(Stderr::default().last_lines(), None);
        let text = "warming up\nerror: unexpected '--flux'\n\ntip: none\nUsage: flux\nor --help\n";
        said.feed(text.as_bytes(), &mut |_, _| {});
        let words = said.last_lines().expect("words");
        assert_eq!(words, "error: unexpected '--flux'; tip: none; Usage: flux");
    }
}
