//! Hooks as Claude has them: which are called, and what an answer means. Shared by Claude's dialect and by
//! the gateway, which calls hooks for agents without them.

mod names;
mod output;
mod scope;

use std::collections::BTreeMap;

use agentwire_protocol::session::HookMatcher;
use agentwire_protocol::{Answer, GatewayError, Json, SessionConfig};
use regex_lite::Regex;
use serde_json::json;

use self::names::camel_case;
pub(crate) use self::names::{camel, put, snake};
pub use self::output::{Decision, Output, Permission, SpecificOutput};
pub use self::scope::{beyond_decision, beyond_form};

pub use crate::claude::tools::{ToolCall, ToolUse, overlaid};

pub(crate) type Object = BTreeMap<String, Json<'static>>;

pub const EVENTS: [&str; 33] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "Notification",
    "UserPromptSubmit",
    "UserPromptExpansion",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "StopFailure",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PostCompact",
    "PreModelSwitch",
    "PostModelSwitch",
    "PermissionRequest",
    "PermissionDenied",
    "Setup",
    "TeammateIdle",
    "TaskCreated",
    "TaskCompleted",
    "Elicitation",
    "ElicitationResult",
    "ConfigChange",
    "WorktreeCreate",
    "WorktreeRemove",
    "InstructionsLoaded",
    "CwdChanged",
    "FileChanged",
    "DirectoryAdded",
    "MessageDisplay",
];

/// The text of a denial without a message.
pub(crate) const DENIED: &str = "The user denied this request.";

/// The tools or other subjects that a hook is called for.
#[derive(Clone, Debug)]
pub enum Matcher {
    All,
    Names(Vec<String>),
    /// Names in which the pattern is found.
    Pattern(Regex),
}

impl Matcher {
    /// Letters and bars are a choice of names; anything else is a pattern that may match anywhere.
    pub fn parse(text: Option<&str>) -> Result<Self, regex_lite::Error> {
        Ok(match text {
            None | Some("" | "*") => Self::All,
            Some(text) if text.chars().all(|c| c.is_alphanumeric() || "_-|".contains(c)) => {
                Self::Names(text.split('|').map(str::to_owned).collect())
            }
            Some(text) => Self::Pattern(Regex::new(text)?),
        })
    }

    /// Whether no program could read that pattern. Claude's patterns support more than ours: a pattern that
    /// may use that is left to the agent.
    pub fn is_broken(text: &str) -> bool {
        !text.contains('\\') && !text.contains("(?") && Self::parse(Some(text)).is_err()
    }

    pub fn fits(&self, subject: &str) -> bool {
        match self {
            Self::All => true,
            Self::Names(names) => names.iter().any(|name| name == subject),
            Self::Pattern(pattern) => pattern.is_match(subject),
        }
    }
}

/// Refuses a hook for an unknown event: it would never be called.
pub fn check_events(config: &SessionConfig) -> Result<(), String> {
    let mut events = config.hooks.iter().flatten().map(|(event, _)| event.as_str());
    match events.find(|event| !EVENTS.contains(event)) {
        Some(unknown) => Err(format!("unknown hook {unknown}")),
        None => Ok(()),
    }
}

/// Any agent's tool call, as hooks describe it.
pub fn shown(call: &ToolCall<'_>) -> ToolUse {
    call.as_claude()
}

/// Gives our callback id to every matcher without one of the client's. The callback itself says which event
/// it is for.
pub fn callbacks(
    hooks: &BTreeMap<String, Vec<HookMatcher>>,
) -> BTreeMap<&String, Vec<HookMatcher>> {
    let mut ids = (0..).map(|number| format!("hook_{number}"));
    let mut entry = |matcher: &HookMatcher| {
        let mut entry = matcher.clone();
        if entry.callback_ids.is_empty() {
            entry.callback_ids.extend(ids.next());
        }
        entry
    };
    hooks
        .iter()
        .map(|(event, matchers)| (event, matchers.iter().map(&mut entry).collect()))
        .collect()
}

#[derive(Clone, Debug, PartialEq)]
pub enum HookAnswer {
    /// This output, with keys in camel case.
    Output(Json<'static>),
    /// The hook itself failed, with this reason: it has no opinion.
    Failure(String),
}

/// Reads the answer to a hook of that event; `agent` is the name in refusals.
pub fn read_answer(
    agent: &str,
    event: Option<&str>,
    answer: Answer,
) -> Result<HookAnswer, GatewayError> {
    let output = match answer {
        Answer::HookOutput(output) => return Ok(HookAnswer::Output(camel_case(&output)?)),
        Answer::Allow { always: true, .. } => {
            let what = "remember session as the answer to a hook";
            return Err(GatewayError::unsupported(agent, what));
        }
        Answer::Allow { updated_input, updated_permissions, .. } => {
            return allows(agent, event, updated_input, updated_permissions);
        }
        Answer::Answers(_) => {
            let message = "answers are not an answer to a hook; give behavior or hookOutput";
            return Err(GatewayError::invalid(message));
        }
        Answer::Deny { message, .. } => {
            let reason = message.unwrap_or_else(|| DENIED.to_owned());
            match event {
                Some("PreToolUse") => json!({ "hookSpecificOutput": {
                    "hookEventName": "PreToolUse",
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                } }),
                Some("PermissionRequest") => json!({ "hookSpecificOutput": {
                    "hookEventName": "PermissionRequest",
                    "decision": { "behavior": "deny", "message": reason },
                } }),
                Some("UserPromptSubmit") => json!({ "decision": "block", "reason": reason }),
                // Blocking any other event would make the agent continue, not stop.
                _ => return Ok(HookAnswer::Failure(reason)),
            }
        }
    };
    Ok(HookAnswer::Output(Json::of(&output)))
}

/// An allow without changes returns an empty output, so the permission is still asked for. A change can
/// only be expressed with a decision.
fn allows(
    agent: &str,
    event: Option<&str>,
    input: Option<Json<'static>>,
    rules: Option<Json<'static>>,
) -> Result<HookAnswer, GatewayError> {
    let specific = match (event, input, rules) {
        (_, None, None) => return Ok(HookAnswer::Output(Json::EMPTY)),
        (Some("PreToolUse"), Some(input), None) => Object::from([
            ("hookEventName".to_owned(), Json::of(&"PreToolUse")),
            ("permissionDecision".to_owned(), Json::of(&"allow")),
            ("updatedInput".to_owned(), input),
        ]),
        (Some("PermissionRequest"), input, rules) => {
            let mut decision = BTreeMap::from([("behavior", Json::of(&"allow"))]);
            decision.extend(input.map(|input| ("updatedInput", input)));
            decision.extend(rules.map(|rules| ("updatedPermissions", rules)));
            Object::from([
                ("hookEventName".to_owned(), Json::of(&"PermissionRequest")),
                ("decision".to_owned(), Json::of(&decision)),
            ])
        }
        (event, _, rules) => {
            let what = if rules.is_some() { "updatedPermissions" } else { "updatedInput" };
            let hook = event.unwrap_or("unknown");
            let what = format!("{what} as the answer to a {hook} hook");
            return Err(GatewayError::unsupported(agent, what));
        }
    };
    Ok(HookAnswer::Output(Json::of(&BTreeMap::from([("hookSpecificOutput", specific)]))))
}

pub(crate) fn read_object(json: &Json<'_>) -> Result<Object, GatewayError> {
    json.read().map_err(|_| GatewayError::invalid("hookOutput must be a JSON object"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn matchers_are_read_as_claude_reads_them() {
        let fits = |matcher: Option<&str>, tool: &str| Matcher::parse(matcher).unwrap().fits(tool);
        for all in [None, Some(""), Some("*")] {
            assert!(fits(all, "Bash"));
        }
        assert!(fits(Some("Bash"), "Bash"));
        assert!(!fits(Some("Ba"), "Bash"));
        assert!(!fits(Some("bash"), "Bash"));
        assert!(fits(Some("Edit|Bash"), "Bash"));
        assert!(!fits(Some("Edit|Bash"), "BashOutput"));
        assert!(fits(Some("ash$"), "Bash"));
        assert!(fits(Some("B.*"), "Bash"));
        assert!(fits(Some("mcp__.*__add"), "mcp__calc__add"));
        assert!(!fits(Some("^ash"), "Bash"));
        assert!(Matcher::parse(Some("(")).is_err());
        assert!(Matcher::is_broken("(") && Matcher::is_broken("*a") && Matcher::is_broken("[a"));
        assert!(!Matcher::is_broken("^(?!Bash)") && !Matcher::is_broken("mcp__.*"));
    }
}
