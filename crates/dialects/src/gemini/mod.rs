//! Gemini CLI with `-o stream-json`: one process per turn, one-way.
//!
//! Measured with Google's `gemini` 0.61.0. The shapes of the specification (`content`, `tool_call`), which
//! no known release prints, are read too; only the real ones are written.
//!
//! Quirks: the program drops thoughts; a retry repeats text without marking it; a tool that would have to
//! ask is not offered to the model; a run that was cut off has no `result` and exits 0. If approvals or
//! interrupts matter, use Gemini over ACP, which is the default.

mod agent;
mod describe;
mod launch;
mod over_acp;
mod overrides;
mod program;
mod project;
mod rules;
mod wire;

pub use over_acp::OVER_ACP;
pub use program::PROGRAM;

use agent::{SPAWN, api_error, tool_kind};

use agentwire_protocol::event::{ErrorEvent, TurnFailed};
use agentwire_protocol::{AgentType, GatewayError, SessionConfig, Text};

use crate::agent::{
    AgentDialect, AgentTranslator, Capabilities, Launch, PromptLimit, Setup, Start, TextUnit,
    replacing_prompt,
};
use crate::describe::AgentTools;
use crate::json::Value;
use crate::overrides::{MachineFile, RefusedOptions};
use crate::project::ProjectFile;

/// How much Gemini reads from stdin. It silently drops the rest.
const STDIN_LIMIT: PromptLimit = PromptLimit { most: 8 << 20, unit: TextUnit::Bytes };

/// The variable that names a file that replaces the system prompt, in both drivers. `${` in the file may
/// start one of Gemini's own variables, such as `${AvailableTools}`.
const SYSTEM_PROMPT: &str = "GEMINI_SYSTEM_MD";

/// Replaces the program's own system prompt. Gemini has no way to append to it.
pub(crate) fn system_prompt(config: &SessionConfig, launch: &mut Launch) {
    if let Some(text) = replacing_prompt(config) {
        launch.variable_file(SYSTEM_PROMPT, "system.md", text);
    }
}

pub struct Gemini;

impl AgentDialect for Gemini {
    fn name(&self) -> &'static str {
        "gemini"
    }

    fn agent_type(&self) -> AgentType {
        AgentType::Gemini
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            deltas: true,
            images: true,
            resume: true,
            process_per_turn: true,
            forgets_failures: true,
            ..Capabilities::default()
        }
    }

    fn tools(&self) -> &'static AgentTools {
        &describe::TOOLS
    }

    fn recognises(&self, message: Value<'_>) -> bool {
        let Some(name) = message.get("type").and_then(Value::string) else { return false };
        match &*name {
            "init" => message.get("session_id").is_some() && message.get("subtype").is_none(),
            "message" => message.get("role").is_some() && message.get("content").is_some(),
            "tool_use" => message.get("tool_name").is_some(),
            "tool_result" => message.get("tool_id").is_some(),
            "content" => message.get("value").is_some(),
            "tool_call" => message.get("name").is_some() && message.get("args").is_some(),
            "result" => message.get("status").is_some() && message.get("stats").is_some(),
            _ => false,
        }
    }

    fn launch(&self, start: &Start<'_>) -> Result<Launch, GatewayError> {
        launch::launch(start)
    }

    fn wants_sign_in(&self, failed: &TurnFailed<'_>) -> bool {
        wants_sign_in(failed)
    }

    fn overhear<'l>(&self, line: &'l str) -> Option<ErrorEvent<'l>> {
        retry(line)
    }

    fn refused_options(&self) -> Option<&'static RefusedOptions> {
        Some(&overrides::REFUSED_OPTIONS)
    }

    fn machine_files(&self) -> &'static [MachineFile] {
        overrides::MACHINE
    }

    fn prompt_limit(&self) -> Option<PromptLimit> {
        Some(STDIN_LIMIT)
    }

    fn project_files(&self, _config: &SessionConfig) -> Vec<ProjectFile> {
        project::FILES.to_vec()
    }

    /// Without trust, Gemini exits with code 55.
    fn starts_without_project(&self) -> bool {
        false
    }

    /// In the other modes, Gemini does not offer the model what would have to ask.
    fn runs_unasked(&self, config: &SessionConfig) -> Result<bool, GatewayError> {
        let mode = launch::approval_mode(config.permission_mode.as_deref(), config.approval_mode)?;
        Ok(matches!(mode, "auto_edit" | "yolo"))
    }

    fn translator(&self, setup: &Setup) -> Box<dyn AgentTranslator> {
        Box::new(agent::Translator::new(setup))
    }
}

/// The service reports a rejected key as a bad request, which only the message tells apart.
pub(crate) fn wants_sign_in(failed: &TurnFailed<'_>) -> bool {
    let error = failed.error.decode();
    failed.error_type.as_ref().is_some_and(|name| *name == *"UNAUTHENTICATED")
        || error.contains("API key")
        || error.starts_with(agent::NOT_SIGNED_IN)
}

/// Gemini retries the model service for minutes and reports it only on stderr: `Attempt 2 failed. Retrying
/// with backoff... Error: …`.
pub(crate) fn retry(line: &str) -> Option<ErrorEvent<'_>> {
    let is_retry = line.starts_with("Attempt ") && line.contains("Retrying");
    is_retry.then(|| ErrorEvent { will_retry: Some(true), ..ErrorEvent::new(Text::from(line)) })
}
