//! Receives the output of a tape: numbers and records events, and holds effects until all earlier events
//! are durable.

use std::collections::BTreeMap;

use agentwire_dialects::agent::{AgentDialect, Exit};
use agentwire_dialects::tape::{
    Action, Agent, Draft, ScreenedCall, Signal, Sink, Tape, UnaskedCall,
};
use agentwire_protocol::event::{
    ErrorEvent, RequestKind, RequestOutcome, RequestRaised, RequestSettled, SettledBy, Status,
    StatusChanged, TurnFailed, TurnFailure,
};
use agentwire_protocol::{
    ApprovalMode, Call, Configure, ErrorCode, EventKind, GatewayError, Json, Text,
};

use super::breach::{Breach, CallPermissions, described, failed};
use super::callers::NOBODY;
use super::hooks::Hooks;
use super::journal::Journal;
use super::pending_request::{Asker, PendingRequest};
use super::policy::{Always, OnDisk, Policy, Verdict};
use super::requests::asked;
use super::state::DerivedState;
use super::structured::Structured;
use crate::blocking::blocking_if_long;
use crate::metrics::Tally;

/// What a session does once its events are durable.
#[derive(Debug)]
pub(super) enum Effect {
    Write(String),
    CloseStdin,
    Signal(Signal),
    /// Send a message to the agent as one of its MCP servers.
    Relay(u64, Json<'static>),
    /// Start the process for the next prompt. The queue of prompts is durable up to this change.
    Start(u64),
    /// Start the agent, now that it is known whether the project is trusted.
    Open,
    Reply(Reply),
}

#[derive(Debug)]
pub(super) struct Reply {
    pub(super) call: Call,
    pub(super) result: Result<Json<'static>, GatewayError>,
    /// Its place: after the event with this number and before the next. `None` while events may still come
    /// that belong to the call.
    pub(super) after: Option<u64>,
}

/// The part of a session that a tape writes to.
#[derive(Debug)]
pub(crate) struct Core {
    pub(crate) journal: Journal,
    pub(crate) state: DerivedState,
    pub(super) hooks: Hooks,
    /// The answer format that the gateway enforces.
    pub(super) structured: Option<Structured>,
    pub(super) effects: Vec<Effect>,
    /// Requests raised since the last look.
    pub(super) raised: Vec<PendingRequest>,
    /// Calls that the agent has shown to the gateway's own hook since the last look.
    pub(super) judged: Vec<ScreenedCall>,
    /// Decides about the calls of this session, whether the agent asks for them or not.
    pub(super) policy: Policy,
    /// Requests suggest to clients what "always" would store.
    suggests: bool,
    /// Answers to the agent's permission requests cannot change their input.
    pub(super) fixes_input: bool,
    /// Why the gateway cut the turn off, if it did. The agent only knows that it was interrupted.
    cut: Option<(TurnFailure, String)>,
    pub(super) calls: CallPermissions,
    /// What the agent did that it must not do. The turn fails for it.
    pub(super) breach: Option<Breach>,
    /// How the process ended. Set while the consequences of its end are reported.
    process_end: Option<ProcessEnd>,
    /// What callers get instead of the agent's own answer, once the agent has accepted what they sent.
    acceptances: BTreeMap<u64, Json<'static>>,
    /// Changes that the agent was asked for. They apply once it has accepted them.
    changes: Vec<Change>,
    /// Knows the agent's errors. `None` for a session that is only being closed.
    advisor: Option<Advisor>,
    /// The metrics. `None` for a session that is only being closed.
    tally: Option<Tally>,
}

/// How a process ended, for the turns that end with it. Their own wire does not say.
#[derive(Debug)]
pub(super) struct ProcessEnd {
    /// How it ended, with its last stderr output, or why the gateway ended it.
    pub(super) text: String,
    /// Only its last stderr output.
    pub(super) stderr: Option<String>,
    pub(super) is_cut: bool,
    /// It never sent anything on its wire.
    pub(super) is_mute: bool,
}

impl ProcessEnd {
    /// Adds the last stderr output to the error of a caller that waited for the agent's answer.
    fn with_stderr(&self, mut error: GatewayError) -> GatewayError {
        if let Some(stderr) = &self.stderr
            && error.code == ErrorCode::AgentFailed
            && !error.message.contains(stderr)
        {
            error.message = format!("{}: {stderr}", error.message);
        }
        error
    }

    /// Explains a turn that failed because the process ended.
    fn explain(&self, failed: &mut TurnFailed<'_>) {
        match failed.reason {
            TurnFailure::Died => failed.error = Text::from(self.text.clone()),
            // The agent only knows that it got a signal.
            TurnFailure::Interrupted if self.is_cut => {
                failed.reason = TurnFailure::Died;
                failed.error = Text::from(self.text.clone());
            }
            TurnFailure::Error if self.is_mute => {
                if let Some(stderr) = &self.stderr {
                    failed.error = Text::from(format!("{}: {stderr}", failed.error.decode()));
                }
            }
            _ => return,
        }
        if self.is_mute {
            let code = || Text::fixed(ErrorCode::StartFailed.as_str());
            failed.error_type.get_or_insert_with(code);
        }
    }
}

/// Knows what an agent's errors mean for its user.
pub(crate) struct Advisor(pub(crate) &'static dyn AgentDialect);

impl std::fmt::Debug for Advisor {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.0.name())
    }
}

impl Advisor {
    /// Adds what to do, where that is known.
    fn advise(&self, failed: &mut TurnFailed<'_>) {
        if self.0.wants_sign_in(failed) {
            let advice = agentwire_dialects::program(self.0.agent_type()).sign_in;
            failed.error = Text::from(format!("{}; {advice}", failed.error.decode()));
        }
    }
}

#[derive(Debug)]
struct Change {
    call: Call,
    change: Configure,
    is_taken: bool,
    /// An event has reported the approval mode that it sets.
    is_reported: bool,
}

impl Change {
    /// The gateway's mode that this change sets, if no event has reported it. An agent's own mode name
    /// takes precedence.
    fn unreported(&self) -> Option<ApprovalMode> {
        self.change
            .approval_mode
            .filter(|_| !self.is_reported && self.change.permission_mode.is_none())
    }
}

/// The event details that report the gateway's own mode.
fn approval(mode: ApprovalMode) -> Json<'static> {
    Json::of(&serde_json::json!({ "approvalMode": mode }))
}

impl Core {
    pub(crate) fn new(
        journal: Journal,
        state: DerivedState,
        hooks: Hooks,
        tally: Option<Tally>,
        advisor: Option<Advisor>,
    ) -> Self {
        let tools = state.tools();
        Self {
            journal,
            state,
            hooks,
            structured: None,
            effects: Vec::new(),
            raised: Vec::new(),
            judged: Vec::new(),
            policy: Policy::asking(tools),
            suggests: false,
            fixes_input: advisor
                .as_ref()
                .is_some_and(|known| !known.0.capabilities().changed_input),
            cut: None,
            calls: CallPermissions::default(),
            breach: None,
            process_end: None,
            acceptances: BTreeMap::new(),
            changes: Vec::new(),
            advisor,
            tally,
        }
    }

    /// Sets the policy. Requests then say whether "always" can be stored, and with `suggests` also what
    /// would be stored.
    pub(crate) fn judging(mut self, policy: Policy, suggests: bool) -> Self {
        self.policy = policy;
        self.suggests = suggests;
        self
    }

    /// Sets the format that the agent's answers must have.
    pub(crate) fn forming(mut self, structured: Option<Structured>) -> Self {
        self.structured = structured;
        self
    }

    /// Emits an event from the gateway itself.
    pub(crate) fn emit<'k>(&mut self, kind: impl Into<EventKind<'k>>) {
        self.emit_as(Agent::main(), kind);
    }

    /// Emits an event from the gateway itself about an agent.
    pub(crate) fn emit_as<'k>(&mut self, agent: Agent<'k>, kind: impl Into<EventKind<'k>>) {
        self.record(Draft { agent, kind: kind.into(), native: None });
    }

    pub(super) fn error(&mut self, code: &'static str, message: impl Into<Text<'static>>) {
        self.emit(ErrorEvent { code: Some(Text::fixed(code)), ..ErrorEvent::new(message) });
    }

    pub(super) fn settled(
        &mut self,
        raised: &PendingRequest,
        outcome: RequestOutcome,
        (by, client): (SettledBy, Option<&str>),
        reason: Option<&str>,
        updated_input: Option<&Json<'static>>,
    ) {
        let settled = RequestSettled {
            request_id: Text::from(raised.id.as_str()),
            outcome,
            by,
            client: client.map(Text::from),
            reason: reason.map(Text::from),
            updated_input: updated_input.cloned(),
        };
        self.emit_as(raised.agent.clone(), settled);
    }

    /// Raises a request from the gateway itself. No rule answers it.
    pub(super) fn raise_request(&mut self, request: RequestRaised<'_>, asker: Asker) {
        let draft = Draft { agent: Agent::main(), kind: request.into(), native: None };
        self.record_from(asker, draft);
    }

    /// Numbers and records an event.
    pub(super) fn record(&mut self, draft: Draft<'_>) {
        self.record_from(Asker::Agent, draft);
    }

    /// Shows an agent's event to the hooks, if there are any, and records it.
    pub(super) fn pass_on(&mut self, draft: Draft<'_>) {
        if self.hooks.is_active() {
            self.hear(draft);
        } else {
            self.record(draft);
        }
    }

    fn record_from(&mut self, asker: Asker, mut draft: Draft<'_>) {
        self.watch_calls(&draft.kind);
        if let Some(breach) = &self.breach
            && let EventKind::TurnCompleted(completed) = &mut draft.kind
        {
            draft.kind = failed(completed, &breach.message).into();
        }
        if matches!(draft.kind, EventKind::TurnStarted(_) | EventKind::TurnFailed(_)) {
            self.breach = self.breach.take().filter(|breach| breach.ends_session);
        }
        if let EventKind::TurnFailed(failed) = &mut draft.kind {
            if let Some((reason, error)) = self.cut.take()
                && failed.reason == TurnFailure::Interrupted
            {
                failed.reason = reason;
                failed.error = Text::from(error);
            }
        } else if matches!(draft.kind, EventKind::TurnStarted(_) | EventKind::TurnCompleted(_)) {
            self.cut = None;
        }
        self.report_approval(&mut draft);
        if let Some(tally) = &mut self.tally {
            let asked = match &draft.kind {
                EventKind::RequestSettled(settled) => self.state.asked_as(&settled.request_id),
                _ => None,
            };
            tally.note(&draft.kind, asked, self.state.record.summary.model.as_deref());
        }
        if let EventKind::RequestRaised(request) = &mut draft.kind {
            let raised = self.raised(request, &draft.agent, asker);
            if asker == Asker::Agent {
                self.watch_raised(&raised);
                self.raised.push(raised.clone());
            }
            self.state.open_request(raised, self.journal.last() + 1);
        } else {
            self.state.note(&mut draft);
        }
        self.journal.write(draft);
    }

    /// The open request. Adds to the event what "always" would store, because an answer is compared with
    /// what was shown.
    fn raised(
        &self,
        request: &mut RequestRaised<'_>,
        agent: &Agent<'_>,
        asker: Asker,
    ) -> PendingRequest {
        let is_permission = request.kind == RequestKind::Permission;
        request.input_is_fixed |= self.fixes_input && is_permission;
        let mut raised = self.state.raised(request, agent, asker);
        if is_permission && !request.allow_is_once {
            let Always { is_kept, suggestion } = self.policy.always(&asked(&raised), &OnDisk);
            request.allow_is_once = !is_kept;
            if self.suggests {
                raised.suggestions.clone_from(&suggestion);
                request.suggestions = suggestion;
            }
        }
        raised
    }

    /// If the agent reports a mode while it is asked for one of the gateway's, the report is about that.
    fn report_approval(&mut self, draft: &mut Draft<'_>) {
        if let EventKind::StatusChanged(change) = &mut draft.kind
            && change.status == Status::Mode
            && change.details.is_none()
            && draft.agent.parent.is_none()
            && let Some((mode, asked)) = self
                .changes
                .iter_mut()
                .find_map(|asked| asked.unreported().map(|mode| (mode, asked)))
        {
            asked.is_reported = true;
            change.details = Some(approval(mode));
        }
    }

    /// Reports a breach at once. The turn fails for it, if one runs.
    pub(super) fn breach(&mut self, mut breach: Breach) {
        if !breach.ends_session && self.state.record.open.turn.is_some() {
            breach.message.push_str("; the turn was cancelled");
        }
        self.error(ErrorCode::AgentFailed.as_str(), breach.message.clone());
        let ends = self.breach.as_ref().is_some_and(|before| before.ends_session);
        self.breach = Some(Breach { ends_session: ends || breach.ends_session, ..breach });
    }

    /// The gateway cuts the turn off. If it fails as interrupted, it has failed for this reason.
    pub(super) fn cut_turn(&mut self, reason: TurnFailure, error: String) {
        self.cut = Some((reason, error));
    }

    pub(super) fn cut(&self) -> Option<&(TurnFailure, String)> {
        self.cut.as_ref()
    }

    /// Ends everything that the process has open.
    pub(super) fn end_process(&mut self, process_end: ProcessEnd, exit: Exit, tape: &mut Tape) {
        self.process_end = Some(process_end);
        blocking_if_long(tape.held(), || tape.end(exit, self));
        self.process_end = None;
        self.state.process_ended();
    }

    /// The agent is asked for this change. It applies once the agent has accepted it.
    pub(super) fn ask_change(&mut self, call: Call, change: Configure) {
        self.changes.push(Change { call, change, is_taken: false, is_reported: false });
    }

    pub(super) fn forget_change(&mut self, call: Call) {
        self.changes.retain(|change| change.call != call);
    }

    /// Takes the next change that the agent has accepted. Reports its mode first, unless an event has: the
    /// agent's own mode may stay as it was.
    pub(super) fn take_change(&mut self) -> Option<Configure> {
        let taken = self.changes.extract_if(.., |change| change.is_taken).next()?;
        if let Some(mode) = taken.unreported() {
            let told = StatusChanged::new(Status::Mode).message(Text::fixed(mode.as_str()));
            self.emit(told.details(approval(mode)));
        }
        Some(taken.change)
    }

    /// Sets what the caller gets once the agent has accepted what it sent.
    pub(super) fn accept_with(&mut self, call: Call, answer: Json<'static>) {
        if call != NOBODY {
            self.acceptances.insert(call.0, answer);
        }
    }

    /// The agent has refused the call.
    pub(super) fn forget_acceptance(&mut self, call: Call) {
        self.acceptances.remove(&call.0);
    }

    /// The agent will not answer its remaining calls.
    pub(super) fn forget_calls(&mut self) {
        self.changes.clear();
        self.acceptances.clear();
    }

    /// Answers a call, once everything that belongs to it is durable.
    pub(super) fn answer(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        self.effects.push(Effect::Reply(Reply { call, result, after: None }));
    }

    /// Fixes the place of the replies: later events belong to none of the answered calls.
    pub(super) fn place_replies(&mut self) {
        self.place_some(|_, _| true);
    }

    fn place_some(&mut self, which: impl Fn(&[Change], Call) -> bool) {
        let last = self.journal.last();
        for effect in &mut self.effects {
            if let Effect::Reply(reply) = effect
                && which(&self.changes, reply.call)
            {
                reply.after.get_or_insert(last);
            }
        }
    }

    pub(super) fn has_news(&self) -> bool {
        !self.journal.is_empty() || self.state.changed
    }
}

impl Sink for Core {
    fn event(&mut self, mut draft: Draft<'_>) {
        if let EventKind::TurnFailed(failed) = &mut draft.kind {
            self.process_end.iter().for_each(|process_end| process_end.explain(failed));
            self.advisor.iter().for_each(|advisor| advisor.advise(failed));
        }
        if let Some(draft) = self.form(draft) {
            self.pass_on(draft);
        }
    }

    fn action(&mut self, action: Action) {
        self.effects.push(match action {
            Action::Write(line) => Effect::Write(line),
            Action::CloseStdin => Effect::CloseStdin,
            Action::Signal(signal) => Effect::Signal(signal),
            Action::Judge(judged) => return self.judged.push(*judged),
        });
    }

    fn reply(&mut self, call: Call, result: Result<Json<'static>, GatewayError>) {
        let ours = self.acceptances.remove(&call.0);
        let result = match result {
            Ok(given) => Ok(ours.unwrap_or(given)),
            Err(error) => Err(match &self.process_end {
                Some(process_end) => process_end.with_stderr(error),
                None => error,
            }),
        };
        match &result {
            Ok(_) => self
                .changes
                .iter_mut()
                .filter(|change| change.call == call)
                .for_each(|change| change.is_taken = true),
            Err(_) => self.forget_change(call),
        }
        self.answer(call, result);
    }

    fn unasked(&mut self, call: UnaskedCall) {
        if !self.policy.denies_anything() {
            return;
        }
        let described = described(self.state.tools(), &call);
        if let Verdict::Deny(rule) = self.policy.decide(&described, &OnDisk) {
            self.breach(Breach::of(&call, &rule));
        }
    }

    fn ran(&mut self, tool_id: &str, is_sure: bool) {
        self.has_run(tool_id, is_sure);
    }

    fn broken(&mut self, message: String) {
        self.breach(Breach { message, ends_session: true, is_known: false });
    }

    fn line_end(&mut self) {
        // Rules settle requests, and changes are reported, only after all lines that arrived together are
        // processed. No reader may see a pause before that.
        if !self.raised.is_empty() || !self.judged.is_empty() {
            return;
        }
        self.place_some(|changes, call| changes.iter().all(|change| change.call != call));
    }
}

pub(super) fn ended(exit: Exit, is_mute: bool, stderr: Option<&str>) -> String {
    let how = match exit {
        Exit::Code(code) => format!("the agent exited with code {code}"),
        Exit::Signal(signal) => format!("the agent was ended by signal {signal}"),
        Exit::Unknown => "the agent ended".to_owned(),
    };
    let when = if is_mute { " before it said anything" } else { "" };
    match stderr {
        Some(stderr) => format!("{how}{when}: {stderr}"),
        None => format!("{how}{when}"),
    }
}
