//! The agent's own line, byte for byte.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserializer};
use serde::ser::SerializeStruct as _;
use serde::{Deserialize, Serialize, Serializer};

use crate::json::Json;

/// One line of an agent, without its line end.
#[derive(Clone, Debug, PartialEq)]
pub struct Native<'a> {
    /// The dialect of the line.
    pub dialect: Cow<'a, str>,
    /// The stream it was sent on.
    pub stream: Stream,
    /// The content.
    pub line: NativeLine<'a>,
    /// The output ended without a `\n` after this line.
    pub unterminated: bool,
}

/// The lines that an event carries: borrowed while the event is made, owned once it is read.
#[derive(Clone)]
pub enum Lines<'a> {
    /// Borrowed.
    Lent(&'a [Native<'a>]),
    /// Owned.
    Owned(Vec<Native<'a>>),
}

impl Lines<'_> {
    /// Whether there are no lines, or an earlier event carries them.
    pub fn is_empty(&self) -> bool {
        (**self).is_empty()
    }
}

impl<'a> std::ops::Deref for Lines<'a> {
    type Target = [Native<'a>];

    fn deref(&self) -> &[Native<'a>] {
        match self {
            Self::Lent(lines) => lines,
            Self::Owned(lines) => lines,
        }
    }
}

impl Default for Lines<'_> {
    fn default() -> Self {
        Self::Lent(&[])
    }
}

impl PartialEq for Lines<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl std::fmt::Debug for Lines<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl JsonSchema for Lines<'_> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        "Lines".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let line = generator.subschema_for::<Native<'static>>();
        json_schema!({ "type": "array", "items": line })
    }
}

/// The stream that a line was sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Stream {
    /// The agent's protocol.
    Stdout,
    /// The agent's log.
    Stderr,
    /// Input to the agent.
    Stdin,
}

/// The bytes of a line, in the simplest form that preserves them.
#[derive(Clone, Debug, PartialEq)]
pub enum NativeLine<'a> {
    /// JSON that any strict parser accepts: embedded unchanged.
    Json(Json<'a>),
    /// UTF-8 that is not such JSON: written as a string, or in base64 if it is long and escaping would make
    /// it much longer.
    Text(Cow<'a, str>),
    /// Not UTF-8: written in base64.
    Bytes(Cow<'a, [u8]>),
}

impl NativeLine<'_> {
    /// The exact bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Json(json) => json.get().as_bytes(),
            Self::Text(text) => text.as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }
}

impl Native<'_> {
    /// Appends what the agent wrote: the line and `\n`, unless the output ended before the `\n`.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.line.bytes());
        if !self.unterminated {
            out.push(b'\n');
        }
    }
}

impl Serialize for Native<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serializer.serialize_struct("Native", 3)?;
        fields.serialize_field("dialect", &self.dialect)?;
        fields.serialize_field("stream", &self.stream)?;
        if self.unterminated {
            fields.serialize_field("unterminated", &true)?;
        }
        match &self.line {
            NativeLine::Json(json) => fields.serialize_field("json", json)?,
            NativeLine::Text(text) if is_costly(text) => {
                fields.serialize_field("base64", &BASE64.encode(text.as_bytes()))?;
            }
            NativeLine::Text(text) => fields.serialize_field("text", text)?,
            NativeLine::Bytes(bytes) => fields.serialize_field("base64", &BASE64.encode(bytes))?,
        }
        fields.end()
    }
}

/// A longer text is written in base64 if that is shorter.
const LONG_TEXT: usize = 64 << 10;

/// Whether a text is long and escaping would add more to it than base64 does. As a string, a line of
/// control characters would become six times as long.
fn is_costly(text: &str) -> bool {
    let added = |byte: u8| match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' => 1,
        0..0x20 => 5,
        _ => 0,
    };
    text.len() > LONG_TEXT && text.bytes().map(added).sum::<usize>() > text.len() / 3
}

#[derive(Deserialize)]
struct NativeFields {
    dialect: String,
    stream: Stream,
    #[serde(default)]
    unterminated: bool,
    #[serde(default, deserialize_with = "even_null")]
    json: Option<Json<'static>>,
    #[serde(default)]
    text: Option<String>,
    #[serde(default)]
    base64: Option<String>,
}

/// A line may be `null`, which an `Option` would read as absent.
fn even_null<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Json<'static>>, D::Error> {
    Json::deserialize(deserializer).map(Some)
}

impl<'de> Deserialize<'de> for Native<'static> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let fields = NativeFields::deserialize(deserializer)?;
        let line = match (fields.json, fields.text, fields.base64) {
            (Some(json), None, None) => NativeLine::Json(json),
            (None, Some(text), None) => NativeLine::Text(Cow::Owned(text)),
            (None, None, Some(text)) => {
                NativeLine::Bytes(Cow::Owned(BASE64.decode(text).map_err(de::Error::custom)?))
            }
            _ => {
                return Err(de::Error::custom(
                    "a native line must have exactly one of json, text, base64",
                ));
            }
        };
        Ok(Native {
            dialect: Cow::Owned(fields.dialect),
            stream: fields.stream,
            line,
            unterminated: fields.unterminated,
        })
    }
}

impl JsonSchema for Native<'_> {
    fn schema_name() -> Cow<'static, str> {
        "Native".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let stream = generator.subschema_for::<Stream>();
        json_schema!({
            "description": "One line of an agent, byte for byte.",
            "type": "object",
            "properties": {
                "dialect": { "type": "string", "description": "The dialect of the line." },
                "stream": stream,
                "unterminated": { "type": "boolean", "description": "The output ended without a line end after this line." },
                "json": { "description": "The exact text, embedded, if any strict JSON parser accepts it." },
                "text": { "type": "string", "description": "The exact text, if it is UTF-8 but not such JSON." },
                "base64": { "type": "string", "description": "The exact bytes, if they are not UTF-8, or are long and mostly need escapes." }
            },
            "required": ["dialect", "stream"],
            "oneOf": [
                { "required": ["json"] },
                { "required": ["text"] },
                { "required": ["base64"] }
            ]
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let native = Native {
            dialect: "claude".into(),
            stream: Stream::Stdout,
            line: NativeLine::Text(text.into()),
            unterminated: false,
        };
        let written = serde_json::to_string(&native).unwrap();
        let read: Native<'static> = serde_json::from_str(&written).unwrap();
        assert_eq!(read.line.bytes(), text.as_bytes());
        written
    }

    /// A text that mostly needs escapes grows by a third at most; any other text stays a readable string.
    #[test]
    fn a_long_line_of_control_characters_grows_little() {
        let text = "\u{1}".repeat(3 * LONG_TEXT);
        assert!(written(&text).len() < text.len() * 4 / 3 + 100);
        assert!(written(&"\u{1}".repeat(10)).contains("\"text\""));
        assert!(written(&"a \"word\"".repeat(LONG_TEXT)).contains("\"text\""));
    }
}
