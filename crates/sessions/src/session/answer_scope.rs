//! What an answer may give that comes from a client without the scope `admin`: what was asked for and
//! shown, once or in this session. What is allowed is listed here; everything else is refused.

use agentwire_dialects::hooks;
use agentwire_protocol::command::Behavior;
use agentwire_protocol::event::RequestKind;
use agentwire_protocol::{ErrorCode, GatewayError, Json, Settlement};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::hooks::event_name;
use super::raised::Raised;

/// Refuses an answer that gives more than was asked for. To deny gives nothing.
pub(super) fn check(raised: &Raised, settlement: &Settlement) -> Result<(), GatewayError> {
    if settlement.behavior == Some(Behavior::Deny) || settlement.error.is_some() {
        return Ok(());
    }
    let beyond = beyond(raised, settlement).or_else(|| {
        let rules = settlement.updated_permissions.as_ref()?;
        (!are_suggested(rules, raised)).then(|| "updatedPermissions".to_owned())
    });
    match beyond {
        None => Ok(()),
        Some(what) => Err(beyond_asked(&what, raised)),
    }
}

/// The refusal of an answer that gives more than was asked for.
pub(super) fn beyond_asked(what: &str, raised: &Raised) -> GatewayError {
    let message = format!(
        "{what} may give more than request {} asks for: that needs the scope admin; answer with \
         behavior and, to keep it for the session, remember",
        raised.id
    );
    GatewayError::new(ErrorCode::Forbidden, message)
}

/// What of an answer in the agent's own form is more than an answer.
fn beyond(raised: &Raised, settlement: &Settlement) -> Option<String> {
    let output = settlement.hook_output.as_ref();
    match raised.kind {
        RequestKind::Permission => output.map(|_| "hookOutput".to_owned()),
        RequestKind::Question => output.and_then(|output| {
            let fields = output.read::<Map<String, Value>>().unwrap_or_default();
            unlisted("hookOutput", &fields, |name, _| matches!(name, "action" | "content"))
        }),
        RequestKind::Hook => output.and_then(|output| of_hook(raised, output)),
        // A message of an MCP server: nothing else was asked for.
        RequestKind::Mcp => None,
        // Nobody here knows what it asks for.
        RequestKind::Other => match (output, &settlement.updated_input) {
            (Some(_), _) => Some("hookOutput".to_owned()),
            (None, Some(_)) => Some("updatedInput".to_owned()),
            (None, None) => None,
        },
    }
}

/// What of a hook's output is neither a decision nor words. Names are read as the agent will read them.
fn of_hook(raised: &Raised, output: &Json<'static>) -> Option<String> {
    let renamed = hooks::renamed(output).ok();
    let Some(fields) = renamed.and_then(|output| output.read::<Map<String, Value>>().ok()) else {
        return Some("hookOutput".to_owned());
    };
    let event = event_name(raised.input.as_ref());
    let event = event.as_deref().unwrap_or_default();
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

/// The first field that is not known to be harmless. `null` says nothing.
fn unlisted(
    at: &str,
    fields: &Map<String, Value>,
    known: impl Fn(&str, &Value) -> bool,
) -> Option<String> {
    let mut given = fields.iter().filter(|(_, value)| !value.is_null());
    given.find(|(name, value)| !known(name, value)).map(|(name, _)| format!("{at}.{name}"))
}

/// One rule of Claude's `updatedPermissions`.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Rule {
    tool_name: String,
    #[serde(default)]
    rule_content: Option<String>,
}

impl Rule {
    /// The rule as the policy reads it.
    pub(super) fn text(self) -> String {
        match self.rule_content {
            Some(content) => format!("{}({content})", self.tool_name),
            None => self.tool_name,
        }
    }
}

/// The rules that these suggestions have.
pub(super) fn suggested(list: &Json<'static>) -> Vec<Rule> {
    #[derive(Deserialize)]
    struct Suggested {
        #[serde(default)]
        rules: Vec<Rule>,
    }
    let list = hooks::rules(list).ok().and_then(|list| list.read::<Vec<Suggested>>().ok());
    list.unwrap_or_default().into_iter().flat_map(|it| it.rules).collect()
}

/// Whether these are rules that the request itself suggests, for this session alone.
fn are_suggested(rules: &Json<'_>, raised: &Raised) -> bool {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase", deny_unknown_fields)]
    struct Update {
        r#type: String,
        destination: String,
        behavior: String,
        rules: Vec<Rule>,
    }
    let read = |list: &Json<'_>| hooks::rules(list).ok()?.read::<Vec<Update>>().ok();
    let Some(updates) = read(rules) else { return false };
    let suggested = raised.suggestions.as_ref().map(suggested).unwrap_or_default();
    updates.iter().all(|update| {
        update.r#type == "addRules"
            && update.destination == "session"
            && matches!(update.behavior.as_str(), "allow" | "deny")
            && !update.rules.is_empty()
            && update.rules.iter().all(|rule| suggested.contains(rule))
    })
}

#[cfg(test)]
mod tests;
