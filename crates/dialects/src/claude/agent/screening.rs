//! What the gateway decides for Claude: calls that reach its own hook, and the mode.

use std::borrow::Cow;

use agentwire_protocol::event::{Other, Status, StatusChanged};
use agentwire_protocol::{Call, GatewayError, Json, Settlement, Text};
use serde_json::json;

use super::Translator;
use super::calls::{acknowledge, write_line};
use super::settle::{ControlResponse, ResponseBody};
use crate::claude::guard::GUARD;
use crate::claude::modes;
use crate::claude::wire::ControlRequestBody;
use crate::hooks::Output;
use crate::tape::{Action, Out, ScreenedCall};

/// How many calls may wait for the gateway; more are denied.
const JUDGED_LIMIT: usize = 1024;

/// Longest request id of such a call, in bytes; a call with a longer one is denied.
const ID_LIMIT: usize = 4096;

impl Translator {
    /// Lets the policy judge a call, if the callback is the gateway's own hook. Clients do not see the
    /// hook.
    pub(super) fn judge(
        &mut self,
        id: &Text<'_>,
        asked: &ControlRequestBody<'_>,
        out: &mut Out<'_>,
    ) -> bool {
        let is_guard = asked.callback_id.as_ref().is_some_and(|callback| *callback == *GUARD);
        if !is_guard {
            return false;
        }
        out.emit(Other::named("policy"));
        if out.is_recording() {
            return true;
        }
        let id = id.to_string();
        if self.judged.iter().any(|(open, _)| *open == id) {
            return true;
        }
        if self.judged.len() >= JUDGED_LIMIT || id.len() > ID_LIMIT {
            respond(&id, &denial("too many calls wait for the policy; this one was denied"), out);
            return true;
        }
        let text = |name| asked.input.and_then(|input| input.read::<Cow<'_, str>>(name));
        let call = asked.tool_use_id.as_deref().filter(|id| id.len() <= ID_LIMIT);
        let call = call.map(str::to_owned);
        let tool_input = asked.input.and_then(|input| input.get("tool_input"));
        self.judged.push((id.clone(), call.clone()));
        out.act(Action::Judge(Box::new(ScreenedCall {
            request_id: id,
            tool_name: text("tool_name").map(Cow::into_owned),
            tool_use_id: call,
            input: tool_input.map(|input| input.json().get().to_owned()),
            directory: text("cwd").map(Cow::into_owned),
            is_refusing: text("permission_mode").as_deref() == Some("dontAsk"),
        })));
        true
    }

    /// Sends the gateway's judgment of a call. `None` if no call waits under that id.
    pub(super) fn judged(
        &mut self,
        call: Call,
        settlement: &Settlement,
        out: &mut Out<'_>,
    ) -> Option<Result<(), GatewayError>> {
        let id = settlement.request_id.as_str();
        let at = self.judged.iter().position(|(open, _)| open == id)?;
        let Some(output) = &settlement.hook_output else {
            let message = "the gateway's own hook must be answered with hookOutput";
            return Some(Err(GatewayError::invalid(message)));
        };
        let (_, tool) = self.judged.remove(at);
        let is_denied = Output::read(output).is_ok_and(|output| output.denies());
        if let Some(tool) = tool.filter(|_| is_denied) {
            self.mark_denied(&tool);
        }
        respond(id, output, out);
        acknowledge(call, out);
        Some(Ok(()))
    }

    /// The mode to show when Claude reports that it runs in `told`: the one that the client set, if the
    /// gateway applies it. Claude must never run in a mode that approves calls: if it reports one, it is
    /// told to ask again.
    pub(super) fn mode_to_show<'t>(&mut self, told: Text<'t>, out: &mut Out<'_>) -> Text<'t> {
        if out.is_recording() {
            return told;
        }
        let name = told.to_string();
        self.running_mode.clone_from(&name);
        if modes::is_applied_by_gateway(&name) {
            let request = json!({ "subtype": "set_permission_mode", "mode": modes::ASKING });
            self.calls.tell(&request, out);
            let message = format!("claude changed to {name} by itself; it was told to ask again");
            out.emit(StatusChanged::new(Status::Warning).message(Text::from(message)));
        }
        match &self.kept_mode {
            Some(kept) if name == modes::ASKING => Text::from(kept.clone()),
            Some(_) | None => told,
        }
    }
}

fn denial(reason: &str) -> Json<'static> {
    Json::of(&json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse",
        "permissionDecision": "deny",
        "permissionDecisionReason": reason,
    } }))
}

fn respond(id: &str, output: &Json<'static>, out: &mut Out<'_>) {
    let response = ResponseBody::Success { request_id: id, response: output.clone() };
    write_line(&ControlResponse { response }, out);
}
