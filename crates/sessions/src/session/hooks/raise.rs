//! From events to hooks: what the agent says is looked at on its way to the log.

use agentwire_dialects::tape::{Agent, Draft};
use agentwire_protocol::event::{
    RequestKind, RequestRaised, Status, StatusChanged, ToolFailed, ToolFailure, input_digest,
};
use agentwire_protocol::{EventKind, Json, Native, Text};
use tokio::time::Instant;

use super::super::book::Raised;
use super::super::core::Core;
use super::input::{Input, ToolCall};
use super::{
    Held, HookCall, HookEvent, Occasion, Phase, Purpose, TELLING_LIMIT, TOOL_LIMIT, UNASKED,
};

/// What is raised: for what, about whom, told what.
struct Raise<'r> {
    event: HookEvent,
    /// What matchers look at; nothing, where there is nothing to choose by.
    subjects: &'r [&'r str],
    agent: Agent<'static>,
    input: Input,
    purpose: Purpose,
}

impl Core {
    /// Takes an event of the agent, with the hooks that it raises.
    pub(in super::super) fn hear(&mut self, draft: Draft<'_>) {
        match &draft.kind {
            EventKind::ToolStarted(tool) => {
                let id = tool.tool_id.to_string();
                let call = ToolCall::started(tool, &draft.agent);
                self.take(draft);
                self.tool_started(id, call);
            }
            EventKind::ToolProgress(progress) => {
                if progress.output.is_some() {
                    self.runs_unasked(&progress.tool_id.decode());
                }
                self.take(draft);
            }
            EventKind::ToolCompleted(tool) => {
                let id = tool.tool_id.to_string();
                self.runs_unasked(&id);
                let after = if tool.success {
                    let response = tool.structured.clone().or(tool.result.clone());
                    let response = response.unwrap_or(Json::checked("null")).into_owned();
                    Input { tool_response: Some(response), ..Input::default() }
                } else {
                    let error = tool.error.as_ref().map(Text::to_string);
                    let result = tool.result.as_ref();
                    let result = result.map(|result| {
                        result.read::<String>().unwrap_or_else(|_| result.get().to_owned())
                    });
                    failure(error.or(result).unwrap_or_default(), false)
                };
                self.take(draft);
                self.tool_over(&id, after);
            }
            EventKind::ToolFailed(tool) => {
                let id = tool.tool_id.to_string();
                let after = after_failure(tool);
                if after.is_some() {
                    self.runs_unasked(&id);
                }
                self.take(draft);
                match after {
                    Some(after) => self.tool_over(&id, after),
                    // It never ran.
                    None => drop(self.hooks.tools.remove(&id)),
                }
            }
            EventKind::RequestRaised(request) if request.kind == RequestKind::Permission => {
                if let Some(draft) = self.hold(draft) {
                    self.take(draft);
                }
            }
            EventKind::RequestSettled(settled) => {
                let id = settled.request_id.to_string();
                self.hooks.permission_over(&id);
                // The agent asks no more; that it did is told first.
                if let Some(held) = self.hooks.take_held(&id) {
                    self.release(held);
                }
                self.take(draft);
            }
            EventKind::TurnCompleted(_) => {
                self.take(draft);
                let active = self.hooks.continued > 0;
                let input = Input { stop_hook_active: Some(active), ..Input::default() };
                self.raise_plain(HookEvent::Stop, "", input, Purpose::Stop);
            }
            EventKind::AgentSpawned(spawned) => {
                let kind = spawned.name.as_ref().map(Text::to_string);
                if let Some(kind) = kind.clone().filter(|_| self.hooks.subagents.len() < TOOL_LIMIT)
                {
                    self.hooks.subagents.insert(draft.agent.id.to_string(), kind);
                }
                self.subagent(HookEvent::SubagentStart, kind, draft);
            }
            EventKind::AgentFinished(_) => {
                let kind = self.hooks.subagents.remove(&*draft.agent.id.decode());
                self.subagent(HookEvent::SubagentStop, kind, draft);
            }
            EventKind::SessionStarted(_)
            | EventKind::SessionEnded(_)
            | EventKind::TurnStarted(_)
            | EventKind::TurnFailed(_)
            | EventKind::TextChunk(_)
            | EventKind::ThinkingChunk(_)
            | EventKind::FileChanged(_)
            | EventKind::Error(_)
            | EventKind::PlanUpdated(_)
            | EventKind::RequestRaised(_)
            | EventKind::StatusChanged(_)
            | EventKind::UsageReported(_)
            | EventKind::Other(_)
            | EventKind::Unknown(_) => self.take(draft),
        }
    }

    /// The session begins, or goes on with an earlier one.
    pub(in super::super) fn raise_start(&mut self, is_resumed: bool) {
        self.hooks.phase = Phase::Begun;
        let source = if is_resumed { "resume" } else { "startup" };
        let model = self.book.record.summary.model.clone();
        let input = Input { source: Some(source), model, ..Input::default() };
        self.raise_plain(HookEvent::SessionStart, source, input, Purpose::Start);
    }

    /// The session ends. Nobody waits for the answer.
    pub(in super::super) fn raise_end(&mut self) {
        if self.hooks.phase == Phase::Begun {
            self.hooks.phase = Phase::Over;
            let input = Input { reason: Some("other"), ..Input::default() };
            self.raise_plain(HookEvent::SessionEnd, "other", input, Purpose::Tell);
        }
    }

    /// A prompt is to be given to the agent. Says whether anybody is asked.
    pub(super) fn raise_prompt(&mut self, text: &str) -> bool {
        let input = Input { prompt: Some(text.to_owned()), ..Input::default() };
        self.raise_plain(HookEvent::UserPromptSubmit, "", input, Purpose::Prompt)
    }

    /// Somebody has to be asked for a permission.
    pub(in super::super) fn raise_asking(&mut self, raised: &Raised) {
        if !self.hooks.is_active() {
            return;
        }
        let id = raised.tool_use_id.as_deref();
        let known = id.and_then(|id| self.hooks.tools.get(id)).cloned();
        let call = known.unwrap_or_else(|| ToolCall::vague(raised));
        let message = format!("{} needs your permission to use {}", self.hooks.agent, call.name);
        let purpose = Purpose::Ask(raised.id.clone());
        self.raise_tool(HookEvent::PermissionRequest, &call, call.told(id), purpose, None);
        let kind = "permission_prompt";
        let input =
            Input { message: Some(message), notification_type: Some(kind), ..Input::default() };
        self.raise_plain(HookEvent::Notification, kind, input, Purpose::Tell);
    }

    /// Calls that have waited long enough to be known as unasked.
    pub(in super::super) fn raise_late(&mut self, now: Instant) {
        while let Some((since, _)) = self.hooks.unasked.front()
            && *since + UNASKED <= now
            && let Some((_, id)) = self.hooks.unasked.pop_front()
        {
            self.runs_unasked(&id);
        }
    }

    /// Tells of a permission that was held back.
    pub(super) fn release(&mut self, held: Held) {
        self.take(Draft { agent: held.agent, kind: held.request.into(), native: None });
    }

    /// Says once that something cannot be done.
    pub(super) fn cannot(&mut self, event: HookEvent, what: &'static str, why: &str) {
        if self.hooks.warned.insert((event, what)) {
            let message = format!("the hook {} gave {what}: {why}", event.as_str());
            self.emit(StatusChanged::new(Status::Warning).message(Text::from(message)));
        }
    }

    fn tool_started(&mut self, id: String, call: ToolCall) {
        if self.hooks.tools.len() >= TOOL_LIMIT {
            return;
        }
        let is_wanted = self.hooks.wants(HookEvent::PreToolUse, &call.names());
        self.hooks.tools.insert(id.clone(), call);
        if is_wanted && self.hooks.asks {
            self.hooks.unasked.push_back((Instant::now(), id));
        } else if is_wanted {
            self.runs_unasked(&id);
        }
    }

    /// The call runs though the agent did not ask.
    fn runs_unasked(&mut self, id: &str) {
        let Some(call) = self.hooks.tools.get_mut(id) else { return };
        if std::mem::replace(&mut call.is_known, true) {
            return;
        }
        let call = call.clone();
        self.raise_tool(HookEvent::PreToolUse, &call, call.told(Some(id)), Purpose::Tell, None);
    }

    fn tool_over(&mut self, id: &str, after: Input) {
        let Some(call) = self.hooks.tools.remove(id) else { return };
        let event = match after.tool_response {
            Some(_) => HookEvent::PostToolUse,
            None => HookEvent::PostToolUseFailure,
        };
        let told = call.told(Some(id));
        let input = Input {
            tool_name: told.tool_name,
            tool_input: told.tool_input,
            tool_use_id: told.tool_use_id,
            ..after
        };
        self.raise_tool(event, &call, input, Purpose::Tell, None);
    }

    /// Keeps a permission back until its hooks are answered. The line that asked for it is carried by
    /// the first of them.
    fn hold<'d>(&mut self, draft: Draft<'d>) -> Option<Draft<'d>> {
        let EventKind::RequestRaised(request) = &draft.kind else { return Some(draft) };
        let id = request.tool_use_id.as_ref().map(Text::to_string);
        let known = id.as_ref().and_then(|id| self.hooks.tools.get(id));
        let call = ToolCall::asked(request, &draft.agent, known);
        if let Some(id) = id.as_ref().filter(|id| self.hooks.tools.contains_key(*id)) {
            self.hooks.tools.insert(id.clone(), call.clone());
        }
        if !self.hooks.wants(HookEvent::PreToolUse, &call.names()) {
            return Some(draft);
        }
        let held = Held { request: request.clone().into_owned(), agent: call.agent.clone() };
        let purpose = Purpose::Permission(Box::new(held));
        let input = call.told(id.as_deref());
        self.raise_tool(HookEvent::PreToolUse, &call, input, purpose, draft.native);
        None
    }

    fn subagent(&mut self, event: HookEvent, kind: Option<String>, draft: Draft<'_>) {
        let agent = owned(&draft.agent);
        self.take(draft);
        let subject = kind.clone().unwrap_or_default();
        let input = Input::subagent(kind);
        let purpose = Purpose::Tell;
        self.raise(Raise { event, subjects: &[&subject], agent, input, purpose }, None);
    }

    fn raise_tool(
        &mut self,
        event: HookEvent,
        call: &ToolCall,
        input: Input,
        purpose: Purpose,
        native: Option<Native<'_>>,
    ) {
        let agent = call.agent.clone();
        self.raise(Raise { event, subjects: &call.names(), agent, input, purpose }, native);
    }

    fn raise_plain(
        &mut self,
        event: HookEvent,
        subject: &str,
        input: Input,
        purpose: Purpose,
    ) -> bool {
        let agent = Agent::main();
        self.raise(Raise { event, subjects: &[subject], agent, input, purpose }, None)
    }

    /// Raises the hooks that fit, and says whether there are any.
    fn raise(&mut self, raise: Raise<'_>, mut native: Option<Native<'_>>) -> bool {
        let Raise { event, subjects, agent, input, purpose } = raise;
        let fits = self.hooks.all.iter().filter(|hook| hook.fits(event, subjects));
        let calls: Vec<_> =
            fits.map(|hook| (hook.callback.clone(), hook.timeout, hook.blocks)).collect();
        if calls.is_empty() {
            return false;
        }
        if matches!(purpose, Purpose::Tell) && self.hooks.calls.len() >= TELLING_LIMIT {
            self.cannot(event, "no answer", "too many wait, further ones are not raised");
            return false;
        }
        let input = input.of(event.as_str(), &self.book.record, &agent);
        let (tool_name, tool_use_id) = (input.tool_name.clone(), input.tool_use_id.clone());
        let input = Json::of(&input);
        self.hooks.last_occasion += 1;
        let occasion = self.hooks.last_occasion;
        let mut open = std::collections::BTreeSet::new();
        for (callback, timeout, blocks) in calls {
            let id = format!("hook-{}", self.journal.last() + 1);
            let request = RequestRaised {
                request_id: Text::from(id.clone()),
                kind: RequestKind::Hook,
                input_digest: input_digest(Some(&input)),
                tool_name: tool_name.clone().map(Text::from),
                input: Some(input.clone()),
                tool_use_id: tool_use_id.clone().map(Text::from),
                questions: Vec::new(),
                suggestions: None,
                options: Vec::new(),
                title: None,
                message: None,
                name: Some(Text::fixed(event.as_str())),
                callback_id: Some(Text::from(callback)),
                schema: None,
                blocked_path: None,
            };
            self.hooks.calls.insert(id.clone(), HookCall { occasion, event, timeout, blocks });
            open.insert(id);
            let agent = agent.clone();
            self.take(Draft { agent, kind: request.into(), native: native.take() });
        }
        let outputs = Vec::new();
        self.hooks.occasions.insert(occasion, Occasion { event, purpose, open, outputs });
        true
    }
}

fn owned(agent: &Agent<'_>) -> Agent<'static> {
    Agent { id: agent.id.clone().into_owned(), parent: agent.parent.clone().map(Text::into_owned) }
}

/// What is told of a call that was cut off; nothing of one that never ran.
fn after_failure(tool: &ToolFailed<'_>) -> Option<Input> {
    match tool.reason {
        ToolFailure::Interrupted => Some(failure(tool.error.to_string(), true)),
        ToolFailure::Denied | ToolFailure::Invalid => None,
    }
}

fn failure(error: String, is_interrupt: bool) -> Input {
    Input { error: Some(error), is_interrupt: Some(is_interrupt), ..Input::default() }
}
