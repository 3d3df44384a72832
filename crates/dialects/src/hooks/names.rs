//! Converts between Claude's camel case and the backend's snake case. Only the protocol's own names are
//! converted; a tool's fields keep their names.

use agentwire_protocol::{GatewayError, Json};

use super::{Object, read_object};
use crate::permission_updates;

/// A hook's output in camel case, from either case.
pub(super) fn camel_case(output: &Json<'_>) -> Result<Json<'static>, GatewayError> {
    let renamed = camel_keys(read_object(output)?, |name, value| match name {
        "hookSpecificOutput" => inside(value, |name, value| match name {
            "decision" => inside(value, |name, value| match name {
                "updatedPermissions" => permission_updates::camel_case(&value),
                _ => Ok(value),
            }),
            _ => Ok(value),
        }),
        _ => Ok(value),
    });
    Ok(Json::of(&renamed?))
}

fn inside(
    value: Json<'static>,
    each: impl Fn(&str, Json<'static>) -> Result<Json<'static>, GatewayError>,
) -> Result<Json<'static>, GatewayError> {
    match value.read::<Object>() {
        Ok(fields) => Ok(Json::of(&camel_keys(fields, each)?)),
        Err(_) => Ok(value),
    }
}

fn camel_keys(
    fields: Object,
    each: impl Fn(&str, Json<'static>) -> Result<Json<'static>, GatewayError>,
) -> Result<Object, GatewayError> {
    let mut renamed = Object::new();
    for (name, value) in fields {
        let name = camel(&name);
        let value = each(&name, value)?;
        put(&mut renamed, name, value)?;
    }
    Ok(renamed)
}

/// Refuses a field that is given under both of its names: two readers could read different values.
pub(crate) fn put(
    fields: &mut Object,
    name: String,
    value: Json<'static>,
) -> Result<(), GatewayError> {
    if fields.contains_key(&name) {
        let message =
            format!("{name} is given twice, in snake case and in camel case; give it once");
        return Err(GatewayError::invalid(message));
    }
    fields.insert(name, value);
    Ok(())
}

/// `snake_case` as `snakeCase`; a name in camel case stays. One of Claude's names is an exception.
pub(crate) fn camel(name: &str) -> String {
    if name == "updated_mcp_tool_output" {
        return "updatedMCPToolOutput".to_owned();
    }
    let mut words = name.split('_');
    let mut camel = words.next().unwrap_or_default().to_owned();
    for word in words {
        let mut letters = word.chars();
        camel.extend(letters.next().map(|letter| letter.to_ascii_uppercase()));
        camel.push_str(letters.as_str());
    }
    camel
}

pub(crate) fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[test]
    fn a_field_under_both_names_is_refused() {
        let renamed =
            |rule: Value| permission_updates::camel_case(&Json::of(&json!([{ "rules": [rule] }])));
        let fine = renamed(json!({ "tool_name": "Bash", "rule_content": "ls" })).expect("rules");
        let expected = json!([{ "rules": [{ "toolName": "Bash", "ruleContent": "ls" }] }]);
        assert_eq!(fine.read::<Value>().expect("JSON"), expected);
        let both = json!({ "toolName": "Write", "tool_name": "Bash", "rule_content": "ls" });
        assert!(renamed(both.clone()).is_err_and(|error| error.message.contains("toolName")));
        for output in [
            json!({ "stopReason": "a", "stop_reason": "b" }),
            json!({ "hookSpecificOutput": { "updatedInput": {}, "updated_input": {} } }),
            json!({ "hookSpecificOutput": { "decision": { "updatedPermissions": [{ "rules": [both] }] } } }),
        ] {
            assert!(camel_case(&Json::of(&output)).is_err(), "{output}");
        }
    }
}
