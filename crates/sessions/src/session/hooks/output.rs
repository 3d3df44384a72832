//! What hooks answer, and what follows from several answers together.

use agentwire_dialects::hooks::{self, Block, Permission, Update};
use agentwire_protocol::command::Behavior;
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
        let specific = output.specific.unwrap_or_default();
        let answered = specific.decision;
        let decision = match (specific.permission_decision, &answered, output.decision) {
            (Some(Permission::Allow), ..) => Some(Decision::Allow),
            (Some(Permission::Ask | Permission::Defer), ..) => Some(Decision::Ask),
            (Some(Permission::Deny), ..) => Some(Decision::Deny),
            (None, Some(answered), _) => Some(match answered.behavior {
                Behavior::Allow => Decision::Allow,
                Behavior::Deny => Decision::Deny,
            }),
            (None, None, Some(Block::Approve)) => Some(Decision::Allow),
            (None, None, Some(Block::Block)) => Some(Decision::Deny),
            (None, None, None) => None,
        };
        let (told, changed, rules, interrupts) = match answered {
            Some(answered) => (
                answered.message,
                answered.updated_input,
                answered.updated_permissions.unwrap_or_default(),
                answered.interrupt.unwrap_or(false),
            ),
            None => (None, None, Vec::new(), false),
        };
        let reason = specific.permission_decision_reason.or(told).or(output.reason);
        let stops = output.goes_on == Some(false) || interrupts;
        let stop = stops.then(|| {
            let reason = output.stop_reason.or(reason.clone());
            reason.unwrap_or_else(|| "a hook ended the turn".to_owned())
        });
        let mut vain = Vec::new();
        vain.extend(rules.iter().any(|rule| !allows(rule)).then_some(Vain::Rules));
        vain.extend(specific.updated_mcp_tool_output.map(|_| Vain::ToolOutput));
        Ok(Self {
            decision,
            reason,
            input: specific.updated_input.or(changed),
            context: specific.additional_context.filter(|context| !context.is_empty()),
            message: output.system_message.filter(|message| !message.is_empty()),
            stop,
            always: rules.iter().any(allows),
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

fn allows(update: &Update) -> bool {
    update.kind == "addRules" && update.behavior.as_deref() == Some("allow")
}
