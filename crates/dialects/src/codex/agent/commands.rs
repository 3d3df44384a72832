//! Commands to the app server.

use agentwire_protocol::command::Delivery;
use agentwire_protocol::{Call, Command, Configure, ErrorCode, GatewayError, Json, Prompt};
use serde_json::{Map, Value, json};

use super::calls::{Pending, input};
use super::replies::Shape;
use super::{Translator, exec};
use crate::agent::{refused_command, report_change};
use crate::tape::{Action, Out};

/// Read-only methods that clients may call by Codex's own names.
const READS: &[&str] = &[
    "account/rateLimits/read",
    "account/read",
    "account/usage/read",
    "app/list",
    "collaborationMode/list",
    "configRequirements/read",
    "experimentalFeature/list",
    "hooks/list",
    "mcpServerStatus/list",
    "model/list",
    "modelProvider/capabilities/read",
    "permissionProfile/list",
    "skills/list",
    "thread/backgroundTerminals/list",
    "thread/goal/get",
    "thread/items/list",
    "thread/list",
    "thread/loaded/list",
    "thread/read",
    "thread/turns/list",
];

impl Translator {
    pub(super) fn app_command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        match command {
            Command::Prompt(prompt) => return self.prompt(call, prompt, out),
            Command::Interrupt { cancel_queued } => {
                if *cancel_queued {
                    self.cancel_waiting(out);
                }
                self.stopping = true;
                self.interrupt(out);
            }
            Command::Stop | Command::Finish => {
                self.stopping = true;
                out.act(Action::CloseStdin);
            }
            Command::Settle(settlement) => self.settle(settlement, out)?,
            Command::Configure(change) => self.configure(change, out)?,
            Command::Query { method, args } => return self.query(call, method, args, out),
            Command::Cancel { message_id } => self.cancel_prompt(message_id, out)?,
            Command::Edit { message_id, text } => self.edit_prompt(message_id, text)?,
            Command::Rewind { .. }
            | Command::Queue
            | Command::Start(_)
            | Command::Attach { .. } => {
                return Err(refused_command(self.driver.name(), command));
            }
        }
        out.reply(call, Ok(Json::EMPTY));
        Ok(())
    }

    /// A prompt waits until the thread is free, unless it joins the turn or interrupts it.
    fn prompt(
        &mut self,
        call: Call,
        prompt: &Prompt,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let turn = self.threads.main().turn.clone().filter(|_| self.ledger.turn_is_open());
        match (prompt.delivery, turn) {
            (Some(Delivery::Steer), Some(turn)) => {
                self.has_room()?;
                let params = json!({
                    "threadId": self.threads.main_id(),
                    "expectedTurnId": turn,
                    "input": input(prompt),
                });
                let pending = Pending::Steer(call, Box::new(prompt.clone()));
                self.call(pending, "turn/steer", &params, out);
                return Ok(());
            }
            (Some(Delivery::Now), _) => {
                self.wait(prompt, true)?;
                if self.turn_is_wanted() {
                    self.interrupt(out);
                }
            }
            (Some(Delivery::Queue | Delivery::Steer) | None, _) => self.wait(prompt, false)?,
        }
        out.reply(call, Ok(Json::EMPTY));
        self.next_turn(out);
        Ok(())
    }

    /// Takes effect with the next turn.
    fn configure(&mut self, change: &Configure, out: &mut Out<'_>) -> Result<(), GatewayError> {
        exec::check(self.driver, change)?;
        if let Some(model) = &change.model {
            self.config.model = model.clone().or_else(|| self.first_model.clone());
            self.wire.new_model = true;
        }
        if change.approval_mode.is_some() || change.permission_mode.is_some() {
            self.config.approval_mode = change.approval_mode;
            self.config.permission_mode = change.permission_mode.clone();
            self.wire.new_mode = true;
        }
        report_change(change, self.config.model.as_deref(), out);
        Ok(())
    }

    fn query(
        &mut self,
        call: Call,
        method: &str,
        args: &[Json<'static>],
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let cwd: Vec<&String> = self.config.working_directory.iter().collect();
        let (name, params, shape) = match method {
            "supportedModels" => ("model/list", json!({}), Shape::Models),
            "supportedCommands" => ("skills/list", json!({ "cwds": cwd }), Shape::Commands),
            "mcpServerStatus" => ("mcpServerStatus/list", json!({}), Shape::Servers),
            "accountInfo" => ("account/read", json!({}), Shape::Account),
            "setModel" => {
                let is_reset = args.first().is_none_or(|model| model.get() == "null");
                let model = if is_reset { None } else { Some(argument(method, args)?) };
                let change = Configure { model: Some(model), ..Configure::default() };
                return self.change(call, &change, out);
            }
            "setPermissionMode" => {
                let permission_mode = Some(argument(method, args)?);
                return self.change(
                    call,
                    &Configure { permission_mode, ..Configure::default() },
                    out,
                );
            }
            own if READS.contains(&own) => (own, self.own_params(own, args)?, Shape::Exact),
            other => {
                return Err(self.driver.unsupported(format!("the query {other}")));
            }
        };
        self.has_room()?;
        self.call(Pending::Query(call, shape), name, &params, out);
        Ok(())
    }

    fn change(
        &mut self,
        call: Call,
        change: &Configure,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        self.configure(change, out)?;
        out.reply(call, Ok(Json::EMPTY));
        Ok(())
    }

    /// The client's parameters, with our thread added where one is needed.
    fn own_params(&mut self, method: &str, args: &[Json<'static>]) -> Result<Value, GatewayError> {
        let mut params = match args.first().map(Json::read::<Map<String, Value>>) {
            None => Map::new(),
            Some(Ok(params)) => params,
            Some(Err(_)) => {
                return Err(GatewayError::invalid(format!("the query {method} takes an object")));
            }
        };
        let listing = matches!(method, "thread/list" | "thread/loaded/list");
        if method.starts_with("thread/") && !listing && !params.contains_key("threadId") {
            let Some(thread) = self.threads.main_id() else {
                let message = "the thread is not open yet";
                return Err(GatewayError::new(ErrorCode::Conflict, message));
            };
            params.insert("threadId".to_owned(), json!(thread));
        }
        Ok(Value::Object(params))
    }
}

fn argument(method: &str, args: &[Json<'static>]) -> Result<String, GatewayError> {
    let text = args.first().and_then(|argument| argument.read::<String>().ok());
    text.ok_or_else(|| GatewayError::invalid(format!("the query {method} takes a string")))
}
