//! What an agent runs without asking, or before it is answered: rules that deny hold there too, and what
//! needs an answer is not done without one. Such a call cannot be stopped by an answer, so the turn is
//! cancelled and fails.

use agentwire_dialects::describe::{AgentTools, CallFacts, Description};
use agentwire_dialects::tape::Unasked;
use agentwire_protocol::event::{
    RequestKind, RequestOutcome, SettledBy, TurnCompleted, TurnFailed, TurnFailure,
};
use agentwire_protocol::session::ApprovalMode;
use agentwire_protocol::{EventKind, GatewayError, Text};

use super::actor::Actor;
use super::core::Core;
use super::policy::{OnDisk, Verdict};
use super::requests::asked;
use super::state::OPEN_LIMIT;
use crate::managed_files::Found;
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
            "the agent ran {name} (call {}) without asking, though it is {rule}",
            call.tool_id
        );
        Self { message, ends_session: false, is_known: false }
    }

    /// A call has run though its permission request was never answered.
    fn unanswered(tool_id: &str) -> Self {
        let message = format!(
            "the agent ran call {tool_id} without waiting for an answer to its permission request"
        );
        Self { message, ends_session: false, is_known: false }
    }
}

impl Core {
    /// Notes calls whose permission request the agent closes by itself, and reports those that then have
    /// run. What the policy allows would have been allowed anyway.
    pub(super) fn watch_unanswered(&mut self, kind: &EventKind<'_>) {
        match kind {
            EventKind::RequestSettled(settled)
                if settled.by == SettledBy::Agent
                    && settled.outcome == RequestOutcome::Resolved =>
            {
                self.closed_by_agent(&settled.request_id.decode());
            }
            // Of a call with several requests, one that is allowed is enough.
            EventKind::RequestSettled(settled) if settled.outcome == RequestOutcome::Allowed => {
                let raised = self.book.requests.get(&*settled.request_id.decode());
                let tool = raised.and_then(|raised| raised.tool_use_id.clone());
                if let Some(tool) = tool.filter(|_| self.unanswered.len() < OPEN_LIMIT) {
                    self.unanswered.insert(tool, false);
                }
            }
            EventKind::ToolCompleted(done)
                if (done.success || done.exit_code.is_some())
                    && self.unanswered.remove(&*done.tool_id.decode()) == Some(true) =>
            {
                self.breach(Breach::unanswered(&done.tool_id.decode()));
            }
            EventKind::TurnStarted(_) | EventKind::TurnCompleted(_) | EventKind::TurnFailed(_) => {
                self.unanswered.clear();
            }
            _ => {}
        }
    }

    fn closed_by_agent(&mut self, request_id: &str) {
        let Some(raised) = self.book.requests.get(request_id) else { return };
        let Some(tool) = &raised.tool_use_id else { return };
        if raised.kind != RequestKind::Permission
            || matches!(self.policy.decide(&asked(raised), &OnDisk), Verdict::Allow(_))
        {
            return;
        }
        let tool = tool.clone();
        if self.unanswered.len() < OPEN_LIMIT || self.unanswered.contains_key(&tool) {
            self.unanswered.entry(tool).or_insert(true);
        } else {
            self.breach(Breach::unanswered(&tool));
        }
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
            let launch = self.plan.launch(&self.config, self.supervisor.origin(), None, None)?;
            let found = self.plan.unasked(&launch).await?;
            self.warnings = found.iter().map(Found::warning).collect();
            self.warn_of_machine();
        }
        Ok(())
    }

    /// Reports them, once, unless the mode allows everything.
    pub(super) fn warn_of_machine(&mut self) {
        if self.core.policy.mode() != ApprovalMode::AutoAll {
            std::mem::take(&mut self.warnings).into_iter().for_each(|warning| self.warn(warning));
        }
    }

    /// Ends what the agent did in breach of the rules.
    pub(super) fn end_breach(&mut self) {
        let Some(breach) = self.core.breach.as_mut().filter(|breach| !breach.is_known) else {
            return;
        };
        breach.is_known = true;
        let Breach { message, ends_session, .. } = breach.clone();
        if ends_session {
            if let Some(process) = self.supervisor.process_mut() {
                process.watch.condemn(message.clone());
            }
            self.phase.fail(message);
            self.supervisor.signal(TreeSignal::Kill);
        } else if self.core.book.record.open.turn.is_some() && self.core.cut.is_none() {
            self.cut_off(TurnFailure::Error, message);
        }
    }
}
