//! Judges calls through the gateway's own hook before the agent makes them.

use agentwire_dialects::describe::CallFacts;
use agentwire_dialects::tape::ScreenedCall;
use agentwire_protocol::event::{Status, StatusChanged};
use agentwire_protocol::{Command, Json, Settlement, Text};
use serde_json::{Value, json};

use super::actor::Actor;
use super::breach::CallPermission;
use super::callers::NOBODY;
use super::policy::{Disk, OnDisk, Policy, Screening};
use super::state::DerivedState;

impl Actor {
    /// Answers the calls that the agent has shown. While a limit waits for an answer, they wait too.
    pub(super) fn judge_calls(&mut self) {
        self.core.judged.append(&mut self.limits.released_screened());
        for judged in std::mem::take(&mut self.core.judged) {
            if self.limits.is_waiting() {
                self.limits.hold_screened(judged);
                continue;
            }
            match self.core.cut() {
                Some((_, message)) => {
                    let message = message.clone();
                    self.deny_call(&judged, &message);
                }
                None => self.screen(&judged),
            }
        }
    }

    pub(super) fn deny_call(&mut self, judged: &ScreenedCall, reason: &str) {
        self.answer_call(judged, &decision("deny", reason));
        if let Some(tool) = &judged.tool_use_id {
            self.core.stands(tool, CallPermission::Denied);
        }
    }

    fn answer_call(&mut self, judged: &ScreenedCall, output: &Value) {
        let settlement = Settlement::output(judged.request_id.as_str(), Json::of(output));
        // An agent that is gone, or has withdrawn the call, needs no answer.
        let _ = self.tape.command(NOBODY, &Command::Settle(settlement), &mut self.core);
    }

    /// Answers with what the rules decide about the call, in a hook's format.
    fn screen(&mut self, judged: &ScreenedCall) {
        let output = match screening(&self.core.policy, &self.core.state, judged, &OnDisk) {
            Screening::Deny(rule) => {
                let name = judged.tool_name.as_deref().unwrap_or("a tool");
                let message = Text::from(format!("{name} was denied: {rule}"));
                self.core.emit(StatusChanged::new(Status::Warning).message(message));
                return self.deny_call(judged, &format!("denied: {rule}"));
            }
            Screening::Ask => decision("ask", "the policy of this session asks about the call"),
            Screening::Allow(rule) if judged.is_refusing => decision("allow", &rule),
            Screening::Allow(_) | Screening::Pass => json!({}),
        };
        self.answer_call(judged, &output);
    }
}

/// What the rules decide about the call.
pub(super) fn screening(
    policy: &Policy,
    state: &DerivedState,
    judged: &ScreenedCall,
    disk: &dyn Disk,
) -> Screening {
    let id = judged.tool_use_id.as_deref();
    let tool = id.and_then(|id| state.tool(id));
    let input = judged.input.as_deref().map(Json::trusted);
    let facts = CallFacts {
        tool_name: judged.tool_name.as_deref(),
        kind: tool.map(|tool| tool.kind),
        input: input.as_ref(),
        server: tool.and_then(|tool| tool.server.as_deref()),
        moved: state.has_moved(id),
        // A command that still runs may change it.
        directory: judged.directory.as_deref().filter(|_| !state.runs_another_shell(id)),
        ..CallFacts::default()
    };
    policy.screen(&state.tools().describe(&facts), disk)
}

fn decision(word: &str, reason: &str) -> Value {
    json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": word,
        "permissionDecisionReason": reason,
    } })
}
