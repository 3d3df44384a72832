//! The scanning pass: grammar, string escapes, number ranges, duplicate keys and depth.

use std::cell::Cell;
use std::collections::HashSet;
use std::hash::{DefaultHasher, Hasher as _};

use super::read::Value;
use super::{MAX_DEPTH, MAX_VALUES, block};

/// Why a text is not JSON that every strict parser accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// It is not JSON, or has more than [`MAX_VALUES`] values.
    Syntax,
    /// It is JSON, but parsers differ on it: a lone surrogate, a duplicate key, a number out of range, or
    /// too deep. [`super::repair`] turns it into a text that all of them accept.
    Loose,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Null,
    False,
    True,
    Number,
    String,
    Array,
    Object,
    /// Only after a tolerant pass: a value below the maximum depth, not parsed.
    Deep,
}

/// A string contains an escape.
pub(super) const ESCAPED: u8 = 1;
/// Only after a tolerant pass: a string with a lone surrogate, or a number out of range.
pub(super) const LOOSE: u8 = 2;

/// One value: its position, and the index of the node after it and everything in it. A field of an object
/// is a string node and a value node.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) start: u32,
    pub(super) end: u32,
    pub(super) next: u32,
    pub(super) kind: Kind,
    pub(super) flags: u8,
    pub(super) seen: Cell<bool>,
}

/// Scans one line after another, reusing its memory.
#[derive(Debug, Default)]
pub struct Scanner {
    nodes: Vec<Node>,
}

#[derive(Clone, Copy, Debug)]
pub struct Document<'d> {
    pub(super) text: &'d str,
    pub(super) nodes: &'d [Node],
    control: bool,
}

impl<'d> Document<'d> {
    /// Whether a tab or a line end is between its values. Inside strings there can be none.
    pub fn has_control_bytes(self) -> bool {
        self.control
    }

    pub fn root(self) -> Value<'d> {
        Value::new(self, 0)
    }
}

impl Scanner {
    pub fn new() -> Self {
        Self::default()
    }

    /// Scans a text that must be one JSON value that every strict parser accepts.
    pub fn scan<'d>(&'d mut self, text: &'d str) -> Result<Document<'d>, Fault> {
        self.pass::<true>(text)
    }

    /// Scans a text that may be loose; see [`Fault::Loose`].
    pub(crate) fn scan_tolerant<'d>(&'d mut self, text: &'d str) -> Result<Document<'d>, Fault> {
        self.pass::<false>(text)
    }

    fn pass<'d, const STRICT: bool>(&'d mut self, text: &'d str) -> Result<Document<'d>, Fault> {
        if u32::try_from(text.len()).is_err() {
            return Err(Fault::Syntax);
        }
        // One huge line must not hold its memory for the rest of the session.
        if self.nodes.capacity() > 1 << 16 {
            self.nodes = Vec::new();
        }
        self.nodes.clear();
        let nodes = &mut self.nodes;
        let mut pass = Pass::<STRICT> { bytes: text.as_bytes(), at: 0, nodes, control: false };
        pass.value(0)?;
        pass.space();
        if pass.at != text.len() {
            return Err(Fault::Syntax);
        }
        let control = pass.control;
        Ok(Document { text, nodes: &self.nodes, control })
    }
}

struct Pass<'s, const STRICT: bool> {
    bytes: &'s [u8],
    at: usize,
    nodes: &'s mut Vec<Node>,
    control: bool,
}

/// A fault on which parsers differ stops a strict pass and marks a tolerant one.
macro_rules! loose {
    ($strict:expr) => {
        if $strict {
            return Err(Fault::Loose);
        }
    };
}

impl<const STRICT: bool> Pass<'_, STRICT> {
    #[inline]
    fn peek(&self) -> u8 {
        self.bytes.get(self.at).copied().unwrap_or(0)
    }

    #[inline]
    fn space(&mut self) {
        while let Some(byte @ (b' ' | b'\t' | b'\r' | b'\n')) = self.bytes.get(self.at) {
            self.control |= *byte < 0x20;
            self.at += 1;
        }
    }

    /// The next byte that is not space; 0 at the end. Usually the very next one.
    #[inline]
    fn peek_past_space(&mut self) -> u8 {
        let byte = self.peek();
        if byte > b' ' {
            return byte;
        }
        self.space();
        self.peek()
    }

    #[inline]
    fn open(&mut self, kind: Kind) -> usize {
        let index = self.nodes.len();
        self.nodes.push(Node {
            start: self.at as u32,
            end: 0,
            next: 0,
            kind,
            flags: 0,
            seen: Cell::new(false),
        });
        index
    }

    #[inline]
    fn close(&mut self, index: usize, flags: u8) {
        let next = self.nodes.len() as u32;
        let end = self.at as u32;
        if let Some(node) = self.nodes.get_mut(index) {
            node.end = end;
            node.next = next;
            node.flags = flags;
        }
    }

    fn value(&mut self, depth: usize) -> Result<(), Fault> {
        if self.nodes.len() > MAX_VALUES {
            return Err(Fault::Syntax);
        }
        match self.peek_past_space() {
            b'"' => self.string(),
            b'{' | b'[' if depth >= MAX_DEPTH => self.deep(),
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'-' | b'0'..=b'9' => self.number(),
            b't' => self.literal(b"true", Kind::True),
            b'f' => self.literal(b"false", Kind::False),
            b'n' => self.literal(b"null", Kind::Null),
            _ => Err(Fault::Syntax),
        }
    }

    fn literal(&mut self, word: &[u8], kind: Kind) -> Result<(), Fault> {
        if self.bytes.get(self.at..self.at + word.len()) != Some(word) {
            return Err(Fault::Syntax);
        }
        let index = self.open(kind);
        self.at += word.len();
        self.close(index, 0);
        Ok(())
    }

    fn array(&mut self, depth: usize) -> Result<(), Fault> {
        let index = self.open(Kind::Array);
        self.at += 1;
        if self.peek_past_space() == b']' {
            self.at += 1;
            self.close(index, 0);
            return Ok(());
        }
        loop {
            self.value(depth + 1)?;
            match self.peek_past_space() {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    self.close(index, 0);
                    return Ok(());
                }
                _ => return Err(Fault::Syntax),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<(), Fault> {
        let index = self.open(Kind::Object);
        self.at += 1;
        if self.peek_past_space() == b'}' {
            self.at += 1;
            self.close(index, 0);
            return Ok(());
        }
        let mut keys = Keys::default();
        loop {
            if self.peek_past_space() != b'"' {
                return Err(Fault::Syntax);
            }
            let key = self.nodes.len();
            self.string()?;
            if STRICT {
                keys.add(self.bytes, self.nodes, index, key)?;
            }
            if self.peek_past_space() != b':' {
                return Err(Fault::Syntax);
            }
            self.at += 1;
            self.value(depth + 1)?;
            match self.peek_past_space() {
                b',' => self.at += 1,
                b'}' => {
                    self.at += 1;
                    self.close(index, 0);
                    return Ok(());
                }
                _ => return Err(Fault::Syntax),
            }
        }
    }

    /// Most strings are short and plain; the others are scanned in large blocks.
    #[inline]
    fn string(&mut self) -> Result<(), Fault> {
        let start = self.at + 1;
        let bytes = self.bytes;
        let index = self.open(Kind::String);
        let (parts, _) = bytes.get(start..).unwrap_or_default().as_chunks::<16>();
        let mut at = start;
        for part in parts.iter().take(SHORT_STRING / 16) {
            let found = block::specials(part);
            if found == 0 {
                at += 16;
                continue;
            }
            at += found.trailing_zeros() as usize;
            if bytes.get(at) == Some(&b'"') {
                self.at = at + 1;
                self.close(index, 0);
                return Ok(());
            }
            break;
        }
        let flags = self.long_string(start)?;
        self.close(index, flags);
        Ok(())
    }

    /// The hottest loop: no branch for each escape, only for each block of 64 bytes.
    fn long_string(&mut self, start: usize) -> Result<u8, Fault> {
        let bytes = self.bytes;
        let mut flags = 0;
        let mut at = start;
        let mut carry = false;
        loop {
            let rest = bytes.get(at..).unwrap_or_default();
            let mut padded = [b' '; 64];
            let block = match rest.first_chunk::<64>() {
                Some(block) => block,
                None if rest.is_empty() => return Err(Fault::Syntax),
                None => {
                    padded.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
                    &padded
                }
            };
            let marks = block::marks(block);
            let escaped = if marks.backslash == 0 && !carry {
                0
            } else {
                flags |= ESCAPED;
                block::escaped(marks.backslash, &mut carry)
            };
            let ends = marks.quote & !escaped;
            // All bits below the first end; all bits if there is none.
            let inside = (ends & ends.wrapping_neg()).wrapping_sub(1);
            if marks.control & inside != 0 {
                return Err(Fault::Syntax);
            }
            if escaped & inside != 0 {
                let escapes = block::escapes(block);
                if escaped & inside & !(escapes.simple | escapes.unicode) != 0 {
                    return Err(Fault::Syntax);
                }
                let mut unicode = escaped & inside & escapes.unicode;
                while unicode != 0 {
                    self.unicode_escape(at + unicode.trailing_zeros() as usize, &mut flags)?;
                    unicode &= unicode - 1;
                }
            }
            if ends != 0 {
                self.at = at + ends.trailing_zeros() as usize + 1;
                return Ok(flags);
            }
            at += 64;
        }
    }

    /// Checks the `\u` escape whose `u` is at `at`: four digits, and not a lone half of a pair.
    #[cold]
    fn unicode_escape(&mut self, at: usize, flags: &mut u8) -> Result<(), Fault> {
        let unit = hex(self.bytes, at + 1).ok_or(Fault::Syntax)?;
        let other = |at: usize| {
            let escape = self.bytes.get(at..at + 2) == Some(b"\\u");
            if escape { hex(self.bytes, at + 2) } else { None }
        };
        let lone = match unit {
            0xD800..=0xDBFF => !matches!(other(at + 5), Some(0xDC00..=0xDFFF)),
            // The high half before it must be an escape too, not text that looks like one.
            0xDC00..=0xDFFF => {
                let high = at.checked_sub(7).and_then(other);
                !matches!(high, Some(0xD800..=0xDBFF)) || self.is_escaped(at.wrapping_sub(7))
            }
            _ => false,
        };
        if lone {
            loose!(STRICT);
            *flags |= LOOSE;
        }
        Ok(())
    }

    /// Whether the backslash at `at` is itself escaped: an odd number of backslashes precedes it.
    fn is_escaped(&self, at: usize) -> bool {
        let before = self.bytes.get(..at).unwrap_or_default();
        before.iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
    }

    fn number(&mut self) -> Result<(), Fault> {
        let index = self.open(Kind::Number);
        let start = self.at;
        if self.peek() == b'-' {
            self.at += 1;
        }
        match self.peek() {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.digits()?,
            _ => return Err(Fault::Syntax),
        }
        let mut integer = true;
        if self.peek() == b'.' {
            integer = false;
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), b'e' | b'E') {
            integer = false;
            self.at += 1;
            if matches!(self.peek(), b'+' | b'-') {
                self.at += 1;
            }
            self.digits()?;
        }
        let mut flags = 0;
        let text = self.bytes.get(start..self.at).unwrap_or_default();
        if !in_range(text, integer) {
            loose!(STRICT);
            flags = LOOSE;
        }
        self.close(index, flags);
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Fault> {
        let start = self.at;
        while self.peek().is_ascii_digit() {
            self.at += 1;
        }
        if self.at == start { Err(Fault::Syntax) } else { Ok(()) }
    }

    /// A tolerant pass skips a value that is too deep by counting brackets.
    fn deep(&mut self) -> Result<(), Fault> {
        loose!(STRICT);
        let index = self.open(Kind::Deep);
        let mut open = 0usize;
        loop {
            match self.peek() {
                b'{' | b'[' => open += 1,
                b'}' | b']' => open -= 1,
                b'"' => {
                    self.string()?;
                    self.nodes.truncate(index + 1);
                    continue;
                }
                _ if self.at >= self.bytes.len() => return Err(Fault::Syntax),
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                self.close(index, 0);
                return Ok(());
            }
        }
    }
}

fn hex(bytes: &[u8], at: usize) -> Option<u32> {
    let digits = bytes.get(at..at + 4)?;
    digits.iter().try_fold(0, |unit, digit| Some(unit * 16 + char::from(*digit).to_digit(16)?))
}

/// Whether every parser can represent the number: an integer in 64 bits, or a finite double.
fn in_range(number: &[u8], integer: bool) -> bool {
    if integer && number.len() < 19 {
        return true;
    }
    let Ok(text) = std::str::from_utf8(number) else { return false };
    if integer {
        return text.parse::<i64>().is_ok() || text.parse::<u64>().is_ok();
    }
    text.parse::<f64>().is_ok_and(f64::is_finite)
}

/// A string up to this length may be an id, a path or a name.
const SHORT_STRING: usize = 64;

/// The keys of one object so far, to find a duplicate.
#[derive(Default)]
struct Keys {
    /// One bit for each key seen, by a cheap hash: a clear bit means a new key.
    seen: u64,
    count: usize,
    /// Digests of the keys; only for objects with many keys.
    many: Option<Box<Digests>>,
    /// Some key has an escape, so two spellings may be one key.
    escaped: bool,
}

/// Boxed, since few objects need it and every object has a place for it.
struct Digests(HashSet<u64>);

/// From this many keys on, comparing with each one takes longer than hashing.
const MANY_KEYS: usize = 48;

impl Keys {
    fn add(
        &mut self,
        bytes: &[u8],
        nodes: &[Node],
        object: usize,
        key: usize,
    ) -> Result<(), Fault> {
        let Some(node) = nodes.get(key) else { return Ok(()) };
        let name = slice(bytes, node);
        self.count += 1;
        self.escaped |= node.flags & ESCAPED != 0;
        if self.escaped || self.count > MANY_KEYS {
            return self.add_to_many(bytes, nodes, object, key);
        }
        let bit = 1u64 << hash(name);
        if self.seen & bit != 0 && key_nodes(nodes, object, key).any(|k| slice(bytes, k) == name) {
            return Err(Fault::Loose);
        }
        self.seen |= bit;
        Ok(())
    }

    fn add_to_many(
        &mut self,
        bytes: &[u8],
        nodes: &[Node],
        object: usize,
        key: usize,
    ) -> Result<(), Fault> {
        let many = self.many.get_or_insert_with(|| {
            let digests = key_nodes(nodes, object, key).map(|node| digest(bytes, node));
            Box::new(Digests(digests.collect()))
        });
        // Two keys with one digest count as duplicates: the line is then repaired, which compares the keys
        // themselves.
        let new = nodes.get(key).is_none_or(|node| many.0.insert(digest(bytes, node)));
        if new { Ok(()) } else { Err(Fault::Loose) }
    }
}

/// The keys of `object` before `end`.
fn key_nodes(nodes: &[Node], object: usize, end: usize) -> impl Iterator<Item = &Node> {
    let mut at = object + 1;
    std::iter::from_fn(move || {
        let key = nodes.get(at).filter(|_| at < end)?;
        at = nodes.get(at + 1)?.next as usize;
        Some(key)
    })
}

fn slice<'s>(bytes: &'s [u8], node: &Node) -> &'s [u8] {
    bytes.get(node.start as usize..node.end as usize).unwrap_or_default()
}

fn digest(bytes: &[u8], node: &Node) -> u64 {
    let quoted = slice(bytes, node);
    let mut hasher = DefaultHasher::new();
    let decoded =
        (node.flags & ESCAPED != 0).then(|| serde_json::from_slice::<String>(quoted).ok());
    match decoded.flatten() {
        Some(key) => hasher.write(key.as_bytes()),
        None => hasher.write(quoted.get(1..quoted.len() - 1).unwrap_or_default()),
    }
    hasher.finish()
}

/// Cheap, and distinct enough for field names.
#[inline]
fn hash(name: &[u8]) -> u64 {
    let word = |bytes: Option<&[u8; 8]>| bytes.map_or(0, |bytes| u64::from_le_bytes(*bytes));
    let half = |bytes: Option<&[u8; 4]>| bytes.map_or(0, |bytes| u32::from_le_bytes(*bytes).into());
    let (head, tail) = match name.len() {
        8.. => (word(name.first_chunk()), word(name.last_chunk())),
        4.. => (half(name.first_chunk()), half(name.last_chunk())),
        _ => (name.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)), 0),
    };
    (head ^ tail.rotate_left(29) ^ name.len() as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 58
}
