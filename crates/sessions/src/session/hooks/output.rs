//! The answers of hooks, and how several answers combine.

use agentwire_dialects::hooks::{self, Permission};
use agentwire_dialects::permission_updates::PermissionUpdate;
use agentwire_protocol::{GatewayError, Json};

#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    pub(super) decision: Option<Decision>,
    pub(super) reason: Option<String>,
    /// Replaces the tool's input.
    pub(super) input: Option<Json<'static>>,
    /// A text for the agent.
    pub(super) context: Option<String>,
    /// A text for the user.
    pub(super) message: Option<String>,
    /// End the turn, for this reason.
    pub(super) stop: Option<String>,
    /// Allow similar calls from now on.
    pub(super) always: bool,
    /// Other wishes that cannot be fulfilled.
    pub(super) unsupported: Vec<UnsupportedOutput>,
}

/// The strongest decision wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Decision {
    Allow,
    Ask,
    Deny,
}

/// What a hook may ask of Claude, but not of other agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnsupportedOutput {
    /// Changes to the rules other than allowing similar calls.
    Rules,
    /// A replacement for the output of an MCP tool.
    ToolOutput,
}

impl Output {
    /// Reads an output in camelCase.
    pub(super) fn read(output: &Json<'_>) -> Result<Self, GatewayError> {
        let output = hooks::Output::read(output)?;
        let decision = output.decides().map(|decided| match decided {
            Permission::Allow => Decision::Allow,
            Permission::Ask | Permission::Defer => Decision::Ask,
            Permission::Deny => Decision::Deny,
        });
        let input = output.updated_input().cloned();
        let updates = output.updates().unwrap_or_default();
        let always = updates.iter().any(PermissionUpdate::allows);
        let is_unsupported = updates.iter().any(|update| !update.allows());
        let specific = output.specific.unwrap_or_default();
        let (told, interrupts) = match specific.decision {
            Some(answered) => (answered.message, answered.interrupt.unwrap_or(false)),
            None => (None, false),
        };
        let reason = specific.permission_decision_reason.or(told).or(output.reason);
        let stops = output.goes_on == Some(false) || interrupts;
        let stop = stops.then(|| {
            let reason = output.stop_reason.or(reason.clone());
            reason.unwrap_or_else(|| "a hook ended the turn".to_owned())
        });
        let mut unsupported = Vec::new();
        unsupported.extend(is_unsupported.then_some(UnsupportedOutput::Rules));
        unsupported.extend(specific.updated_mcp_tool_output.map(|_| UnsupportedOutput::ToolOutput));
        Ok(Self {
            decision,
            reason,
            input,
            context: specific.additional_context.filter(|context| !context.is_empty()),
            message: output.system_message.filter(|message| !message.is_empty()),
            stop,
            always,
            unsupported,
        })
    }

    pub(super) fn deny(reason: &str) -> Self {
        Self { decision: Some(Decision::Deny), reason: Some(reason.to_owned()), ..Self::default() }
    }

    /// Lets a client decide.
    pub(super) fn ask() -> Self {
        Self { decision: Some(Decision::Ask), ..Self::default() }
    }

    /// Combines several answers: the strongest decision with its reason, the last input, all contexts.
    pub(super) fn all(outputs: Vec<Self>) -> Self {
        let mut all = Self::default();
        let mut contexts = Vec::new();
        for output in outputs {
            if output.decision > all.decision {
                all.decision = output.decision;
                all.reason = output.reason;
            }
            all.input = output.input.or(all.input);
            all.stop = all.stop.or(output.stop);
            contexts.extend(output.context);
        }
        all.context = (!contexts.is_empty()).then(|| contexts.join("\n\n"));
        all
    }

    pub(super) fn blocked(&self) -> Option<String> {
        let reason = || self.reason.clone().unwrap_or_else(|| "blocked by a hook".to_owned());
        self.stop.clone().or_else(|| (self.decision == Some(Decision::Deny)).then(reason))
    }
}
