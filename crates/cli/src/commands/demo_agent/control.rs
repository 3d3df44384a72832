//! Control requests of the client. Each gets its answer at once.

use serde_json::{Value, json};

use super::agent::{Agent, Halt, InterruptCause, die};
use super::flags::VERSION;
use super::hooks::Hooks;
use super::json::JsonFields as _;
use super::rules::{Mode, Rule};
use super::script::DIRECTIVES;
use super::usage::{CONTEXT_WINDOW, sum, tokens};

enum ControlReply {
    /// Success without content.
    Done,
    With(Value),
    /// An error with Claude's code for it.
    Error(String, Option<&'static str>),
}

impl Agent {
    pub(super) fn control_request(&mut self, line: &Value) -> Result<(), Halt> {
        let id = line.get("request_id").cloned();
        let request = &line.at("request");
        if !request.is_object() {
            return Err(die("Error: Missing request on control_request"));
        }
        match request.at("subtype").as_str() {
            Some("interrupt") => self.interrupt(id, request),
            Some("end_session") => {
                self.withdraw_all()?;
                self.reply(id, ControlReply::Done)?;
                Err(Halt::Interrupted(InterruptCause::End))
            }
            Some("initialize") => self.initialize(id, request),
            Some("set_permission_mode") => self.change_mode(id, request),
            Some("set_model") => self.change_model(id, request),
            Some("rename_session") => {
                let title = request.at("title").clone();
                let line =
                    json!({ "type": "system", "subtype": "session_title_changed", "title": title });
                self.emit(line)?;
                self.reply(id, ControlReply::Done)
            }
            Some("cancel_async_message") => {
                let cancelled = self.cancel_queued(request.at("message_uuid").as_str())?;
                self.reply(id, ControlReply::With(json!({ "cancelled": !cancelled.is_empty() })))
            }
            Some("rewind_files") => {
                let prompt = request.at("user_message_id");
                let is_dry = request.at("dry_run") == true;
                let reply = match self.checkpoints.rewind(prompt.as_str(), is_dry) {
                    Ok(response) => ControlReply::With(response),
                    Err(error) => ControlReply::Error(error, None),
                };
                self.reply(id, reply)
            }
            subtype => {
                let reply = self.inform_client(subtype.unwrap_or("undefined"));
                self.reply(id, reply)
            }
        }
    }

    /// Requests that change nothing.
    fn inform_client(&self, subtype: &str) -> ControlReply {
        match subtype {
            "set_max_thinking_tokens" | "mcp_message" => ControlReply::Done,
            "stop_task" | "background_tasks" | "reload_skills" => ControlReply::With(json!({})),
            "mcp_status" => ControlReply::With(self.server_status()),
            "get_context_usage" => ControlReply::With(self.context_usage()),
            "get_session_cost" => {
                let (usage, cost) = (sum(&self.spent()), self.cost_usd());
                let text = format!(
                    "Total cost: ${cost:.4}\nUsage: {} input, {} output, {} cache read, {} cache write",
                    usage.input, usage.output, usage.cache_read, usage.cache_creation
                );
                ControlReply::With(json!({ "text": text }))
            }
            "list_models" => ControlReply::With(json!({ "models": models() })),
            "get_binary_version" => ControlReply::With(json!({ "version": VERSION })),
            "get_settings" => ControlReply::With(json!({
                "effective": {}, "sources": [], "applied": { "model": self.model },
            })),
            "get_plan" => ControlReply::With(json!({ "exists": false })),
            "list_permission_rules" => {
                let entry = |behavior: &'static str| move |rule: &Rule| json!({ "behavior": behavior, "rule": rule.to_json() });
                let allow = self.permissions.allow.iter().map(entry("allow"));
                let rules: Vec<Value> =
                    allow.chain(self.permissions.deny.iter().map(entry("deny"))).collect();
                ControlReply::With(json!({ "state": {
                    "rules": rules, "originalCwd": self.session.directory,
                } }))
            }
            _ => {
                let error = format!("Unsupported control request subtype: {subtype}");
                ControlReply::Error(error, Some("unsupported_request"))
            }
        }
    }

    fn reply(&mut self, id: Option<Value>, reply: ControlReply) -> Result<(), Halt> {
        let mut response = match reply {
            ControlReply::Done => json!({ "subtype": "success" }),
            ControlReply::With(response) => json!({ "subtype": "success", "response": response }),
            ControlReply::Error(error, None) => json!({ "subtype": "error", "error": error }),
            ControlReply::Error(error, Some(code)) => {
                json!({ "subtype": "error", "error": error, "error_code": code })
            }
        };
        if let Some(id) = id {
            response.set("request_id", id);
        }
        Ok(self.out.line(&json!({ "type": "control_response", "response": response }))?)
    }

    /// Withdraws open requests, then answers the client, then ends the turn.
    fn interrupt(&mut self, id: Option<Value>, request: &Value) -> Result<(), Halt> {
        self.withdraw_all()?;
        let mut response = json!({});
        if request.at("cancel_queued") == true {
            response.set("cancelled", self.cancel_queued(None)?);
        }
        let queued: Vec<&String> = self.prompts.iter().filter_map(|p| p.uuid.as_ref()).collect();
        response.set("still_queued", json!(queued));
        self.reply(id, ControlReply::With(response))?;
        Err(Halt::Interrupted(InterruptCause::User))
    }

    /// Removes prompts from the queue: the named one, or all.
    fn cancel_queued(&mut self, uuid: Option<&str>) -> Result<Vec<String>, Halt> {
        let fits = |own: Option<&str>| uuid.is_none() || own == uuid;
        let (gone, kept) =
            self.prompts.drain(..).partition::<Vec<_>, _>(|prompt| fits(prompt.uuid.as_deref()));
        self.prompts.extend(kept);
        let uuids: Vec<String> = gone.into_iter().filter_map(|prompt| prompt.uuid).collect();
        for uuid in &uuids {
            self.lifecycle(Some(uuid), "cancelled")?;
        }
        Ok(uuids)
    }

    fn initialize(&mut self, id: Option<Value>, request: &Value) -> Result<(), Halt> {
        let parts = request.at("systemPrompt").as_array().into_iter().flatten();
        let mut system: Vec<&str> = parts.filter_map(Value::as_str).collect();
        system.extend(request.at("systemPrompt").as_str());
        system.extend(request.at("appendSystemPrompt").as_str());
        if !system.is_empty() {
            self.system = system.join("\n");
        }
        if let Some(schema) = request.get("jsonSchema").filter(|schema| schema.is_object()) {
            self.flags.schema = Some(schema.clone());
        }
        self.permissions.client_mode = request.at("shownMode").as_str().map(str::to_owned);
        self.flags.forward_subagent_text |= request.at("forwardSubagentText") == true;
        if !request.at("hooks").is_null() {
            self.hooks = Hooks::read(request.at("hooks"));
        }
        let hosted = request.at("sdkMcpServers").as_array().into_iter().flatten();
        for name in hosted.filter_map(Value::as_str) {
            self.connect(name, &json!({ "type": "sdk", "name": name }))?;
        }
        if let Some(title) = request.at("title").as_str() {
            self.emit(
                json!({ "type": "system", "subtype": "session_title_changed", "title": title }),
            )?;
        }
        let greeting = self.greeting();
        self.reply(id, ControlReply::With(greeting))?;
        self.owes_session_start |= !std::mem::replace(&mut self.is_initialized, true);
        Ok(())
    }

    fn greeting(&self) -> Value {
        let commands = DIRECTIVES.map(|(name, arguments, description)| {
            json!({ "name": name, "description": description, "argumentHint": arguments })
        });
        json!({
            "commands": commands,
            "agents": [{ "name": "general-purpose", "description": "Runs its directives" }],
            "output_style": "default",
            "available_output_styles": ["default"],
            "models": models(),
            "account": { "tokenSource": "none", "apiKeySource": "none", "apiProvider": "firstParty" },
            "pid": std::process::id(),
            "claude_code_version": VERSION,
            "current_permission_mode": self.permissions.mode.name(),
            "hook_on_failure_supported": true,
            "session_state": if self.turn.is_some() { "running" } else { "idle" },
            "capabilities": [],
        })
    }

    fn change_mode(&mut self, id: Option<Value>, request: &Value) -> Result<(), Halt> {
        match request.at("mode").as_str().and_then(Mode::named) {
            None => {
                let error = format!("Cannot set permission mode: must be one of {}", Mode::names());
                self.reply(id, ControlReply::Error(error, Some("invalid_mode")))
            }
            Some(mode) if !self.may_set(mode) => {
                let error = "Cannot set permission mode to bypassPermissions because the session \
                             was not launched with --dangerously-skip-permissions";
                self.reply(id, ControlReply::Error(error.to_owned(), Some("bypass_not_launched")))
            }
            Some(mode) => {
                self.permissions.client_mode = request.at("shown").as_str().map(str::to_owned);
                self.reply(id, ControlReply::With(json!({ "mode": mode.name() })))?;
                self.set_mode(mode)
            }
        }
    }

    fn change_model(&mut self, id: Option<Value>, request: &Value) -> Result<(), Halt> {
        // `null`, `default` or nothing restores the initial model.
        let named = request.at("model").as_str().filter(|model| !matches!(*model, "" | "default"));
        let named = named.map(str::to_owned).or_else(|| self.flags.model.clone());
        self.model = named.unwrap_or_else(|| "demo".to_owned());
        let text =
            format!("<local-command-stdout>Set model to `{}`</local-command-stdout>", self.model);
        self.emit(json!({
            "type": "user",
            "message": { "role": "user", "content": text },
            "parent_tool_use_id": null,
            "isReplay": true,
        }))?;
        let model = self.model.clone();
        self.reply(id, ControlReply::With(json!({ "model": model })))
    }

    fn context_usage(&self) -> Value {
        let said: usize = self.memory.prompts.iter().map(String::len).sum();
        let (system, messages) = (tokens(self.system.len()), tokens(said));
        let used = system.saturating_add(messages);
        let category = |id: &str, name: &str, tokens: u64, kind: &str| json!({ "id": id, "name": name, "tokens": tokens, "kind": kind });
        json!({
            "categories": [
                category("system_prompt", "System prompt", system, "used"),
                category("messages", "Messages", messages, "used"),
                category("free_space", "Free space", CONTEXT_WINDOW.saturating_sub(used), "free"),
            ],
            "totalTokens": used,
            "maxTokens": CONTEXT_WINDOW,
            "percentage": used.saturating_mul(100) / CONTEXT_WINDOW,
            "model": self.model,
        })
    }
}

fn models() -> Value {
    let model = |value: &str, name: &str, description: &str| json!({ "value": value, "displayName": name, "description": description });
    json!([
        model("default", "Default", "The demo agent: runs the prompt's directives"),
        model("demo", "Demo", "The same, by name"),
        model("demo-large", "Demo large", "The same under another name, to test model changes"),
    ])
}
