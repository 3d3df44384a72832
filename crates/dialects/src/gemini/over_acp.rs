//! Gemini over ACP, its default driver: how it is started, and its quirks. The wire is in `acp`.

use agentwire_protocol::{AgentType, GatewayError, SessionConfig};

use super::launch::choices;
use super::{describe, overrides, project, rules};
use crate::acp::{Acp, AgentQuirks, gateway_mode};
use crate::agent::{ArgPart, Launch};

pub const OVER_ACP: Acp =
    Acp { agent: AgentType::Gemini, tools: &describe::TOOLS, quirks: Some(&QUIRKS) };

/// Gemini's quirks over ACP (0.61.0).
pub(super) const QUIRKS: AgentQuirks = AgentQuirks {
    name: "gemini over ACP",
    info_name: "gemini-cli",
    launch,
    has_sandbox: true,
    resumes_next_minute: true,
    // In an untrusted folder it connects to no server, not even to the session's own.
    servers_need_trust: true,
    wants_sign_in: super::wants_sign_in,
    overhear: super::retry,
    api_error: super::api_error,
    refused_options: &overrides::REFUSED_OPTIONS,
    machine_files: overrides::MACHINE,
    project_files: &project::FILES,
    tool_kind: super::tool_kind,
    spawn_tool: super::SPAWN,
    says_modes: true,
    hides_refused: true,
    replays_late: true,
};

fn launch(config: &SessionConfig) -> Result<Launch, GatewayError> {
    let mut launch = Launch::new("gemini", config);
    launch.words(&["--acp"]);
    project::trust(config.trust, &mut launch);
    super::system_prompt(config, &mut launch);
    launch.option("--approval-mode", mode(config.permission_mode.as_deref())?);
    let blocked = config.blocked_tools.as_deref().unwrap_or_default();
    launch.file(rules::FILE, rules::file(blocked));
    launch.option_of("--policy", [ArgPart::File(rules::FILE.to_owned())]);
    choices(config, &mut launch);
    Ok(launch)
}

/// The mode that Gemini runs in: the one that asks, unless plan mode is wanted, which does less.
fn mode(permission_mode: Option<&str>) -> Result<&'static str, GatewayError> {
    match permission_mode {
        None => Ok("default"),
        Some(mode) if gateway_mode(mode).is_some() => Ok("default"),
        Some("plan") => Ok("plan"),
        Some(other) => Err(GatewayError::unsupported("gemini", format!("permissionMode {other}"))),
    }
}
