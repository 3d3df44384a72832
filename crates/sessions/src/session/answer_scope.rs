//! Limits what an answer from a client without the scope `admin` may grant: what was requested and shown,
//! once or for this session. The allowed fields are listed here and in `hooks::beyond_decision`; everything
//! else is refused.

use agentwire_dialects::hooks::{beyond_decision, beyond_form};
use agentwire_dialects::permission_updates::{PermissionUpdate, suggested_rules};
use agentwire_protocol::command::Behavior;
use agentwire_protocol::event::RequestKind;
use agentwire_protocol::{ErrorCode, GatewayError, Json, Settlement};
#[cfg(test)]
use serde_json::Value;

use super::hooks::event_name;
use super::pending_request::PendingRequest;

/// Refuses an answer that grants more than was requested. A denial grants nothing.
pub(super) fn check(raised: &PendingRequest, settlement: &Settlement) -> Result<(), GatewayError> {
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

/// The error for an answer that grants more than was requested.
pub(super) fn beyond_asked(what: &str, raised: &PendingRequest) -> GatewayError {
    let message = format!(
        "{what} may grant more than request {} asks for, which needs the scope admin; answer with \
         behavior, and with remember to keep the answer for the session",
        raised.id
    );
    GatewayError::new(ErrorCode::Forbidden, message)
}

/// The field of an answer in the agent's own form that is more than an answer.
fn beyond(raised: &PendingRequest, settlement: &Settlement) -> Option<String> {
    let output = settlement.hook_output.as_ref();
    match raised.kind {
        RequestKind::Permission => output.map(|_| "hookOutput".to_owned()),
        RequestKind::Question => output.and_then(beyond_form),
        RequestKind::Hook => output.and_then(|output| {
            let event = event_name(raised.input.as_ref());
            beyond_decision(event.as_deref().unwrap_or_default(), output)
        }),
        // A message from an MCP server requests nothing else.
        RequestKind::Mcp => None,
        // The gateway does not know what this asks for.
        RequestKind::Other => match (output, &settlement.updated_input) {
            (Some(_), _) => Some("hookOutput".to_owned()),
            (None, Some(_)) => Some("updatedInput".to_owned()),
            (None, None) => None,
        },
    }
}

/// Whether these are rules that the request itself suggests, for this session only.
fn are_suggested(updates: &Json<'_>, raised: &PendingRequest) -> bool {
    let Ok(updates) = PermissionUpdate::list(updates) else { return false };
    let suggested = raised.suggestions.as_ref().map(suggested_rules).unwrap_or_default();
    updates.iter().all(|update| update.only_adds(&suggested))
}

#[cfg(test)]
mod tests;
