//! Access to untrusted JSON.

use serde_json::Value;

static NULL: Value = Value::Null;

pub(super) trait JsonFields {
    /// The field of that name, or `null`.
    fn at(&self, field: &str) -> &Value;
}

impl JsonFields for Value {
    fn at(&self, field: &str) -> &Value {
        self.get(field).unwrap_or(&NULL)
    }
}
