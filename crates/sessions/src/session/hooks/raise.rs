//! Raises hooks from the agent's events on their way to the log.

use agentwire_dialects::tape::{Agent, Draft};
use agentwire_protocol::event::{
    RequestKind, RequestRaised, Status, StatusChanged, ToolCompleted, ToolFailed, ToolFailure,
};
use agentwire_protocol::{EventKind, Json, Native, Text};

use super::super::core::Core;
use super::super::pending_request::{PendingRequest, owned};
use super::input::{Input, ToolCall};
use super::{
    HeldRequest, HookCall, HookEvent, Occasion, Phase, Purpose, TELLING_LIMIT, TOOL_LIMIT,
};

impl Core {
    /// Records an event of the agent and raises its hooks.
    pub(in super::super) fn hear(&mut self, draft: Draft<'_>) {
        match &draft.kind {
            EventKind::RequestRaised(request) if request.kind == RequestKind::Permission => {
                if let Some(draft) = self.hold(draft) {
                    self.record(draft);
                }
            }
            EventKind::RequestSettled(settled) => {
                let id = settled.request_id.to_string();
                self.hooks.permission_settled(&id);
                // The agent has withdrawn its request. Report first that it asked.
                if let Some(held) = self.hooks.take_held(&id) {
                    self.release(held);
                }
                self.record(draft);
            }
            EventKind::TurnCompleted(_) => {
                self.end_turn();
                if let Some(draft) = self.hold_turn(draft) {
                    self.record(draft);
                }
            }
            // The agent continues, so the end of its last turn is reported first.
            EventKind::TurnStarted(_) | EventKind::TurnFailed(_) | EventKind::SessionEnded(_) => {
                self.end_turn();
                self.record(draft);
            }
            EventKind::AgentSpawned(_) | EventKind::AgentFinished(_) => {
                self.observe_subagent(draft);
            }
            _ => self.observe_tool(draft),
        }
    }

    /// Records the event. One about a tool call raises hooks too.
    fn observe_tool(&mut self, draft: Draft<'_>) {
        match &draft.kind {
            EventKind::ToolStarted(tool) => {
                let id = tool.tool_id.to_string();
                let call = ToolCall::started(tool, &draft.agent);
                self.record(draft);
                self.tool_started(id, call);
            }
            EventKind::ToolProgress(progress) => {
                if progress.output.is_some() {
                    self.runs(&progress.tool_id.decode());
                }
                self.record(draft);
            }
            EventKind::ToolCompleted(tool) => {
                let (id, after) = (tool.tool_id.to_string(), after_completion(tool));
                self.runs(&id);
                self.record(draft);
                self.tool_ended(&id, after);
            }
            EventKind::ToolFailed(tool) => {
                let (id, after) = (tool.tool_id.to_string(), after_failure(tool));
                if after.is_some() {
                    self.runs(&id);
                }
                self.record(draft);
                match after {
                    Some(after) => self.tool_ended(&id, after),
                    None => self.never_ran(&id),
                }
            }
            _ => self.record(draft),
        }
    }

    fn observe_subagent(&mut self, draft: Draft<'_>) {
        let id = draft.agent.id.to_string();
        match &draft.kind {
            EventKind::AgentSpawned(spawned) => {
                let kind = spawned.name.as_ref().map(Text::to_string);
                let has_room = self.hooks.subagents.len() < TOOL_LIMIT;
                if let Some(kind) = kind.clone().filter(|_| has_room) {
                    self.hooks.subagents.insert(id, kind);
                }
                self.subagent(HookEvent::SubagentStart, kind, draft);
            }
            _ => {
                let kind = self.hooks.subagents.remove(&id);
                self.subagent(HookEvent::SubagentStop, kind, draft);
            }
        }
    }

    /// The session starts, or resumes an earlier one.
    pub(in super::super) fn raise_start(&mut self, is_resumed: bool) {
        self.hooks.phase = Phase::Begun;
        let source = if is_resumed { "resume" } else { "startup" };
        let model = self.state.record.summary.model.clone();
        let input = Input { source: Some(source), model, ..Input::default() };
        self.raise_plain(HookEvent::SessionStart, &[source], input, Purpose::Start);
    }

    /// The session ends. Nothing waits for the answer.
    pub(in super::super) fn raise_end(&mut self) {
        if self.hooks.phase == Phase::Begun {
            self.hooks.phase = Phase::Over;
            let input = Input { reason: Some("other"), ..Input::default() };
            self.raise_plain(HookEvent::SessionEnd, &["other"], input, Purpose::Tell);
        }
    }

    /// A prompt is about to go to the agent. Returns whether any hook was raised.
    pub(super) fn raise_prompt(&mut self, text: &str) -> bool {
        let input = Input { prompt: Some(text.to_owned()), ..Input::default() };
        self.raise_plain(HookEvent::UserPromptSubmit, &[], input, Purpose::Prompt)
    }

    /// A client must be asked for a permission.
    pub(in super::super) fn raise_asking(&mut self, raised: &PendingRequest) {
        if !self.hooks.is_active() {
            return;
        }
        let id = raised.tool_use_id.as_deref();
        let known = id.and_then(|id| self.hooks.tools.get(id)).cloned();
        let call = known.unwrap_or_else(|| ToolCall::vague(raised));
        let message = format!("{} needs your permission to use {}", self.hooks.agent, call.name);
        let purpose = Purpose::Ask(raised.id.clone());
        self.raise_tool(HookEvent::PermissionRequest, &call, call.hook_input(id), purpose, None);
        let kind = "permission_prompt";
        let input =
            Input { message: Some(message), notification_type: Some(kind), ..Input::default() };
        self.raise_plain(HookEvent::Notification, &[kind], input, Purpose::Tell);
    }

    /// Reports a permission that was held back.
    pub(super) fn release(&mut self, held: HeldRequest) {
        self.record(Draft { agent: held.agent, kind: held.request.into(), native: None });
    }

    /// Reports the end of the turn, if it was held back.
    pub(in super::super) fn end_turn(&mut self) {
        if let Some(turn) = self.hooks.turn_end.take() {
            self.record(Draft { agent: Agent::main(), kind: (*turn).into(), native: None });
        }
    }

    /// Reports once that something cannot be done.
    pub(super) fn cannot(&mut self, event: HookEvent, what: &'static str, why: &str) {
        let message = format!("the hook {} returned {what}: {why}", event.as_str());
        self.warn_once(event, what, message);
    }

    pub(super) fn warn_once(&mut self, event: HookEvent, what: &'static str, message: String) {
        if self.hooks.warned.insert((event, what)) {
            self.emit(StatusChanged::new(Status::Warning).message(Text::from(message)));
        }
    }

    /// Holds the end of the turn back until its hooks are answered, because a client may send nothing more
    /// after it. The first event about the end carries its line.
    fn hold_turn<'d>(&mut self, draft: Draft<'d>) -> Option<Draft<'d>> {
        let EventKind::TurnCompleted(turn) = &draft.kind else { return Some(draft) };
        let stops = self.hooks.wants(HookEvent::Stop, &[]);
        if !stops && !self.hooks.are_at_work() {
            return Some(draft);
        }
        self.hooks.turn_end = Some(Box::new(turn.clone().into_owned()));
        if stops {
            let active = self.hooks.continued > 0;
            let input = Input { stop_hook_active: Some(active), ..Input::default() };
            let main = Agent::main();
            self.raise(HookEvent::Stop, &[], &main, input, Purpose::Stop, draft.native);
        } else {
            self.carry(draft.native, "the turn's end waits for hooks");
        }
        None
    }

    fn subagent(&mut self, event: HookEvent, kind: Option<String>, draft: Draft<'_>) {
        let agent = owned(&draft.agent);
        self.record(draft);
        let subject = kind.clone().unwrap_or_default();
        let input = Input { agent_type: kind, ..Input::default() };
        self.raise(event, &[&subject], &agent, input, Purpose::Tell, None);
    }

    pub(super) fn raise_tool(
        &mut self,
        event: HookEvent,
        call: &ToolCall,
        input: Input,
        purpose: Purpose,
        native: Option<Native<'_>>,
    ) -> bool {
        self.raise(event, &call.names(), &call.agent, input, purpose, native)
    }

    fn raise_plain(
        &mut self,
        event: HookEvent,
        subjects: &[&str],
        input: Input,
        purpose: Purpose,
    ) -> bool {
        self.raise(event, subjects, &Agent::main(), input, purpose, None)
    }

    /// Raises the hooks that fit, and returns whether there are any. Matchers are compared with `subjects`;
    /// without any, every matcher fits.
    fn raise(
        &mut self,
        event: HookEvent,
        subjects: &[&str],
        agent: &Agent<'static>,
        input: Input,
        purpose: Purpose,
        mut native: Option<Native<'_>>,
    ) -> bool {
        let fits = self.hooks.all.iter().filter(|hook| hook.fits(event, subjects));
        let calls: Vec<_> =
            fits.map(|hook| (hook.callback.clone(), hook.timeout, hook.blocks)).collect();
        if calls.is_empty() {
            return false;
        }
        let tells = matches!(purpose, Purpose::Tell | Purpose::Call(_));
        if tells && self.hooks.calls.len() >= TELLING_LIMIT {
            let message = format!("{TELLING_LIMIT} hooks wait; {} is not raised", event.as_str());
            self.warn_once(event, "too many hooks", message);
            return false;
        }
        let input = input.of(event.as_str(), &self.state.record, agent);
        let (tool_name, tool_use_id) = (input.tool_name.clone(), input.tool_use_id.clone());
        let shown = input.tool_input.clone();
        let input = Json::of(&input);
        self.hooks.last_occasion += 1;
        let occasion = self.hooks.last_occasion;
        let mut open = std::collections::BTreeSet::new();
        for (callback, timeout, blocks) in calls {
            let id = format!("hook-{}", self.journal.last() + 1);
            let request = RequestRaised {
                tool_name: tool_name.clone().map(Text::from),
                tool_use_id: tool_use_id.clone().map(Text::from),
                name: Some(Text::fixed(event.as_str())),
                callback_id: Some(Text::from(callback)),
                ..RequestRaised::new(id.clone(), RequestKind::Hook, Some(input.clone()))
            };
            let shown = shown.clone();
            let call = HookCall { occasion, event, timeout, blocks, shown };
            self.hooks.calls.insert(id.clone(), call);
            open.insert(id);
            let agent = agent.clone();
            self.record(Draft { agent, kind: request.into(), native: native.take() });
        }
        let outputs = Vec::new();
        self.hooks.occasions.insert(occasion, Occasion { event, purpose, open, outputs });
        true
    }
}

/// The hook input after a call that returned a result.
fn after_completion(tool: &ToolCompleted<'_>) -> Input {
    if tool.success {
        let response = tool.structured.clone().or(tool.result.clone());
        let response = response.unwrap_or(Json::trusted("null")).into_owned();
        return Input { tool_response: Some(response), ..Input::default() };
    }
    let error = tool.error.as_ref().map(Text::to_string);
    let result = tool.result.as_ref();
    let result =
        result.map(|result| result.read::<String>().unwrap_or_else(|_| result.get().to_owned()));
    failure(error.or(result).unwrap_or_default(), false)
}

/// The hook input after a call that was cut off; `None` for one that never ran.
fn after_failure(tool: &ToolFailed<'_>) -> Option<Input> {
    match tool.reason {
        ToolFailure::Interrupted => Some(failure(tool.error.to_string(), true)),
        ToolFailure::Denied | ToolFailure::Invalid => None,
    }
}

fn failure(error: String, is_interrupt: bool) -> Input {
    Input { error: Some(error), is_interrupt: Some(is_interrupt), ..Input::default() }
}
