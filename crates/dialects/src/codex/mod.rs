//! Codex CLI: `codex app-server`, which is two-way, and `codex exec --json`, which is one-way.
//!
//! Measured with OpenAI's `codex` 0.166.0. The exec shapes of the specification (`item_type` next to
//! `type`), which no known release prints, are read too; only the real ones are written.
//!
//! Quirks: the app server omits `"jsonrpc"` and numbers its requests from 0 in each process; `web_search`
//! of exec prints `id` twice; usage of exec is the thread's running total; `error` is often only a retry;
//! an interrupted item never completes; output from before `item/started` never arrives as a delta.

mod agent;
mod app_wire;
mod describe;
mod exec_wire;
mod launch;
mod mcp;
mod overrides;
mod policy;
mod program;
mod project;
mod rules;

pub use program::PROGRAM;

use std::fmt::Display;

use agentwire_protocol::event::TurnFailed;
use agentwire_protocol::{AgentType, GatewayError, SessionConfig};

use crate::agent::{
    AgentDialect, AgentTranslator, Capabilities, Launch, PromptLimit, Setup, Start, TextUnit,
};
use crate::describe::AgentTools;
use crate::json::Value;
use crate::overrides::{MachineFile, OwnRuleFiles, RefusedOptions};
use crate::project::ProjectFile;
use agent::Translator;

/// The limit of a turn's input. Codex fails a turn with more: `Input exceeds the maximum length`.
const PROMPT_LIMIT: PromptLimit = PromptLimit { most: 1 << 20, unit: TextUnit::Characters };

/// Drives `codex app-server`. Its translator reads exec lines as well.
pub const CODEX: Codex = Codex(Driver::AppServer);

/// Drives `codex exec --json`.
pub const CODEX_EXEC: Codex = Codex(Driver::Exec);

pub struct Codex(Driver);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Driver {
    #[default]
    AppServer,
    Exec,
}

impl Driver {
    /// The name in error messages.
    fn name(self) -> &'static str {
        match self {
            Self::AppServer => "codex",
            Self::Exec => "codex with exec",
        }
    }

    fn unsupported(self, what: impl Display) -> GatewayError {
        GatewayError::unsupported(self.name(), what)
    }
}

impl AgentDialect for Codex {
    fn name(&self) -> &'static str {
        match self.0 {
            Driver::AppServer => "codex",
            Driver::Exec => "codex-exec",
        }
    }

    fn agent_type(&self) -> AgentType {
        AgentType::Codex
    }

    fn capabilities(&self) -> Capabilities {
        let both = Capabilities {
            images: true,
            resume: true,
            configure: true,
            structured_output: true,
            ..Capabilities::default()
        };
        match self.0 {
            Driver::AppServer => Capabilities {
                permissions: true,
                questions: true,
                deltas: true,
                interrupt: true,
                steer: true,
                ..both
            },
            Driver::Exec => Capabilities { process_per_turn: true, ..both },
        }
    }

    fn tools(&self) -> &'static AgentTools {
        &describe::TOOLS
    }

    /// The dialect of the app server also claims the lines of exec.
    fn recognises(&self, message: Value<'_>) -> bool {
        self.0 == Driver::AppServer && (is_exec(message) || is_app_server(message))
    }

    fn launch(&self, start: &Start<'_>) -> Result<Launch, GatewayError> {
        match self.0 {
            Driver::AppServer => launch::app_server(start),
            Driver::Exec => launch::exec(start),
        }
    }

    /// Without a login, the request has no key, and only the message shows why the service refused it.
    fn wants_sign_in(&self, failed: &TurnFailed<'_>) -> bool {
        failed.error_type.as_ref().is_some_and(|name| *name == *"unauthorized")
            || failed.error.decode().contains("401 Unauthorized")
    }

    fn refused_options(&self) -> Option<&'static RefusedOptions> {
        Some(&overrides::REFUSED_OPTIONS)
    }

    fn machine_files(&self) -> &'static [MachineFile] {
        overrides::MACHINE
    }

    fn own_rules(&self) -> Option<&'static OwnRuleFiles> {
        Some(&overrides::OWN_RULES)
    }

    fn prompt_limit(&self) -> Option<PromptLimit> {
        Some(PROMPT_LIMIT)
    }

    fn project_files(&self, _config: &SessionConfig) -> Vec<ProjectFile> {
        project::FILES.to_vec()
    }

    fn runs_unasked(&self, config: &SessionConfig) -> Result<bool, GatewayError> {
        match self.0 {
            Driver::AppServer => Ok(false),
            Driver::Exec => Ok(policy::of(Driver::Exec, config)? != policy::Sandbox::ReadOnly),
        }
    }

    fn translator(&self, setup: &Setup) -> Box<dyn AgentTranslator> {
        Box::new(Translator::new(self.0, setup))
    }
}

fn is_exec(message: Value<'_>) -> bool {
    let Some(name) = message.get("type").and_then(Value::string) else { return false };
    match &*name {
        "thread.started" => message.get("thread_id").is_some(),
        "turn.started" | "turn.completed" | "turn.failed" => true,
        "item.started" | "item.updated" | "item.completed" => {
            message.get("item").is_some() || message.get("item_type").is_some()
        }
        "error" => {
            message.get("message").is_some_and(Value::is_string)
                && message.get("severity").is_none()
        }
        _ => false,
    }
}

fn is_app_server(message: Value<'_>) -> bool {
    if message.get("jsonrpc").is_some() {
        return false;
    }
    if message.get("emittedAtMs").is_some() {
        return true;
    }
    if let Some(method) = message.get("method").and_then(Value::string) {
        let prefixes = ["thread/", "turn/", "item/", "account/", "mcpServer/", "serverRequest/"];
        return prefixes.iter().any(|prefix| method.starts_with(prefix));
    }
    message.get("result").is_some_and(|result| {
        result.get("codexHome").is_some()
            || result.get("turn").is_some_and(|turn| turn.get("rootTurnId").is_some())
            || result.get("thread").is_some_and(|thread| thread.get("cliVersion").is_some())
    })
}
