//! The Agent Client Protocol, version 1: JSON-RPC over stdio, one process, many turns. We are the
//! client.
//!
//! Whose: any agent that speaks it (schema of `@agentclientprotocol/sdk` 2.4.0), and Gemini CLI with
//! `--acp` (measured with 0.61.0), whose default driver this is.
//!
//! Quirks of Gemini, known by `agentInfo.name` `gemini-cli`: a call that must be approved is first
//! seen in the request; a refused call gets no further word; a mode change is said as text
//! (`[MODE_UPDATE] yolo`); the result of `session/load` comes before its replay ends; its own request
//! ids start at 0, like ours; errors of the model have HTTP codes.

mod agent;
mod describe;
mod launch;
mod modes;
mod program;
mod project;
mod wire;

pub(crate) use describe::{TOOLS, look};
pub(crate) use modes::gateway_mode;
pub use program::PROGRAM;

use agentwire_protocol::event::{ErrorEvent, TurnFailed};
use agentwire_protocol::{AgentType, GatewayError, SessionConfig};

use crate::agent::{AgentDialect, AgentTranslator, Capabilities, Launch, Setup, Start};
use crate::describe::AgentTools;
use crate::gemini;
use crate::guarded::{Guarded, MachineFile};
use crate::json::Value;
use crate::project::ProjectFile;

/// Any agent that speaks ACP.
pub const ACP: Acp = Acp { agent: AgentType::Acp, tools: &TOOLS };

/// Gemini CLI over ACP: the same wire, started and configured by Gemini's own flags.
pub const GEMINI: Acp = Acp { agent: AgentType::Gemini, tools: &gemini::describe::TOOLS };

/// The dialect, for one agent that speaks it.
pub struct Acp {
    agent: AgentType,
    tools: &'static AgentTools,
}

impl AgentDialect for Acp {
    fn name(&self) -> &'static str {
        "acp"
    }

    fn agent_type(&self) -> AgentType {
        self.agent
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            permissions: true,
            questions: true,
            deltas: true,
            interrupt: true,
            images: true,
            resumes_next_minute: self.agent == AgentType::Gemini,
            resume: true,
            configure: true,
            ..Capabilities::default()
        }
    }

    fn tools(&self) -> &'static AgentTools {
        self.tools
    }

    fn recognises(&self, message: Value<'_>) -> bool {
        if !message.get("jsonrpc").is_some_and(|version| version.is("2.0")) {
            return false;
        }
        if let Some(method) = message.get("method").and_then(Value::string) {
            let families = ["session/", "fs/", "terminal/", "elicitation/"];
            return families.iter().any(|family| method.starts_with(family));
        }
        message.get("result").is_some_and(|result| {
            ["agentCapabilities", "protocolVersion", "stopReason", "sessionId"]
                .iter()
                .any(|field| result.get(field).is_some())
        })
    }

    fn launch(&self, start: &Start<'_>) -> Result<Launch, GatewayError> {
        launch::launch(start, self.agent)
    }

    fn wants_sign_in(&self, failed: &TurnFailed<'_>) -> bool {
        // `AUTH_REQUIRED`
        let is_code = failed.error_type.as_ref().is_some_and(|name| *name == *"-32000");
        is_code || (self.agent == AgentType::Gemini && gemini::wants_sign_in(failed))
    }

    fn overhear<'l>(&self, line: &'l str) -> Option<ErrorEvent<'l>> {
        gemini::retry(line).filter(|_| self.agent == AgentType::Gemini)
    }

    fn guarded(&self) -> Option<&'static Guarded> {
        // Of other agents nobody knows the arguments.
        (self.agent == AgentType::Gemini).then_some(&gemini::native::GUARDED)
    }

    fn machine_files(&self) -> &'static [MachineFile] {
        if self.agent == AgentType::Gemini { gemini::native::MACHINE } else { &[] }
    }

    fn project_files(&self, _config: &SessionConfig) -> Vec<ProjectFile> {
        project::files(self.agent)
    }

    /// Which files an ACP agent reads, only its maker knows.
    fn starts_without_project(&self) -> bool {
        self.agent == AgentType::Gemini
    }

    /// Of Gemini: in a folder that it does not trust it connects to no server, also not to those of the session (0.61.0).
    fn servers_need_trust(&self) -> bool {
        self.agent == AgentType::Gemini
    }

    fn translator(&self, setup: &Setup) -> Box<dyn AgentTranslator> {
        Box::new(agent::Translator::new(setup.clone(), self.agent))
    }
}
