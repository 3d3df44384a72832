//! Detects the dialect of the input, and unwraps transcripts.

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::json::Scanner;
use agentwire_dialects::tape::LINE_LIMIT;
use agentwire_dialects::{recognise_line, transcript};

/// How many bytes of whole lines may pass before a dialect must have recognised one.
const PATIENCE: usize = 1 << 20;

/// Holds the input back until a line shows its dialect.
#[derive(Default)]
pub(super) struct Finder {
    waiting: Vec<u8>,
    looked_at: usize,
    scanner: Scanner,
    transcript: bool,
}

pub(super) enum Found {
    Dialect(&'static dyn AgentDialect),
    /// More input may show it.
    NotYet,
    /// No line so far belongs to a known dialect.
    Nothing,
}

impl Finder {
    pub(super) fn feed(&mut self, bytes: &[u8], at_end: bool) -> Found {
        self.waiting.extend_from_slice(bytes);
        while let Some(rest) = self.waiting.get(self.looked_at..) {
            let end = match memchr::memchr(b'\n', rest) {
                Some(end) => end,
                None if at_end && !rest.is_empty() => rest.len(),
                None => break,
            };
            let line = rest.get(..end).unwrap_or_default();
            if let Some(dialect) = recognise_line(&mut self.scanner, line) {
                return Found::Dialect(dialect);
            }
            self.transcript |= transcript::is_entry(&mut self.scanner, line);
            self.looked_at += end + 1;
        }
        let tired = self.looked_at > PATIENCE || self.waiting.len() > LINE_LIMIT;
        if at_end || self.transcript || tired { Found::Nothing } else { Found::NotYet }
    }

    /// Whether a line looked like a transcript entry.
    pub(super) fn is_transcript(&self) -> bool {
        self.transcript
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    pub(super) fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.waiting)
    }
}

/// Extracts the agent's lines from a transcript.
#[derive(Default)]
pub(super) struct Unwrap {
    partial: Vec<u8>,
    scanner: Scanner,
    /// The line is too long; its rest is skipped.
    overlong: bool,
    strange: u64,
}

impl Unwrap {
    /// The agent's lines in these bytes, with their line ends.
    pub(super) fn feed(&mut self, mut bytes: &[u8], at_end: bool) -> Vec<u8> {
        let mut lines = Vec::new();
        while let Some(end) = memchr::memchr(b'\n', bytes) {
            let (line, rest) = bytes.split_at(end);
            self.keep(line);
            self.finish_line(&mut lines);
            bytes = rest.get(1..).unwrap_or_default();
        }
        self.keep(bytes);
        if at_end {
            self.finish_line(&mut lines);
        }
        lines
    }

    /// How many lines were not transcript entries.
    pub(super) fn strange(&self) -> u64 {
        self.strange
    }

    fn keep(&mut self, bytes: &[u8]) {
        // An entry is a little longer than the line in it.
        if self.partial.len() + bytes.len() > LINE_LIMIT + (64 << 10) {
            self.overlong = true;
            self.partial = Vec::new();
        } else if !self.overlong {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn finish_line(&mut self, lines: &mut Vec<u8>) {
        let entry = std::mem::take(&mut self.partial);
        if std::mem::take(&mut self.overlong) {
            self.strange += 1;
            return;
        }
        if let Some(line) = transcript::agent_line(&mut self.scanner, &entry) {
            lines.extend_from_slice(&line);
            lines.push(b'\n');
        } else if !entry.is_empty() && !transcript::is_entry(&mut self.scanner, &entry) {
            self.strange += 1;
        }
    }
}
