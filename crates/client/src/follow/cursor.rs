//! A position in a session's log. The cursor passes events on in order and without repeats, and reports
//! missing ones as a gap.

use std::fmt;

use crate::error::Gap;
use crate::event_lines::EventLines;
use crate::stream::Update;

#[derive(Debug)]
pub(crate) struct Cursor {
    position: u64,
    /// Every number is expected. Otherwise the profile leaves events out, and a missing number means
    /// nothing.
    is_dense: bool,
    /// The last missing number, and the number that came instead.
    jumped: Option<Jump>,
}

/// A missing number. It is requested again before it counts as a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Jump {
    wanted: u64,
    came: u64,
}

impl fmt::Display for Jump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "received event {} instead of {}", self.came, self.wanted)
    }
}

impl Cursor {
    pub(crate) fn new(after: u64) -> Self {
        Self { position: after, is_dense: true, jumped: None }
    }

    pub(crate) fn expect_all(&mut self, is_dense: bool) {
        self.is_dense = is_dense;
    }

    /// The number of the last event that was passed on.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Moves back because the log ends at `to`.
    pub(crate) fn go_back(&mut self, to: u64) {
        (self.position, self.jumped) = (to, None);
    }

    pub(crate) fn expects_all(&self) -> bool {
        self.is_dense
    }

    /// Passes on the new events among these, in slices that share memory. A number that is missing a second
    /// time at the same position, with no later event in its place, becomes a gap.
    pub(crate) fn advance(
        &mut self,
        lines: &EventLines,
        new: &mut Vec<Update>,
    ) -> Result<(), Jump> {
        let mut from = 0;
        let hand_on = |from: usize, to: usize, new: &mut Vec<Update>| {
            if from < to {
                new.push(Update::Events(lines.slice(from, to)));
            }
        };
        for (at, seq) in lines.numbers().enumerate() {
            let wanted = self.position + 1;
            if seq < wanted {
                hand_on(from, at, new);
                from = at + 1;
                continue;
            }
            if seq > wanted && self.is_dense {
                hand_on(from, at, new);
                from = at;
                let jump = Jump { wanted, came: seq };
                match self.jumped.replace(jump) {
                    Some(before) if before.wanted == wanted && seq <= before.came => {
                        new.push(Update::Gap(Gap::Skipped { from: wanted, to: seq - 1 }));
                    }
                    Some(before) if before.wanted == wanted => {
                        self.jumped = Some(before);
                        return Err(jump);
                    }
                    Some(_) | None => return Err(jump),
                }
            }
            self.position = seq;
        }
        hand_on(from, lines.len(), new);
        Ok(())
    }
}

#[cfg(test)]
#[path = "cursor_tests.rs"]
mod tests;
