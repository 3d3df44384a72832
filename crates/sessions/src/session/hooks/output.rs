//! What hooks answer, and what follows from several answers together.

use agentwire_dialects::hooks::{self, Permission};
use agentwire_dialects::permission_updates::PermissionUpdate;
use agentwire_protocol::{GatewayError, Json};

/// What a hook answers.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    pub(super) decision: Option<Decision>,
    pub(super) reason: Option<String>,
    /// The tool's input is to be this one.
    pub(super) input: Option<Json<'static>>,
    /// Something for the agent to know.
    pub(super) context: Option<String>,
    /// Something for the user to know.
    pub(super) message: Option<String>,
    /// The turn is to end, for this reason.
    pub(super) stop: Option<String>,
    /// The like of the call is allowed from now on.
    pub(super) always: bool,
    /// What else it wants that nobody can do.
    pub(super) vain: Vec<Vain>,
}

/// The strongest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Decision {
    Allow,
    Ask,
    Deny,
}

/// What a hook may want of Claude that cannot be had of other agents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Vain {
    /// Other changes of the rules than to allow the like of the call.
    Rules,
    /// Another output of an MCP tool.
    ToolOutput,
}

impl Output {
    /// Reads an output in camel case.
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
        let is_in_vain = updates.iter().any(|update| !update.allows());
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
        let mut vain = Vec::new();
        vain.extend(is_in_vain.then_some(Vain::Rules));
        vain.extend(specific.updated_mcp_tool_output.map(|_| Vain::ToolOutput));
        Ok(Self {
            decision,
            reason,
            input,
            context: specific.additional_context.filter(|context| !context.is_empty()),
            message: output.system_message.filter(|message| !message.is_empty()),
            stop,
            always,
            vain,
        })
    }

    /// A refusal for this reason.
    pub(super) fn deny(reason: &str) -> Self {
        Self { decision: Some(Decision::Deny), reason: Some(reason.to_owned()), ..Self::default() }
    }

    /// Somebody is to be asked.
    pub(super) fn ask() -> Self {
        Self { decision: Some(Decision::Ask), ..Self::default() }
    }

    /// What several answers say together: the strongest decision with its reason, the last input, all
    /// contexts.
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

    /// Why it is blocked, if it is.
    pub(super) fn blocked(&self) -> Option<String> {
        let reason = || self.reason.clone().unwrap_or_else(|| "blocked by a hook".to_owned());
        self.stop.clone().or_else(|| (self.decision == Some(Decision::Deny)).then(reason))
    }
}
