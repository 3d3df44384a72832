//! Our control requests: sent, pending, replied to.

use std::collections::BTreeMap;

use agentwire_protocol::event::{AgentInfo, ErrorEvent, Status, StatusChanged};
use agentwire_protocol::{Call, ErrorCode, GatewayError, Json, Text};
use serde::Serialize;
use serde_json::json;

use super::Translator;
use crate::claude::launch::initialize;
use crate::claude::wire::{ControlResponse, InitializeResult, Response};
use crate::json::Value;
use crate::prompt_queue::not_queued;
use crate::tape::Out;

/// How many calls may wait for the agent's reply.
const CALL_LIMIT: usize = 1024;

/// Queries that are answered by a field of the reply to `initialize`.
const INITIALIZE_FIELDS: &[(&str, &str)] = &[
    ("supportedModels", "models"),
    ("supportedCommands", "commands"),
    ("supportedAgents", "agents"),
    ("accountInfo", "account"),
    ("initialization", WHOLE),
];

/// The whole reply.
const WHOLE: &str = "";

/// The field of that reply that answers the query.
pub(super) fn initialize_field(query: &str) -> Option<&'static str> {
    INITIALIZE_FIELDS.iter().find(|(name, _)| *name == query).map(|(_, field)| *field)
}

/// Calls that wait for the agent's reply.
#[derive(Debug, Default)]
pub(super) struct Calls {
    sent: u64,
    waiting: Vec<PendingCall>,
    initialize_reply: InitializeReply,
}

#[derive(Debug, Default)]
struct PendingCall {
    /// The control request's id.
    id: String,
    call: Option<Call>,
    /// The wanted field of the reply; `None` for all of it.
    field: Option<&'static str>,
    /// What the caller gets instead of the agent's own reply, if the agent succeeds.
    done: Option<Json<'static>>,
    /// The mode to report if the agent succeeds.
    mode: Option<String>,
    /// The prompt to cancel. The agent says whether it was still waiting.
    cancels: Option<String>,
}

/// The reply to `initialize`, and the calls that wait for it.
#[derive(Debug, Default)]
struct InitializeReply {
    id: Option<String>,
    fields: BTreeMap<String, Json<'static>>,
    waiting: Vec<(Call, &'static str)>,
}

impl PendingCall {
    fn of(call: Call) -> Self {
        Self { call: Some(call), ..Self::default() }
    }
}

impl Calls {
    /// The process ended, so nobody will answer. `error` is what it reported.
    pub(super) fn fail_all(&mut self, error: Option<&str>, out: &mut Out<'_>) {
        // After the greeting, it is the error of some turn.
        let error = error.filter(|_| self.initialize_reply.fields.is_empty());
        let calls = std::mem::take(&mut self.waiting).into_iter().filter_map(|one| one.call);
        let reply_from_initialize =
            std::mem::take(&mut self.initialize_reply).waiting.into_iter().map(|(call, _)| call);
        let mut failed = Vec::new();
        for call in calls.chain(reply_from_initialize) {
            if !failed.contains(&call) {
                failed.push(call);
                let message = error.unwrap_or("the agent ended before it answered");
                out.reply(call, Err(GatewayError::new(ErrorCode::AgentFailed, message)));
            }
        }
    }

    fn next_id(&mut self) -> String {
        self.sent += 1;
        format!("agentwire-{}", self.sent)
    }

    /// Sends a request; the agent's reply answers the call.
    pub(super) fn ask(
        &mut self,
        call: Call,
        request: &impl Serialize,
        field: Option<&'static str>,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        self.send(request, PendingCall { field, ..PendingCall::of(call) }, out)
    }

    /// Like `ask`, but if the agent succeeds, the reply is `done` (if given) and `mode` is reported.
    pub(super) fn ask_as(
        &mut self,
        call: Call,
        request: &impl Serialize,
        (done, mode): (Option<serde_json::Value>, Option<String>),
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let done = done.map(|done| Json::of(&done));
        self.send(request, PendingCall { done, mode, ..PendingCall::of(call) }, out)
    }

    /// Asks the agent to drop a prompt that waits.
    pub(super) fn cancel_prompt(
        &mut self,
        call: Call,
        message_id: &str,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let request = json!({ "subtype": "cancel_async_message", "message_uuid": message_id });
        let cancels = Some(message_id.to_owned());
        self.send(&request, PendingCall { cancels, ..PendingCall::of(call) }, out)
    }

    fn send(
        &mut self,
        request: &impl Serialize,
        waiting: PendingCall,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        if self.waiting.len() >= CALL_LIMIT {
            let message = "too many calls wait for the agent's reply";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        }
        let id = self.next_id();
        write_line(&ControlRequest { request_id: &id, request }, out);
        self.waiting.push(PendingCall { id, ..waiting });
        Ok(())
    }

    /// Sends a request without waiting for the reply. It is sent even if the agent hangs and too many calls
    /// wait.
    pub(super) fn tell(&mut self, request: &impl Serialize, out: &mut Out<'_>) {
        let id = self.next_id();
        write_line(&ControlRequest { request_id: &id, request }, out);
        if self.waiting.len() < CALL_LIMIT {
            self.waiting.push(PendingCall { id, ..PendingCall::default() });
        }
    }

    fn take(&mut self, id: &str) -> Option<PendingCall> {
        let at = self.waiting.iter().position(|waiting| waiting.id == id)?;
        Some(self.waiting.remove(at))
    }
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "control_request")]
struct ControlRequest<'r, R> {
    request_id: &'r str,
    request: &'r R,
}

/// Writes one line. Clients' values may have line breaks between their tokens, and one bad line would end
/// the agent.
pub(super) fn write_line(message: &impl Serialize, out: &mut Out<'_>) {
    let line = Json::of(message).get().replace(['\n', '\r'], " ");
    out.write(line);
}

pub(super) fn acknowledge(call: Call, out: &mut Out<'_>) {
    out.reply(call, Ok(Json::EMPTY));
}

impl Translator {
    pub(super) fn initialize(&mut self, out: &mut Out<'_>) {
        let id = self.calls.next_id();
        let mut request = initialize(&self.config);
        if let Some(mode) = self.kept_mode.as_ref().filter(|_| self.claude.tells_mode) {
            request.insert("shownMode", Json::of(mode));
        }
        let request = &request;
        write_line(&ControlRequest { request_id: &id, request }, out);
        self.calls.initialize_reply.id = Some(id);
    }

    /// Answers the call from the reply to `initialize`, now or when it arrives.
    pub(super) fn reply_from_initialize(
        &mut self,
        call: Call,
        field: &'static str,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let initialize_reply = &mut self.calls.initialize_reply;
        if !initialize_reply.fields.is_empty() {
            out.reply(call, Ok(field_of_reply(&initialize_reply.fields, field)));
        } else if initialize_reply.waiting.len() >= CALL_LIMIT {
            let message = "too many calls wait for the agent's reply";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        } else {
            initialize_reply.waiting.push((call, field));
        }
        Ok(())
    }

    pub(super) fn control_response(&mut self, line: ControlResponse<'_>, out: &mut Out<'_>) {
        let Some(response) = line.response else { return };
        let id = response.request_id.clone().unwrap_or_default();
        if let Some(answer) = response.response {
            if self.echoed(&id, answer, out) {
                return;
            }
            if answer.get("commands").is_some() && answer.get("models").is_some() {
                return self.initialized(answer, &response, out);
            }
        }
        let failed = response.subtype.as_deref() == Some("error");
        let waiting = self.calls.take(&id);
        let initialize_reply = self.calls.initialize_reply.id.as_deref() == Some(&*id);
        if failed && (waiting.is_none() || initialize_reply) {
            let text = response.error.clone();
            out.emit(ErrorEvent {
                code: response.error_code.clone(),
                ..ErrorEvent::new(text.unwrap_or(Text::from("the agent refused a request")))
            });
        }
        if initialize_reply {
            let error = error_of(&response);
            for (call, _) in std::mem::take(&mut self.calls.initialize_reply.waiting) {
                out.reply(call, Err(error.clone()));
            }
        }
        // The reply to `set_model` names the resolved model.
        let alone = response.response.filter(|answer| answer.fields().count() == 1);
        if let Some(model) = alone.and_then(|answer| answer.read::<Text<'_>>("model")) {
            out.emit(StatusChanged::new(Status::Model).message(model));
        }
        let Some(PendingCall { call: Some(call), field, done, mode, cancels, .. }) = waiting else {
            return;
        };
        if let Some(mode) = mode.filter(|_| !failed) {
            out.emit(StatusChanged::new(Status::Mode).message(Text::from(mode)));
        }
        if failed {
            self.calls
                .waiting
                .iter_mut()
                .filter(|other| other.call == Some(call))
                .for_each(|other| other.call = None);
            return out.reply(call, Err(error_of(&response)));
        }
        if self.calls.waiting.iter().any(|other| other.call == Some(call)) {
            return;
        }
        if let Some(message_id) = cancels {
            let is_cancelled = response.response.and_then(|it| it.read::<bool>("cancelled"));
            return out.reply(
                call,
                match is_cancelled {
                    Some(true) => Ok(Json::EMPTY),
                    Some(false) | None => Err(not_queued(&message_id)),
                },
            );
        }
        let answer = match field {
            Some(field) => response.response.and_then(|answer| answer.get(field)),
            None => response.response,
        };
        let answer = answer.map_or(Json::EMPTY, Value::json);
        out.reply(call, Ok(done.unwrap_or_else(|| answer.into_owned())));
    }

    /// The agent answered `initialize`: it reports what it is, and which requests are pending.
    fn initialized(&mut self, answer: Value<'_>, response: &Response<'_>, out: &mut Out<'_>) {
        let told: InitializeResult<'_> = answer.to().unwrap_or_default();
        let mode = told.permission_mode.map(|mode| self.mode_to_show(mode, out));
        let initialize_reply = &mut self.calls.initialize_reply;
        initialize_reply.fields.insert(WHOLE.to_owned(), answer.copy().into_owned());
        for (_, field) in INITIALIZE_FIELDS {
            if let Some(value) = answer.get(field) {
                initialize_reply.fields.insert((*field).to_owned(), value.json().into_owned());
            }
        }
        out.ready(AgentInfo {
            agent_version: told.version,
            mode,
            commands: told.commands,
            agents: told.agents,
            models: told.models,
            account: told.account,
            capabilities: told.capabilities,
            ..AgentInfo::default()
        });
        for (call, field) in std::mem::take(&mut initialize_reply.waiting) {
            out.reply(call, Ok(field_of_reply(&initialize_reply.fields, field)));
        }
        for pending in [response.pending_permissions, response.pending_dialogs] {
            let requests = pending.into_iter().flat_map(Value::items);
            requests.filter_map(Value::to).for_each(|line| self.control_request(line, out));
        }
    }
}

fn field_of_reply(fields: &BTreeMap<String, Json<'static>>, field: &str) -> Json<'static> {
    fields.get(field).cloned().unwrap_or(Json::trusted("null"))
}

fn error_of(response: &Response<'_>) -> GatewayError {
    let message = match (&response.error, &response.error_code) {
        (Some(error), Some(code)) => format!("{error} ({code})"),
        (Some(error), None) => error.to_string(),
        (None, _) => "the agent refused a request".to_owned(),
    };
    let code = response.error_code.as_ref();
    let details = code.map(|code| Json::of(&BTreeMap::from([("error_code", code)])));
    GatewayError { details, ..GatewayError::new(ErrorCode::AgentFailed, message) }
}
