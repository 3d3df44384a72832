//! Clients' commands in Claude's format.

use std::collections::BTreeMap;

use agentwire_protocol::command::Delivery;
use agentwire_protocol::id::is_uuid;
use agentwire_protocol::{Call, Command, Configure, GatewayError, Json, Prompt};
use serde_json::{Map, Value, json};

use super::Translator;
use super::calls::{acknowledge, initialize_field, write_line};
use crate::agent::refused_command;
use crate::claude::modes;
use crate::tape::{Action, Out};

type Fields = BTreeMap<&'static str, Json<'static>>;

/// Queries that map to a control request: the method, its subtype, and the names of its arguments in order.
/// An omitted argument is not sent, nor is a `null`, unless it has a meaning.
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
    ("mcpMessage", "mcp_message", &["server_name", "message"]),
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

impl Translator {
    pub(super) fn command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        match command {
            Command::Prompt(prompt) => return self.prompt(call, prompt, out),
            Command::Interrupt { cancel_queued } => {
                // Do not wait for the reply: an agent that hangs must not block the caller.
                let request = match cancel_queued {
                    true => json!({ "subtype": "interrupt", "cancel_queued": true }),
                    false => json!({ "subtype": "interrupt" }),
                };
                self.calls.tell(&request, out);
            }
            Command::Stop => {
                // Versions that do not know `end_session` end when their turn does.
                let request = json!({ "subtype": "end_session", "reason": "stopped" });
                self.calls.tell(&request, out);
                self.stopped = true;
                out.act(Action::CloseStdin);
            }
            // Claude finishes the work it was given, then exits by itself.
            Command::Finish => out.act(Action::CloseStdin),
            Command::Settle(settlement) => return self.settle(call, settlement, out),
            Command::Configure(change) => return self.configure(call, change, out),
            Command::Query { method, args } => return self.query(call, method, args, out),
            Command::Rewind { message_id, dry_run } => {
                return self.rewind(call, Json::of(message_id), *dry_run, out);
            }
            Command::Cancel { message_id } => {
                return self.calls.cancel_prompt(call, message_id, out);
            }
            Command::Edit { .. } => {
                let what =
                    "another text for a prompt that it has; cancel the prompt and send another";
                return Err(self.unsupported(what));
            }
            Command::Start(_) | Command::Attach { .. } | Command::Queue => {
                return Err(refused_command(self.name(), command));
            }
        }
        acknowledge(call, out);
        Ok(())
    }

    fn prompt(
        &mut self,
        call: Call,
        prompt: &Prompt,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let uuid = prompt.message_id.as_deref();
        if uuid.is_some_and(|id| !is_uuid(id)) {
            return Err(GatewayError::invalid("messageId must be a UUID"));
        }
        let content = if let Some(content) = &prompt.content {
            content.read().map_err(|_| GatewayError::invalid("content must be content blocks"))?
        } else if prompt.images.is_empty() {
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
            let native = prompt.native.as_ref().map(Json::read::<Map<String, Value>>);
            let native = native
                .transpose()
                .map_err(|_| GatewayError::invalid("native must be an object"))?;
            let own = native.into_iter().flatten();
            fields.extend(own.filter(|(name, _)| !matches!(&**name, "type" | "message")));
            fields.extend(uuid.map(|uuid| ("uuid".to_owned(), json!(uuid))));
            match prompt.delivery {
                Some(Delivery::Now) => {
                    fields.insert("priority".to_owned(), json!("now"));
                }
                // Claude has one queue. The running turn takes from it between two tool calls; after its
                // end, the next turn does.
                Some(Delivery::Queue | Delivery::Steer) | None => {}
            }
        }
        write_line(&line, out);
        self.prompts.sent(uuid, &prompt.text);
        self.board.reopen();
        acknowledge(call, out);
        Ok(())
    }

    /// Sends each change as its own request. The call gets the last reply, or the first error.
    fn configure(
        &mut self,
        call: Call,
        change: &Configure,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let mut requests = Vec::new();
        // `null` means the model that the process was started with.
        if let Some(model) = &change.model {
            requests.push(json!({ "subtype": "set_model", "model": model }));
        }
        let mode = match (&change.permission_mode, change.approval_mode) {
            (Some(mode), _) => Some(modes::handed_down(self.name(), mode, &self.config)?),
            // The policy applies it, and Claude asks.
            (None, mode) => mode.map(|_| modes::ASKING),
        };
        if let Some(tokens) = change.max_thinking_tokens {
            // `null` removes the limit (`real-f4-info-requests`).
            let tokens = tokens.or(self.config.max_thinking_tokens);
            requests.push(
                json!({ "subtype": "set_max_thinking_tokens", "max_thinking_tokens": tokens }),
            );
        }
        requests.iter().try_for_each(|request| self.calls.ask(call, request, None, out))?;
        match mode {
            Some(mode) => {
                let own = change.permission_mode.as_deref();
                self.set_mode(call, mode, own, modes::shown(own, change.approval_mode), out)?;
            }
            None if requests.is_empty() => acknowledge(call, out),
            None => {}
        }
        Ok(())
    }

    /// Makes Claude run in `mode`. `own` is the mode that the client asked for by Claude's name, and `kept`
    /// the one that the gateway applies.
    fn set_mode(
        &mut self,
        call: Call,
        mode: &'static str,
        own: Option<&str>,
        kept: Option<&str>,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let mut request = json!({ "subtype": "set_permission_mode", "mode": mode });
        if let Some(fields) = request.as_object_mut().filter(|_| self.claude.tells_mode) {
            fields.insert("shown".to_owned(), json!(kept));
        }
        let done = own.and(kept).map(|kept| json!({ "mode": kept }));
        // Claude does not report a mode in which it already runs.
        let is_silent = self.running_mode == mode && !self.claude.tells_mode;
        let told = is_silent.then(|| kept.unwrap_or(mode).to_owned());
        self.calls.ask_as(call, &request, (done, told), out)?;
        self.kept_mode = kept.map(str::to_owned);
        Ok(())
    }

    fn query(
        &mut self,
        call: Call,
        method: &str,
        args: &[Json<'static>],
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        if let Some(field) = initialize_field(method) {
            return self.reply_from_initialize(call, field, out);
        }
        let missing = |what: &str| GatewayError::invalid(format!("{method} needs {what}"));
        match method {
            "setPermissionMode" => {
                let mode = args.first().and_then(|mode| mode.read::<String>().ok());
                let mode = mode.ok_or_else(|| missing("a mode"))?;
                let native = modes::handed_down(self.name(), &mode, &self.config)?;
                let own = Some(mode.as_str());
                return self.set_mode(call, native, own, modes::shown(own, None), out);
            }
            // A control request, as a client on Claude's own wire sends it.
            "control" => {
                let request = args.first().filter(|request| request.get().starts_with('{'));
                let request = request.ok_or_else(|| missing("a request"))?;
                self.check_control(request)?;
                return self.calls.ask(call, request, None, out);
            }
            "rewindFiles" => {
                let message = args.first().ok_or_else(|| missing("a message id"))?;
                let dry_run = args.get(1).is_some_and(wants_dry_run);
                return self.rewind(call, message.clone(), dry_run, out);
            }
            _ => {}
        }
        let Some((_, subtype, names)) = QUERIES.iter().find(|(name, ..)| *name == method) else {
            return Err(self.unsupported(format!("the query {method}")));
        };
        if args.len() > names.len() {
            return Err(missing(&format!("at most {} arguments", names.len())));
        }
        let given = names.iter().copied().zip(args.iter().cloned());
        // `null` removes the limit on thinking (`real-f4-info-requests`).
        let tells =
            |name: &str, value: &Json<'_>| value.get() != "null" || name == "max_thinking_tokens";
        let mut request: Fields = given.filter(|(name, value)| tells(name, value)).collect();
        request.insert("subtype", Json::of(subtype));
        let field = (method == "mcpServerStatus").then_some("mcpServers");
        self.calls.ask(call, &request, field, out)
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
        self.calls.ask(call, &request, None, out)
    }

    /// Refuses requests that would remove the gateway's own hook or mode. Clients have other commands for
    /// what these do.
    fn check_control(&self, request: &Json<'_>) -> Result<(), GatewayError> {
        #[derive(serde::Deserialize)]
        struct Control {
            #[serde(default)]
            subtype: String,
        }
        let instead = match request.read::<Control>().map(|control| control.subtype).as_deref() {
            Ok("initialize") => "a session is initialized once",
            Ok("set_permission_mode") => "use the query setPermissionMode",
            Ok(_) | Err(_) => return Ok(()),
        };
        Err(self.unsupported(format!("this control request: {instead}")))
    }
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
