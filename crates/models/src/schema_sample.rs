//! Makes a value that matches a JSON schema, for structured answers.

use serde_json::Value;

const DEEPEST: usize = 16;
const MOST: u64 = 16;
const VALUES: usize = 10_000;

/// A small value that matches the schema.
pub(crate) fn schema_sample(schema: &Value) -> Value {
    let mut left = VALUES;
    within(schema, schema, 0, &mut left)
}

fn within(root: &Value, schema: &Value, depth: usize, left: &mut usize) -> Value {
    if depth > DEEPEST || *left == 0 {
        return Value::Null;
    }
    *left -= 1;
    let first = |name: &str| schema.get(name).and_then(Value::as_array).and_then(|all| all.first());
    if let Some(value) = schema.get("const").or_else(|| first("enum")) {
        return value.clone();
    }
    if let Some(place) = schema.get("$ref").and_then(Value::as_str) {
        let target = place.strip_prefix('#').and_then(|place| root.pointer(place));
        return target.map_or(Value::Null, |target| within(root, target, depth + 1, left));
    }
    if let Some(choice) = first("anyOf").or_else(|| first("oneOf")).or_else(|| first("allOf")) {
        return within(root, choice, depth + 1, left);
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(Value::String(kind)) => Some(kind.as_str()),
        _ => None,
    };
    // Gemini writes types in upper case.
    match kind.map(str::to_ascii_lowercase).as_deref() {
        Some("string") => "text".into(),
        Some("integer" | "number") => schema.get("minimum").cloned().unwrap_or(1.into()),
        Some("boolean") => true.into(),
        Some("null") => Value::Null,
        Some("array") => {
            let least = schema.get("minItems").and_then(Value::as_u64).unwrap_or(0).min(MOST);
            let items = schema.get("items").unwrap_or(&Value::Null);
            (0..least).map(|_| within(root, items, depth + 1, left)).collect()
        }
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let fields = properties.into_iter().flatten();
            fields
                .map(|(name, field)| (name.clone(), within(root, field, depth + 1, left)))
                .collect()
        }
    }
}
