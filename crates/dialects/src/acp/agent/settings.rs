//! The mode and the model of a session: what is offered, what is in use, and how to change it.

use agentwire_protocol::event::{Other, Status, StatusChanged};
use agentwire_protocol::{ApprovalMode, Call, ErrorCode, GatewayError, Json, SessionConfig, Text};
use serde_json::json;

use super::super::modes;
use super::super::wire::{ConfigOption, SessionResult};
use super::handshake::Stage;
use super::{SentRequest, Setting, Translator, Waiter};
use crate::json::Value;
use crate::tape::Out;

#[derive(Default)]
pub(super) struct SettingChoices {
    pub(super) current: Option<String>,
    pub(super) ids: Vec<String>,
    /// Ids of the modes whose names say that the agent approves by itself.
    approving: Vec<String>,
    /// Exactly as the agent lists them.
    pub(super) list: Option<Json<'static>>,
    /// The configuration option that sets it; `None` if a dedicated method does.
    pub(super) option: Option<String>,
}

pub(super) struct WantedMode {
    /// The agent's own mode to request; `None` if nothing has to change.
    pub(super) own: Option<String>,
    /// The gateway mode that clients see instead, as they named it.
    pub(super) shown: Option<String>,
}

impl Translator {
    /// The mode that the configuration asks for. The agent always runs in the mode that asks most, because
    /// the gateway decides what may run without asking. Another mode is passed on only if the agent does
    /// not approve by itself in it.
    pub(super) fn wanted_mode(&self, config: &SessionConfig) -> Result<WantedMode, GatewayError> {
        let current = self.mode.current.as_deref();
        let wanted = config.permission_mode.as_deref();
        let own = match wanted.filter(|mode| modes::gateway_mode(mode).is_none()) {
            Some(mode) if self.mode.approves(mode) => {
                let what = format!(
                    "permissionMode {mode}, in which it approves by itself; set approvalMode instead"
                );
                return Err(self.unsupported(what));
            }
            Some(mode) if self.mode.ids.iter().any(|id| id == mode) => Some(mode),
            Some(mode) => {
                return Err(self.unsupported(format!("permissionMode {mode}")));
            }
            None => modes::asking(&self.mode.ids),
        };
        if own.is_none() {
            // An agent without modes asks by its own rules.
            current.filter(|mode| self.mode.approves(mode)).map_or(Ok(()), |mode| {
                let message = format!(
                    "{} is in mode {mode}, in which it approves by itself, and offers no mode that \
                     asks; start it in another mode",
                    self.name()
                );
                Err(GatewayError::new(ErrorCode::StartFailed, message))
            })?;
        }
        let own = own.filter(|own| current != Some(own)).map(str::to_owned);
        Ok(WantedMode { own, shown: shown_mode(wanted) })
    }

    /// Reports the mode that clients see, if it changed. Returns `false` if it did not.
    pub(super) fn show_mode(&mut self, out: &mut Out<'_>) -> bool {
        let now = self.visible_mode();
        if now == self.told_mode {
            return false;
        }
        self.told_mode.clone_from(&now);
        if let Some(mode) = now {
            out.emit(StatusChanged::new(Status::Mode).message(Text::from(mode)));
        }
        true
    }

    pub(super) fn visible_mode(&self) -> Option<String> {
        let asks = self.mode.current.as_deref() == modes::asking(&self.mode.ids);
        self.shown_mode.clone().filter(|_| asks).or_else(|| self.mode.current.clone())
    }

    pub(super) fn set(
        &mut self,
        setting: Setting,
        (value, shown): (String, Option<String>),
        waiter: Waiter,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError> {
        let session = self.session.as_deref();
        let choice = match setting {
            Setting::Mode => &self.mode,
            Setting::Model => &self.model,
        };
        let (method, params) = match (setting, &choice.option) {
            (_, Some(option)) => (
                "session/set_config_option",
                json!({ "sessionId": session, "configId": option, "value": value }),
            ),
            (Setting::Mode, None) => {
                ("session/set_mode", json!({ "sessionId": session, "modeId": value }))
            }
            (Setting::Model, None) if choice.list.is_some() => {
                ("session/set_model", json!({ "sessionId": session, "modelId": value }))
            }
            (Setting::Model, None) => {
                return Err(self.unsupported("the option model"));
            }
        };
        self.send(method, &params, SentRequest::Setting { setting, value, shown, waiter }, out)
    }

    pub(super) fn setting_accepted(
        &mut self,
        setting: Setting,
        (value, shown): (&str, Option<String>),
        waiter: Waiter,
        result: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        if setting == Setting::Mode {
            self.shown_mode.clone_from(&shown);
        }
        match result.and_then(|result| result.get("configOptions")) {
            Some(options) => self.options_changed(options, out),
            None if self.choose(setting, value, out) => {}
            None => out.emit(Other::named(match setting {
                Setting::Mode => "session/set_mode",
                Setting::Model => "session/set_model",
            })),
        }
        // The session's next process must use it too.
        let config = &mut self.setup.config;
        match setting {
            Setting::Mode => config.permission_mode = shown.or_else(|| Some(value.to_owned())),
            Setting::Model => config.model = Some(value.to_owned()),
        }
        let stays = self.mode.current.clone().filter(|mode| self.mode.approves(mode));
        if let Some(mode) = stays.filter(|_| setting == Setting::Mode) {
            return self.approves_itself(&mode, waiter, out);
        }
        let left = |sent: &SentRequest| matches!(sent, SentRequest::Setting { waiter: w, .. } if *w == waiter);
        match waiter {
            Waiter::Call(call) if !self.sent.values().any(left) => {
                out.reply(call, Ok(Json::EMPTY));
            }
            Waiter::Opening => self.config_applied(out),
            Waiter::Call(_) | Waiter::Nobody => {}
        }
    }

    /// Fails the session: the agent is in a mode in which it approves by itself, though we never request
    /// one.
    fn approves_itself(&mut self, mode: &str, waiter: Waiter, out: &mut Out<'_>) {
        let message = format!(
            "{} is in mode {mode}, in which it approves by itself instead of asking agentwire",
            self.name()
        );
        match waiter {
            Waiter::Opening => {
                self.fail_opening(GatewayError::new(ErrorCode::StartFailed, message), out);
            }
            Waiter::Call(_) | Waiter::Nobody => {
                let error = GatewayError::new(ErrorCode::AgentFailed, message.as_str());
                if let Waiter::Call(call) = waiter {
                    self.fail_call(call, error.clone(), out);
                }
                self.stage = Stage::Failed(error);
                out.broken(message);
            }
        }
    }

    /// Fails a call that may wait for two responses when the first of them fails.
    pub(super) fn fail_call(&mut self, call: Call, error: GatewayError, out: &mut Out<'_>) {
        for sent in self.sent.values_mut() {
            if let SentRequest::Setting { waiter, .. } = sent
                && *waiter == Waiter::Call(call)
            {
                *waiter = Waiter::Nobody;
            }
        }
        out.reply(call, Err(error));
    }

    /// Records the mode or model that is now in use. Returns whether a change was reported.
    pub(super) fn choose(&mut self, setting: Setting, value: &str, out: &mut Out<'_>) -> bool {
        let choice = match setting {
            Setting::Mode => &mut self.mode,
            Setting::Model => &mut self.model,
        };
        let is_other = choice.current.as_deref() != Some(value);
        choice.current = Some(value.to_owned());
        match setting {
            Setting::Mode => {
                let is_told = self.show_mode(out);
                // Nobody requested this: we never request such a mode.
                if is_other && self.mode.approves(value) && !out.is_recording() {
                    self.approves_itself(value, Waiter::Nobody, out);
                }
                is_told
            }
            Setting::Model if is_other => {
                out.emit(StatusChanged::new(Status::Model).message(Text::from(value)));
                true
            }
            Setting::Model => false,
        }
    }

    /// The options changed, and the mode and the model may have changed with them.
    pub(super) fn options_changed(&mut self, options: Value<'_>, out: &mut Out<'_>) {
        out.emit(options_changed(options));
        let before = (self.mode.current.clone(), self.model.current.clone());
        self.offers(&SessionResult { options: Some(options), ..SessionResult::default() });
        let after = (self.mode.current.take(), self.model.current.take());
        (self.mode.current, self.model.current) = before;
        for (setting, now) in [(Setting::Mode, after.0), (Setting::Model, after.1)] {
            if let Some(now) = now {
                self.choose(setting, &now, out);
            }
        }
    }

    /// Records the modes and models that are offered.
    pub(super) fn offers(&mut self, opened: &SessionResult<'_>) {
        if let Some(modes) = opened.modes {
            self.mode = SettingChoices::of(modes, "currentModeId", "availableModes", "id");
        }
        if let Some(models) = opened.models {
            self.model = SettingChoices::of(models, "currentModelId", "availableModels", "modelId");
        }
        // If an option offers the same, it wins: options are the newer way.
        for option in opened.options.into_iter().flat_map(Value::items) {
            let Some(read) = option.to::<ConfigOption<'_>>() else { continue };
            match read.category.as_deref() {
                Some("mode") => self.mode = SettingChoices::of_option(option, &read),
                Some("model") => self.model = SettingChoices::of_option(option, &read),
                _ => {}
            }
        }
    }
}

impl SettingChoices {
    fn of(list: Value<'_>, current: &str, items: &str, id: &str) -> Self {
        let items = list.get(items).into_iter().flat_map(Value::items);
        let choice = Self {
            current: list.read::<Text<'_>>(current).as_ref().map(Text::to_string),
            list: Some(list.json().into_owned()),
            ..Self::default()
        };
        choice.with(items, id)
    }

    fn of_option(option: Value<'_>, read: &ConfigOption<'_>) -> Self {
        let options = read.options.into_iter().flat_map(Value::items);
        let values = options.flat_map(|option| {
            let group = option.get("options").into_iter().flat_map(Value::items);
            std::iter::once(option).chain(group)
        });
        let choice = Self {
            current: read.current.as_ref().map(Text::to_string),
            list: Some(option.json().into_owned()),
            option: read.id.as_ref().map(Text::to_string),
            ..Self::default()
        };
        choice.with(values, "value")
    }

    fn with<'v>(mut self, items: impl Iterator<Item = Value<'v>>, id: &str) -> Self {
        for item in items {
            let Some(id) = item.read::<Text<'_>>(id).map(|id| id.to_string()) else { continue };
            let name = item.read::<Text<'_>>("name").map(|name| name.to_string());
            if name.is_some_and(|name| modes::approves(&name)) {
                self.approving.push(id.clone());
            }
            self.ids.push(id);
        }
        self
    }

    pub(super) fn approves(&self, mode: &str) -> bool {
        modes::approves(mode) || self.approving.iter().any(|id| id == mode)
    }
}

/// The name to show for a gateway mode; `None` if the agent's own mode is shown.
pub(super) fn shown_mode(wanted: Option<&str>) -> Option<String> {
    let is_ours = |mode: &&str| {
        matches!(
            modes::gateway_mode(mode),
            Some(ApprovalMode::AskDangerous | ApprovalMode::AutoEdit | ApprovalMode::AutoAll)
        )
    };
    wanted.filter(is_ours).map(str::to_owned)
}

pub(super) fn options_changed(options: Value<'_>) -> StatusChanged<'_> {
    StatusChanged::new(Status::Commands)
        .message(Text::from("configOptions"))
        .details(options.json())
}
