//! Helpers for JSON values.

use serde_json::Value;

/// The text of a field, or an empty one.
pub(crate) fn text_at<'value>(value: &'value Value, name: &str) -> &'value str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Sets a field of an object.
pub(crate) fn add(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Some(fields) = object.as_object_mut() {
        fields.insert(name.to_owned(), value.into());
    }
}

/// The object with this field set.
pub(crate) fn with(mut object: Value, name: &str, value: impl Into<Value>) -> Value {
    add(&mut object, name, value);
    object
}
