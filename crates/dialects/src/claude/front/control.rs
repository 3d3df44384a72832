//! The client's control requests: model, mode, interrupt, and the rest.

use std::collections::BTreeMap;

use agentwire_protocol::{Command, Configure, ErrorCode, GatewayError, Json, SessionId};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{ClaudeFront, PendingCall, Stage};
use crate::claude::render::VERSION;
use crate::front::{GatewayReply, GatewayResult, Outbox};

pub(super) type Fields = BTreeMap<String, Json<'static>>;

/// What Claude says to a client that wants the mode in which nothing is asked and did not say so at launch.
pub(super) const NO_BYPASS: &str = "Cannot set permission mode to bypassPermissions because the \
    session was not launched with --dangerously-skip-permissions";

/// Parts of Claude's answer to `initialize` that other agents are asked for one by one.
const INQUIRIES: [(&str, &str); 3] =
    [("models", "supportedModels"), ("commands", "supportedCommands"), ("account", "accountInfo")];

#[derive(Clone, Debug)]
pub(super) struct Control {
    /// The client's id for it.
    pub(super) id: String,
    pub(super) subtype: String,
    request: Json<'static>,
}

#[derive(Deserialize)]
struct Line {
    request_id: String,
    request: Json<'static>,
}

#[derive(Deserialize)]
struct Id {
    request_id: Option<String>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename = "control_response")]
struct Response<T: Serialize> {
    response: T,
}

#[derive(Serialize)]
struct Success<'r> {
    subtype: &'static str,
    request_id: &'r str,
    response: Json<'static>,
}

impl Control {
    pub(super) fn read(line: &str) -> Result<(Self, Fields), String> {
        let unread = |error: serde_json::Error| format!("failed to read the request: {error}");
        let line: Line = serde_json::from_str(line).map_err(unread)?;
        let fields: Fields = line.request.read().map_err(unread)?;
        let subtype = fields.get("subtype").and_then(|subtype| subtype.read().ok());
        let subtype = subtype.ok_or("the request has no subtype")?;
        Ok((Self { id: line.request_id, subtype, request: line.request }, fields))
    }

    fn fields(&self) -> Fields {
        self.request.read().unwrap_or_default()
    }
}

/// The id of a line that cannot be read otherwise, if at least that can be.
pub(super) fn id(line: &[u8]) -> String {
    let id: Option<Id> = serde_json::from_slice(line).ok();
    id.and_then(|id| id.request_id).unwrap_or_default()
}

/// Answers a request with an error.
pub(super) fn fail(id: &str, error: &str, out: &mut Outbox) {
    fail_with(id, error, None, out);
}

/// Answers a request with an error and Claude's code for it.
fn fail_with(id: &str, error: &str, code: Option<&str>, out: &mut Outbox) {
    let mut response = json!({ "subtype": "error", "request_id": id, "error": error });
    if let (Some(code), Some(fields)) = (code, response.as_object_mut()) {
        fields.insert("error_code".to_owned(), json!(code));
    }
    out.send_json(&Response { response });
}

/// Claude's code for the error, if Claude gave one.
fn error_code(error: &GatewayError) -> Option<String> {
    #[derive(Deserialize)]
    struct Details {
        error_code: String,
    }
    error.details.as_ref()?.read().ok().map(|Details { error_code }| error_code)
}

fn succeed(id: &str, response: Json<'static>, out: &mut Outbox) {
    let response = Success { subtype: "success", request_id: id, response };
    out.send_json(&Response { response });
}

impl ClaudeFront {
    /// Sends the client's request to the session.
    pub(super) fn control(&mut self, session: &SessionId, control: Control, out: &mut Outbox) {
        let fields = control.fields();
        let text = |name: &str| fields.get(name).and_then(|value| value.read::<String>().ok());
        let query = |method: &str, args: Vec<Json<'static>>| Command::Query {
            method: method.to_owned(),
            args,
        };
        let null = || Json::trusted("null");
        let given = |name: &str| fields.get(name).cloned().unwrap_or_else(null);
        let command = match control.subtype.as_str() {
            "initialize" => query("initialization", Vec::new()),
            "interrupt" => {
                Command::Interrupt { cancel_queued: given("cancel_queued").get() == "true" }
            }
            "set_permission_mode" => match text("mode") {
                Some(mode) if self.is_bypass(&mode) => {
                    let code = Some("bypass_not_launched");
                    return fail_with(&control.id, NO_BYPASS, code, out);
                }
                Some(mode) => Command::Configure(Configure {
                    permission_mode: Some(mode),
                    ..Configure::default()
                }),
                None => return fail(&control.id, "set_permission_mode needs a mode", out),
            },
            "set_model" => {
                let model = Some(text("model").filter(|model| model != "default"));
                Command::Configure(Configure { model, ..Configure::default() })
            }
            "set_max_thinking_tokens" => match given("max_thinking_tokens").read() {
                Ok(tokens) => Command::Configure(Configure {
                    max_thinking_tokens: Some(tokens),
                    ..Configure::default()
                }),
                Err(_) => {
                    let error = "set_max_thinking_tokens needs a whole number, or null";
                    return fail(&control.id, error, out);
                }
            },
            "mcp_status" => query("mcpServerStatus", Vec::new()),
            "mcp_message" => query("mcpMessage", vec![given("server_name"), given("message")]),
            "rewind_files" => match text("user_message_id") {
                Some(message_id) => {
                    Command::Rewind { message_id, dry_run: given("dry_run").get() == "true" }
                }
                None => return fail(&control.id, "rewind_files needs a user_message_id", out),
            },
            // An agent that speaks Claude's own wire knows what is meant.
            _ => query("control", vec![control.request.clone()]),
        };
        let call = out.command(session, command);
        self.calls.insert(call, PendingCall::Control(control));
    }

    /// Answers the client with the session's reply.
    pub(super) fn replied(&mut self, control: Control, reply: GatewayResult, out: &mut Outbox) {
        let id = control.id.as_str();
        let subtype = control.subtype.as_str();
        let done = match reply {
            Ok(GatewayReply::Done(done)) => done,
            Ok(_) => Json::EMPTY,
            // The agent has no greeting, or has not started yet and cannot give one.
            Err(error)
                if subtype == "initialize"
                    && matches!(error.code, ErrorCode::Unsupported | ErrorCode::Conflict) =>
            {
                return self.inquire(control.id, out);
            }
            Err(error) if error.code == ErrorCode::Unsupported => match subtype {
                "get_context_usage" if self.usage.context_used.is_some() => self.context_usage(),
                "mcp_status" => Json::trusted("[]"),
                _ => {
                    let message = format!("{subtype} is not supported here: {}", error.message);
                    return fail(id, &message, out);
                }
            },
            Err(error) => {
                return fail_with(id, &error.message, error_code(&error).as_deref(), out);
            }
        };
        let response = match subtype {
            "initialize" => greeting(done),
            "interrupt" => interrupted(&done),
            "set_permission_mode" => with(done, "mode", &control),
            "set_model" => with(done, "model", &control),
            "mcp_status" => Json::of(&json!({ "mcpServers": self.servers(&done) })),
            _ => done,
        };
        succeed(id, response, out);
    }

    /// The MCP servers: those that the agent reports when asked, and any others that are known.
    fn servers(&self, told: &Json<'_>) -> Vec<Value> {
        let mut servers: Vec<Value> = told.read().unwrap_or_default();
        if self.renderer.speaks_claude() {
            return servers;
        }
        for known in self.renderer.servers() {
            if servers.iter().all(|server| server.get("name") != known.get("name")) {
                servers.push(known);
            }
        }
        servers
    }

    /// Whether this is the mode in which nothing is asked, and the client may not set it.
    pub(super) fn is_bypass(&self, mode: &str) -> bool {
        let launched = self.options.new.config.permission_mode.as_deref();
        mode == "bypassPermissions" && !self.options.may_bypass && launched != Some(mode)
    }

    /// Asks an agent that has no greeting for what one would contain.
    fn inquire(&mut self, id: String, out: &mut Outbox) {
        self.greetings.push(id);
        if let Stage::Running(session) = &self.stage {
            for (of, method) in INQUIRIES {
                let query = Command::Query { method: method.to_owned(), args: Vec::new() };
                let call = out.command(session, query);
                self.calls.insert(call, PendingCall::Inquiry(of));
                self.inquiries += 1;
            }
        }
        self.greet(out);
    }

    /// The agent reported something about itself, or has nothing to report.
    pub(super) fn learned(&mut self, of: &'static str, reply: GatewayResult, out: &mut Outbox) {
        if let Ok(GatewayReply::Done(told)) = reply {
            let known = match of {
                "models" => &mut self.info.models,
                "commands" => &mut self.info.commands,
                _ => &mut self.info.account,
            };
            *known = Some(told);
        }
        self.inquiries = self.inquiries.saturating_sub(1);
        self.greet(out);
    }

    /// How full the context is, in the fields that clients read.
    fn context_usage(&self) -> Json<'static> {
        let used = self.usage.context_used.unwrap_or(0);
        let size = self.usage.context_size.unwrap_or(0);
        let percentage = (used.saturating_mul(100)).checked_div(size).unwrap_or(0);
        let model = self.info.model.as_ref().map(|model| model.to_string());
        Json::of(&json!({
            "categories": [],
            "totalTokens": used,
            "maxTokens": size,
            "rawMaxTokens": size,
            "percentage": percentage,
            "model": model.unwrap_or_default(),
        }))
    }

    /// The agent has reported what it is, as far as it does.
    pub(super) fn ready(&mut self, out: &mut Outbox) {
        self.is_ready = true;
        self.greet(out);
    }

    /// Answers the clients' greetings once it is known what the agent is.
    pub(super) fn greet(&mut self, out: &mut Outbox) {
        if (!self.is_ready || self.inquiries > 0) && !self.starts_later {
            return;
        }
        for id in std::mem::take(&mut self.greetings) {
            let list = |told: &Option<Json<'static>>| {
                told.clone()
                    .filter(|told| told.get().starts_with('['))
                    .unwrap_or(Json::trusted("[]"))
            };
            let response = Json::of(&json!({
                "output_style": "default",
                "available_output_styles": ["default"],
                "pid": self.options.pid,
                "claude_code_version": VERSION,
                "hook_on_failure_supported": true,
            }));
            let mut response: Fields = response.read().unwrap_or_default();
            response.insert("commands".to_owned(), commands(&self.info.commands));
            response.insert("agents".to_owned(), list(&self.info.agents));
            response.insert("models".to_owned(), self.models());
            let account = self.info.account.clone();
            let account = account.filter(|account| account.get().starts_with('{'));
            response.insert("account".to_owned(), account.unwrap_or(Json::EMPTY));
            succeed(&id, Json::of(&response), out);
        }
    }

    /// The agent's models; if it reports none, the one that it runs with.
    fn models(&self) -> Json<'static> {
        let told = models(&self.info.models);
        let own = self.info.model.as_ref().map(|model| model.to_string());
        match own.or_else(|| self.options.new.config.model.clone()) {
            Some(own) if told.get() == "[]" => models(&Some(Json::of(&[json!({ "value": own })]))),
            Some(_) | None => told,
        }
    }
}

/// Claude's own answer to `initialize`, plus a field that clients expect of newer versions.
fn greeting(said: Json<'static>) -> Json<'static> {
    let Ok(mut fields) = said.read::<Fields>() else { return said };
    if fields.contains_key("hook_on_failure_supported") {
        return said;
    }
    fields.insert("hook_on_failure_supported".to_owned(), Json::trusted("true"));
    Json::of(&fields)
}

/// The agent's own answer, or the requested value if the answer is empty.
fn with(done: Json<'static>, name: &str, control: &Control) -> Json<'static> {
    match control.fields().remove(name) {
        Some(value) if done.get() == "{}" => Json::of(&BTreeMap::from([(name, value)])),
        Some(_) | None => done,
    }
}

/// What becomes of waiting prompts, in Claude's format.
fn interrupted(done: &Json<'_>) -> Json<'static> {
    let mut fields: Fields = done.read().unwrap_or_default();
    let queued = fields.remove("stillQueued").unwrap_or(Json::trusted("[]"));
    let mut response = BTreeMap::from([("still_queued", queued)]);
    response.extend(fields.remove("cancelled").map(|cancelled| ("cancelled", cancelled)));
    Json::of(&response)
}

/// Any agent's commands, as Claude lists them.
fn commands(told: &Option<Json<'static>>) -> Json<'static> {
    let list = listed(told, |command| {
        let name = text(command, &["name", "id", "value"])?;
        let description = text(command, &["description"]).unwrap_or_default();
        Some(json!({ "name": name, "description": description, "argumentHint": "" }))
    });
    Json::of(&list)
}

/// Any agent's models, as Claude lists them.
fn models(told: &Option<Json<'static>>) -> Json<'static> {
    let list = listed(told, |model| {
        let value = text(model, &["value", "modelId", "id", "model", "name"])?;
        let title = text(model, &["displayName", "display_name", "name"]).unwrap_or(value);
        let description = text(model, &["description"]).unwrap_or_default();
        Some(json!({ "value": value, "displayName": title, "description": description }))
    });
    Json::of(&list)
}

/// Maps each entry of a list. The list is the whole value, or part of an object as ACP agents report their
/// choices, possibly in groups.
fn listed(told: &Option<Json<'static>>, each: impl Fn(&Value) -> Option<Value>) -> Vec<Value> {
    let told: Value = told.as_ref().and_then(|told| told.read().ok()).unwrap_or_default();
    let choices = ["availableModels", "options"];
    let list = match told.is_array() {
        true => Some(&told),
        false => choices.iter().find_map(|name| told.get(name)),
    };
    let entries = list.and_then(Value::as_array).into_iter().flatten();
    let entries = entries.flat_map(|entry| match entry.get("options").and_then(Value::as_array) {
        Some(group) => group.iter().collect(),
        None => vec![entry],
    });
    entries.filter_map(each).collect()
}

/// The first of these fields that is a string.
fn text<'v>(entry: &'v Value, names: &[&str]) -> Option<&'v str> {
    names.iter().find_map(|name| entry.get(name)?.as_str())
}
