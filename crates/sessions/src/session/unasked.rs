//! What an agent runs without asking: rules that deny hold there too. Such a call cannot be stopped by
//! an answer, so the turn is cancelled and fails.

use agentwire_dialects::describe::{AgentTools, CallFacts, Description};
use agentwire_dialects::tape::Unasked;
use agentwire_protocol::event::{SessionEndReason, TurnCompleted, TurnFailed, TurnFailure};
use agentwire_protocol::session::ApprovalMode;
use agentwire_protocol::{GatewayError, Text};

use super::actor::Actor;
use crate::machine::Found;
use crate::process::TreeSignal;

/// What an agent did that it must not.
#[derive(Clone, Debug)]
pub(super) struct Breach {
    pub(super) message: String,
    /// The agent cannot be held to anything any more.
    pub(super) ends_session: bool,
    /// What follows from it has been done; only the turn is still to fail.
    pub(super) is_known: bool,
}

impl Breach {
    /// A call that a rule denies runs.
    pub(super) fn of(call: &Unasked, rule: &str) -> Self {
        let name = call.tool_name.as_deref().or(call.title.as_deref()).unwrap_or("a tool");
        let message = format!(
            "the agent ran {name} (call {}) without asking, though it is {rule}; the turn was cancelled",
            call.tool_id
        );
        Self { message, ends_session: false, is_known: false }
    }
}

/// What runs, as the agent's dialect describes it.
pub(super) fn described<'c>(tools: &AgentTools, call: &'c Unasked) -> Description<'c> {
    tools.describe(&CallFacts {
        tool_name: call.tool_name.as_deref().or(call.title.as_deref()),
        is_title: call.tool_name.is_none(),
        kind: Some(call.kind),
        input: call.input.as_ref(),
        title: call.title.as_deref(),
        server: call.server.as_deref(),
        call_id: Some(&call.tool_id),
        ..CallFacts::default()
    })
}

/// The failed turn that a completed one is, after a breach.
pub(super) fn failed<'a>(completed: &mut TurnCompleted<'a>, message: &str) -> TurnFailed<'a> {
    TurnFailed {
        usage: Some(completed.usage),
        cost_usd: completed.cost_usd,
        duration_ms: completed.duration_ms,
        models: std::mem::take(&mut completed.models),
        ..TurnFailed::new(completed.turn_number, TurnFailure::Error, Text::from(message.to_owned()))
    }
}

impl Actor {
    /// Looks for files of the machine that let the agent run calls which the session's mode would ask about.
    pub(super) async fn look_at_machine(&mut self) -> Result<(), GatewayError> {
        if !self.plan.dialect.machine_files().is_empty() {
            let launch = self.plan.launch(&self.config, &self.origin, None, None)?;
            let found = self.plan.unasked(&launch).await?;
            self.warnings = found.iter().map(Found::warning).collect();
            self.warn_of_machine();
        }
        Ok(())
    }

    /// Reports them, once, unless the mode allows everything.
    pub(super) fn warn_of_machine(&mut self) {
        if self.policy.mode() != ApprovalMode::AutoAll {
            std::mem::take(&mut self.warnings).into_iter().for_each(|warning| self.warn(warning));
        }
    }

    /// Gives the rules that deny to whoever sees what runs.
    pub(super) fn guard(&mut self) {
        self.core.guard = self.policy.denies_anything().then(|| self.policy.clone());
    }

    /// Ends what the agent did in breach of the rules.
    pub(super) fn end_breach(&mut self) {
        let Some(breach) = self.core.breach.as_mut().filter(|breach| !breach.is_known) else {
            return;
        };
        breach.is_known = true;
        let Breach { message, ends_session, .. } = breach.clone();
        if ends_session {
            if let Some(process) = &mut self.process {
                process.verdict = Some(message.clone());
            }
            self.ending = Some((SessionEndReason::Failed, Some(message)));
            self.signal(TreeSignal::Kill);
        } else if self.core.book.record.open.turn.is_some() && self.core.cut.is_none() {
            self.cut_off(TurnFailure::Error, message);
        }
    }
}
