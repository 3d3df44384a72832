//! Fields of JSON values that may not be objects.

use serde_json::Value;

static NULL: Value = Value::Null;

pub(super) trait JsonFields {
    /// The field of that name, or `null`.
    fn at(&self, field: &str) -> &Value;

    /// Sets a field of an object.
    fn set(&mut self, field: &str, value: impl Into<Value>);
}

impl JsonFields for Value {
    fn at(&self, field: &str) -> &Value {
        self.get(field).unwrap_or(&NULL)
    }

    fn set(&mut self, field: &str, value: impl Into<Value>) {
        if let Some(fields) = self.as_object_mut() {
            fields.insert(field.to_owned(), value.into());
        }
    }
}
