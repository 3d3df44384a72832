//! Converts failed turns, tools and sessions into [`AgentError`].

use agentwire_protocol::event::{
    ErrorEvent, SessionEndReason, SessionEnded, ToolFailed, ToolFailure, TurnFailed, TurnFailure,
};
use agentwire_protocol::{AgentType, Event, EventKind};

use super::{AgentError, AgentErrorType};

impl AgentError {
    /// The failure that an event reports, or `None` if it reports none.
    pub fn of_event(event: &Event<'_>, agent: Option<AgentType>) -> Option<Self> {
        let error = match &event.kind {
            EventKind::TurnFailed(turn) => of_turn(turn),
            EventKind::ToolFailed(tool) => of_tool(tool),
            EventKind::Error(error) => of_error(error),
            EventKind::SessionEnded(ended) => of_end(ended)?,
            _ => return None,
        };
        Some(match agent {
            Some(agent) => error.with_agent(agent),
            None => error,
        })
    }
}

fn of_turn(turn: &TurnFailed<'_>) -> AgentError {
    let named = turn.error_type.as_ref().map(|named| named.decode());
    let kind = match turn.reason {
        TurnFailure::Error => named.as_deref().map_or(AgentErrorType::ToolExecutionFailed, of_name),
        TurnFailure::Refused => AgentErrorType::PermissionDenied,
        TurnFailure::Died => AgentErrorType::ConnectionFailed,
        TurnFailure::Interrupted | TurnFailure::MaxTurns | TurnFailure::Budget => {
            AgentErrorType::Unknown
        }
    };
    let error = may_pass(AgentError::new(kind, turn.error.to_string()));
    match named {
        Some(named) => error.with_native(named),
        None => error,
    }
}

fn of_tool(tool: &ToolFailed<'_>) -> AgentError {
    let kind = match tool.reason {
        ToolFailure::Denied => AgentErrorType::PermissionDenied,
        ToolFailure::Interrupted | ToolFailure::Invalid => AgentErrorType::ToolExecutionFailed,
    };
    AgentError::new(kind, tool.error.to_string())
}

fn of_error(told: &ErrorEvent<'_>) -> AgentError {
    let code = told.code.as_ref().map(|code| code.decode());
    let kind = code.as_deref().map_or(AgentErrorType::Unknown, of_name);
    let error = may_pass(AgentError::new(kind, told.message.to_string()));
    let error = if told.will_retry == Some(true) { error.retryable() } else { error };
    match code {
        Some(code) => error.with_native(code),
        None => error,
    }
}

fn of_end(ended: &SessionEnded<'_>) -> Option<AgentError> {
    let kind = match ended.reason {
        SessionEndReason::Failed => AgentErrorType::ToolExecutionFailed,
        SessionEndReason::Timeout => AgentErrorType::Timeout,
        SessionEndReason::Completed | SessionEndReason::Cancelled => return None,
    };
    let message = ended.error.as_ref().map(ToString::to_string);
    let message =
        message.unwrap_or_else(|| format!("the session ended: {}", ended.reason.as_str()));
    Some(may_pass(AgentError::new(kind, message)))
}

/// A failed connection to the model and a timeout may succeed later.
fn may_pass(error: AgentError) -> AgentError {
    let is_passing =
        matches!(error.kind(), AgentErrorType::ConnectionFailed | AgentErrorType::Timeout);
    if is_passing { error.retryable() } else { error }
}

/// Agents have their own names for errors; this looks for words in them, in any spelling.
fn of_name(name: &str) -> AgentErrorType {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    match () {
        () if has(&["auth", "credential", "login", "api_key", "apikey"]) => {
            AgentErrorType::AuthenticationFailed
        }
        () if has(&["timeout", "timed_out", "timedout"]) => AgentErrorType::Timeout,
        () if has(&["permission", "forbidden", "denied", "sandbox"]) => {
            AgentErrorType::PermissionDenied
        }
        () if has(&[
            "connection",
            "disconnect",
            "network",
            "overloaded",
            "rate_limit",
            "server",
        ]) =>
        {
            AgentErrorType::ConnectionFailed
        }
        () if has(&["invalid", "malformed", "protocol", "parse"]) => AgentErrorType::ProtocolError,
        () => AgentErrorType::ToolExecutionFailed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_error_names_are_mapped() {
        for (name, kind) in [
            ("authentication_failed", AgentErrorType::AuthenticationFailed),
            ("rate_limit", AgentErrorType::ConnectionFailed),
            ("responseStreamDisconnected", AgentErrorType::ConnectionFailed),
            ("sandboxError", AgentErrorType::PermissionDenied),
            ("error_during_execution", AgentErrorType::ToolExecutionFailed),
        ] {
            assert_eq!(of_name(name), kind, "{name}");
        }
    }
}
