//! What hooks answer, and what follows from several answers together.

use agentwire_protocol::{ErrorCode, GatewayError, Json};
use serde::Deserialize;

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
}

/// The strongest counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Decision {
    Allow,
    Ask,
    Deny,
}

/// The output as it stands on the wire, in camel case.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Wire {
    #[serde(default, rename = "continue")]
    goes_on: Option<bool>,
    #[serde(default)]
    stop_reason: Option<String>,
    #[serde(default)]
    decision: Option<String>,
    #[serde(default)]
    reason: Option<String>,
    #[serde(default)]
    system_message: Option<String>,
    #[serde(default)]
    hook_specific_output: Option<Specific>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Specific {
    #[serde(default)]
    permission_decision: Option<String>,
    #[serde(default)]
    permission_decision_reason: Option<String>,
    #[serde(default)]
    updated_input: Option<Json<'static>>,
    #[serde(default)]
    additional_context: Option<String>,
    /// Of a `PermissionRequest`.
    #[serde(default)]
    decision: Option<Answered>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answered {
    behavior: String,
    #[serde(default)]
    message: Option<String>,
    #[serde(default, alias = "updated_input")]
    updated_input: Option<Json<'static>>,
    #[serde(default)]
    interrupt: Option<bool>,
}

impl Output {
    /// Reads an output. What cannot be read is refused, so that a misspelt denial is not taken for no
    /// opinion.
    pub(super) fn read(output: &Json<'_>) -> Result<Self, GatewayError> {
        let invalid = |message: String| GatewayError::new(ErrorCode::InvalidMessage, message);
        let wire: Wire = output
            .read()
            .map_err(|error| invalid(format!("failed to read the hook's output: {error}")))?;
        let specific = wire.hook_specific_output.unwrap_or_default();
        let answered = specific.decision;
        let word = specific.permission_decision.as_deref();
        let word = word.or(answered.as_ref().map(|answered| answered.behavior.as_str()));
        let decision = match word.or(wire.decision.as_deref()) {
            None => None,
            Some("allow" | "approve") => Some(Decision::Allow),
            Some("ask") => Some(Decision::Ask),
            Some("deny" | "block") => Some(Decision::Deny),
            Some(word) => {
                return Err(invalid(format!(
                    "a hook cannot decide `{word}`; it can allow, ask or deny"
                )));
            }
        };
        let (told, changed, interrupts) = match answered {
            Some(answered) => {
                (answered.message, answered.updated_input, answered.interrupt.unwrap_or(false))
            }
            None => (None, None, false),
        };
        let reason = specific.permission_decision_reason.or(told).or(wire.reason);
        let stops = wire.goes_on == Some(false) || interrupts;
        let stop = stops.then(|| {
            let reason = wire.stop_reason.or(reason.clone());
            reason.unwrap_or_else(|| "a hook ended the turn".to_owned())
        });
        Ok(Self {
            decision,
            reason,
            input: specific.updated_input.or(changed).filter(|input| input.get() != "null"),
            context: specific.additional_context.filter(|context| !context.is_empty()),
            message: wire.system_message.filter(|message| !message.is_empty()),
            stop,
        })
    }

    /// A refusal for this reason.
    pub(super) fn deny(reason: &str) -> Self {
        Self { decision: Some(Decision::Deny), reason: Some(reason.to_owned()), ..Self::default() }
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
