//! Finds out what the input is, and takes it out of its wrapping.

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::json::Scanner;

/// How much of the input may pass before somebody must have recognised it.
const PATIENCE: usize = 1 << 20;

pub(super) enum Recognised {
    Dialect(&'static dyn AgentDialect),
    /// More may tell.
    NotYet,
    /// No line so far is of any dialect.
    Nothing {
        /// They look like lines of a transcript.
        transcript: bool,
    },
}

/// The dialect of the first whole line that one recognises.
pub(super) fn recognise(bytes: &[u8], at_end: bool) -> Recognised {
    let mut scanner = Scanner::new();
    let mut transcript = false;
    let whole =
        if at_end { bytes.len() } else { memchr::memrchr(b'\n', bytes).map_or(0, |end| end + 1) };
    for line in bytes.get(..whole).unwrap_or_default().split(|byte| *byte == b'\n') {
        let Some(document) =
            std::str::from_utf8(line).ok().and_then(|line| scanner.scan(line.trim()).ok())
        else {
            continue;
        };
        let message = document.root();
        if let Some(dialect) = agentwire_dialects::recognise(message) {
            return Recognised::Dialect(dialect);
        }
        transcript |= message.get("dir").is_some() && message.get("line").is_some();
    }
    if at_end || transcript || bytes.len() > PATIENCE {
        return Recognised::Nothing { transcript };
    }
    Recognised::NotYet
}

/// Takes the agent's lines out of a transcript: of each `{"dir":"out","line":…}` the exact text of
/// `line`, of each `{"dir":"out","raw":"…"}` the text.
#[derive(Default)]
pub(super) struct Unwrap {
    partial: Vec<u8>,
    scanner: Scanner,
}

impl Unwrap {
    pub(super) fn feed(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.partial.extend_from_slice(bytes);
        let Some(end) = memchr::memrchr(b'\n', &self.partial) else { return Vec::new() };
        let rest = self.partial.split_off(end + 1);
        let whole = std::mem::replace(&mut self.partial, rest);
        self.unwrap(&whole)
    }

    pub(super) fn finish(&mut self) -> Vec<u8> {
        let rest = std::mem::take(&mut self.partial);
        self.unwrap(&rest)
    }

    fn unwrap(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut lines = Vec::new();
        for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            if let Some(line) = agentwire_dialects::transcript::agent_line(&mut self.scanner, line)
            {
                lines.extend_from_slice(&line);
                lines.push(b'\n');
            }
        }
        lines
    }
}
