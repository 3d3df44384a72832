//! What clients want of the agent, in its words, and its replies.

use std::collections::BTreeMap;

use agentwire_protocol::command::Delivery;
use agentwire_protocol::event::{AgentInfo, ErrorEvent, Status, StatusChanged};
use agentwire_protocol::{Call, Command, Configure, ErrorCode, GatewayError, Json, Prompt, Text};
use serde::Serialize;
use serde_json::json;

use super::{NAME, Translator};
use crate::claude::launch::{approval_mode, initialize, permission_mode};
use crate::claude::wire::{ControlResponse, Initialized, Response};
use crate::json::Value;
use crate::tape::{Action, Out};

/// How many calls may wait for the agent's reply.
const CALL_LIMIT: usize = 1024;

type Fields = BTreeMap<&'static str, Json<'static>>;

/// Queries that are a control request: the method, its subtype, and the names of its arguments in
/// order. An argument that is left out or `null` is not sent.
const QUERIES: &[(&str, &str, &[&str])] = &[
    ("mcpServerStatus", "mcp_status", &[]),
    ("setModel", "set_model", &["model"]),
    ("setMaxThinkingTokens", "set_max_thinking_tokens", &["max_thinking_tokens"]),
    ("rewindConversation", "rewind_conversation", &["target_message_uuid"]),
    ("getContextUsage", "get_context_usage", &["detail"]),
    ("getSessionCost", "get_session_cost", &[]),
    ("getUsage", "get_usage", &[]),
    ("getStatus", "get_status", &[]),
    ("getPlan", "get_plan", &[]),
    ("getSettings", "get_settings", &[]),
    ("getHooksListing", "get_hooks_listing", &[]),
    ("getWorkspaceDiff", "get_workspace_diff", &[]),
    ("getBinaryVersion", "get_binary_version", &[]),
    ("listModels", "list_models", &[]),
    ("listPermissionRules", "list_permission_rules", &[]),
    ("fileSuggestions", "file_suggestions", &["query"]),
    ("mcpSetServers", "mcp_set_servers", &["servers"]),
    ("mcpToggle", "mcp_toggle", &["serverName", "enabled"]),
    ("mcpReconnect", "mcp_reconnect", &["serverName"]),
    ("stopTask", "stop_task", &["task_id"]),
    ("getTaskOutput", "get_task_output", &["task_id"]),
    ("backgroundTasks", "background_tasks", &["tool_use_id"]),
    ("cancelAsyncMessage", "cancel_async_message", &["message_uuid"]),
    ("renameSession", "rename_session", &["title"]),
    ("generateSessionTitle", "generate_session_title", &["description", "persist"]),
    ("sideQuestion", "side_question", &["question"]),
    ("exportConversation", "export_conversation", &[]),
    ("reloadSkills", "reload_skills", &[]),
    ("reloadPlugins", "reload_plugins", &[]),
];

/// Queries that a field of the reply to `initialize` answers.
const GREETING: &[(&str, &str)] = &[
    ("supportedModels", "models"),
    ("supportedCommands", "commands"),
    ("supportedAgents", "agents"),
    ("accountInfo", "account"),
];

/// Calls that wait for the agent's reply.
#[derive(Debug, Default)]
pub(super) struct Calls {
    sent: u64,
    waiting: Vec<Waiting>,
    greeting: Greeting,
}

#[derive(Debug)]
struct Waiting {
    /// The control request's id.
    id: String,
    call: Option<Call>,
    /// The field of the reply that is wanted; else all of it.
    field: Option<&'static str>,
}

/// The reply to `initialize`, and who waits for it.
#[derive(Debug, Default)]
struct Greeting {
    id: Option<String>,
    fields: BTreeMap<String, Json<'static>>,
    waiting: Vec<(Call, &'static str)>,
}

impl Calls {
    /// The process ended: nobody will answer.
    pub(super) fn fail_all(&mut self, out: &mut Out<'_>) {
        let calls = std::mem::take(&mut self.waiting).into_iter().filter_map(|one| one.call);
        let greeted = std::mem::take(&mut self.greeting).waiting.into_iter().map(|(call, _)| call);
        let mut failed = Vec::new();
        for call in calls.chain(greeted) {
            if !failed.contains(&call) {
                failed.push(call);
                let message = "the agent ended before it answered";
                out.reply(call, Err(GatewayError::new(ErrorCode::AgentFailed, message)));
            }
        }
    }

    fn next_id(&mut self) -> String {
        self.sent += 1;
        format!("agentwire-{}", self.sent)
    }

    /// Asks the agent; its reply is the call's.
    fn ask(
        &mut self,
        call: Option<Call>,
        request: &impl Serialize,
        field: Option<&'static str>,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        if self.waiting.len() >= CALL_LIMIT {
            let message = "too many calls wait for the agent's reply";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        }
        let id = self.next_id();
        write_line(&ControlRequest { kind: "control_request", request_id: &id, request }, out);
        self.waiting.push(Waiting { id, call, field });
        Ok(())
    }

    fn take(&mut self, id: &str) -> Option<Waiting> {
        let at = self.waiting.iter().position(|waiting| waiting.id == id)?;
        Some(self.waiting.remove(at))
    }
}

#[derive(Serialize)]
struct ControlRequest<'r, R> {
    #[serde(rename = "type")]
    kind: &'static str,
    request_id: &'r str,
    request: &'r R,
}

/// One line. Values of clients may have line breaks between their tokens; one bad line would end the
/// agent.
pub(super) fn write_line(message: &impl Serialize, out: &mut Out<'_>) {
    let line = Json::of(message).get().replace(['\n', '\r'], " ");
    out.write(line);
}

pub(super) fn acknowledge(call: Call, out: &mut Out<'_>) {
    out.reply(call, Ok(Json::checked("{}")));
}

impl Translator {
    pub(super) fn initialize(&mut self, out: &mut Out<'_>) {
        let id = self.calls.next_id();
        let request = &initialize(&self.config);
        write_line(&ControlRequest { kind: "control_request", request_id: &id, request }, out);
        self.calls.greeting.id = Some(id);
    }

    pub(super) fn command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        match command {
            Command::Prompt(prompt) => self.prompt(call, prompt, out),
            Command::Interrupt => {
                // The reply is not waited for: an agent that hangs must not hold up the caller.
                self.calls.ask(None, &json!({ "subtype": "interrupt" }), None, out)?;
                acknowledge(call, out);
                Ok(())
            }
            Command::Stop => {
                // Versions that do not know `end_session` end when their turn does.
                let request = json!({ "subtype": "end_session", "reason": "stopped" });
                self.calls.ask(None, &request, None, out)?;
                out.act(Action::CloseStdin);
                acknowledge(call, out);
                Ok(())
            }
            Command::Settle(settlement) => self.settle(call, settlement, out),
            Command::Configure(change) => self.configure(call, change, out),
            Command::Query { method, args } => self.query(call, method, args, out),
            Command::Rewind { message_id, dry_run } => {
                self.rewind(call, Json::of(message_id), *dry_run, out)
            }
            Command::Start(_) | Command::Attach { .. } => {
                Err(GatewayError::unsupported(NAME, &format!("the command {}", command.name())))
            }
        }
    }

    fn prompt(
        &mut self,
        call: Call,
        prompt: &Prompt,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let uuid = prompt.message_id.as_deref();
        if uuid.is_some_and(|id| !is_uuid(id)) {
            let message = "messageId must be a UUID";
            return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
        }
        let content = if prompt.images.is_empty() {
            json!(prompt.text)
        } else {
            let text = json!({ "type": "text", "text": prompt.text });
            let text = Some(text).filter(|_| !prompt.text.is_empty());
            let images = prompt.images.iter().map(|image| {
                json!({ "type": "image", "source": {
                    "type": "base64", "media_type": image.media_type, "data": image.data,
                } })
            });
            text.into_iter().chain(images).collect()
        };
        let mut line = json!({
            "type": "user",
            "message": { "role": "user", "content": content },
            "parent_tool_use_id": null,
        });
        if let Some(fields) = line.as_object_mut() {
            fields.extend(uuid.map(|uuid| ("uuid".to_owned(), json!(uuid))));
            match prompt.delivery {
                Some(Delivery::Now) => {
                    fields.insert("priority".to_owned(), json!("now"));
                }
                // The agent has one queue: between two tool calls the turn takes from it, at its end
                // the next turn does.
                Some(Delivery::Queue | Delivery::Steer) | None => {}
            }
        }
        write_line(&line, out);
        self.prompts.sent(uuid, &prompt.text);
        acknowledge(call, out);
        Ok(())
    }

    /// Each change is a request of its own; the last reply is the call's, or the first error.
    fn configure(
        &mut self,
        call: Call,
        change: &Configure,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let mut requests = Vec::new();
        if let Some(model) = &change.model {
            requests.push(json!({ "subtype": "set_model", "model": model }));
        }
        let mode = match (&change.permission_mode, change.approval_mode) {
            (Some(mode), _) => Some(permission_mode(mode)?),
            (None, mode) => mode.map(approval_mode),
        };
        if let Some(mode) = mode {
            requests.push(json!({ "subtype": "set_permission_mode", "mode": mode }));
        }
        if let Some(tokens) = change.max_thinking_tokens {
            requests.push(
                json!({ "subtype": "set_max_thinking_tokens", "max_thinking_tokens": tokens }),
            );
        }
        if requests.is_empty() {
            acknowledge(call, out);
        }
        requests.iter().try_for_each(|request| self.calls.ask(Some(call), request, None, out))
    }

    fn query(
        &mut self,
        call: Call,
        method: &str,
        args: &[Json<'static>],
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        if let Some((_, field)) = GREETING.iter().find(|(name, _)| *name == method) {
            return self.greeted(call, field, out);
        }
        let missing = |what: &str| {
            let message = format!("{method} needs {what}");
            GatewayError::new(ErrorCode::InvalidMessage, message)
        };
        match method {
            "setPermissionMode" => {
                let mode = args.first().and_then(|mode| mode.read::<String>().ok());
                let mode = mode.ok_or_else(|| missing("a mode"))?;
                let request =
                    json!({ "subtype": "set_permission_mode", "mode": permission_mode(&mode)? });
                return self.calls.ask(Some(call), &request, None, out);
            }
            "rewindFiles" => {
                let message = args.first().ok_or_else(|| missing("a message id"))?;
                let dry_run = args.get(1).is_some_and(wants_dry_run);
                return self.rewind(call, message.clone(), dry_run, out);
            }
            _ => {}
        }
        let Some((_, subtype, names)) = QUERIES.iter().find(|(name, ..)| *name == method) else {
            return Err(GatewayError::unsupported(NAME, &format!("the query {method}")));
        };
        if args.len() > names.len() {
            return Err(missing(&format!("at most {} arguments", names.len())));
        }
        let given = names.iter().copied().zip(args.iter().cloned());
        let mut request: Fields = given.filter(|(_, value)| value.get() != "null").collect();
        request.insert("subtype", Json::of(subtype));
        let field = (method == "mcpServerStatus").then_some("mcpServers");
        self.calls.ask(Some(call), &request, field, out)
    }

    fn rewind(
        &mut self,
        call: Call,
        message_id: Json<'static>,
        dry_run: bool,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let mut request =
            Fields::from([("subtype", Json::of(&"rewind_files")), ("user_message_id", message_id)]);
        if dry_run {
            request.insert("dry_run", Json::of(&true));
        }
        self.calls.ask(Some(call), &request, None, out)
    }

    /// What the agent said when it was greeted, or will say.
    fn greeted(
        &mut self,
        call: Call,
        field: &'static str,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let greeting = &mut self.calls.greeting;
        if !greeting.fields.is_empty() {
            out.reply(call, Ok(greeted_field(&greeting.fields, field)));
        } else if greeting.waiting.len() >= CALL_LIMIT {
            let message = "too many calls wait for the agent's reply";
            return Err(GatewayError::new(ErrorCode::Overloaded, message));
        } else {
            greeting.waiting.push((call, field));
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
        let greeting = self.calls.greeting.id.as_deref() == Some(&*id);
        if failed && (waiting.is_none() || greeting) {
            let text = response.error.clone();
            out.emit(ErrorEvent {
                code: response.error_code.clone(),
                ..ErrorEvent::new(text.unwrap_or(Text::from("the agent refused a request")))
            });
        }
        if greeting {
            let error = error_of(&response);
            for (call, _) in std::mem::take(&mut self.calls.greeting.waiting) {
                out.reply(call, Err(error.clone()));
            }
        }
        // The reply to `set_model` names the model that was meant.
        let alone = response.response.filter(|answer| answer.fields().count() == 1);
        if let Some(model) = alone.and_then(|answer| answer.read::<Text<'_>>("model")) {
            out.emit(StatusChanged::new(Status::Model).message(model));
        }
        let Some(Waiting { call: Some(call), field, .. }) = waiting else { return };
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
        let answer = match field {
            Some(field) => response.response.and_then(|answer| answer.get(field)),
            None => response.response,
        };
        let answer = answer.map_or(Json::checked("{}"), Value::json);
        out.reply(call, Ok(answer.into_owned()));
    }

    /// The agent answered `initialize`: it says what it is, and what it asked before.
    fn initialized(&mut self, answer: Value<'_>, response: &Response<'_>, out: &mut Out<'_>) {
        let told: Initialized<'_> = answer.to().unwrap_or_default();
        let greeting = &mut self.calls.greeting;
        for (_, field) in GREETING {
            if let Some(value) = answer.get(field) {
                greeting.fields.insert((*field).to_owned(), value.json().into_owned());
            }
        }
        out.ready(AgentInfo {
            agent_version: told.version,
            mode: told.permission_mode,
            commands: told.commands,
            agents: told.agents,
            models: told.models,
            account: told.account,
            capabilities: told.capabilities,
            ..AgentInfo::default()
        });
        for (call, field) in std::mem::take(&mut greeting.waiting) {
            out.reply(call, Ok(greeted_field(&greeting.fields, field)));
        }
        for pending in [response.pending_permissions, response.pending_dialogs] {
            let requests = pending.into_iter().flat_map(Value::items);
            requests.filter_map(Value::to).for_each(|line| self.control_request(line, out));
        }
    }
}

fn greeted_field(fields: &BTreeMap<String, Json<'static>>, field: &str) -> Json<'static> {
    fields.get(field).cloned().unwrap_or(Json::checked("null"))
}

fn error_of(response: &Response<'_>) -> GatewayError {
    let message = match (&response.error, &response.error_code) {
        (Some(error), Some(code)) => format!("{error} ({code})"),
        (Some(error), None) => error.to_string(),
        (None, _) => "the agent refused a request".to_owned(),
    };
    GatewayError::new(ErrorCode::AgentFailed, message)
}

/// `{"dryRun": true}` or `true`
fn wants_dry_run(options: &Json<'_>) -> bool {
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Options {
        #[serde(default, alias = "dry_run")]
        dry_run: bool,
    }
    options.read().or_else(|_| options.read::<Options>().map(|o| o.dry_run)).unwrap_or(false)
}

fn is_uuid(id: &str) -> bool {
    let lengths = id.split('-').map(str::len);
    lengths.eq([8, 4, 4, 4, 12]) && id.chars().all(|c| c == '-' || c.is_ascii_hexdigit())
}
