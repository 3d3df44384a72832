//! Claude Code over `stream-json`: one process, many turns, both directions.
//!
//! Spoken by Anthropic's `claude` (measured with 2.1.325), by the shapes of the specifications
//! (`callback.request`, whole messages, the board's events) and by the demo agent. All of them are read.
//! Only the real one is written, plus `callback.response` to a sender of `callback.request`.
//!
//! Quirks: `system/init` arrives with every turn. A turn may start without a prompt. A failed model call
//! ends in a `result` of subtype `success`. The whole block arrives before its `content_block_stop`. Totals
//! accumulate over the process. One bad line on stdin kills it.

mod agent;
mod describe;
mod front;
mod guard;
mod launch;
mod modes;
mod overrides;
pub(crate) mod permission;
mod program;
mod project;
pub mod render;
pub mod tools;
mod wire;

pub(crate) use describe::TOOLS;
pub use front::{ClaudeFront, Options as FrontOptions};
pub(crate) use front::{block_image, user_content};
pub use program::PROGRAM;

use agentwire_protocol::event::TurnFailed;
use agentwire_protocol::{AgentType, GatewayError, SessionConfig};

use crate::agent::{AgentDialect, AgentTranslator, Capabilities, Launch, OwnHooks, Setup, Start};
use crate::describe::AgentTools;
use crate::hooks::callbacks;
use crate::json::Value;
use crate::overrides::RefusedOptions;
use crate::project::ProjectFile;

/// Claude Code. It accepts hooks for the start and end of a session, and never calls them (2.1.325).
pub const CLAUDE: Claude = Claude {
    agent: AgentType::Claude,
    hooks: OwnHooks::AllBut(&["SessionStart", "SessionEnd"]),
    tools: &TOOLS,
    has_sandbox: true,
    reads_settings: true,
    tells_mode: false,
};

/// The dialect, for one agent that speaks it.
#[derive(Clone, Copy)]
pub struct Claude {
    pub(crate) agent: AgentType,
    /// The client's hooks that the agent calls itself.
    pub(crate) hooks: OwnHooks,
    pub(crate) tools: &'static AgentTools,
    /// The agent can run commands in its own sandbox.
    pub(crate) has_sandbox: bool,
    /// The agent reads user and project settings.
    pub(crate) reads_settings: bool,
    /// The agent receives the mode that the gateway applies, and can report it.
    pub(crate) tells_mode: bool,
}

impl AgentDialect for Claude {
    fn name(&self) -> &'static str {
        "claude"
    }

    fn agent_type(&self) -> AgentType {
        self.agent
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            permissions: true,
            questions: true,
            hooks: self.hooks,
            hosted_mcp: true,
            deltas: true,
            interrupt: true,
            steer: true,
            images: true,
            content_blocks: true,
            resume: true,
            configure: true,
            folds_prompts: true,
            structured_output: true,
            changed_input: true,
            shares_session_id: true,
            permission_updates: true,
            own_answer_form: true,
            ..Capabilities::default()
        }
    }

    fn tools(&self) -> &'static AgentTools {
        self.tools
    }

    fn recognises(&self, message: Value<'_>) -> bool {
        let Some(name) = message.get("type").and_then(Value::string) else { return false };
        let has = |field| message.get(field).is_some();
        match &*name {
            "system" => has("subtype"),
            "assistant" | "user" => message.get("message").is_some_and(Value::is_object),
            "stream_event" => has("event"),
            "result" => {
                !has("stats") && (has("subtype") || has("modelUsage") || has("total_cost_usd"))
            }
            "control_request" => has("request"),
            "control_response" => has("response"),
            "control_cancel_request" => has("request_id"),
            "error" => {
                agent::is_board(message)
                    || message.get("error").is_some_and(|error| error.get("type").is_some())
            }
            "callback.request" => has("payload"),
            "command_lifecycle" | "conversation_reset" | "keep_alive" | "tool_progress"
            | "rate_limit_event" | "auth_status" | "transcript_mirror" => true,
            _ => agent::is_board(message),
        }
    }

    fn launch(&self, start: &Start<'_>) -> Result<Launch, GatewayError> {
        launch::launch(self, start)
    }

    fn wants_sign_in(&self, failed: &TurnFailed<'_>) -> bool {
        // Without a key, and with a key that the service rejects.
        let names = ["authentication_failed", "authentication_error"];
        failed.error_type.as_ref().is_some_and(|name| names.contains(&&*name.decode()))
    }

    fn refused_options(&self) -> Option<&'static RefusedOptions> {
        Some(&overrides::REFUSED_OPTIONS)
    }

    fn project_files(&self, config: &SessionConfig) -> Vec<ProjectFile> {
        if self.reads_settings { project::files(config) } else { Vec::new() }
    }

    fn translator(&self, setup: &Setup) -> Box<dyn AgentTranslator> {
        let mut setup = setup.clone();
        if let Some(hooks) = setup.config.hooks.take() {
            let hooks = callbacks(&hooks).into_iter();
            let hooks = hooks.filter(|(event, _)| self.hooks.include(event));
            let hooks = hooks.map(|(event, matchers)| (event.clone(), matchers));
            setup.config.hooks = Some(hooks.collect());
        }
        Box::new(agent::Translator::new(*self, &setup))
    }
}
