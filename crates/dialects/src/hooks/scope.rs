//! Which fields of an answer in the agent's own form only decide or inform. Those are listed here; any
//! other field needs someone who may widen what an agent does.

use agentwire_protocol::Json;
use serde_json::{Map, Value};

use super::names::camel_case;

/// The first field of a hook's output that is neither a decision nor text. Names are read as the agent will
/// read them.
pub fn beyond_decision(event: &str, output: &Json<'_>) -> Option<String> {
    let renamed = camel_case(output).ok();
    let Some(fields) = renamed.and_then(|output| output.read::<Map<String, Value>>().ok()) else {
        return Some("hookOutput".to_owned());
    };
    let known = |name: &str, value: &Value| match name {
        "continue" | "suppressOutput" => value.is_boolean(),
        "stopReason" | "reason" | "systemMessage" => value.is_string(),
        "decision" => matches!(value.as_str(), Some("approve" | "block")),
        "hookSpecificOutput" => value.is_object(),
        _ => false,
    };
    let specific = fields.get("hookSpecificOutput").and_then(Value::as_object);
    unlisted("hookOutput", &fields, known)
        .or_else(|| specific.and_then(|specific| of_event(event, specific)))
}

fn of_event(event: &str, fields: &Map<String, Value>) -> Option<String> {
    let known = |name: &str, value: &Value| match name {
        "hookEventName" => value == event,
        "permissionDecision" => matches!(value.as_str(), Some("allow" | "deny" | "ask")),
        "permissionDecisionReason" | "additionalContext" => value.is_string(),
        "updatedInput" => event == "PreToolUse" && value.is_object(),
        "decision" => event == "PermissionRequest" && value.is_object(),
        _ => false,
    };
    let at = "hookOutput.hookSpecificOutput";
    unlisted(at, fields, known).or_else(|| {
        let decision = fields.get("decision")?.as_object()?;
        unlisted(&format!("{at}.decision"), decision, |name, value| match name {
            "behavior" => matches!(value.as_str(), Some("allow" | "deny")),
            "message" => value.is_string(),
            "interrupt" => value.is_boolean(),
            "updatedInput" => value.is_object(),
            _ => false,
        })
    })
}

/// The first field that is not known to be harmless. `null` has no effect.
fn unlisted(
    at: &str,
    fields: &Map<String, Value>,
    known: impl Fn(&str, &Value) -> bool,
) -> Option<String> {
    let mut given = fields.iter().filter(|(_, value)| !value.is_null());
    given.find(|(name, value)| !known(name, value)).map(|(name, _)| format!("{at}.{name}"))
}

/// The first field of an answer to a form that does not belong to the form.
pub fn beyond_form(output: &Json<'_>) -> Option<String> {
    let fields = output.read::<Map<String, Value>>().unwrap_or_default();
    unlisted("hookOutput", &fields, |name, _| matches!(name, "action" | "content"))
}
