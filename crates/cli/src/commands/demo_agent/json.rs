//! Looks into JSON that others wrote.

use serde_json::Value;

static NULL: Value = Value::Null;

pub(super) trait Look {
    /// The field of that name; `null` where there is none.
    fn at(&self, field: &str) -> &Value;
}

impl Look for Value {
    fn at(&self, field: &str) -> &Value {
        self.get(field).unwrap_or(&NULL)
    }
}
