//! The Agent Client Protocol, version 1: JSON-RPC over stdio, one process, many turns. We are the
//! client.
//!
//! Agents: any that speaks it (schema of `@agentclientprotocol/sdk` 2.4.0), and Gemini CLI with `--acp`
//! (measured with 0.61.0), whose default driver this is.
//!
//! An agent may have quirks ([`AgentQuirks`]), recognised by `agentInfo.name`: a call that must be approved first
//! appears in the request; a refused call gets no further update; a mode change arrives as text
//! (`[MODE_UPDATE] yolo`); the result of `session/load` arrives before its replay ends. An agent's request
//! ids may start at 0, like ours; model errors may have HTTP codes.

mod agent;
mod describe;
mod launch;
mod modes;
mod program;
mod project;
mod quirks;
mod wire;

pub(crate) use describe::{TOOLS, call_traits};
pub(crate) use modes::gateway_mode;
pub use program::PROGRAM;
pub use quirks::AgentQuirks;

use agentwire_protocol::event::{ErrorEvent, TurnFailed};
use agentwire_protocol::{AgentType, GatewayError, SessionConfig};

use crate::agent::{AgentDialect, AgentTranslator, Capabilities, Launch, Setup, Start};
use crate::describe::AgentTools;
use crate::json::Value;
use crate::overrides::{MachineFile, RefusedOptions};
use crate::project::ProjectFile;

pub const ACP: Acp = Acp { agent: AgentType::Acp, tools: &TOOLS, quirks: None };

pub struct Acp {
    pub(crate) agent: AgentType,
    pub(crate) tools: &'static AgentTools,
    pub(crate) quirks: Option<&'static AgentQuirks>,
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
            resumes_next_minute: self.quirks.is_some_and(|quirks| quirks.resumes_next_minute),
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
        launch::launch(start, self.quirks)
    }

    fn wants_sign_in(&self, failed: &TurnFailed<'_>) -> bool {
        // `AUTH_REQUIRED`
        let is_code = failed.error_type.as_ref().is_some_and(|name| *name == *"-32000");
        is_code || self.quirks.is_some_and(|quirks| (quirks.wants_sign_in)(failed))
    }

    fn overhear<'l>(&self, line: &'l str) -> Option<ErrorEvent<'l>> {
        self.quirks.and_then(|quirks| (quirks.overhear)(line))
    }

    fn refused_options(&self) -> Option<&'static RefusedOptions> {
        // The arguments of other agents are unknown.
        self.quirks.map(|quirks| quirks.refused_options)
    }

    fn machine_files(&self) -> &'static [MachineFile] {
        self.quirks.map_or(&[], |quirks| quirks.machine_files)
    }

    fn project_files(&self, _config: &SessionConfig) -> Vec<ProjectFile> {
        match self.quirks {
            Some(quirks) => quirks.project_files.to_vec(),
            None => project::files(self.agent),
        }
    }

    /// Only the maker of an ACP agent knows which files it reads.
    fn starts_without_project(&self) -> bool {
        self.quirks.is_some()
    }

    fn servers_need_trust(&self) -> bool {
        self.quirks.is_some_and(|quirks| quirks.servers_need_trust)
    }

    fn translator(&self, setup: &Setup) -> Box<dyn AgentTranslator> {
        Box::new(agent::Translator::new(setup.clone(), self.quirks))
    }
}
