//! What is an agent's own over ACP. The agent's folder has the value, and hands it to this driver.

use agentwire_protocol::event::{ErrorEvent, ToolKind, TurnFailed};
use agentwire_protocol::{GatewayError, SessionConfig};

use crate::agent::Launch;
use crate::guarded::{Guarded, MachineFile};
use crate::json::Value;
use crate::programs;
use crate::project::ProjectFile;

/// What an error of a model's service says, and the service's name of it.
pub(crate) type ApiError = (String, Option<String>);

/// An agent of which more is known than the protocol says.
pub struct Own {
    /// Its name in refusals.
    pub(crate) name: &'static str,
    /// The name in `agentInfo` by which it is recognised where the user chose the program.
    pub(crate) info_name: &'static str,
    /// How it is started: with its model, its directories and its system prompt, which are then not said
    /// on the wire.
    pub(crate) launch: fn(&SessionConfig) -> Result<Launch, GatewayError>,
    /// It can write in a sandbox of its own.
    pub(crate) has_sandbox: bool,
    /// A session cannot be resumed in the minute of the clock in which it began.
    pub(crate) resumes_next_minute: bool,
    /// It starts MCP servers only in a project that it trusts.
    pub(crate) servers_need_trust: bool,
    /// Whether a turn failed because it is not signed in.
    pub(crate) wants_sign_in: fn(&TurnFailed<'_>) -> bool,
    /// What a line on stderr tells.
    pub(crate) overhear: for<'l> fn(&'l str) -> Option<ErrorEvent<'l>>,
    /// Reads an error of its model's service.
    pub(crate) api_error: fn(&str) -> Option<ApiError>,
    /// Which of its arguments and variables the gateway cannot allow.
    pub(crate) guarded: &'static Guarded,
    /// Files of the machine that it obeys first.
    pub(crate) machine_files: &'static [MachineFile],
    /// Files of a project that make it run something.
    pub(crate) project_files: &'static [ProjectFile],
    /// The kind of a tool, by its name.
    pub(crate) tool_kind: fn(&str) -> ToolKind,
    /// The tool that starts a subagent.
    pub(crate) spawn_tool: &'static str,
    /// It says a change of its mode as text.
    pub(crate) says_modes: bool,
    /// It tells nothing more of a call that was refused, and of one with wrong arguments only that it failed.
    pub(crate) hides_refused: bool,
    /// The answer to `session/load` comes before the end of what it says again.
    pub(crate) replays_late: bool,
}

fn known() -> impl Iterator<Item = &'static Own> {
    programs().iter().filter_map(|program| program.acp)
}

/// The agent that calls itself so.
pub(super) fn named(name: Value<'_>) -> Option<&'static Own> {
    known().find(|own| name.is(own.info_name))
}

/// The kind of a tool of that name, with whatever agent it is known.
pub(super) fn tool_kind(name: &str) -> ToolKind {
    let kinds = known().map(|own| (own.tool_kind)(name));
    kinds.into_iter().find(|kind| *kind != ToolKind::default()).unwrap_or_default()
}

/// An error of a model's service, whichever agent passes it on.
pub(super) fn api_error(message: &str) -> Option<ApiError> {
    known().find_map(|own| (own.api_error)(message))
}
