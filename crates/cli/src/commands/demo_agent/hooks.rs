//! Hooks of the client: registrations, calls and answers.

use std::time::{Duration, Instant};

use agentwire_dialects::hooks::Matcher;
use serde_json::{Value, json};

use super::agent::{Agent, Halt};
use super::json::JsonFields as _;
use super::requests::{ClientAnswer, Requester};
use super::tools::ToolCall;

/// How long the session's end waits for its hook.
const LAST_HOOK: Duration = Duration::from_secs(1);

/// The callbacks that `initialize` registered.
#[derive(Default)]
pub(super) struct Hooks(Vec<Hook>);

#[derive(Clone)]
struct Hook {
    event: String,
    matcher: Matcher,
    callback: String,
    timeout: Option<Duration>,
    /// A missing answer counts as a block.
    strict: bool,
}

impl Hooks {
    /// `{"PreToolUse": [{"matcher", "hookCallbackIds", "timeout", "onFailure"}]}`
    pub(super) fn read(hooks: &Value) -> Self {
        let mut all = Vec::new();
        for (event, entries) in hooks.as_object().into_iter().flatten() {
            for entry in entries.as_array().into_iter().flatten() {
                let matcher = Matcher::parse(entry.at("matcher").as_str());
                let matcher = matcher.unwrap_or(Matcher::Names(Vec::new()));
                let seconds = entry.at("timeout").as_f64();
                let callbacks = entry.at("hookCallbackIds").as_array().into_iter().flatten();
                all.extend(callbacks.filter_map(Value::as_str).map(|callback| Hook {
                    event: event.clone(),
                    matcher: matcher.clone(),
                    callback: callback.to_owned(),
                    timeout: seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
                    strict: entry.at("onFailure") == "block",
                }));
            }
        }
        Self(all)
    }

    /// Without a subject every matcher matches.
    fn matching(&self, event: &str, subject: Option<&str>) -> Vec<Hook> {
        let fits = |hook: &&Hook| {
            hook.event == event && subject.is_none_or(|subject| hook.matcher.fits(subject))
        };
        self.0.iter().filter(fits).cloned().collect()
    }
}

/// An event for hooks.
pub(super) struct HookEvent<'o> {
    pub(super) event: &'static str,
    /// What matchers test: a tool, a source, a kind of subagent.
    pub(super) subject: Option<&'o str>,
    pub(super) tool_use_id: Option<&'o str>,
    pub(super) fields: Value,
}

impl<'o> HookEvent<'o> {
    /// An event that is not about a tool call.
    pub(super) fn new(event: &'static str, subject: Option<&'o str>, fields: Value) -> Self {
        Self { event, subject, tool_use_id: None, fields }
    }

    /// An event of a tool call.
    pub(super) fn of_call(event: &'static str, call: &ToolCall<'o>, fields: Value) -> Self {
        Self { tool_use_id: Some(call.id), ..Self::new(event, Some(call.name), fields) }
    }
}

/// The combined decision of hooks on a tool call.
#[derive(Default)]
pub(super) struct HookVerdict {
    pub(super) decision: Option<Decision>,
    pub(super) reason: String,
    pub(super) input: Option<Value>,
    /// The turn must end.
    pub(super) stop: Option<String>,
}

/// The strictest decision wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Decision {
    Allow,
    Ask,
    Deny,
}

impl HookVerdict {
    pub(super) fn of(outputs: &[Value]) -> Self {
        let mut verdict = Self { stop: stopped(outputs), ..Self::default() };
        for output in outputs {
            let specific = &output.at("hookSpecificOutput");
            let word =
                specific.at("permissionDecision").as_str().or(output.at("decision").as_str());
            let decision = match word {
                Some("allow" | "approve") => Some(Decision::Allow),
                Some("ask") => Some(Decision::Ask),
                Some("deny" | "block") => Some(Decision::Deny),
                _ => None,
            };
            if decision > verdict.decision {
                verdict.decision = decision;
                let reason = specific.at("permissionDecisionReason").as_str();
                verdict.reason = reason.unwrap_or(reason_of(output)).to_owned();
            }
            let input = specific.get("updatedInput").filter(|input| input.is_object());
            verdict.input = input.cloned().or(verdict.input);
        }
        verdict
    }
}

/// The reason of a hook that blocked, if any.
pub(super) fn blocked(outputs: &[Value]) -> Option<String> {
    let block = outputs.iter().find(|output| output.at("decision") == "block");
    block.map(|output| reason_of(output).to_owned()).or_else(|| stopped(outputs))
}

/// The reason of a hook that stopped the turn, if any.
pub(super) fn stopped(outputs: &[Value]) -> Option<String> {
    let stop = outputs.iter().find(|output| output.at("continue") == false)?;
    Some(stop.at("stopReason").as_str().unwrap_or(reason_of(stop)).to_owned())
}

fn reason_of(output: &Value) -> &str {
    output.at("reason").as_str().unwrap_or("Blocked by hook")
}

impl Agent {
    /// Calls the hooks of this event in order; returns their answers.
    pub(super) fn raise(&mut self, hook_event: &HookEvent<'_>) -> Result<Vec<Value>, Halt> {
        self.raise_within(hook_event, None)
    }

    fn raise_within(
        &mut self,
        hook_event: &HookEvent<'_>,
        limit: Option<Duration>,
    ) -> Result<Vec<Value>, Halt> {
        let mut outputs = Vec::new();
        for hook in self.hooks.matching(hook_event.event, hook_event.subject) {
            let id = self.call_hook(&hook, hook_event)?;
            let patience = hook.timeout.or(limit);
            let until = patience.and_then(|patience| Instant::now().checked_add(patience));
            let answer = self.answer(std::slice::from_ref(&id), until)?;
            if answer.is_none() {
                self.withdraw(&id)?;
            }
            outputs.extend(self.hook_output(&hook, answer.map(|(_, answer)| answer))?);
        }
        Ok(outputs)
    }

    /// Calls all hooks that may decide a permission, without waiting for them. The first answer
    /// decides.
    pub(super) fn raise_together(
        &mut self,
        hook_event: &HookEvent<'_>,
    ) -> Result<Vec<String>, Halt> {
        let hooks = self.hooks.matching(hook_event.event, hook_event.subject);
        hooks.iter().map(|hook| self.call_hook(hook, hook_event)).collect()
    }

    fn call_hook(&mut self, hook: &Hook, hook_event: &HookEvent<'_>) -> Result<String, Halt> {
        let mut input = json!({
            "session_id": self.session.id,
            "transcript_path": self.memory.path(),
            "cwd": self.session.directory,
            "permission_mode": self.permissions.mode.name(),
            "hook_event_name": hook_event.event,
        });
        if let Some(turn) = &self.turn {
            input.set("prompt_id", turn.id.as_str());
        }
        if let Some(spawned) = self.active.subagent() {
            input.set("agent_id", spawned.agent_id.as_str());
            input.set("agent_type", spawned.kind.as_str());
        }
        for (name, value) in hook_event.fields.as_object().into_iter().flatten() {
            input.set(name, value.clone());
        }
        let tool_use_id = match hook_event.tool_use_id {
            Some(id) => id.to_owned(),
            None => self.session.ids.uuid().to_string(),
        };
        self.request(
            Requester::Turn,
            &json!({
                "subtype": "hook_callback",
                "callback_id": hook.callback,
                "input": input,
                "tool_use_id": tool_use_id,
            }),
        )
    }

    fn hook_output(
        &mut self,
        hook: &Hook,
        answer: Option<ClientAnswer>,
    ) -> Result<Option<Value>, Halt> {
        match answer {
            Some(ClientAnswer::Given(output)) if output.is_object() => return Ok(Some(output)),
            // There is no client.
            Some(ClientAnswer::Closed) if !hook.strict => return Ok(None),
            Some(ClientAnswer::Given(_) | ClientAnswer::Failed(_) | ClientAnswer::Closed)
            | None => {}
        }
        let name = &hook.callback;
        let what = "the SDK host replied with an error or an invalid answer";
        let treated = if hook.strict { "as a block" } else { "as empty" };
        self.inform(
            &format!(
                "{}: Hook callback {name} failed: {what}. Its answer was treated {treated}.",
                hook.event
            ),
            "hook_callback_failed",
        )?;
        let block =
            json!({ "decision": "block", "reason": format!("hook callback {name} failed") });
        Ok(hook.strict.then_some(block))
    }

    /// Writes a message to the user that is not part of the conversation.
    pub(super) fn inform(&mut self, content: &str, tag: &str) -> Result<(), Halt> {
        self.emit(json!({
            "type": "system",
            "subtype": "informational",
            "content": content,
            "level": "warning",
            "tag": tag,
        }))
    }

    pub(super) fn session_start(&mut self) -> Result<(), Halt> {
        let source = if self.session.resumed { "resume" } else { "startup" };
        let fields = json!({ "source": source, "model": self.model });
        self.raise(&HookEvent::new("SessionStart", Some(source), fields)).map(drop)
    }

    pub(super) fn session_end(&mut self) -> Result<(), Halt> {
        let hook_event = HookEvent::new("SessionEnd", Some("other"), json!({ "reason": "other" }));
        match self.raise_within(&hook_event, Some(LAST_HOOK)) {
            // It is ending already.
            Ok(_) | Err(Halt::Interrupted(_)) => Ok(()),
            Err(halt) => Err(halt),
        }
    }
}
