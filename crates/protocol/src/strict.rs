//! Reads what clients say, and refuses by its name what would be dropped: a setting that is misspelt
//! must not count as one that was never given.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::json::Json;

/// Reads a value, and refuses what of it would be dropped.
pub fn whole<T: DeserializeOwned + Serialize>(value: &Json<'_>) -> Result<T, String> {
    let words = |error: serde_json::Error| {
        // Where it stands in a text that the client never saw is of no use to it.
        let error = error.to_string();
        error.split(" at line ").next().unwrap_or_default().to_owned()
    };
    let taken: T = value.read().map_err(words)?;
    let kept = serde_json::to_value(&taken).unwrap_or_default();
    match dropped(&value.read().map_err(words)?, &kept) {
        Some(name) => Err(format!("there is no field {name}")),
        None => Ok(taken),
    }
}

/// The first field that was given and not kept, by its path.
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
        // serde takes a list for an object whose fields come in order.
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
