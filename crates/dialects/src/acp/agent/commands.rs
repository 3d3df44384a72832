//! Client commands, translated to ACP.

use agentwire_protocol::command::{Configure, Delivery};
use agentwire_protocol::{Call, Command, GatewayError, Json, JsonObject, Prompt, SessionConfig};
use serde::de::DeserializeOwned;
use serde_json::json;

use super::super::gateway_mode;
use super::handshake::Stage;
use super::settings::WantedMode;
use super::{SENT_LIMIT, SentRequest, Setting, Translator, Waiter};
use crate::agent::refused_command;
use crate::prompt_queue;
use crate::tape::{Action, Out};

/// Queries whose answers are known once the session is open.
const CHOICES: [&str; 2] = ["supportedModels", "supportedModes"];

impl Translator {
    pub(super) fn command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        match command {
            Command::Prompt(prompt) => self.prompt(prompt, out)?,
            Command::Interrupt { cancel_queued } => {
                if *cancel_queued {
                    self.cancel_queue(out);
                }
                self.interrupt(out);
            }
            Command::Stop | Command::Finish => self.stop(out),
            Command::Settle(settlement) => self.settle(settlement, out)?,
            Command::Configure(change) => return self.configure(call, change, out),
            Command::Query { method, args } => return self.query(call, method, args, out),
            Command::Cancel { message_id } => {
                prompt_queue::cancel(&mut self.queue, message_id, out)?;
            }
            Command::Edit { message_id, text } => {
                prompt_queue::edit(&mut self.queue, message_id, text)?;
            }
            Command::Rewind { .. }
            | Command::Queue
            | Command::Start(_)
            | Command::Attach { .. } => {
                return Err(refused_command(self.name(), command));
            }
        }
        out.reply(call, Ok(Json::EMPTY));
        Ok(())
    }

    fn prompt(&mut self, prompt: &Prompt, out: &mut Out<'_>) -> Result<(), GatewayError> {
        match prompt.delivery {
            None | Some(Delivery::Queue) => self.enqueue(prompt, false, out),
            Some(Delivery::Steer) => Err(self.unsupported("delivery steer")),
            Some(Delivery::Now) => {
                let is_running = self.ledger.turn_is_open();
                self.enqueue(prompt, true, out)?;
                if is_running {
                    self.interrupt(out);
                }
                Ok(())
            }
        }
    }

    /// Interrupts first: an agent may finish its turn before it reacts to the end of its stdin.
    fn stop(&mut self, out: &mut Out<'_>) {
        self.interrupt(out);
        if self.session.is_some() && self.announces("sessionCapabilities.close") {
            let params = json!({ "sessionId": self.session });
            let sent = SentRequest::Query { method: "session/close", call: None };
            // If this fails, closing stdin has the same effect.
            let _ = self.send("session/close", &params, sent, out);
        }
        out.act(Action::CloseStdin);
    }

    fn configure(
        &mut self,
        call: Call,
        change: &Configure,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        if change.max_thinking_tokens.flatten().is_some() {
            return Err(self.unsupported("maxThinkingTokens"));
        }
        if self.sent.len() + 2 > SENT_LIMIT {
            return Err(self.overloaded());
        }
        match &self.stage {
            Stage::Ready | Stage::Configuring => {}
            Stage::Failed(error) => return Err(error.clone()),
            // The session will be opened with it.
            Stage::Starting | Stage::Opening => {
                let config = &mut self.setup.config;
                if let Some(model) = &change.model {
                    config.model = model.clone().or_else(|| self.first_model.clone());
                }
                config.approval_mode = change.approval_mode.or(config.approval_mode);
                config.permission_mode = match change.approval_mode {
                    Some(_) => change.permission_mode.clone(),
                    None => change.permission_mode.clone().or(config.permission_mode.take()),
                };
                out.reply(call, Ok(Json::EMPTY));
                return Ok(());
            }
        }
        let wanted = SessionConfig {
            permission_mode: change.permission_mode.clone(),
            approval_mode: change.approval_mode,
            ..SessionConfig::default()
        };
        let changes_mode = change.permission_mode.is_some() || change.approval_mode.is_some();
        let mode = changes_mode.then(|| self.wanted_mode(&wanted)).transpose()?;
        let model = match &change.model {
            None => None,
            Some(Some(model)) => Some(model),
            Some(None) => Some(
                self.first_model
                    .as_ref()
                    .ok_or_else(|| self.unsupported("model null: it never reported a model"))?,
            ),
        };
        let model = model.filter(|model| self.model.current.as_ref() != Some(model)).cloned();
        let mode = match mode {
            Some(WantedMode { own: Some(own), shown }) => Some((own, shown)),
            // The agent's mode does not change; the gateway decides.
            Some(WantedMode { own: None, shown }) => {
                self.setup.config.permission_mode = shown.clone().or_else(|| wanted_name(&wanted));
                self.shown_mode = shown;
                self.show_mode(out);
                None
            }
            None => None,
        };
        if mode.is_none() && model.is_none() {
            out.reply(call, Ok(Json::EMPTY));
        }
        // Set the model first: only it can be refused before anything is written.
        if let Some(model) = model {
            self.set(Setting::Model, (model, None), Waiter::Call(call), out)?;
        }
        match mode {
            Some(mode) => self.set(Setting::Mode, mode, Waiter::Call(call), out),
            None => Ok(()),
        }
    }

    fn query(
        &mut self,
        call: Call,
        method: &str,
        args: &[Json<'static>],
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let unsupported =
            |name| Err(GatewayError::unsupported(name, format!("the query {method}")));
        let name = self.name();
        if let Some(choice) = CHOICES.into_iter().find(|choice| *choice == method)
            && matches!(self.stage, Stage::Starting | Stage::Opening)
        {
            if self.inquiries.len() >= SENT_LIMIT {
                return Err(self.overloaded());
            }
            self.inquiries.push((call, choice));
            return Ok(());
        }
        let known = match method {
            "supportedModels" => self.model.list.clone(),
            "supportedModes" => self.mode.list.clone(),
            "supportedCommands" => Some(self.commands.clone().unwrap_or(Json::trusted("[]"))),
            "accountInfo" => {
                let methods = self.auth_methods.clone().unwrap_or(Json::trusted("[]"));
                Some(JsonObject::new().raw("authMethods", &methods).finish())
            }
            "setModel" => {
                let model = Some(argument(args, 0, "a model or null")?);
                return self.configure(call, &Configure { model, ..Configure::default() }, out);
            }
            "setPermissionMode" => {
                let mode: String = argument(args, 0, "a mode")?;
                // The gateway decides in these modes, and learns of them only from a change of the session.
                if gateway_mode(&mode).is_some() {
                    let what = format!("the query {method} {mode}; change permissionMode instead");
                    return Err(GatewayError::unsupported(name, what));
                }
                let permission_mode = Some(mode);
                let change = Configure { permission_mode, ..Configure::default() };
                return self.configure(call, &change, out);
            }
            "setConfigOption" if self.session.is_some() => {
                let value: serde_json::Value = argument(args, 1, "a value")?;
                let id: String = argument(args, 0, "an option")?;
                if self.mode.option.as_ref() == Some(&id) {
                    let what = format!("the query {method} {id}; change permissionMode instead");
                    return Err(GatewayError::unsupported(name, what));
                }
                let session = &self.session;
                let params = match value.is_boolean() {
                    true => json!({
                        "sessionId": session, "configId": id, "type": "boolean", "value": value,
                    }),
                    false => json!({ "sessionId": session, "configId": id, "value": value }),
                };
                let sent =
                    SentRequest::Query { method: "session/set_config_option", call: Some(call) };
                return self.send("session/set_config_option", &params, sent, out);
            }
            "listSessions" if self.announces("sessionCapabilities.list") => {
                let params = argument(args, 0, "").unwrap_or_else(|_| json!({}));
                let sent = SentRequest::Query { method: "session/list", call: Some(call) };
                return self.send("session/list", &params, sent, out);
            }
            "authenticate" => {
                let params = json!({ "methodId": argument::<String>(args, 0, "a method")? });
                let sent = SentRequest::Query { method: "authenticate", call: Some(call) };
                return self.send("authenticate", &params, sent, out);
            }
            _ => return unsupported(name),
        };
        match known {
            Some(known) => out.reply(call, Ok(known)),
            None => return unsupported(name),
        }
        Ok(())
    }

    /// Answers the queries that waited for the session to open.
    pub(super) fn answer_inquiries(&mut self, out: &mut Out<'_>) {
        for (call, choice) in std::mem::take(&mut self.inquiries) {
            if let Err(error) = self.query(call, choice, &[], out) {
                out.reply(call, Err(error));
            }
        }
    }

    /// Fails the queries that waited, because no session will open.
    pub(super) fn refuse_inquiries(&mut self, error: &GatewayError, out: &mut Out<'_>) {
        for (call, _) in std::mem::take(&mut self.inquiries) {
            out.reply(call, Err(error.clone()));
        }
    }
}

/// The agent's own mode, if the client named one.
fn wanted_name(wanted: &SessionConfig) -> Option<String> {
    wanted.permission_mode.clone().filter(|mode| gateway_mode(mode).is_none())
}

fn argument<T: DeserializeOwned>(
    args: &[Json<'static>],
    at: usize,
    what: &str,
) -> Result<T, GatewayError> {
    let read = args.get(at).and_then(|argument| argument.read().ok());
    read.ok_or_else(|| {
        GatewayError::invalid(format!("the query needs {what} as argument {}", at + 1))
    })
}
