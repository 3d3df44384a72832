//! The mode and the model of a session: what is offered, what is in use, and how another is asked for.

use agentwire_protocol::event::{Other, Status, StatusChanged};
use agentwire_protocol::{ApprovalMode, Call, GatewayError, Json, SessionConfig, Text};
use serde_json::json;

use super::super::wire::{ConfigOption, Opened};
use super::{Sent, Setting, Translator, Waiter};
use crate::json::Value;
use crate::tape::Out;

/// Names of one mode: those of other agents stand for the agent's own.
const MODES: [&[&str]; 4] = [
    &["default", "ask"],
    &["acceptEdits", "autoEdit", "auto_edit", "auto-edit"],
    &["bypassPermissions", "yolo", "autoAll"],
    &["plan"],
];

/// Modes or models to choose from.
#[derive(Default)]
pub(super) struct Choice {
    pub(super) current: Option<String>,
    pub(super) ids: Vec<String>,
    /// As the agent lists them.
    pub(super) list: Option<Json<'static>>,
    /// The configuration option by which one is chosen; without it, a method of its own.
    pub(super) option: Option<String>,
}

impl Translator {
    /// The mode that the configuration asks for, unless it is the one in use.
    pub(super) fn wanted_mode(
        &self,
        config: &SessionConfig,
    ) -> Result<Option<String>, GatewayError> {
        let (wanted, option) = match (&config.permission_mode, config.approval_mode) {
            (Some(mode), _) => (mode.as_str(), format!("permissionMode {mode}")),
            (None, Some(ApprovalMode::AutoEdit)) => ("autoEdit", "approvalMode autoEdit".into()),
            (None, Some(ApprovalMode::AutoAll)) => ("autoAll", "approvalMode autoAll".into()),
            (None, Some(ApprovalMode::Ask | ApprovalMode::AskDangerous)) => ("ask", String::new()),
            (None, None) => return Ok(None),
        };
        let alike = MODES.iter().find(|names| names.contains(&wanted)).copied().unwrap_or(&[]);
        let offered = |name: &&str| self.mode.ids.iter().any(|id| id == *name);
        match [wanted].iter().chain(alike).copied().find(|name| offered(name)) {
            Some(mode) if self.mode.current.as_deref() == Some(mode) => Ok(None),
            Some(mode) => Ok(Some(mode.to_owned())),
            // An agent without modes asks by rules of its own.
            None if option.is_empty() => Ok(None),
            None => Err(GatewayError::unsupported(self.name(), &option)),
        }
    }

    /// Asks for another mode or model.
    pub(super) fn set(
        &mut self,
        setting: Setting,
        value: String,
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
                return Err(GatewayError::unsupported(self.name(), "the option model"));
            }
        };
        self.send(method, &params, Sent::Setting { setting, value, waiter }, out)
    }

    pub(super) fn setting_taken(
        &mut self,
        setting: Setting,
        value: &str,
        waiter: Waiter,
        result: Option<Value<'_>>,
        out: &mut Out<'_>,
    ) {
        match result.and_then(|result| result.get("configOptions")) {
            Some(options) => self.options_changed(options, out),
            None if self.choose(setting, value, out) => {}
            None => out.emit(Other::named(match setting {
                Setting::Mode => "session/set_mode",
                Setting::Model => "session/set_model",
            })),
        }
        // The next process of the session is to be so as well.
        let config = &mut self.setup.config;
        match setting {
            Setting::Mode => config.permission_mode = Some(value.to_owned()),
            Setting::Model => config.model = Some(value.to_owned()),
        }
        let left = |sent: &Sent| matches!(sent, Sent::Setting { waiter: w, .. } if *w == waiter);
        match waiter {
            Waiter::Call(call) if !self.sent.values().any(left) => {
                out.reply(call, Ok(Json::checked("{}")));
            }
            Waiter::Opening => self.settled(out),
            Waiter::Call(_) | Waiter::Nobody => {}
        }
    }

    /// A call that may wait for two responses failed at one.
    pub(super) fn fail_call(&mut self, call: Call, error: GatewayError, out: &mut Out<'_>) {
        for sent in self.sent.values_mut() {
            if let Sent::Setting { waiter, .. } = sent
                && *waiter == Waiter::Call(call)
            {
                *waiter = Waiter::Nobody;
            }
        }
        out.reply(call, Err(error));
    }

    /// The mode or the model is another now. `false` if it is not.
    pub(super) fn choose(&mut self, setting: Setting, value: &str, out: &mut Out<'_>) -> bool {
        let (choice, status) = match setting {
            Setting::Mode => (&mut self.mode, Status::Mode),
            Setting::Model => (&mut self.model, Status::Model),
        };
        if choice.current.as_deref() == Some(value) {
            return false;
        }
        choice.current = Some(value.to_owned());
        out.emit(StatusChanged::new(status).message(Text::from(value)));
        true
    }

    /// The options are others now, and with them maybe the mode and the model.
    pub(super) fn options_changed(&mut self, options: Value<'_>, out: &mut Out<'_>) {
        out.emit(options_changed(options));
        let before = (self.mode.current.clone(), self.model.current.clone());
        self.offers(&Opened { options: Some(options), ..Opened::default() });
        let after = (self.mode.current.take(), self.model.current.take());
        (self.mode.current, self.model.current) = before;
        for (setting, now) in [(Setting::Mode, after.0), (Setting::Model, after.1)] {
            if let Some(now) = now {
                self.choose(setting, &now, out);
            }
        }
    }

    /// Takes note of what is offered.
    pub(super) fn offers(&mut self, opened: &Opened<'_>) {
        if let Some(modes) = opened.modes {
            self.mode = Choice::of(modes, "currentModeId", "availableModes", "id");
        }
        if let Some(models) = opened.models {
            self.model = Choice::of(models, "currentModelId", "availableModels", "modelId");
        }
        // Where an option offers the same, the option is the newer way and wins.
        for option in opened.options.into_iter().flat_map(Value::items) {
            let Some(read) = option.to::<ConfigOption<'_>>() else { continue };
            match read.category.as_deref() {
                Some("mode") => self.mode = Choice::of_option(option, &read),
                Some("model") => self.model = Choice::of_option(option, &read),
                _ => {}
            }
        }
    }
}

impl Choice {
    fn of(list: Value<'_>, current: &str, items: &str, id: &str) -> Self {
        let ids = list.get(items).into_iter().flat_map(Value::items);
        Self {
            current: list.read::<Text<'_>>(current).as_ref().map(Text::to_string),
            ids: ids.filter_map(|item| Some(item.read::<Text<'_>>(id)?.to_string())).collect(),
            list: Some(list.json().into_owned()),
            option: None,
        }
    }

    fn of_option(option: Value<'_>, read: &ConfigOption<'_>) -> Self {
        let options = read.options.into_iter().flat_map(Value::items);
        // Options may stand in groups.
        let values = options.flat_map(|option| {
            let group = option.get("options").into_iter().flat_map(Value::items);
            std::iter::once(option).chain(group)
        });
        let ids = values.filter_map(|value| Some(value.read::<Text<'_>>("value")?.to_string()));
        Self {
            current: read.current.as_ref().map(Text::to_string),
            ids: ids.collect(),
            list: Some(option.json().into_owned()),
            option: read.id.as_ref().map(Text::to_string),
        }
    }
}

pub(super) fn options_changed(options: Value<'_>) -> StatusChanged<'_> {
    StatusChanged::new(Status::Commands)
        .message(Text::from("configOptions"))
        .details(options.json())
}
