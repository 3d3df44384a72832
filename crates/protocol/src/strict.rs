//! Reads clients' input and refuses fields that would be dropped, by name: a misspelt setting must not
//! count as one that was never given.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::de::{DeserializeOwned, Error as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use crate::error::bounded;
use crate::json::Json;

/// The fields of a client's object, each of them once. For a repeated name, one value would be dropped, and
/// readers do not agree on which.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Fields(BTreeMap<String, Json<'static>>);

impl Deref for Fields {
    type Target = BTreeMap<String, Json<'static>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Fields {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl IntoIterator for Fields {
    type Item = (String, Json<'static>);
    type IntoIter = std::collections::btree_map::IntoIter<String, Json<'static>>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl FromIterator<(String, Json<'static>)> for Fields {
    fn from_iter<T: IntoIterator<Item = (String, Json<'static>)>>(fields: T) -> Self {
        Self(fields.into_iter().collect())
    }
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Once;
        impl<'de> Visitor<'de> for Once {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields::default();
                while let Some(name) = map.next_key::<String>()? {
                    if fields.contains_key(&name) {
                        return Err(A::Error::custom(format!("the field {name} is given twice")));
                    }
                    let value = map.next_value()?;
                    fields.insert(name, value);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Once)
    }
}

/// Reads an optional object, in which each field may appear once.
pub fn once<'de, D: Deserializer<'de>>(
    field: D,
) -> Result<Option<BTreeMap<String, Json<'static>>>, D::Error> {
    Ok(Option::<Fields>::deserialize(field)?.map(|fields| fields.0))
}

/// Reads a text that is known to be JSON. An error names the path of the field.
pub fn read<T: DeserializeOwned>(json: &str) -> Result<T, String> {
    let mut reader = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let what = match words(error.inner()) {
            // serde_json reports only this for a wrong type where an enum is expected.
            what if what == "expected value" => "it has the wrong type".to_owned(),
            what => what,
        };
        let path = error.path().to_string();
        // An unknown field has no path.
        match path.trim_end_matches('?').trim_end_matches('.') {
            "" => bounded(what),
            path => bounded(format!("{path}: {what}")),
        }
    })
}

/// Reads a value and refuses fields that would be dropped.
pub fn whole<T: DeserializeOwned + Serialize>(value: &Json<'_>) -> Result<T, String> {
    let taken: T = read(value.get())?;
    let kept = serde_json::to_value(&taken).unwrap_or_default();
    match dropped(&read(value.get())?, &kept) {
        Some(name) => Err(bounded(format!("there is no field {name}"))),
        None => Ok(taken),
    }
}

/// The error without its position: the client never saw the text that the position refers to.
pub(crate) fn words(error: &serde_json::Error) -> String {
    let error = error.to_string();
    error.split(" at line ").next().unwrap_or_default().to_owned()
}

/// The path of the first field that was given but not read.
fn dropped(given: &Value, kept: &Value) -> Option<String> {
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => {
            given.iter().find_map(|(name, value)| match kept.get(name) {
                Some(kept) => dropped(value, kept).map(|inner| format!("{name}.{inner}")),
                None => (!is_nothing(value)).then(|| name.clone()),
            })
        }
        (Value::Array(given), Value::Array(kept)) => {
            given.iter().zip(kept).find_map(|(given, kept)| dropped(given, kept))
        }
        // serde accepts a list as an object whose fields are in order.
        (Value::Array(given), Value::Object(_)) => given.first().map(Value::to_string),
        _ => None,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::command::CommandFrame;

    #[test]
    fn of_a_doubled_name_nothing_is_taken() {
        let frame = |fields: &str| {
            let text = format!(r#"{{"command":"settle","requestId":"r",{fields}}}"#);
            CommandFrame::from_json(&text).map_err(|refused| refused.error.message)
        };
        assert!(frame(r#""behavior":"deny""#).is_ok());
        for doubled in [
            r#""behavior":"deny","behavior":"allow""#,
            r#""behavior":"deny","behavior":"deny""#,
            r#""behavior":"deny","b\u0065havior":"allow""#,
            r#""answers":{"q":"no","q":"yes"}"#,
        ] {
            let refused = frame(doubled);
            assert!(refused.as_ref().is_err_and(|why| why.contains("twice")), "{refused:?}");
        }
    }
}
