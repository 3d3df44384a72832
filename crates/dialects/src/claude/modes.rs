//! Permission modes: which ones Claude itself runs in, and which the gateway applies for it.
//!
//! An agent that can ask always runs in the mode that asks most. `acceptEdits` and `bypassPermissions`
//! approve calls, so the gateway's policy applies them as `autoEdit` and `autoAll`, and Claude stays in
//! `default`. The other modes are passed on to Claude. They only restrict it, except `auto`, in which
//! Claude's own classifier approves calls.

use agentwire_protocol::{ApprovalMode, ErrorCode, GatewayError, SessionConfig};

/// The mode in which Claude asks.
pub(super) const ASKING: &str = "default";

const MODES: [&str; 6] = [ASKING, "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"];

/// Whether the gateway applies this mode itself and Claude never runs in it.
pub(super) fn is_applied_by_gateway(mode: &str) -> bool {
    matches!(mode, "acceptEdits" | "bypassPermissions")
}

/// Claude's name for a mode that the gateway applies; `None` if clients see Claude's own mode.
pub(super) fn shown(own: Option<&str>, approval: Option<ApprovalMode>) -> Option<&str> {
    match (own, approval.unwrap_or_default()) {
        (Some(own), _) => Some(own).filter(|own| is_applied_by_gateway(own)),
        (None, ApprovalMode::Ask | ApprovalMode::AskDangerous) => None,
        (None, ApprovalMode::AutoEdit) => Some("acceptEdits"),
        (None, ApprovalMode::AutoAll) => Some("bypassPermissions"),
    }
}

/// The mode in which Claude runs when a client sets this one.
pub(super) fn handed_down(
    agent: &str,
    mode: &str,
    config: &SessionConfig,
) -> Result<&'static str, GatewayError> {
    let known = MODES.into_iter().find(|known| *known == mode).ok_or_else(|| {
        let message = format!("{agent} has no permissionMode {mode}; it has {}", MODES.join(", "));
        GatewayError::new(ErrorCode::Unsupported, message)
    })?;
    let has_rules = config.blocked_tools.as_ref().is_some_and(|rules| !rules.is_empty());
    if known == "auto" && has_rules {
        // Claude's classifier approves calls in this mode, so a rule in doubt would not be asked about.
        let what = "permissionMode auto together with blockedTools";
        return Err(GatewayError::unsupported(agent, what));
    }
    Ok(if is_applied_by_gateway(known) { ASKING } else { known })
}
