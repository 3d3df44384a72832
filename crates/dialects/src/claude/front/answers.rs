//! The client's answers to the agent's requests.

use std::collections::BTreeMap;

use agentwire_protocol::command::{Behavior, Remember};
use agentwire_protocol::event::{RequestKind, RequestSettled, SettledBy};
use agentwire_protocol::{Command, Configure, ErrorCode, GatewayError, Json, Settlement};
use serde::Deserialize;
use serde_json::json;

use super::initialize::Flavour;
use super::requests::ShownRequest;
use super::{ClaudeFront, PendingCall, Stage, control};
use crate::claude::permission::{self, Updates};
use crate::front::Outbox;

pub(super) struct Answer {
    pub(super) id: String,
    said: Result<Json<'static>, String>,
}

#[derive(Deserialize)]
struct ControlResponse {
    response: Response,
}

#[derive(Deserialize)]
struct Response {
    request_id: String,
    subtype: Option<String>,
    response: Option<Json<'static>>,
    error: Option<Json<'static>>,
}

#[derive(Deserialize)]
struct CallbackResponse {
    id: String,
    payload: Option<Json<'static>>,
}

/// The fields that an answer that allows may have, by the names of both wires.
const FIELDS: [&str; 10] = [
    "behavior",
    "updatedInput",
    "updated_input",
    "updatedPermissions",
    "updated_permissions",
    "message",
    "interrupt",
    "toolUseID",
    "tool_use_id",
    "decisionClassification",
];

/// The answer to a permission, by the names of both wires.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Permission {
    behavior: Option<Behavior>,
    #[serde(alias = "updated_input")]
    updated_input: Option<Json<'static>>,
    #[serde(alias = "updated_permissions")]
    updated_permissions: Option<Json<'static>>,
    message: Option<String>,
    interrupt: Option<bool>,
}

impl Answer {
    pub(super) fn control(line: &str) -> Result<Self, String> {
        let line: ControlResponse = serde_json::from_str(line)
            .map_err(|error| format!("failed to read the response: {error}"))?;
        let Response { request_id: id, subtype, response, error } = line.response;
        let said = if subtype.as_deref() == Some("error") {
            let text = error.map(|error| error.read().unwrap_or_else(|_| error.get().to_owned()));
            Err(text.unwrap_or_else(|| "the client failed to answer".to_owned()))
        } else {
            Ok(response.unwrap_or(Json::EMPTY))
        };
        Ok(Self { id, said })
    }

    pub(super) fn callback(line: &str) -> Result<Self, String> {
        let line: CallbackResponse = serde_json::from_str(line)
            .map_err(|error| format!("failed to read the response: {error}"))?;
        Ok(Self { id: line.id, said: Ok(line.payload.unwrap_or(Json::EMPTY)) })
    }

    /// The answer as a settlement of the request that was shown, and the mode that it sets.
    pub(super) fn settlement(&self, shown: &ShownRequest) -> (Settlement, Option<String>) {
        let id = self.id.as_str();
        let said = match &self.said {
            Ok(said) => said,
            Err(error) => return (Settlement::error(id, error.clone()), None),
        };
        match shown.kind {
            RequestKind::Hook | RequestKind::Mcp | RequestKind::Other => {
                (Settlement::output(id, said.clone()), None)
            }
            RequestKind::Permission | RequestKind::Question => {
                decision(id, said, shown).unwrap_or_else(|why| (Settlement::error(id, why), None))
            }
        }
    }
}

impl ClaudeFront {
    pub(super) fn settled(&mut self, settled: &RequestSettled<'_>, out: &mut Outbox) {
        let id = settled.request_id.decode();
        self.raised.retain(|(raised, ..)| *raised != id);
        let Some(shown) = self.shown.remove(&*id) else { return };
        let ours = shown.is_answered && settled.by == SettledBy::Client;
        if !ours && self.flavour == Flavour::Control {
            out.send_json(&json!({ "type": "control_cancel_request", "request_id": id }));
        }
    }

    pub(super) fn answer(&mut self, answer: Answer, out: &mut Outbox) {
        let Stage::Running(session) = self.stage.clone() else { return };
        // An answer to a request that was never shown, or is settled, is ignored, as Claude does.
        let Some(shown) = self.shown.get_mut(&answer.id) else { return };
        shown.is_answered = true;
        let (settlement, mode) = answer.settlement(shown);
        // For an agent that speaks Claude's wire, the session itself handles modes.
        let rules = settlement.updated_permissions.as_ref();
        let modes = rules.map(permission::modes).unwrap_or_default();
        let (settlement, mode) = match mode.iter().chain(&modes).any(|mode| self.is_bypass(mode)) {
            true => (Settlement::error(&*answer.id, control::NO_BYPASS), None),
            false => (settlement, mode),
        };
        if let Some(mode) = mode {
            let change = Configure { permission_mode: Some(mode), ..Configure::default() };
            let call = out.command(&session, Command::Configure(change));
            self.calls.insert(call, PendingCall::Mode);
        }
        let call = out.command(&session, Command::Settle(settlement));
        self.calls.insert(call, PendingCall::Settle(answer.id));
    }

    /// The agent did not accept the answer. It must not wait forever for another.
    pub(super) fn not_settled(&mut self, id: &str, error: &GatewayError, out: &mut Outbox) {
        let over = matches!(error.code, ErrorCode::RequestSettled | ErrorCode::RequestNotFound);
        let Stage::Running(session) = self.stage.clone() else { return };
        let Some(shown) = self.shown.get_mut(id).filter(|_| !over) else { return };
        if std::mem::replace(&mut shown.is_refused, true) {
            return;
        }
        // Deny hooks too: Claude would treat an error as no opinion, and run the tool.
        let settlement = Settlement::deny(id, error.message.clone());
        let call = out.command(&session, Command::Settle(settlement));
        self.calls.insert(call, PendingCall::Settle(id.to_owned()));
    }
}

fn decision(
    id: &str,
    said: &Json<'_>,
    shown: &ShownRequest,
) -> Result<(Settlement, Option<String>), String> {
    let fields: BTreeMap<String, Json<'_>> = said.read().unwrap_or_default();
    let said: Permission =
        said.read().map_err(|error| format!("failed to read the answer: {error}"))?;
    // A misspelled field must not run the tool with the input that it was meant to change.
    let unknown = fields.keys().find(|name| !FIELDS.contains(&name.as_str()));
    if let (Some(Behavior::Allow), Some(unknown)) = (said.behavior, unknown) {
        return Err(format!("the answer has an unknown field: {unknown}"));
    }
    let settlement = match said.behavior {
        // Silence never allows.
        None => return Err("the answer has no behavior".to_owned()),
        Some(Behavior::Deny) => {
            let message = said.message.unwrap_or_default();
            Settlement { interrupt: said.interrupt, ..Settlement::deny(id, message) }
        }
        Some(Behavior::Allow) if shown.is_native => Settlement {
            updated_input: said.updated_input,
            updated_permissions: said.updated_permissions,
            ..Settlement::allow(id)
        },
        Some(Behavior::Allow) if shown.kind == RequestKind::Question => {
            let answers = permission::answers(&shown.keys, said.updated_input.as_ref())?;
            Settlement { answers: Some(answers), ..Settlement::allow(id) }
        }
        Some(Behavior::Allow) => {
            let asked = (&*shown.tool, &shown.input);
            let given = said.updated_permissions.as_ref();
            let updates = given.map(|given| permission::updates(given, asked)).transpose()?;
            let Updates { remember, mode } = updates.unwrap_or_default();
            let is_new = |input: &Json<'_>| !permission::is_same(input, &shown.input);
            let settlement = Settlement {
                updated_input: said.updated_input.filter(is_new),
                remember: remember.then_some(Remember::Session),
                ..Settlement::allow(id)
            };
            return Ok((settlement, mode));
        }
    };
    Ok((settlement, None))
}
