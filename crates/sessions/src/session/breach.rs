//! Detects calls that an agent runs without asking, or without permission. Deny rules apply to them too,
//! and a call that needs an answer must not run without one. An answer cannot stop such a call, so the turn
//! is cancelled and fails.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use agentwire_dialects::describe::{AgentTools, CallFacts, Description};
use agentwire_dialects::tape::UnaskedCall;
use agentwire_protocol::event::{
    RequestKind, RequestOutcome, SettledBy, TurnCompleted, TurnFailed, TurnFailure,
};
use agentwire_protocol::session::ApprovalMode;
use agentwire_protocol::{EventKind, GatewayError, Text};

use super::actor::Actor;
use super::core::Core;
use super::pending_request::PendingRequest;
use super::policy::{OnDisk, Verdict};
use super::requests::asked;
use super::state::OPEN_LIMIT;
use crate::managed_files::OverridingFile;
use crate::process::TreeSignal;

/// Something that the agent did but must not do.
#[derive(Clone, Debug)]
pub(super) struct Breach {
    pub(super) message: String,
    /// The agent can no longer be controlled.
    pub(super) ends_session: bool,
    /// The consequences are done, except that the turn must still fail.
    pub(super) is_known: bool,
}

impl Breach {
    /// A call runs although a rule denies it.
    pub(super) fn of(call: &UnaskedCall, rule: &str) -> Self {
        let name = call.tool_name.as_deref().or(call.title.as_deref()).unwrap_or("a tool");
        let message = format!(
            "the agent ran {name} (call {}) without asking, though it is {rule}",
            call.tool_id
        );
        Self { message, ends_session: false, is_known: false }
    }

    /// A call ran although nobody allowed it.
    fn unallowed(tool_id: &str, standing: CallPermission) -> Self {
        let how = match standing {
            CallPermission::Denied => "though it was denied",
            CallPermission::Allowed | CallPermission::Unanswered => {
                "without waiting for an answer to its permission request"
            }
        };
        let message = format!("the agent ran call {tool_id} {how}");
        Self { message, ends_session: false, is_known: false }
    }
}

/// The decision about a call's permission. No entry means that nobody asked, or that the policy allows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CallPermission {
    /// A rule or a client allowed it. If a call has several requests, one that is allowed is enough.
    Allowed,
    /// A rule, a client or the gateway denied it.
    Denied,
    /// The agent closed the request by itself.
    Unanswered,
}

/// The calls of a turn, as far as it matters whether they may run.
#[derive(Debug, Default)]
pub(super) struct CallPermissions {
    standing: BTreeMap<String, CallPermission>,
    ran: BTreeSet<String>,
    /// More calls ran without a request than are watched.
    ran_more: bool,
    /// The calls of earlier turns that must not run, the oldest first.
    earlier: VecDeque<(String, CallPermission)>,
}

impl CallPermissions {
    /// Another turn starts. A call that was not allowed must not run in it either.
    fn start_turn(&mut self) {
        let refused = std::mem::take(&mut self.standing).into_iter();
        self.earlier.extend(refused.filter(|(_, standing)| *standing != CallPermission::Allowed));
        let surplus = self.earlier.len().saturating_sub(OPEN_LIMIT);
        self.earlier.drain(..surplus);
        self.ran.clear();
        self.ran_more = false;
    }

    /// Forgets what was decided in an earlier turn about a call with this id, and returns it.
    fn take_earlier(&mut self, tool: &str) -> Option<CallPermission> {
        let at = self.earlier.iter().position(|(id, _)| id == tool)?;
        self.earlier.remove(at).map(|(_, standing)| standing)
    }
}

impl Core {
    /// Records how permission requests are settled, and reports calls that run without permission, in
    /// whichever order the agent reports the two.
    pub(super) fn watch_calls(&mut self, kind: &EventKind<'_>) {
        match kind {
            EventKind::RequestSettled(settled) => {
                let (by, outcome) = (settled.by, settled.outcome);
                self.watch_settled(&settled.request_id.decode(), by, outcome);
            }
            EventKind::ToolCompleted(done) if done.success || done.exit_code.is_some() => {
                self.has_run(&done.tool_id.decode(), true);
            }
            // Another call may have the id of one in an earlier turn.
            EventKind::ToolStarted(tool) => drop(self.calls.take_earlier(&tool.tool_id.decode())),
            EventKind::TurnStarted(_) => self.calls.start_turn(),
            _ => {}
        }
    }

    fn watch_settled(&mut self, request_id: &str, by: SettledBy, outcome: RequestOutcome) {
        let Some(raised) = self.state.requests.get(request_id) else { return };
        let (RequestKind::Permission, Some(tool)) = (raised.kind, &raised.tool_use_id) else {
            return;
        };
        let standing = match outcome {
            RequestOutcome::Allowed => CallPermission::Allowed,
            RequestOutcome::Denied if by != SettledBy::Agent => CallPermission::Denied,
            // The policy would have allowed it anyway.
            _ if self.is_allowed_by_policy(raised) => return,
            _ => CallPermission::Unanswered,
        };
        let tool = tool.clone();
        self.stands(&tool, standing);
    }

    fn is_allowed_by_policy(&self, raised: &PendingRequest) -> bool {
        matches!(self.policy.decide(&asked(raised), &OnDisk), Verdict::Allow(_))
    }

    pub(super) fn stands(&mut self, tool: &str, standing: CallPermission) {
        let known = &mut self.calls.standing;
        let is_new = !known.contains_key(tool);
        let counts = match standing {
            CallPermission::Allowed => true,
            CallPermission::Denied => known.get(tool) != Some(&CallPermission::Allowed),
            CallPermission::Unanswered => is_new,
        };
        if counts && (!is_new || known.len() < OPEN_LIMIT) {
            known.insert(tool.to_owned(), standing);
            self.calls.take_earlier(tool);
        } else if is_new && standing != CallPermission::Allowed {
            // There are too many to watch, so assume that it will run.
            self.breach(Breach::unallowed(tool, standing));
        }
    }

    /// A call has run. If `is_sure` is false, the agent reported an error that may be its word for a
    /// denial, so it proves only that a call ran which nobody denied.
    pub(super) fn has_run(&mut self, tool: &str, is_sure: bool) {
        match self.calls.standing.get(tool).copied() {
            Some(standing @ CallPermission::Unanswered) => self.ran_unallowed(tool, standing),
            Some(standing @ CallPermission::Denied) if is_sure => {
                self.ran_unallowed(tool, standing);
            }
            // The call is done, so make room for others.
            Some(CallPermission::Allowed) => drop(self.calls.standing.remove(tool)),
            Some(CallPermission::Denied) => {}
            None => {
                let earlier = if is_sure { self.calls.take_earlier(tool) } else { None };
                match earlier {
                    Some(standing) => self.ran_unallowed(tool, standing),
                    None if self.calls.ran.len() < OPEN_LIMIT => {
                        self.calls.ran.insert(tool.to_owned());
                    }
                    None => self.calls.ran_more |= !self.calls.ran.contains(tool),
                }
            }
        }
    }

    /// Whether a call has run, or may have: too many ran to know, and this one is not under way.
    fn may_have_run(&self, tool: &str) -> bool {
        self.calls.ran.contains(tool) || (self.calls.ran_more && self.state.tool(tool).is_none())
    }

    fn ran_unallowed(&mut self, tool: &str, standing: CallPermission) {
        self.calls.standing.remove(tool);
        self.breach(Breach::unallowed(tool, standing));
    }

    /// A permission is requested. A call that has already run can no longer be allowed.
    pub(super) fn watch_raised(&mut self, raised: &PendingRequest) {
        if raised.kind == RequestKind::Permission
            && let Some(tool) = raised.tool_use_id.as_deref()
            && self.may_have_run(tool)
            && !self.is_allowed_by_policy(raised)
        {
            self.calls.ran.remove(tool);
            self.breach(Breach::unallowed(tool, CallPermission::Unanswered));
        }
    }
}

pub(super) fn described<'c>(tools: &AgentTools, call: &'c UnaskedCall) -> Description<'c> {
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

/// The failed turn that replaces a completed one after a breach.
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
    /// Looks for files on this machine that let the agent run calls which the session's mode would ask
    /// about.
    pub(super) async fn find_overriding_files(&mut self) -> Result<(), GatewayError> {
        if !self.plan.dialect.machine_files().is_empty() {
            let launch = self.plan.launch(&self.config, self.supervisor.origin(), None, None)?;
            let found = self.plan.unasked(&launch).await?;
            self.warnings = found.iter().map(OverridingFile::warning).collect();
            self.warn_of_machine();
        }
        Ok(())
    }

    /// Reports the warnings, once, unless the mode allows everything.
    pub(super) fn warn_of_machine(&mut self) {
        if self.core.policy.mode() != ApprovalMode::AutoAll {
            std::mem::take(&mut self.warnings).into_iter().for_each(|warning| self.warn(warning));
        }
    }

    /// Acts on a breach: ends the session or cancels the turn.
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
        } else if self.core.state.record.open.turn.is_some() && self.core.cut().is_none() {
            self.cut_off(TurnFailure::Error, message);
        }
    }
}
