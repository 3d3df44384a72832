//! What is specific to one agent over ACP. The agent's module defines the value and passes it to this
//! driver.

use agentwire_protocol::event::{ErrorEvent, ToolKind, TurnFailed};
use agentwire_protocol::{GatewayError, SessionConfig};

use crate::agent::Launch;
use crate::json::Value;
use crate::overrides::{MachineFile, RefusedOptions};
use crate::programs;
use crate::project::ProjectFile;

/// The message of a model service's error, and the service's name for it.
pub(crate) type ApiError = (String, Option<String>);

/// What is known about an agent beyond the protocol.
pub struct AgentQuirks {
    /// Its name in error messages.
    pub(crate) name: &'static str,
    /// The name in `agentInfo` by which it is recognised where the user chose the program.
    pub(crate) info_name: &'static str,
    /// How it is started: with its model, its directories and its system prompt, which are then not sent on
    /// the wire.
    pub(crate) launch: fn(&SessionConfig) -> Result<Launch, GatewayError>,
    /// It can write in its own sandbox.
    pub(crate) has_sandbox: bool,
    /// A session cannot be resumed within the clock minute in which it started.
    pub(crate) resumes_next_minute: bool,
    /// It starts MCP servers only in a project that it trusts.
    pub(crate) servers_need_trust: bool,
    /// Whether a turn failed because it is not signed in.
    pub(crate) wants_sign_in: fn(&TurnFailed<'_>) -> bool,
    /// Reads an error from a line on stderr.
    pub(crate) overhear: for<'l> fn(&'l str) -> Option<ErrorEvent<'l>>,
    pub(crate) api_error: fn(&str) -> Option<ApiError>,
    /// Which of its arguments and variables the gateway cannot allow.
    pub(crate) refused_options: &'static RefusedOptions,
    /// Machine-wide files that take precedence.
    pub(crate) machine_files: &'static [MachineFile],
    /// Project files that make it run something.
    pub(crate) project_files: &'static [ProjectFile],
    pub(crate) tool_kind: fn(&str) -> ToolKind,
    pub(crate) spawn_tool: &'static str,
    /// It reports a mode change as text.
    pub(crate) says_modes: bool,
    /// It reports nothing more about a refused call, and only the failure of a call with wrong arguments.
    pub(crate) hides_refused: bool,
    /// The result of `session/load` arrives before its replay ends.
    pub(crate) replays_late: bool,
}

fn known() -> impl Iterator<Item = &'static AgentQuirks> {
    programs().iter().filter_map(|program| program.acp)
}

/// The known agent with that name in `agentInfo`.
pub(super) fn named(name: Value<'_>) -> Option<&'static AgentQuirks> {
    known().find(|quirks| name.is(quirks.info_name))
}

/// The kind of a tool of that name, in any known agent.
pub(super) fn tool_kind(name: &str) -> ToolKind {
    let kinds = known().map(|quirks| (quirks.tool_kind)(name));
    kinds.into_iter().find(|kind| *kind != ToolKind::default()).unwrap_or_default()
}

/// An error of a model service, passed on by any known agent.
pub(super) fn api_error(message: &str) -> Option<ApiError> {
    known().find_map(|quirks| (quirks.api_error)(message))
}
