//! Batches of events as exact text, without parsing.

use agentwire_protocol::Profile;
use bytes::{Bytes, BytesMut};

/// Events of a session in order: the number and the exact JSON text of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLines {
    /// One event per line, each followed by `\n`. UTF-8.
    text: Bytes,
    marks: Vec<Mark>,
}

/// An event's number, and the offset of the `\n` that ends its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    seq: u64,
    end: usize,
}

impl EventLines {
    /// Builds a batch from numbers and JSON texts.
    pub fn of<'e>(events: impl IntoIterator<Item = (u64, &'e str)>) -> Self {
        let mut builder = EventLinesBuilder::default();
        for (seq, event) in events {
            builder.push(seq, event);
        }
        builder.finish()
    }

    /// Wraps lines numbered from `first` on, without copying. Returns `None` if they are not UTF-8.
    #[cfg(feature = "in-process")]
    pub(crate) fn numbered(first: u64, text: Bytes) -> Option<Self> {
        let all = std::str::from_utf8(&text).ok()?;
        let ends = all.match_indices('\n').map(|(end, _)| end);
        let marks = (first..).zip(ends).map(|(seq, end)| Mark { seq, end }).collect();
        Some(Self { text, marks })
    }

    /// The number of the first event, or 0 if there is none.
    pub fn first(&self) -> u64 {
        self.marks.first().map_or(0, |mark| mark.seq)
    }

    /// The number of the last event, or 0 if there is none.
    pub fn last(&self) -> u64 {
        self.marks.last().map_or(0, |mark| mark.seq)
    }

    /// How many events there are.
    pub fn len(&self) -> usize {
        self.marks.len()
    }

    /// Whether there are no events.
    pub fn is_empty(&self) -> bool {
        self.marks.is_empty()
    }

    /// All events as text: one per line, each followed by `\n`.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The number and the JSON text of each event.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        let text = std::str::from_utf8(&self.text).unwrap_or_default();
        let mut from = 0;
        self.marks.iter().map(move |mark| {
            let line = text.get(from..mark.end).unwrap_or_default();
            from = mark.end + 1;
            (mark.seq, line)
        })
    }

    /// The number and the line of one event. The line shares the batch's memory.
    pub(crate) fn get(&self, at: usize) -> Option<(u64, Bytes)> {
        let mark = self.marks.get(at)?;
        Some((mark.seq, self.text.slice(self.begin(at)..mark.end)))
    }

    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> {
        self.marks.iter().map(|mark| mark.seq)
    }

    /// The events at positions `from..to`. They share the batch's memory.
    pub(crate) fn slice(&self, from: usize, to: usize) -> Self {
        let begin = self.begin(from);
        let marks = self.marks.get(from..to).unwrap_or_default();
        let end = marks.last().map_or(begin, |mark| mark.end + 1);
        let marks = marks.iter().map(|mark| Mark { end: mark.end - begin, ..*mark }).collect();
        Self { text: self.text.slice(begin..end), marks }
    }

    /// Splits off the front: at most this many bytes, but at least one event.
    #[cfg(feature = "http")]
    pub(crate) fn take_front(&mut self, bytes: usize) -> Self {
        let fitting = self.marks.partition_point(|mark| mark.end < bytes).max(1).min(self.len());
        let front = self.slice(0, fitting);
        *self = self.slice(fitting, self.len());
        front
    }

    /// The events that this profile shows, as it shows them.
    pub(crate) fn filtered(self, profile: Profile) -> Self {
        if profile == Profile::Full {
            return self;
        }
        let mut builder = EventLinesBuilder::default();
        for (seq, line) in self.iter() {
            if let Some(event) = profile.show_line(line) {
                builder.push(seq, &event);
            }
        }
        builder.finish()
    }

    fn begin(&self, at: usize) -> usize {
        let before = at.checked_sub(1).and_then(|before| self.marks.get(before));
        before.map_or(0, |mark| mark.end + 1)
    }
}

/// Builds [`EventLines`] one event at a time.
#[derive(Debug, Default)]
pub(crate) struct EventLinesBuilder {
    text: BytesMut,
    marks: Vec<Mark>,
}

impl EventLinesBuilder {
    /// Adds an event. Line breaks in its JSON become spaces.
    pub(crate) fn push(&mut self, seq: u64, event: &str) {
        self.text.reserve(event.len() + 1);
        let begin = self.text.len();
        self.text.extend_from_slice(event.as_bytes());
        if let Some(added) = self.text.get_mut(begin..) {
            added.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|it| *it = b' ');
        }
        self.marks.push(Mark { seq, end: self.text.len() });
        self.text.extend_from_slice(b"\n");
    }

    /// The size in bytes.
    #[cfg(any(feature = "http", feature = "stdio"))]
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    pub(crate) fn finish(&mut self) -> EventLines {
        let Self { text, marks } = std::mem::take(self);
        EventLines { text: text.freeze(), marks }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_equal_their_events() {
        let events = [(3, "{\"a\":1}"), (4, "{}"), (9, "{\"é\":\n2}")];
        let lines = EventLines::of(events);
        assert_eq!((lines.first(), lines.last(), lines.len()), (3, 9, 3));
        assert_eq!(lines.text(), "{\"a\":1}\n{}\n{\"é\": 2}\n");
        let all: Vec<_> = lines.iter().collect();
        for from in 0..=3 {
            for to in from..=3 {
                let slice = lines.slice(from, to);
                assert_eq!(slice.iter().collect::<Vec<_>>(), all[from..to]);
                assert_eq!(slice, EventLines::of(all[from..to].iter().copied()));
            }
        }
        assert_eq!(lines.get(2), Some((9, Bytes::from("{\"é\": 2}"))));
        assert_eq!(lines.get(3), None);
        assert!(lines.slice(2, 2).is_empty());
    }

    #[cfg(feature = "http")]
    #[test]
    fn take_front_stays_within_the_limit_or_takes_one() {
        let lines = EventLines::of([(3, "{\"a\":1}"), (4, "{}"), (9, "{\"b\":2}")]);
        for (bytes, expected) in [(1, 1), (8, 1), (10, 1), (11, 2), (18, 2), (19, 3), (99, 3)] {
            let mut rest = lines.clone();
            let front = rest.take_front(bytes);
            assert_eq!((front.len(), rest.len()), (expected, 3 - expected), "{bytes}");
            assert_eq!(lines.slice(0, expected), front);
            assert_eq!(lines.slice(expected, 3), rest);
        }
        assert!(EventLines::default().take_front(1).is_empty());
    }
}
