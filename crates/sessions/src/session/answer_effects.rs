//! Answers that change a call or the rules: the policy judges what would run, and the gateway stores the
//! rules and the mode itself.

use agentwire_dialects::describe::is_plain;
use agentwire_dialects::hooks::{self, HookAnswer};
use agentwire_dialects::permission_updates::{
    self, PermissionChange, PermissionRule, PermissionUpdate, suggested_rules,
};
use agentwire_protocol::command::Behavior;
use agentwire_protocol::event::{RequestKind, input_digest};
use agentwire_protocol::{Answer, Configure, ErrorCode, GatewayError, Json, Settlement};
use serde::Deserialize;

use super::actor::Actor;
use super::answer_scope;
use super::breach::CallPermission;
use super::callers::NOBODY;
use super::hooks::event_name;
use super::pending_request::{Asker, PendingRequest};
use super::policy::{OnDisk, Verdict};
use super::requests::asked;

/// Hooks whose answers decide whether a call may run.
const CALL_HOOKS: [&str; 2] = ["PreToolUse", "PermissionRequest"];

/// What an answer says beyond the one call.
#[derive(Debug, Default)]
pub(super) struct AnswerEffects {
    /// The answer as the agent gets it.
    pub(super) settlement: Option<Settlement>,
    /// The same call gets the same answer from now on.
    pub(super) remember: bool,
    /// The call that a hook is about. `None` means the request itself.
    call: Option<PendingRequest>,
    /// Rules to keep for the session, and whether each one allows.
    rules: Vec<(String, bool)>,
    mode: Option<String>,
    /// What a hook decides about its call.
    pub(super) standing: Option<CallPermission>,
}

/// The input of a hook for a tool call.
#[derive(Deserialize)]
struct ToolHookInput {
    hook_event_name: String,
    #[serde(default)]
    tool_name: Option<String>,
    #[serde(default)]
    tool_input: Option<Json<'static>>,
}

/// An answer with one name for each field of its rules, so that all later code reads the same rules.
pub(super) fn one_form(settlement: &Settlement) -> Result<Settlement, GatewayError> {
    let mut settlement = settlement.clone();
    // A denial grants nothing, whatever else it says.
    if settlement.behavior != Some(Behavior::Deny)
        && let Some(rules) = &settlement.updated_permissions
    {
        settlement.updated_permissions = Some(permission_updates::camel_case(rules)?);
    }
    Ok(settlement)
}

impl Actor {
    /// Converts an answer in the agent's own form into one of ours, so that no part of it is passed on
    /// unread.
    pub(super) fn plain(
        &self,
        raised: &PendingRequest,
        settlement: &Settlement,
    ) -> Result<Settlement, GatewayError> {
        let own = settlement.hook_output.as_ref().filter(|_| settlement.behavior.is_none());
        let has_form = self.plan.dialect.capabilities().own_answer_form;
        let is_agents = has_form && raised.asker == Asker::Agent;
        let Some(own) = own.filter(|_| is_agents && raised.kind == RequestKind::Permission) else {
            return Ok(settlement.clone());
        };
        permission_updates::plain_answer(own, settlement)
    }

    /// Judges what an answer would let run, and takes out what the gateway stores itself. An answer that a
    /// rule forbids is refused, and the request stays open.
    pub(super) fn answer_effects(
        &self,
        raised: &PendingRequest,
        settlement: &Settlement,
        answer: &Answer,
    ) -> Result<AnswerEffects, GatewayError> {
        if raised.asker != Asker::Agent {
            return Ok(AnswerEffects::default());
        }
        match (raised.kind, answer) {
            (
                RequestKind::Permission,
                Answer::Allow { updated_input, updated_permissions, always },
            ) => {
                if let Some(input) = updated_input {
                    let changed = PendingRequest { input: Some(input.clone()), ..raised.clone() };
                    self.check_changed(raised, &changed)?;
                }
                let takes_updates = self.plan.dialect.capabilities().permission_updates;
                let mut effects = AnswerEffects { remember: *always, ..AnswerEffects::default() };
                let mut for_agent = Settlement { remember: None, ..settlement.clone() };
                if let Some(list) = updated_permissions.as_ref().filter(|_| takes_updates) {
                    let list = PermissionUpdate::list(list)?;
                    for_agent.updated_permissions = self.updates(raised, &list, &mut effects)?;
                }
                Ok(AnswerEffects { settlement: Some(for_agent), ..effects })
            }
            (RequestKind::Permission, Answer::Deny { always, .. }) => {
                let for_agent = Settlement { remember: None, ..settlement.clone() };
                Ok(AnswerEffects {
                    settlement: Some(for_agent),
                    remember: *always,
                    ..AnswerEffects::default()
                })
            }
            (RequestKind::Hook, Answer::Allow { .. } | Answer::HookOutput(_)) => {
                self.hook_widening(raised, settlement, answer)
            }
            (RequestKind::Hook, Answer::Deny { .. }) if settlement.error.is_none() => {
                let event = event_name(raised.input.as_ref());
                let is_call = event.is_some_and(|event| CALL_HOOKS.contains(&event.as_str()));
                let standing = is_call.then_some(CallPermission::Denied);
                Ok(AnswerEffects { standing, ..AnswerEffects::default() })
            }
            _ => Ok(AnswerEffects::default()),
        }
    }

    /// Applies what the answer says for the rest of the session, after the agent got it. Returns the
    /// reasons to report.
    pub(super) fn apply_answer_effects(
        &mut self,
        raised: &PendingRequest,
        effects: &AnswerEffects,
        allow: bool,
    ) -> Vec<String> {
        let mut kept = Vec::new();
        if effects.remember {
            let call = effects.call.as_ref().unwrap_or(raised);
            kept.push(self.core.policy.remember(&asked(call), allow, &OnDisk));
        }
        for (rule, allow) in &effects.rules {
            let added = self.core.policy.add(rule, *allow);
            kept.push(added.unwrap_or_else(|why| why));
        }
        if let Some(mode) = effects.mode.clone() {
            let change = Configure { permission_mode: Some(mode.clone()), ..Configure::default() };
            match self.configure(NOBODY, change) {
                // The agent may ask again before it has confirmed the change.
                Ok(()) => self.core.policy.set_own_mode(&mode),
                Err(error) => self.core.error(error.code.as_str(), error.message),
            }
        }
        kept
    }

    /// Refuses a changed call that a rule denies, or may deny although it did not before.
    fn check_changed(
        &self,
        shown: &PendingRequest,
        changed: &PendingRequest,
    ) -> Result<(), GatewayError> {
        let id = &changed.id;
        let forbidden = |why: String| {
            let message =
                format!("the answer to {id} lets a call run that {why}; the request is still open");
            Err(GatewayError::new(ErrorCode::Forbidden, message))
        };
        if let Verdict::Deny(rule) = self.core.policy.decide(&asked(changed), &OnDisk) {
            return forbidden(format!("is {rule}"));
        }
        let Some(input) =
            changed.input.as_ref().filter(|input| shown.input.as_ref() != Some(*input))
        else {
            return Ok(());
        };
        if !is_plain(input) {
            return Err(invalid(
                "updatedInput has a duplicate key or a string that is not valid text, or is too long",
            ));
        }
        // Clients send an input back as it was shown. Then it is the call that somebody looked at.
        if input_digest(shown.input.as_ref()) == input_digest(changed.input.as_ref()) {
            return Ok(());
        }
        let before = match self.callers.current().is_limited {
            true => Vec::new(),
            false => self.core.policy.doubts(&asked(shown), &OnDisk),
        };
        let doubts = self.core.policy.doubts(&asked(changed), &OnDisk);
        match doubts.iter().find(|rule| !before.contains(rule)) {
            Some(rule) => forbidden(format!("the rule {rule} may deny")),
            None => Ok(()),
        }
    }

    fn hook_widening(
        &self,
        raised: &PendingRequest,
        settlement: &Settlement,
        answer: &Answer,
    ) -> Result<AnswerEffects, GatewayError> {
        let hook = raised.input.as_ref().and_then(|input| input.read::<ToolHookInput>().ok());
        let Some(hook) = hook else { return Ok(AnswerEffects::default()) };
        let event = hook.hook_event_name.as_str();
        let agent = self.plan.agent.as_str();
        let HookAnswer::Output(output) = hooks::read_answer(agent, Some(event), answer.clone())?
        else {
            return Ok(AnswerEffects::default());
        };
        let read = hooks::Output::read(&output)?;
        if !CALL_HOOKS.contains(&event) {
            return Ok(AnswerEffects::default());
        }
        let (denies, allows) = (read.denies(), read.may_allow());
        let changed = read.updated_input().cloned();
        let call = PendingRequest {
            kind: RequestKind::Permission,
            tool_name: hook.tool_name,
            input: hook.tool_input,
            ..raised.clone()
        };
        let shown = call.clone();
        let call = PendingRequest { input: changed.clone().or(call.input), ..call };
        if allows {
            self.check_limit()?;
        }
        if allows || changed.is_some() {
            self.check_changed(&shown, &call)?;
        }
        // After `PreToolUse` the agent may still ask, and then that answer decides.
        let standing = match (denies, allows) {
            (true, _) => Some(CallPermission::Denied),
            (false, true) if event == "PermissionRequest" => Some(CallPermission::Allowed),
            (false, _) => None,
        };
        let mut effects = AnswerEffects { standing, ..AnswerEffects::default() };
        let Some(updates) = read.updates() else { return Ok(effects) };
        let rest = self.updates(&call, updates, &mut effects)?;
        let for_agent = Settlement {
            behavior: None,
            updated_input: None,
            updated_permissions: None,
            hook_output: Some(hooks::Output::with_updates(&output, rest)?),
            ..settlement.clone()
        };
        Ok(AnswerEffects { settlement: Some(for_agent), call: Some(call), ..effects })
    }

    /// Takes out of a list of updates what the gateway stores itself: rules of this session and the mode.
    /// Returns the rest, which only Claude supports.
    fn updates(
        &self,
        raised: &PendingRequest,
        updates: &[PermissionUpdate],
        effects: &mut AnswerEffects,
    ) -> Result<Option<Json<'static>>, GatewayError> {
        // What was shown, and what would be shown now: a symlink may have changed since.
        let now = self.core.policy.always(&asked(raised), &OnDisk).suggestion;
        let shown = [raised.suggestions.as_ref(), now.as_ref()];
        let suggested: Vec<PermissionRule> =
            shown.into_iter().flatten().flat_map(suggested_rules).collect();
        let mut native = Vec::new();
        for update in updates {
            update.check_fields()?;
            match update.change() {
                PermissionChange::AddRules { behavior, rules } => {
                    let allow = says_allow(behavior)?;
                    // "Always" means the call that was shown. The same text as a rule would allow more.
                    let are_shown = rules.iter().all(|rule| suggested.contains(rule));
                    if allow && !rules.is_empty() && are_shown {
                        effects.remember = true;
                        continue;
                    }
                    if allow && self.callers.current().is_limited {
                        return Err(answer_scope::beyond_asked("updatedPermissions", raised));
                    }
                    for rule in rules {
                        let text = rule.text();
                        // Try on a copy whether the rule can be kept.
                        self.core.policy.clone().add(&text, allow).map_err(invalid)?;
                        effects.rules.push((text, allow));
                    }
                }
                PermissionChange::SetMode(mode) => {
                    let mode = mode.ok_or_else(|| invalid("setMode needs a mode"))?;
                    effects.mode = Some(mode.to_owned());
                }
                PermissionChange::Other => native.push(update.given()),
            }
        }
        Ok((!native.is_empty()).then(|| Json::of(&native)))
    }
}

fn says_allow(behavior: Option<&str>) -> Result<bool, GatewayError> {
    match behavior {
        Some("allow") => Ok(true),
        Some("deny") => Ok(false),
        other => {
            let word = other.unwrap_or("nothing");
            Err(invalid(format!(
                "addRules says {word}; for this session it must say allow or deny"
            )))
        }
    }
}

fn invalid(message: impl Into<String>) -> GatewayError {
    GatewayError::new(ErrorCode::InvalidMessage, message.into())
}
