//! Reads the input of a tool call so that no other reader can read it differently.

use std::fmt;

use agentwire_protocol::Json;
use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

/// A longer input is not read. No model writes that much in one call.
pub const INPUT_LIMIT: usize = 1024 * 1024;

pub(crate) type Fields = Map<String, Value>;

/// Fields with the text of an edited file. Names are compared without case, `_` and `-`.
pub(crate) const TEXT: &[&str] = &[
    "content",
    "contents",
    "newcontent",
    "oldcontent",
    "text",
    "newtext",
    "oldtext",
    "filetext",
    "inserttext",
    "newstring",
    "oldstring",
    "newstr",
    "oldstr",
    "newsource",
    "codeedit",
    "search",
    "replace",
    "replacement",
];

/// Fields with text for a person or a model.
const NOTE: &[&str] = &[
    "description",
    "explanation",
    "instruction",
    "instructions",
    "message",
    "prompt",
    "reason",
    "reasoning",
    "summary",
    "thinking",
    "thought",
    "title",
    "activeform",
];

/// Whether a field of that name holds text, not what a tool acts on.
pub fn is_text(name: &str) -> bool {
    is_one(TEXT, name) || is_one(NOTE, name)
}

pub(crate) fn is_one(names: &[&str], name: &str) -> bool {
    let plain = name.chars().filter(|c| !matches!(c, '_' | '-'));
    let plain: String = plain.map(|c| c.to_ascii_lowercase()).collect();
    names.contains(&plain.as_str())
}

/// The value of an input. `None` if it is too long, or if two readers could read it differently: a
/// duplicate key, or a string that is not valid text.
pub(crate) fn value(input: Option<&Json<'_>>) -> Option<Value> {
    let input = input.filter(|input| input.get().len() <= INPUT_LIMIT)?;
    Some(input.read::<Plain>().ok()?.0)
}

/// Whether there is only one way to read an input, and it is not too long.
pub fn is_plain(input: &Json<'_>) -> bool {
    value(Some(input)).is_some()
}

/// The fields of an input. `None` if it is not an object, or there is more than one way to read it.
pub(crate) fn fields(input: Option<&Json<'_>>) -> Option<Fields> {
    match value(input)? {
        Value::Object(fields) => Some(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            None
        }
    }
}

/// A value without duplicate keys.
struct Plain(Value);

impl<'de> Deserialize<'de> for Plain {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PlainVisitor).map(Self)
    }
}

struct PlainVisitor;

impl<'de> Visitor<'de> for PlainVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        while let Some(Plain(item)) = list.next_element()? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some((name, Plain(value))) = map.next_entry::<String, Plain>()? {
            if fields.insert(name, value).is_some() {
                return Err(A::Error::custom("duplicate key"));
            }
        }
        Ok(Value::Object(fields))
    }
}
