//! The gateway's own hook. Claude calls it before every tool, so the policy also judges calls that Claude
//! would run without asking.

use std::collections::BTreeMap;

use agentwire_protocol::session::HookMatcher;
use agentwire_protocol::{GatewayError, SessionConfig};

/// The callback id of the gateway's own hook.
pub(super) const GUARD: &str = "agentwire-policy";

/// Seconds that Claude waits for the gateway. A limit may hold a call until somebody answers.
const TIMEOUT: u32 = 7 * 24 * 60 * 60;

/// Refuses a client's hook that uses the gateway's callback id.
pub(super) fn check(config: &SessionConfig) -> Result<(), GatewayError> {
    let hooks = config.hooks.iter().flatten().flat_map(|(_, matchers)| matchers);
    let mut ids = hooks.flat_map(|matcher| &matcher.callback_ids);
    match ids.any(|id| id == GUARD) {
        true => {
            let message = format!("the hook callback id {GUARD} is reserved; choose another");
            Err(GatewayError::invalid(message))
        }
        false => Ok(()),
    }
}

/// The hooks of the session's clients, with the gateway's own in front. It is always registered: an answer
/// may add a rule later, and Claude's own settings may allow calls that agentwire asks about.
pub(super) fn with_guard(config: &SessionConfig) -> BTreeMap<String, Vec<HookMatcher>> {
    let mut hooks = config.hooks.clone().unwrap_or_default();
    let guard = HookMatcher {
        matcher: None,
        timeout: Some(TIMEOUT),
        callback_ids: vec![GUARD.to_owned()],
        on_failure: Some("block".to_owned()),
    };
    hooks.entry("PreToolUse".to_owned()).or_default().insert(0, guard);
    hooks
}
