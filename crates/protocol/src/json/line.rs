//! Writes a value as one line of JSON.
//!
//! serde_json's own writer checks every key and string byte by byte, and cannot escape U+2028 and U+2029
//! without a second pass. This one checks 16 bytes at a time and writes raw fragments unchanged;
//! `docs/decisions/0001-json.md` has the measurements.

use std::borrow::Cow;
use std::fmt::Display;

use serde::ser::{self, Serialize};

use super::RAW_FRAGMENT;

/// Appends a value as one line, including `\n`. U+2028 and U+2029 are escaped, because some readers split
/// lines there.
pub fn write_line(value: &impl Serialize, out: &mut Vec<u8>) -> Result<(), WriteError> {
    let start = out.len();
    match value.serialize(Writer { out }) {
        Ok(()) => {
            out.push(b'\n');
            Ok(())
        }
        Err(error) => {
            out.truncate(start);
            Err(error)
        }
    }
}

/// Appends a value as JSON, with the same rules but without a line end.
pub fn write_value<T: ?Sized + Serialize>(value: &T, out: &mut Vec<u8>) -> Result<(), WriteError> {
    value.serialize(Writer { out })
}

/// A value could not be serialized.
#[derive(Debug)]
pub struct WriteError(String);

impl Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "failed to write a value as JSON: {}", self.0)
    }
}

impl std::error::Error for WriteError {}

impl ser::Error for WriteError {
    fn custom<T: Display>(message: T) -> Self {
        Self(message.to_string())
    }
}

struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

/// An open object or array. It needs a comma before every member except the first, and a closing bracket.
struct Open<'o> {
    out: &'o mut Vec<u8>,
    first: bool,
    close: &'static str,
}

impl<'o> Open<'o> {
    fn new(out: &'o mut Vec<u8>, open: &str, close: &'static str) -> Self {
        out.extend_from_slice(open.as_bytes());
        Self { out, first: true, close }
    }

    fn comma(&mut self) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
    }

    fn element<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), WriteError> {
        self.comma();
        value.serialize(Writer { out: self.out })
    }

    /// Our own field names need no escaping.
    fn field<T: ?Sized + Serialize>(&mut self, name: &str, value: &T) -> Result<(), WriteError> {
        if std::mem::take(&mut self.first) {
            self.out.push(b'"');
        } else {
            self.out.extend_from_slice(b",\"");
        }
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b"\":");
        value.serialize(Writer { out: self.out })
    }

    fn end(self) -> Result<(), WriteError> {
        self.out.extend_from_slice(self.close.as_bytes());
        Ok(())
    }
}

macro_rules! integers {
    ($($method:ident $type:ty),*) => {$(
        fn $method(self, value: $type) -> Result<(), WriteError> {
            self.out.extend_from_slice(itoa::Buffer::new().format(value).as_bytes());
            Ok(())
        }
    )*};
}

impl<'o> ser::Serializer for Writer<'o> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = Open<'o>;
    type SerializeTuple = Open<'o>;
    type SerializeTupleStruct = Open<'o>;
    type SerializeTupleVariant = Open<'o>;
    type SerializeMap = Open<'o>;
    type SerializeStruct = Struct<'o>;
    type SerializeStructVariant = Open<'o>;

    integers! {
        serialize_i8 i8, serialize_i16 i16, serialize_i32 i32, serialize_i64 i64,
        serialize_u8 u8, serialize_u16 u16, serialize_u32 u32, serialize_u64 u64
    }

    fn serialize_bool(self, value: bool) -> Result<(), WriteError> {
        self.out.extend_from_slice(if value { b"true" } else { b"false" });
        Ok(())
    }

    fn serialize_f32(self, value: f32) -> Result<(), WriteError> {
        self.serialize_f64(f64::from(value))
    }

    fn serialize_f64(self, value: f64) -> Result<(), WriteError> {
        serde_json::to_writer(self.out, &value).map_err(ser::Error::custom)
    }

    fn serialize_char(self, value: char) -> Result<(), WriteError> {
        self.serialize_str(value.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, value: &str) -> Result<(), WriteError> {
        self.out.push(b'"');
        write_escaped(value, self.out);
        self.out.push(b'"');
        Ok(())
    }

    fn serialize_bytes(self, value: &[u8]) -> Result<(), WriteError> {
        self.collect_seq(value)
    }

    fn serialize_none(self) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<(), WriteError> {
        self.out.extend_from_slice(b"null");
        Ok(())
    }

    fn serialize_unit_struct(self, _: &'static str) -> Result<(), WriteError> {
        self.serialize_unit()
    }

    fn serialize_unit_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
    ) -> Result<(), WriteError> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        let mut open = Open::new(self.out, "{", "}");
        open.field(variant, value)?;
        open.end()
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Open<'o>, WriteError> {
        Ok(Open::new(self.out, "[", "]"))
    }

    fn serialize_tuple(self, _: usize) -> Result<Open<'o>, WriteError> {
        Ok(Open::new(self.out, "[", "]"))
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Open<'o>, WriteError> {
        Ok(Open::new(self.out, "[", "]"))
    }

    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Open<'o>, WriteError> {
        self.out.extend_from_slice(b"{\"");
        self.out.extend_from_slice(variant.as_bytes());
        Ok(Open::new(self.out, "\":[", "]}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Open<'o>, WriteError> {
        Ok(Open::new(self.out, "{", "}"))
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Struct<'o>, WriteError> {
        if name == RAW_FRAGMENT {
            return Ok(Struct::Raw(self.out));
        }
        Ok(Struct::Open(Open::new(self.out, "{", "}")))
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Open<'o>, WriteError> {
        self.out.extend_from_slice(b"{\"");
        self.out.extend_from_slice(variant.as_bytes());
        Ok(Open::new(self.out, "\":{", "}}"))
    }
}

macro_rules! sequence {
    ($($name:ident $method:ident),*) => {$(
        impl ser::$name for Open<'_> {
            type Ok = ();
            type Error = WriteError;
            fn $method<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), WriteError> {
                self.element(value)
            }
            fn end(self) -> Result<(), WriteError> {
                Open::end(self)
            }
        }
    )*};
}

sequence! {
    SerializeSeq serialize_element, SerializeTuple serialize_element,
    SerializeTupleStruct serialize_field, SerializeTupleVariant serialize_field
}

impl ser::SerializeMap for Open<'_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_key<T: ?Sized + Serialize>(&mut self, key: &T) -> Result<(), WriteError> {
        self.comma();
        let start = self.out.len();
        key.serialize(Writer { out: self.out })?;
        // JSON only allows strings as keys.
        if self.out.get(start) != Some(&b'"') {
            self.out.insert(start, b'"');
            self.out.push(b'"');
        }
        Ok(())
    }

    fn serialize_value<T: ?Sized + Serialize>(&mut self, value: &T) -> Result<(), WriteError> {
        self.out.push(b':');
        value.serialize(Writer { out: self.out })
    }

    fn end(self) -> Result<(), WriteError> {
        Open::end(self)
    }
}

impl ser::SerializeStructVariant for Open<'_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        self.field(name, value)
    }

    fn end(self) -> Result<(), WriteError> {
        Open::end(self)
    }
}

enum Struct<'o> {
    Open(Open<'o>),
    Raw(&'o mut Vec<u8>),
}

impl ser::SerializeStruct for Struct<'_> {
    type Ok = ();
    type Error = WriteError;

    fn serialize_field<T: ?Sized + Serialize>(
        &mut self,
        name: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        match self {
            Self::Open(open) => open.field(name, value),
            Self::Raw(out) => value.serialize(Raw { out }),
        }
    }

    fn end(self) -> Result<(), WriteError> {
        match self {
            Self::Open(open) => open.end(),
            Self::Raw(_) => Ok(()),
        }
    }
}

/// Writes the string of a raw fragment unchanged.
struct Raw<'o> {
    out: &'o mut Vec<u8>,
}

macro_rules! only_strings {
    ($($method:ident($($type:ty),*);)*) => {$(
        fn $method(self, $(_: $type),*) -> Result<(), WriteError> {
            Err(ser::Error::custom("a raw fragment is a string"))
        }
    )*};
}

impl ser::Serializer for Raw<'_> {
    type Ok = ();
    type Error = WriteError;
    type SerializeSeq = ser::Impossible<(), WriteError>;
    type SerializeTuple = ser::Impossible<(), WriteError>;
    type SerializeTupleStruct = ser::Impossible<(), WriteError>;
    type SerializeTupleVariant = ser::Impossible<(), WriteError>;
    type SerializeMap = ser::Impossible<(), WriteError>;
    type SerializeStruct = ser::Impossible<(), WriteError>;
    type SerializeStructVariant = ser::Impossible<(), WriteError>;

    fn serialize_str(self, json: &str) -> Result<(), WriteError> {
        self.out.extend_from_slice(json.as_bytes());
        Ok(())
    }

    only_strings! {
        serialize_bool(bool); serialize_i8(i8); serialize_i16(i16); serialize_i32(i32);
        serialize_i64(i64); serialize_u8(u8); serialize_u16(u16); serialize_u32(u32);
        serialize_u64(u64); serialize_f32(f32); serialize_f64(f64); serialize_char(char);
        serialize_bytes(&[u8]); serialize_none(); serialize_unit();
        serialize_unit_struct(&'static str); serialize_unit_variant(&'static str, u32, &'static str);
    }

    fn serialize_some<T: ?Sized + Serialize>(self, value: &T) -> Result<(), WriteError> {
        value.serialize(self)
    }
    fn serialize_newtype_struct<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        value.serialize(self)
    }
    fn serialize_newtype_variant<T: ?Sized + Serialize>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        value: &T,
    ) -> Result<(), WriteError> {
        value.serialize(self)
    }
    fn serialize_seq(self, _: Option<usize>) -> Result<Self::SerializeSeq, WriteError> {
        Err(ser::Error::custom("a raw fragment is a string"))
    }
    fn serialize_tuple(self, _: usize) -> Result<Self::SerializeTuple, WriteError> {
        Err(ser::Error::custom("a raw fragment is a string"))
    }
    fn serialize_tuple_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleStruct, WriteError> {
        Err(ser::Error::custom("a raw fragment is a string"))
    }
    fn serialize_tuple_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, WriteError> {
        Err(ser::Error::custom("a raw fragment is a string"))
    }
    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, WriteError> {
        Err(ser::Error::custom("a raw fragment is a string"))
    }
    fn serialize_struct(
        self,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStruct, WriteError> {
        Err(ser::Error::custom("a raw fragment is a string"))
    }
    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, WriteError> {
        Err(ser::Error::custom("a raw fragment is a string"))
    }
}

/// JSON text that no reader can split. U+2028 and U+2029, which can only occur in strings, are escaped.
/// Line ends and tabs, which can only occur between values, become spaces.
pub fn on_one_line(json: &str) -> Cow<'_, str> {
    let control = memchr::memchr3(b'\n', b'\r', b'\t', json.as_bytes()).is_some();
    if !control && !has_separator(json.as_bytes()) {
        return Cow::Borrowed(json);
    }
    let json = json.replace(['\n', '\r', '\t'], " ");
    Cow::Owned(json.replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029"))
}

/// Whether a text contains U+2028 or U+2029.
pub fn has_separator(text: &[u8]) -> bool {
    memchr::memchr_iter(0xE2, text).any(|at| separator(text, at).is_some())
}

/// The escape for the line separator at `at`, if there is one: E2 80 A8 or E2 80 A9.
fn separator(bytes: &[u8], at: usize) -> Option<&'static [u8]> {
    match bytes.get(at..at + 3) {
        Some([_, 0x80, 0xA8]) => Some(b"\\u2028"),
        Some([_, 0x80, 0xA9]) => Some(b"\\u2029"),
        _ => None,
    }
}

/// Writes the content of a JSON string, without quotes.
fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let bytes = text.as_bytes();
    if !has_special(bytes) {
        out.extend_from_slice(bytes);
        return;
    }
    let mut written = 0;
    let mut from = 0;
    while let Some(at) = find_special(bytes, from) {
        let byte = bytes.get(at).copied().unwrap_or(0);
        let (escape, length): (&[u8], usize) = match byte {
            b'"' => (b"\\\"", 1),
            b'\\' => (b"\\\\", 1),
            b'\n' => (b"\\n", 1),
            b'\r' => (b"\\r", 1),
            b'\t' => (b"\\t", 1),
            0x08 => (b"\\b", 1),
            0x0C => (b"\\f", 1),
            0xE2 => match separator(bytes, at) {
                Some(escape) => (escape, 3),
                None => {
                    from = at + 1;
                    continue;
                }
            },
            _ => {
                out.extend_from_slice(bytes.get(written..at).unwrap_or_default());
                let [high, low] = [byte >> 4, byte & 0xF].map(|digit| HEX.get(usize::from(digit)));
                out.extend_from_slice(b"\\u00");
                out.extend(high.into_iter().chain(low));
                written = at + 1;
                from = written;
                continue;
            }
        };
        out.extend_from_slice(bytes.get(written..at).unwrap_or_default());
        out.extend_from_slice(escape);
        written = at + length;
        from = written;
    }
    out.extend_from_slice(bytes.get(written..).unwrap_or_default());
}

const HEX: &[u8; 16] = b"0123456789abcdef";

#[inline]
fn is_special(byte: u8) -> bool {
    (byte == b'"') | (byte == b'\\') | (byte == 0xE2) | (byte < 0x20)
}

/// Whether any byte needs a closer look. Most strings have none, and most are short: the last bytes are
/// examined in a block that overlaps the one before it, since one by one they would take longest.
#[inline]
fn has_special(bytes: &[u8]) -> bool {
    let word = |bytes: &[u8; 8]| specials(u64::from_le_bytes(*bytes));
    if let Some(last) = bytes.last_chunk::<16>() {
        // The compiler turns each block into a few vector instructions.
        let mut found = [0; 16];
        let mut examine = |block: &[u8; 16]| {
            for (found, byte) in found.iter_mut().zip(block) {
                *found |= u8::from(is_special(*byte));
            }
        };
        bytes.as_chunks::<16>().0.iter().for_each(&mut examine);
        examine(last);
        return u128::from_ne_bytes(found) != 0;
    }
    match (bytes.first_chunk(), bytes.last_chunk()) {
        (Some(first), Some(last)) => word(first) | word(last) != 0,
        _ => bytes.iter().any(|byte| is_special(*byte)),
    }
}

/// The next byte that cannot appear in a string unescaped, or that may start a line separator.
#[inline]
fn find_special(bytes: &[u8], from: usize) -> Option<usize> {
    let mut at = from;
    let (words, tail) = bytes.get(from..)?.as_chunks::<8>();
    for word in words {
        let found = specials(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(at + (found.trailing_zeros() / 8) as usize);
        }
        at += 8;
    }
    let found = tail.iter().position(|byte| is_special(*byte))?;
    Some(at + found)
}

/// The high bit of the first special byte of eight, and perhaps of others after it.
#[inline]
fn specials(word: u64) -> u64 {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGHS: u64 = 0x8080_8080_8080_8080;
    let quote = word ^ (ONES * b'"' as u64);
    let backslash = word ^ (ONES * b'\\' as u64);
    let lead = word ^ (ONES * 0xE2);
    let found = (quote.wrapping_sub(ONES) & !quote)
        | (backslash.wrapping_sub(ONES) & !backslash)
        | (lead.wrapping_sub(ONES) & !lead)
        | (word.wrapping_sub(ONES * 0x20) & !word);
    found & HIGHS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Strings are examined in blocks of several sizes, which overlap at the end.
    #[test]
    fn every_byte_of_a_string_is_examined() {
        for length in 0..70 {
            for at in 0..=length {
                for special in ["\"", "\\", "\n", "\u{1f}", "\u{2028}", "\u{2014}", "\u{7f}", "é"]
                {
                    let text = format!("{}{special}{}", "x".repeat(at), "x".repeat(length - at));
                    let mut out = Vec::new();
                    write_value(text.as_str(), &mut out).unwrap();
                    let expected = serde_json::to_string(&text).unwrap();
                    let expected = expected.replace('\u{2028}', "\\u2028");
                    assert_eq!(String::from_utf8(out).unwrap(), expected);
                }
            }
        }
    }
}
