//! Tool calls: whether the agent asks before it makes one, and what hooks decide about it.

use agentwire_dialects::tape::Draft;
use agentwire_protocol::event::{Status, StatusChanged};
use agentwire_protocol::{EventKind, Native, Text};
use tokio::time::Instant;

use super::super::core::Core;
use super::input::{Input, PreToolUse, ToolCall};
use super::output::{Decision, Output};
use super::{HeldRequest, HookEvent, Purpose, TOOL_LIMIT, UNASKED};

impl Core {
    pub(super) fn tool_started(&mut self, id: String, call: ToolCall) {
        if !self.hooks.follow_tools() {
            return;
        }
        if self.hooks.tools.len() >= TOOL_LIMIT {
            let message = format!("{TOOL_LIMIT} tool calls are open; further ones raise no hooks");
            return self.warn_once(HookEvent::PreToolUse, "too many calls", message);
        }
        let is_wanted = self.hooks.wants(HookEvent::PreToolUse, &call.names());
        self.hooks.tools.insert(id.clone(), call);
        if !is_wanted {
            return;
        }
        if !self.hooks.asks {
            self.runs(&id);
        } else if self.hooks.unasked.len() < TOOL_LIMIT {
            self.hooks.unasked.push_back((Instant::now(), id));
        } else {
            self.seems_unasked(&id);
        }
    }

    /// Handles calls that have waited long enough to count as not asked for.
    pub(in super::super) fn raise_late(&mut self, now: Instant) {
        while let Some((since, _)) = self.hooks.unasked.front()
            && *since + UNASKED <= now
            && let Some((_, id)) = self.hooks.unasked.pop_front()
        {
            self.seems_unasked(&id);
        }
    }

    /// The call runs, whether the agent asked or not. Objections from hooks come too late.
    pub(super) fn runs(&mut self, id: &str) {
        self.seems_unasked(id);
        let Some(call) = self.hooks.tools.get_mut(id) else { return };
        call.is_running = true;
        if let PreToolUse::Answered(output) = &mut call.pre_tool_use {
            let output = std::mem::take(output);
            call.pre_tool_use = PreToolUse::Done;
            self.too_late(&output);
        }
    }

    /// The hooks of a call that the agent has not asked for are answered.
    pub(super) fn call_answered(&mut self, id: &str, output: Output) {
        match self.hooks.tools.get_mut(id) {
            Some(call) if !call.is_running => call.pre_tool_use = PreToolUse::Answered(output),
            Some(_) | None => self.too_late(&output),
        }
    }

    pub(super) fn never_ran(&mut self, id: &str) {
        if let Some(call) = self.hooks.tools.remove(id)
            && let PreToolUse::Raised(occasion) = call.pre_tool_use
        {
            self.hooks.make_moot(occasion);
        }
    }

    pub(super) fn tool_ended(&mut self, id: &str, after: Input) {
        let Some(call) = self.hooks.tools.remove(id) else { return };
        let event = match after.tool_response {
            Some(_) => HookEvent::PostToolUse,
            None => HookEvent::PostToolUseFailure,
        };
        let told = call.hook_input(Some(id));
        let input = Input {
            tool_name: told.tool_name,
            tool_input: told.tool_input,
            tool_use_id: told.tool_use_id,
            ..after
        };
        self.raise_tool(event, &call, input, Purpose::Tell, None);
    }

    /// Holds a permission back until its hooks are answered. The first hook event carries the line that
    /// asked for the permission.
    pub(super) fn hold<'d>(&mut self, draft: Draft<'d>) -> Option<Draft<'d>> {
        let EventKind::RequestRaised(request) = &draft.kind else { return Some(draft) };
        let id = request.tool_use_id.as_ref().map(Text::to_string);
        let known = id.as_ref().and_then(|id| self.hooks.tools.get(id));
        let call = ToolCall::asked(request, &draft.agent, known);
        // Hooks may have been shown less than the request asks for.
        let is_same = known.is_some_and(|known| known.is_reported_like(&call));
        let pre_tool_use = known.map(|known| known.pre_tool_use.clone()).unwrap_or_default();
        if let Some(id) = id.as_ref().filter(|id| self.hooks.tools.contains_key(*id)) {
            self.hooks.tools.insert(id.clone(), call.clone());
        }
        match pre_tool_use {
            PreToolUse::Answered(output) if is_same || output.blocked().is_some() => {
                self.hooks.decided.insert(request.request_id.to_string(), output);
                return Some(draft);
            }
            PreToolUse::Raised(number) if is_same => {
                if let Some(occasion) = self.hooks.occasions.get_mut(&number) {
                    let request = request.clone().into_owned();
                    let held = HeldRequest { request, agent: call.agent.clone() };
                    occasion.purpose = Purpose::Permission(Box::new(held));
                    self.carry(draft.native, "the permission waits for hooks");
                    return None;
                }
            }
            PreToolUse::Raised(number) => self.hooks.make_moot(number),
            PreToolUse::NotRaised | PreToolUse::Answered(_) | PreToolUse::Done => {}
        }
        if !self.hooks.wants(HookEvent::PreToolUse, &call.names()) {
            return Some(draft);
        }
        let held = HeldRequest { request: request.clone().into_owned(), agent: call.agent.clone() };
        let purpose = Purpose::Permission(Box::new(held));
        let input = call.hook_input(id.as_deref());
        self.raise_tool(HookEvent::PreToolUse, &call, input, purpose, draft.native);
        None
    }

    /// Reports what is waited for, with the line of what waits.
    pub(super) fn carry(&mut self, native: Option<Native<'_>>, what: &'static str) {
        let kind = StatusChanged::new(Status::Waiting).message(Text::fixed(what)).into();
        self.record(Draft { agent: agentwire_dialects::tape::Agent::main(), kind, native });
    }

    /// The agent has not asked for the call, and may never ask.
    fn seems_unasked(&mut self, id: &str) {
        let Some(call) = self.hooks.tools.get_mut(id) else { return };
        if !matches!(call.pre_tool_use, PreToolUse::NotRaised) {
            return;
        }
        call.pre_tool_use = PreToolUse::Done;
        let call = call.clone();
        let purpose = Purpose::Call(id.to_owned());
        let input = call.hook_input(Some(id));
        if self.raise_tool(HookEvent::PreToolUse, &call, input, purpose, None)
            && let Some(call) = self.hooks.tools.get_mut(id)
        {
            call.pre_tool_use = PreToolUse::Raised(self.hooks.last_occasion);
        }
    }

    /// Reports answers that come too late to have an effect.
    fn too_late(&mut self, output: &Output) {
        let agent = self.hooks.agent;
        let event = HookEvent::PreToolUse;
        if output.decision == Some(Decision::Deny) {
            let why = format!("{agent} did not ask before the tool ran; the call cannot be undone");
            self.cannot(event, "a denial", &why);
        }
        if output.input.is_some() {
            self.cannot(event, "updatedInput", &format!("{agent} did not ask before the tool ran"));
        }
    }
}
