//! Acts on the answers of hooks: decides a permission, releases a prompt, ends the turn.

use agentwire_dialects::hooks::{HookAnswer, read_answer};
use agentwire_protocol::event::{RequestOutcome, SettledBy, Status, StatusChanged, TurnFailure};
use agentwire_protocol::{Answer, Call, Command, GatewayError, Json, Prompt, Settlement, Text};
use uuid::Uuid;

use super::super::actor::Actor;
use super::super::callers::NOBODY;
use super::super::pending_prompt::PendingPrompt;
use super::super::pending_request::PendingRequest;
use super::super::policy::{OnDisk, Verdict};
use super::super::requests::asked;
use super::output::{Decision, Output, UnsupportedOutput};
use super::{HookEvent, Occasion, Purpose};

/// How often in a row a hook may make the agent continue.
const CONTINUE_LIMIT: u32 = 8;

impl Actor {
    /// Whether the gateway raised that request as a hook.
    pub(in super::super) fn is_hook(&self, id: &str) -> bool {
        self.core.hooks.calls.contains_key(id)
    }

    pub(in super::super) fn settle_hook(
        &mut self,
        call: Call,
        raised: &PendingRequest,
        answer: Answer,
        reason: Option<&str>,
    ) -> Result<(), GatewayError> {
        let event = self.core.hooks.calls.get(&raised.id).map(|call| call.event.as_str());
        let (outcome, ends_turn) = match &answer {
            Answer::Allow { .. } => (RequestOutcome::Allowed, false),
            Answer::Deny { interrupt, .. } => (RequestOutcome::Denied, *interrupt),
            Answer::Answers(_) | Answer::HookOutput(_) => (RequestOutcome::Answered, false),
        };
        let mut output = match read_answer(self.core.hooks.agent, event, answer)? {
            HookAnswer::Output(output) => Output::read(&output)?,
            HookAnswer::Failure(_) => Output::default(),
        };
        // A hook that decides in place of a client lets the call run at once.
        if output.decision == Some(Decision::Allow)
            && output.stop.is_none()
            && self.is_asked(&raised.id)
        {
            self.check_limit()?;
        }
        if ends_turn {
            output.stop = Some(reason.unwrap_or("a hook ended the turn").to_owned());
        }
        self.core.answer(call, Ok(Json::EMPTY));
        self.close(raised, outcome, SettledBy::Client, reason, None);
        self.hook_answered(&raised.id, output);
        Ok(())
    }

    /// Whether that hook decides about a permission that waits for an answer.
    fn is_asked(&self, id: &str) -> bool {
        let hooks = &self.core.hooks;
        let occasion = hooks.calls.get(id).and_then(|call| hooks.occasions.get(&call.occasion));
        occasion.is_some_and(|occasion| matches!(occasion.purpose, Purpose::Ask(_)))
    }

    /// A hook failed in the client. That is not an answer.
    pub(in super::super) fn hook_failed(
        &mut self,
        call: Call,
        raised: &PendingRequest,
        error: &str,
    ) {
        self.core.answer(call, Ok(Json::EMPTY));
        if let Some(hook) = self.core.hooks.calls.get(&raised.id) {
            let message = format!("the hook {} failed: {error}", hook.event.as_str());
            self.core.emit(StatusChanged::new(Status::Warning).message(Text::from(message)));
        }
        self.pass_over(raised, SettledBy::Client, error);
    }

    /// A hook has no answer, for this reason. A guard that does not answer has allowed nothing, so a client
    /// is asked.
    pub(in super::super) fn pass_over(
        &mut self,
        raised: &PendingRequest,
        by: SettledBy,
        reason: &str,
    ) {
        let Some(hook) = self.core.hooks.calls.get(&raised.id) else { return };
        let (outcome, output) = if hook.blocks && hook.event.is_gate() {
            (RequestOutcome::Denied, Output::deny(reason))
        } else if hook.event == HookEvent::PreToolUse {
            (RequestOutcome::Withdrawn, Output::ask())
        } else {
            (RequestOutcome::Withdrawn, Output::default())
        };
        self.close(raised, outcome, by, Some(reason), None);
        self.hook_answered(&raised.id, output);
    }

    /// Does the hooks' work between two events: withdraws requests that need no answer, ends the turn, and
    /// moves prompts on.
    pub(in super::super) fn tend_hooks(&mut self) {
        if !self.core.hooks.is_active() {
            return;
        }
        for id in std::mem::take(&mut self.core.hooks.moot) {
            self.withdraw_hook(&id, "the answer is no longer needed");
        }
        if !self.core.hooks.are_at_work() {
            self.core.end_turn();
            if let Some(output) = self.core.hooks.last_word.take() {
                self.continue_by_hook(&output);
            }
        }
        self.pump_prompts();
        let holds = self.core.hooks.hold_something();
        self.core.state.hooked(holds);
    }

    /// The turn is interrupted, so its hooks are dropped. Prompts that wait for the end of the turn stay.
    /// If no turn runs, the first prompt is interrupted.
    pub(in super::super) fn interrupt_hooks(&mut self, reason: &str) {
        let waits = !self.core.state.is_busy();
        self.drop_hooks(reason, waits);
        if waits {
            self.fail_first_prompt(TurnFailure::Interrupted, reason);
        }
    }

    /// The session ends, so nothing waits for hooks any more.
    pub(in super::super) fn end_hooks(&mut self, failure: TurnFailure, reason: &str) {
        self.drop_hooks(reason, true);
        self.block_prompts(failure, reason);
        self.core.raise_end();
    }

    fn drop_hooks(&mut self, reason: &str, with_prompts: bool) {
        let stays = |occasion: &Occasion| match occasion.purpose {
            Purpose::Start | Purpose::Prompt => !with_prompts,
            Purpose::Tell => occasion.event == HookEvent::SessionEnd,
            _ => false,
        };
        let dropped = self.core.hooks.occasions.extract_if(.., |_, occasion| !stays(occasion));
        for (_, occasion) in dropped.collect::<Vec<_>>() {
            occasion.open.iter().for_each(|id| self.withdraw_hook(id, reason));
            // The caller that ends the turn denies it like any other request.
            if let Purpose::Permission(held) = occasion.purpose {
                self.core.release(*held);
            }
        }
        self.core.hooks.last_word = None;
        self.core.end_turn();
    }

    fn withdraw_hook(&mut self, id: &str, reason: &str) {
        self.core.hooks.calls.remove(id);
        if let Some(raised) = self.core.state.requests.get(id).cloned() {
            let outcome = RequestOutcome::Withdrawn;
            self.close(&raised, outcome, SettledBy::Gateway, Some(reason), None);
        }
    }

    fn hook_answered(&mut self, id: &str, mut output: Output) {
        let Some(call) = self.core.hooks.calls.remove(id) else { return };
        // Many hooks return the input as it was shown. That changes nothing.
        output.input = output.input.filter(|input| !is_same(input, call.shown.as_ref()));
        for unsupported in std::mem::take(&mut output.unsupported) {
            let agent = self.core.hooks.agent;
            let (what, why) = match unsupported {
                UnsupportedOutput::Rules => (
                    "updatedPermissions",
                    "only a rule that allows the same call again can be kept".to_owned(),
                ),
                UnsupportedOutput::ToolOutput => {
                    ("updatedMCPToolOutput", format!("{agent} already has the output"))
                }
            };
            self.core.cannot(call.event, what, &why);
        }
        if let Some(message) = &output.message {
            let message = Text::from(message.clone());
            self.core.emit(StatusChanged::new(Status::Notice).message(message));
        }
        let Some(occasion) = self.core.hooks.occasions.get_mut(&call.occasion) else { return };
        occasion.open.remove(id);
        if let Purpose::Ask(permission) = &occasion.purpose
            && let Some(Decision::Allow | Decision::Deny) = output.decision
        {
            let permission = permission.clone();
            return self.decide_asked(&permission, &output);
        }
        occasion.outputs.push(output);
        if occasion.open.is_empty()
            && let Some(occasion) = self.core.hooks.occasions.remove(&call.occasion)
        {
            self.conclude(occasion);
        }
    }

    fn conclude(&mut self, occasion: Occasion) {
        let output = Output::all(occasion.outputs);
        let event = occasion.event;
        let takes_context = matches!(occasion.purpose, Purpose::Start | Purpose::Prompt);
        if output.context.is_some() && !takes_context {
            let why = format!("{} cannot receive it while it works", self.core.hooks.agent);
            self.core.cannot(event, "additionalContext", &why);
        }
        match occasion.purpose {
            Purpose::Start => {
                self.core.hooks.barred = output.blocked();
                self.core.hooks.preface = output.context;
            }
            Purpose::Prompt => self.prompt_answered(&output),
            Purpose::Permission(held) => {
                let id = held.request.request_id.to_string();
                self.core.hooks.decided.insert(id, output);
                self.core.release(*held);
            }
            Purpose::Call(id) => {
                self.end_turn_if(&output);
                self.core.call_answered(&id, output);
            }
            Purpose::Ask(_) => self.end_turn_if(&output),
            Purpose::Stop if output.decision == Some(Decision::Deny) => {
                self.core.hooks.last_word = Some(output);
            }
            Purpose::Stop => {}
            Purpose::Tell => self.report_unreceived(event, &output),
        }
    }

    /// Reports answers that the agent cannot be told about.
    fn report_unreceived(&mut self, event: HookEvent, output: &Output) {
        self.end_turn_if(output);
        if output.decision == Some(Decision::Deny) && output.stop.is_none() {
            let why = format!("{} cannot receive it while it works", self.core.hooks.agent);
            self.core.cannot(event, "a block", &why);
        }
    }

    fn end_turn_if(&mut self, output: &Output) {
        let Some(reason) = &output.stop else { return };
        let runs = self.core.state.record.open.turn.is_some() && !self.core.hooks.hold_turn_end();
        if runs && self.core.cut().is_none() {
            self.deny_all(reason);
            self.cut_off(TurnFailure::Interrupted, reason.clone());
        }
    }

    /// Applies what hooks decided about a permission that is reported only now. Returns whether they
    /// decided.
    pub(in super::super) fn decide(&mut self, raised: &PendingRequest) -> bool {
        let Some(output) = self.core.hooks.decided.remove(&raised.id) else { return false };
        if self.refuse_denied(raised, &output) {
            return true;
        }
        match (output.decision, &output.input) {
            (Some(Decision::Allow), input) => {
                if !self.allow(raised, input.as_ref(), false) {
                    self.wait_for_decision(raised);
                }
            }
            (_, Some(_)) => {
                let reason = "hooks changed the input without allowing it";
                self.refuse(raised, reason, false);
            }
            (Some(_), None) => self.wait_for_decision(raised),
            (None, None) => return false,
        }
        true
    }

    /// A hook decides in place of the clients that were asked.
    fn decide_asked(&mut self, permission: &str, output: &Output) {
        let Some(raised) = self.core.state.requests.get(permission).cloned() else { return };
        if !self.refuse_denied(&raised, output) && output.decision == Some(Decision::Allow) {
            self.allow(&raised, output.input.as_ref(), output.always);
        }
    }

    /// Refuses the call if hooks deny it or end the turn. Returns whether they do.
    fn refuse_denied(&mut self, raised: &PendingRequest, output: &Output) -> bool {
        let Some(reason) = output.blocked() else { return false };
        let ends_turn = output.stop.is_some();
        self.refuse(raised, &reason, ends_turn);
        if ends_turn {
            self.core.cut_turn(TurnFailure::Interrupted, reason);
            self.escalate();
        }
        true
    }

    /// Allows the call, from now on if `always`, unless a rule denies it. Returns whether the request is
    /// settled: the agent may not support such an answer.
    fn allow(
        &mut self,
        raised: &PendingRequest,
        input: Option<&Json<'static>>,
        always: bool,
    ) -> bool {
        let mut judged = raised.clone();
        judged.input = input.cloned().or(judged.input);
        if let Verdict::Deny(rule) = self.core.policy.decide(&asked(&judged), &OnDisk) {
            self.by_rule(raised, false, &rule);
            return true;
        }
        let settlement =
            Settlement { updated_input: input.cloned(), ..Settlement::allow(raised.id.as_str()) };
        match self.tape.command(NOBODY, &Command::Settle(settlement), &mut self.core) {
            Ok(()) => {
                let mut reason = "a hook allowed it".to_owned();
                if always {
                    let rule = self.core.policy.remember(&asked(&judged), true, &OnDisk);
                    reason = format!("{reason} ({rule})");
                }
                let (outcome, reason) = (RequestOutcome::Allowed, Some(reason.as_str()));
                self.close(raised, outcome, SettledBy::Client, reason, input);
            }
            Err(error) if input.is_some() => {
                let reason = format!("a hook changed the input: {}", error.message);
                self.refuse(raised, &reason, false);
            }
            Err(error) => {
                self.core.error(error.code.as_str(), error.message);
                return false;
            }
        }
        true
    }

    fn refuse(&mut self, raised: &PendingRequest, reason: &str, ends_turn: bool) {
        let settlement = Settlement {
            interrupt: Some(ends_turn),
            ..Settlement::deny(raised.id.as_str(), reason)
        };
        // An agent that is gone cannot get the answer. The request is settled anyway.
        let _ = self.tape.command(NOBODY, &Command::Settle(settlement), &mut self.core);
        self.close(raised, RequestOutcome::Denied, SettledBy::Client, Some(reason), None);
    }

    /// A hook may make the agent continue, but not forever.
    fn continue_by_hook(&mut self, output: &Output) {
        let goes_on = output.decision == Some(Decision::Deny) && output.stop.is_none();
        // Without clients, nobody wants more work from the agent.
        if !goes_on || !self.phase.is_live() {
            return;
        }
        if self.core.hooks.continued >= CONTINUE_LIMIT {
            let why = format!(
                "it has made the agent continue {CONTINUE_LIMIT} times; the agent may stop now"
            );
            return self.core.cannot(HookEvent::Stop, "a block", &why);
        }
        self.core.hooks.continued += 1;
        let message_id = Some(Uuid::new_v4().to_string());
        let text = output.blocked().unwrap_or_default();
        let prompt = Prompt { message_id, ..Prompt::text(text) };
        // The prompt comes from the hooks themselves.
        let pending = PendingPrompt { has_passed: true, ..PendingPrompt::from(prompt) };
        if let Err(error) = self.deliver(NOBODY, pending) {
            self.core.error(error.code.as_str(), error.message);
        }
    }
}

fn is_same(input: &Json<'_>, shown: Option<&Json<'_>>) -> bool {
    let read = |json: &Json<'_>| json.read::<serde_json::Value>().ok();
    shown.is_some_and(|shown| read(shown) == read(input))
}
