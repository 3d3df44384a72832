//! A subset of JSON Schema: the smallest instance, and validation.

use serde_json::{Map, Value, json};

use super::json::JsonFields as _;

/// The smallest value that a schema accepts, as far as this subset can tell.
pub(super) fn instance(schema: &Value) -> Value {
    if let Some(fixed) = schema.get("const").or_else(|| schema.get("default")) {
        return fixed.clone();
    }
    if let Some(choice) = schema.at("enum").as_array().and_then(|choices| choices.first()) {
        return choice.clone();
    }
    let branch =
        ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.at(key).as_array()?.first());
    if let Some(branch) = branch {
        return instance(branch);
    }
    let named = schema.at("type").as_str().or(schema.at("type").get(0).and_then(Value::as_str));
    let kind = named.unwrap_or(if schema.at("properties").is_object() { "object" } else { "null" });
    match kind {
        "object" => {
            let required = schema.at("required").as_array().into_iter().flatten();
            let fields = required
                .filter_map(Value::as_str)
                .map(|name| (name.to_owned(), instance(schema.at("properties").at(name))));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        "array" => {
            let count = schema.at("minItems").as_u64().unwrap_or(0).min(1000);
            (0..count).map(|_| instance(schema.at("items"))).collect()
        }
        "string" => {
            let length = schema.at("minLength").as_u64().unwrap_or(0).min(1000);
            json!("x".repeat(usize::try_from(length).unwrap_or(0)))
        }
        "integer" => json!(least(schema).ceil() as i64),
        "number" => json!(least(schema)),
        "boolean" => json!(false),
        _ => Value::Null,
    }
}

fn least(schema: &Value) -> f64 {
    let above = schema.at("exclusiveMinimum").as_f64().map(|least| least + 1.0);
    let least = schema.at("minimum").as_f64().or(above).unwrap_or(0.0);
    schema.at("maximum").as_f64().map_or(least, |most| least.min(most))
}

/// The problems of a value; empty if it is valid.
pub(super) fn faults(schema: &Value, value: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    check(schema, value, "root", &mut faults);
    faults
}

fn check(schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
    let kinds = match &schema.at("type") {
        Value::String(kind) => vec![kind.as_str()],
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    if !kinds.is_empty() && !kinds.iter().any(|kind| is(value, kind)) {
        faults.push(format!("{at}: must be {}", kinds.join(" or ")));
        return;
    }
    let choices = schema.at("enum").as_array();
    if choices.is_some_and(|choices| !choices.contains(value))
        || schema.get("const").is_some_and(|fixed| fixed != value)
    {
        faults.push(format!("{at}: must be one of the allowed values"));
    }
    if let Some(fields) = value.as_object() {
        let required = schema.at("required").as_array().into_iter().flatten();
        for name in required.filter_map(Value::as_str).filter(|name| !fields.contains_key(*name)) {
            faults.push(format!("{at}: must have required property '{name}'"));
        }
        for (name, field) in fields {
            match schema.at("properties").get(name) {
                Some(schema) => check(schema, field, &format!("{at}/{name}"), faults),
                None if schema.at("additionalProperties") == false => {
                    faults.push(format!("{at}: must NOT have additional property '{name}'"));
                }
                None => {}
            }
        }
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        check(schema.at("items"), item, &format!("{at}/{index}"), faults);
    }
}

fn is(value: &Value, kind: &str) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        _ => true,
    }
}
