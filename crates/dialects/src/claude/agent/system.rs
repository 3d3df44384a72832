//! `system` lines: what the agent reports about itself and its state.

use std::borrow::Cow;

use agentwire_protocol::event::{AgentInfo, ErrorEvent, Other, Status, StatusChanged};
use agentwire_protocol::{Json, Text};

use super::{Translator, details, plain};
use crate::claude::wire::{ApiRetry, Init, StatusLine};
use crate::json::Value;
use crate::tape::{Ending, Out};

impl Translator {
    pub(super) fn system(&mut self, message: Value<'_>, out: &mut Out<'_>) {
        let Some(subtype) = message.read::<Cow<'_, str>>("subtype") else { return };
        match &*subtype {
            "init" => message.to().into_iter().for_each(|init| self.init(init, out)),
            "status" => self.status(message, out),
            "session_state_changed" => session_state(message, out),
            "informational" | "notification" => informational(message, out),
            "error" => {
                let text =
                    message.read("message").unwrap_or(Text::from("an error without a message"));
                out.emit(ErrorEvent {
                    details: details(message, "message"),
                    ..ErrorEvent::new(text)
                });
            }
            "api_retry" => retry(&message.to().unwrap_or_default(), message, out),
            "permission_denied" => {
                if let Some(id) = message.read::<Cow<'_, str>>("tool_use_id") {
                    self.mark_denied(&id);
                }
                plain(Status::Warning, "message", message, out);
            }
            "commands_changed" => {
                let commands = message.read::<Json<'_>>("commands");
                let info = AgentInfo { commands, ..AgentInfo::default() };
                out.emit(StatusChanged::new(Status::Commands).info(info));
            }
            "elicitation_complete" => {
                let id = message.read::<Cow<'_, str>>("elicitation_id");
                let open = id.and_then(|id| self.elicitation(&id));
                plain(Status::McpServer, "mcp_server_name", message, out);
                if let Some(request) = open {
                    self.settled(&request, Ending::RESOLVED, out);
                }
            }
            "task_started" | "task_progress" | "task_updated" | "task_notification" => {
                self.task(&subtype, message, out);
            }
            known => match row(known) {
                Some((status, field)) => plain(status, field, message, out),
                None => out.emit(Other::named(format!("system/{known}"))),
            },
        }
    }

    /// Every turn starts with it. After `/clear`, a new session id appears here first.
    fn init(&mut self, init: Init<'_>, out: &mut Out<'_>) {
        if let Some(id) = &init.session_id {
            let known = self.session_id.replace(id.to_string());
            if known.is_some_and(|known| *id != *known) {
                self.tasks.clear();
                out.emit(StatusChanged::new(Status::Session).message(id.clone()));
            }
        }
        let mode = init.permission_mode.map(|mode| self.mode_to_show(mode, out));
        out.ready(AgentInfo {
            native_session_id: init.session_id,
            agent_version: init.version,
            model: init.model,
            mode,
            working_directory: init.cwd,
            tools: init.tools,
            mcp_servers: init.mcp_servers,
            commands: init.slash_commands,
            agents: init.agents,
            capabilities: init.capabilities,
            ..AgentInfo::default()
        });
        self.begin_turn(&init.user_message_uuids.unwrap_or_default(), out);
    }

    fn status(&mut self, message: Value<'_>, out: &mut Out<'_>) {
        let line: StatusLine<'_> = message.to().unwrap_or_default();
        if let Some(mode) = line.permission_mode {
            let mode = self.mode_to_show(mode, out);
            out.emit(StatusChanged::new(Status::Mode).message(mode));
        }
        match (line.status.as_deref(), line.compact_result.as_deref()) {
            (Some("compacting"), _) => out.emit(StatusChanged::new(Status::Compacting)),
            // `compact_boundary` reports it with its figures.
            (None, Some("success")) => out.emit(Other::named("system/status")),
            (None, Some(_)) => plain(Status::Warning, "compact_result", message, out),
            (status, None) if status.is_some() || line.message.is_some() => {
                let text = line.message.or(line.status.map(Text::new));
                out.emit(StatusChanged::new(Status::Working).message(text));
            }
            _ => {}
        }
    }
}

/// Subtypes that carry one fact, and the field that has it as text.
fn row(subtype: &str) -> Option<(Status, &'static str)> {
    Some(match subtype {
        "thinking_tokens" | "turn_starting" => (Status::Working, ""),
        "init_milestone" => (Status::Working, "milestone"),
        "control_request_progress" => (Status::Working, "status"),
        "background_tasks_changed" => (Status::Task, ""),
        "task_summary" => (Status::Task, "summary"),
        "session_title_changed" => (Status::Title, "title"),
        "hook_started" | "hook_progress" | "hook_response" => (Status::Hook, "hook_name"),
        "stop_hook_summary" => (Status::Hook, ""),
        "compact_boundary" => (Status::Compacted, "summary"),
        "model_fallback" | "model_refusal_fallback" => (Status::Model, "fallback_model"),
        "model_refusal_no_fallback" => (Status::Warning, "content"),
        "local_command_output" => (Status::Notice, "content"),
        "plugin_install" => (Status::Commands, "status"),
        "post_turn_summary" => (Status::Notice, "summary"),
        "memory_saved" => (Status::Notice, "path"),
        "files_persisted" | "memory_recall" | "vcs_state_changed" | "turn_duration" => {
            (Status::Notice, "")
        }
        "per_turn_effort_changed" => (Status::Mode, "effort"),
        "mirror_error" => (Status::Warning, "error"),
        "worker_shutting_down" => (Status::Warning, "reason"),
        "session_writes_lost" => (Status::Warning, ""),
        _ => return None,
    })
}

/// A model call failed and the agent will retry it: ten times, for minutes.
fn retry(line: &ApiRetry<'_>, message: Value<'_>, out: &mut Out<'_>) {
    let mut text = "the model's service failed".to_owned();
    if let Some(status) = line.error_status {
        text += &format!(" with status {status}");
    }
    if let (Some(attempt), Some(most)) = (line.attempt, line.max_retries) {
        text += &format!("; retry {attempt} of {most}");
    }
    if let Some(delay) = line.retry_delay_ms {
        text += &format!(" in {:.1} s", delay / 1000.0);
    }
    out.emit(ErrorEvent {
        code: line.error.clone(),
        will_retry: Some(true),
        details: details(message, "error"),
        ..ErrorEvent::new(text)
    });
}

fn session_state(message: Value<'_>, out: &mut Out<'_>) {
    let state = message.read::<Cow<'_, str>>("state");
    let status = match state.as_deref() {
        Some("running") => Status::Working,
        Some("idle") => Status::Idle,
        Some("requires_action") => Status::Waiting,
        _ => Status::Notice,
    };
    out.emit(StatusChanged::new(status).message(state.map(Text::new)));
}

fn informational(message: Value<'_>, out: &mut Out<'_>) {
    let loud = ["level", "color"].iter().any(|field| {
        message.get(field).is_some_and(|value| value.is("warning") || value.is("error"))
    });
    let status = if loud { Status::Warning } else { Status::Notice };
    let field = if message.get("content").is_some() { "content" } else { "text" };
    plain(status, field, message, out);
}
