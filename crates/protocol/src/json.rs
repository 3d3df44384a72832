//! Borrowed strings and JSON values that preserve their exact text, and the line writer.
//!
//! Events are made from slices of the agent's line. A slice of valid JSON can be embedded in another JSON
//! text without decoding and encoding it again: [`Text`] and [`Json`] write it unchanged.

mod line;
mod object;

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, SerializeStruct, Serializer};
use serde_json::value::RawValue;

pub use line::{WriteError, has_separator, on_one_line, write_line, write_value};
pub use object::JsonObject;

/// The name by which serde_json's serializer recognizes a fragment to write unchanged. It belongs to
/// `RawValue`, whose safe constructors all parse the text again; ours is parsed already. The test
/// `raw_fragments_are_written_as_they_are` fails if serde_json ever renames it.
const RAW_FRAGMENT: &str = "$serde_json::private::RawValue";

/// A string: plain, or still in its JSON form (quotes and escapes included).
#[derive(Clone)]
pub struct Text<'a>(Form<'a>);

#[derive(Clone)]
enum Form<'a> {
    Plain(Cow<'a, str>),
    /// A whole JSON string, with its quotes.
    Quoted(Cow<'a, str>),
}

impl<'a> Text<'a> {
    /// Plain text.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Self {
        Self(Form::Plain(text.into()))
    }

    /// Plain text from a constant.
    pub const fn fixed(text: &'static str) -> Text<'static> {
        Text(Form::Plain(Cow::Borrowed(text)))
    }

    /// A JSON string with its quotes, taken from a text that was checked to be JSON on one line.
    pub fn quoted(json: &'a str) -> Self {
        Self(Form::Quoted(Cow::Borrowed(json)))
    }

    /// The text, decoded if necessary.
    pub fn decode(&self) -> Cow<'_, str> {
        match &self.0 {
            Form::Plain(text) => Cow::Borrowed(text),
            Form::Quoted(json) => decode_quoted(json),
        }
    }

    /// Whether the text has no characters.
    pub fn is_empty(&self) -> bool {
        match &self.0 {
            Form::Plain(text) => text.is_empty(),
            Form::Quoted(json) => json.len() <= 2,
        }
    }

    /// An owned copy.
    pub fn into_owned(self) -> Text<'static> {
        Text(match self.0 {
            Form::Plain(text) => Form::Plain(Cow::Owned(text.into_owned())),
            Form::Quoted(json) => Form::Quoted(Cow::Owned(json.into_owned())),
        })
    }
}

fn decode_quoted(json: &str) -> Cow<'_, str> {
    let inside = json.get(1..json.len().saturating_sub(1)).unwrap_or_default();
    if memchr::memchr(b'\\', inside.as_bytes()).is_none() {
        return Cow::Borrowed(inside);
    }
    serde_json::from_str(json).map_or(Cow::Borrowed(inside), Cow::Owned)
}

impl<'a> From<&'a str> for Text<'a> {
    fn from(text: &'a str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Text<'_> {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl PartialEq for Text<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.decode() == other.decode()
    }
}

impl PartialEq<str> for Text<'_> {
    fn eq(&self, other: &str) -> bool {
        self.decode() == other
    }
}

impl fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.decode(), f)
    }
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.decode())
    }
}

impl Serialize for Text<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Form::Plain(text) => serializer.serialize_str(text),
            Form::Quoted(json) => serialize_raw(json, serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Text<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

impl JsonSchema for Text<'_> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Text".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string" })
    }
}

/// Any JSON value, stored as its exact text. It contains nothing that a reader might take for a line end,
/// so it can be embedded in any line unchanged.
#[derive(Clone)]
pub struct Json<'a>(Cow<'a, str>);

impl Json<'static> {
    /// An object without fields.
    pub const EMPTY: Self = Self(Cow::Borrowed("{}"));
}

impl<'a> Json<'a> {
    /// A value whose text the caller knows to be JSON on one line ([`on_one_line`]). Not checked.
    pub fn trusted(text: impl Into<Cow<'a, str>>) -> Self {
        Self(text.into())
    }

    /// Any value that serde can write; `null` if writing fails.
    pub fn of(value: &impl Serialize) -> Json<'static> {
        let mut text = Vec::new();
        let written = write_value(value, &mut text);
        match String::from_utf8(text) {
            Ok(text) if written.is_ok() => Json(Cow::Owned(text)),
            _ => Json(Cow::Borrowed("null")),
        }
    }

    /// Checks the text, then stores it on one line ([`on_one_line`]).
    pub fn parse(text: &'a str) -> Result<Self, serde_json::Error> {
        let value: &RawValue = serde_json::from_str(text)?;
        Ok(Self(on_one_line(value.get())))
    }

    /// The exact text.
    pub fn get(&self) -> &str {
        &self.0
    }

    /// The exact text, owned.
    pub fn into_text(self) -> String {
        self.0.into_owned()
    }

    /// Decodes the value.
    pub fn read<T: de::DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// An owned copy.
    pub fn into_owned(self) -> Json<'static> {
        Json(Cow::Owned(self.0.into_owned()))
    }
}

impl PartialEq for Json<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl fmt::Debug for Json<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Json<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serialize_raw(&self.0, serializer)
    }
}

impl<'de> Deserialize<'de> for Json<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Box::<RawValue>::deserialize(deserializer)?;
        let text = String::from(Box::<str>::from(value));
        Ok(Self(match on_one_line(&text) {
            Cow::Borrowed(_) => Cow::Owned(text),
            Cow::Owned(escaped) => Cow::Owned(escaped),
        }))
    }
}

impl JsonSchema for Json<'_> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Json".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!(true)
    }
}

fn serialize_raw<S: Serializer>(json: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let mut fragment = serializer.serialize_struct(RAW_FRAGMENT, 1)?;
    fragment.serialize_field(RAW_FRAGMENT, json)?;
    fragment.end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_fragments_are_written_as_they_are() {
        let json = Json::trusted(r#"{"b":1, "a":1e400,"s":"\ud83d"}"#);
        assert_eq!(serde_json::to_string(&json).unwrap(), json.get());
        let text = Text::quoted(r#""a\u0041\n""#);
        assert_eq!(serde_json::to_string(&text).unwrap(), r#""a\u0041\n""#);
        assert_eq!(text.decode(), "aA\n");
    }

    #[test]
    fn line_separators_are_escaped_everywhere() {
        let mut out = Vec::new();
        let json = Json::parse("\"x\u{2028}\"").unwrap();
        write_line(&("\u{2028}é€\u{2029}", json), &mut out).unwrap();
        assert_eq!(Json::parse("{\n\t\"a\":\r1}").unwrap().get(), "{  \"a\": 1}");
        let read: Json<'_> = serde_json::from_str("[\n1]").unwrap();
        assert_eq!(read.get(), "[ 1]");
        assert_eq!(String::from_utf8(out).unwrap(), "[\"\\u2028é€\\u2029\",\"x\\u2028\"]\n");
    }
}
