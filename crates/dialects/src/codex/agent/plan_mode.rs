//! Plan mode, in which Codex asks questions: whether the thread is in it, and how a turn changes that.

use agentwire_protocol::event::{Status, StatusChanged};
use agentwire_protocol::{ApprovalMode, Text};
use serde_json::{Value, json};

use super::super::app_wire::{Collaboration, Notification, Settings};
use super::Translator;
use crate::agent::mode_name;
use crate::tape::Out;

/// The mode's name, for us and for Codex.
pub(super) const PLAN: &str = "plan";

/// The thread's mode, as the server last reported it. It outlives turns, processes and resumes.
#[derive(Debug, Default)]
pub(super) struct PlanMode {
    is_on: bool,
    /// How much the model thinks. A mode change must repeat it, or it is lost.
    effort: Option<String>,
}

impl PlanMode {
    /// Records what the server reports. A new thread has no mode, which means that it does not plan.
    pub(super) fn told(&mut self, effort: Option<Text<'_>>, mode: Option<Collaboration<'_>>) {
        self.is_on = mode.and_then(|mode| mode.mode).as_deref() == Some(PLAN);
        self.effort = effort.map(|effort| effort.to_string());
    }

    /// The mode that a turn must set, if the thread is not in the wanted one. A mode has its own model.
    pub(super) fn change(&self, is_wanted: bool, model: Option<&str>) -> Option<Value> {
        let model = model.filter(|_| self.is_on != is_wanted)?;
        let mode = if is_wanted { PLAN } else { "default" };
        Some(json!({
            "mode": mode,
            // With `null`, the mode's own instructions apply; the session's stay in effect next to them.
            "settings": {
                "model": model,
                "reasoning_effort": self.effort,
                "developer_instructions": null,
            },
        }))
    }
}

impl Translator {
    pub(super) fn plans(&self) -> bool {
        self.config.permission_mode.as_deref() == Some(PLAN)
    }

    /// The mode's name, unless it is to ask about everything: Codex itself always asks.
    pub(super) fn mode(&self) -> Option<&str> {
        let mode = self.config.approval_mode.filter(|mode| *mode != ApprovalMode::Ask);
        self.config.permission_mode.as_deref().or(mode.map(mode_name))
    }

    pub(super) fn model(&self) -> Option<&str> {
        self.config.model.as_deref().or(self.first_model.as_deref())
    }

    /// The server reports the new settings of a thread.
    pub(super) fn settings(&mut self, notice: &Notification<'_>, out: &mut Out<'_>) {
        let Some(value) = notice.thread_settings else { return };
        let settings: Settings<'_> = value.to().unwrap_or_default();
        let agent = &self.shown(notice.thread_id.as_deref(), out);
        let mode = settings.collaboration.as_ref().and_then(|mode| mode.mode.as_deref());
        let own = || self.mode().filter(|own| *own != PLAN).map(str::to_owned);
        let mode = match mode == Some(PLAN) {
            true => Some(Text::from(PLAN)),
            false => own().map(Text::from).or(settings.approval_policy),
        };
        let change = StatusChanged::new(Status::Mode).message(mode);
        out.emit_as(agent, change.details(value.json()));
        if agent.parent.is_none() {
            self.planning.told(settings.effort, settings.collaboration);
        }
    }
}
