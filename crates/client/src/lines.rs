//! Events as the server keeps them: the exact text of each.

use bytes::{Bytes, BytesMut};

/// Consecutive events: one JSON text a line, `\n` after each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EventLines {
    first: u64,
    count: u64,
    text: Bytes,
}

impl EventLines {
    /// The number of the first.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The text of all.
    pub fn text(&self) -> &Bytes {
        &self.text
    }

    /// The events: number and JSON.
    pub fn iter(&self) -> impl Iterator<Item = (u64, &str)> {
        let text = std::str::from_utf8(&self.text).unwrap_or_default();
        (self.first..).zip(text.lines())
    }
}

/// Events that gather.
#[derive(Debug, Default)]
pub(crate) struct Gathering {
    first: u64,
    count: u64,
    text: BytesMut,
}

impl Gathering {
    /// Adds an event, which must be the next one.
    pub(crate) fn push(&mut self, number: u64, event: &str) {
        if self.count == 0 {
            self.first = number;
        }
        self.count += 1;
        self.text.reserve(event.len() + 1);
        self.text.extend_from_slice(event.as_bytes());
        self.text.extend_from_slice(b"\n");
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// In bytes.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// What has gathered.
    pub(crate) fn take(&mut self) -> EventLines {
        let Self { first, count, text } = std::mem::take(self);
        EventLines { first, count, text: text.freeze() }
    }
}
