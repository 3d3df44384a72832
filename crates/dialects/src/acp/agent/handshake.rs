//! From the start of the process to a session that accepts prompts: `initialize`, then `session/new`,
//! `session/load`, `session/resume` or `session/fork`, then the wanted mode and model.

use agentwire_protocol::event::{AgentInfo, ErrorEvent, Other, TurnFailure};
use agentwire_protocol::{ErrorCode, GatewayError, Text};
use serde_json::json;

use super::super::wire::{InitializeResult, SessionResult};
use super::super::{launch, quirks};
use super::settings::{SettingChoices, options_changed, shown_mode};
use super::{SentRequest, Setting, Translator, Waiter};
use crate::json::Value;
use crate::tape::Out;

const VERSION: u64 = 1;

/// How far the opening of the session has come.
#[derive(Default)]
pub(super) enum Stage {
    /// `initialize` has no answer yet.
    #[default]
    Starting,
    Opening,
    /// The session is open, but its mode or model is not yet the wanted one.
    Configuring,
    Ready,
    Failed(GatewayError),
}

impl Translator {
    pub(super) fn initialize(&mut self, out: &mut Out<'_>) {
        let params = json!({
            "protocolVersion": VERSION,
            // We offer no files or terminals: the agent runs on the same machine and uses its own.
            "clientCapabilities": {
                "fs": { "readTextFile": false, "writeTextFile": false },
                "terminal": false,
                "elicitation": { "form": {}, "url": {} },
                // claude-agent-acp sends what subagents say only if asked to.
                "_meta": { "subagent-transcript": true },
            },
            "clientInfo": {
                "name": "agentwire",
                "title": "agentwire",
                "version": env!("CARGO_PKG_VERSION"),
            },
        });
        if let Err(error) = self.send("initialize", &params, SentRequest::Initialize, out) {
            self.fail_opening(error, out);
        }
    }

    pub(super) fn initialized(&mut self, result: Option<Value<'_>>, out: &mut Out<'_>) {
        let read: InitializeResult<'_> = result.and_then(Value::to).unwrap_or_default();
        let name = read.info.and_then(|info| info.get("name"));
        self.quirks = self.quirks.or_else(|| name.and_then(quirks::named));
        let capabilities = read.capabilities.map(Value::json);
        self.capabilities = capabilities.and_then(|json| json.read().ok()).unwrap_or_default();
        self.auth_methods = read.auth_methods.map(|methods| methods.json().into_owned());
        out.ready(AgentInfo {
            agent_version: read.info.and_then(|info| info.read("version")),
            capabilities: result.map(Value::json),
            ..AgentInfo::default()
        });
        if out.is_recording() && self.session.is_some() {
            // Gemini opens a session before it is initialized, and can be initialized twice
            // (fixture real-protocol-errors).
            return;
        }
        self.stage = Stage::Opening;
        if out.is_recording() {
            // Content that arrives before the session is open can only be the replay of an earlier one.
            self.replaying = true;
        } else if read.version.unwrap_or(VERSION) == VERSION {
            self.open(out);
        } else {
            let version = read.version.unwrap_or_default();
            let what = format!("ACP version {VERSION}; it uses version {version}");
            self.fail_opening(self.unsupported(what), out);
        }
    }

    /// Whether the agent has announced that capability, such as `promptCapabilities.image`.
    pub(super) fn announces(&self, path: &str) -> bool {
        let found = path.split('.').try_fold(&self.capabilities, |value, name| value.get(name));
        found.is_some_and(|value| !value.is_null() && value.as_bool() != Some(false))
    }

    /// Opens a new session, or resumes one with the method that the agent supports.
    fn open(&mut self, out: &mut Out<'_>) {
        let resume = self.setup.resume.as_deref();
        let method = match resume {
            None => "session/new",
            Some(_) if self.setup.fork && self.announces("sessionCapabilities.fork") => {
                "session/fork"
            }
            Some(_) if self.setup.fork => {
                let error = self.unsupported("the option fork");
                return self.fail_opening(error, out);
            }
            Some(_) if self.announces("sessionCapabilities.resume") => "session/resume",
            Some(_) if self.announces("loadSession") => "session/load",
            Some(_) => {
                let error = self.unsupported("resuming a session");
                return self.fail_opening(error, out);
            }
        };
        let replays = method == "session/load";
        let announces = |path: &str| self.announces(path);
        let sent = launch::session(&self.setup.config, resume, self.launch_quirks, announces)
            .and_then(|params| self.send(method, &params, SentRequest::Open { replays }, out));
        match sent {
            Ok(()) => self.replaying = replays,
            Err(error) => self.fail_opening(error, out),
        }
        self.commands = None;
    }

    /// After a sign-in, retries a session that failed to open.
    pub(super) fn retry_opening(&mut self, method: &str, out: &mut Out<'_>) {
        if method == "authenticate" && matches!(self.stage, Stage::Failed(_)) {
            self.stage = Stage::Opening;
            self.open(out);
        }
    }

    pub(super) fn opened(&mut self, result: Option<Value<'_>>, replays: bool, out: &mut Out<'_>) {
        let opened: SessionResult<'_> = result.and_then(Value::to).unwrap_or_default();
        let ours = self.session.as_deref();
        if ours.zip(opened.session_id.as_ref()).is_some_and(|(ours, id)| *id != *ours) {
            // One process may have several sessions, as in the fixture real-two-sessions.
            self.has_other_session = true;
            return out.emit(Other::named("otherSession"));
        }
        let resumed = self.setup.resume.as_deref().map(Text::from).filter(|_| !self.setup.fork);
        // In a recording, the replay may name the session when the result does not.
        let replayed = self.session.as_deref().map(Text::from);
        let id = opened.session_id.clone().or(resumed).or(replayed).map(Text::into_owned);
        if self.setup.fork && id.is_none() {
            let message = "the agent did not report the id of the forked session";
            return self.fail_opening(GatewayError::new(ErrorCode::StartFailed, message), out);
        }
        self.setup.fork = false;
        self.preface = launch::preface(&self.setup.config, |path| self.announces(path));
        self.session = id.as_ref().map(Text::to_string);
        self.offers(&opened);
        self.shown_mode = shown_mode(self.setup.config.permission_mode.as_deref());
        self.told_mode = self.visible_mode();
        self.first_model = self.first_model.take().or_else(|| self.model.current.clone());
        // In a recording, this may be the result of `authenticate`, which is empty.
        let says_nothing = id.is_none() && opened.modes.or(opened.options).is_none();
        if !(out.is_recording() && says_nothing) {
            out.ready(AgentInfo {
                native_session_id: id,
                model: self.model.current.as_deref().map(Text::from),
                mode: self.told_mode.as_deref().map(Text::from),
                models: self.model.list.clone(),
                modes: self.mode.list.clone(),
                ..AgentInfo::default()
            });
        }
        if let Some(options) = opened.options {
            out.emit(options_changed(options));
        }
        // Gemini's replay continues after the result and ends with its commands (fixture real-load-1-load).
        self.replaying =
            replays && self.has(|quirks| quirks.replays_late) && self.commands.is_none();
        if out.is_recording() {
            self.stage = Stage::Ready;
            return;
        }
        self.stage = Stage::Configuring;
        self.answer_inquiries(out);
        match self.apply_config(out) {
            Ok(()) => self.config_applied(out),
            Err(error) => self.fail_opening(error, out),
        }
    }

    /// Requests the configured mode and model, unless they are already in use.
    fn apply_config(&mut self, out: &mut Out<'_>) -> Result<(), GatewayError> {
        self.stage = Stage::Configuring;
        let mode = self.wanted_mode(&self.setup.config)?;
        if let Some(own) = mode.own {
            self.set(Setting::Mode, (own, mode.shown), Waiter::Opening, out)?;
        }
        // An agent that was started with its model may report it by another name, since ours may be an
        // alias.
        let is_given = self.launch_quirks.is_some();
        let model = self.setup.config.model.clone();
        let model = model.filter(|model| !is_given || self.launch_model.as_ref() != Some(model));
        match model.filter(|model| self.model.current.as_ref() != Some(model)) {
            Some(model) => self.set(Setting::Model, (model, None), Waiter::Opening, out),
            None => Ok(()),
        }
    }

    /// Accepts prompts once no request of the opening is left.
    pub(super) fn config_applied(&mut self, out: &mut Out<'_>) {
        let left = |sent: &SentRequest| {
            matches!(sent, SentRequest::Setting { waiter: Waiter::Opening, .. })
        };
        if matches!(self.stage, Stage::Configuring) && !self.sent.values().any(left) {
            self.stage = Stage::Ready;
        }
        self.pump(out);
    }

    /// Resets the state of a process that has ended. The session continues in the next one.
    pub(super) fn forget_process(&mut self) {
        self.setup.resume = self.session.take().or(self.setup.resume.take());
        self.stage = Stage::Starting;
        self.quirks = self.launch_quirks;
        self.replaying = false;
        self.capabilities = serde_json::Value::Null;
        self.auth_methods = None;
        self.commands = None;
        self.mode = SettingChoices::default();
        self.model = SettingChoices::default();
        self.has_output = false;
        self.interrupted = false;
        self.has_other_session = false;
        self.other_spoke = false;
    }

    /// Fails the session: nothing runs in a session that is not as requested.
    pub(super) fn fail_opening(&mut self, error: GatewayError, out: &mut Out<'_>) {
        self.refuse_opening(error, None, out);
    }

    /// Like [`Self::fail_opening`]; `name` is the agent's name for the error.
    pub(super) fn refuse_opening(
        &mut self,
        error: GatewayError,
        name: Option<&str>,
        out: &mut Out<'_>,
    ) {
        if error.code != ErrorCode::AgentFailed {
            out.emit(ErrorEvent {
                code: Some(Text::from(error.code.as_str())),
                ..ErrorEvent::new(error.message.as_str())
            });
        }
        self.refuse_inquiries(&error, out);
        let name = name.unwrap_or(ErrorCode::StartFailed.as_str());
        self.fail_queue(TurnFailure::Error, &error.message, Some(name), out);
        self.stage = Stage::Failed(error);
    }
}
