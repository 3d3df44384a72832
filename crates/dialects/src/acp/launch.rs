//! How an ACP agent is started, and the parameters that open its session.

use std::path::Path;

use agentwire_protocol::session::McpServer;
use agentwire_protocol::{GatewayError, SandboxMode, SessionConfig};
use serde_json::{Value as Object, json};

use super::AgentQuirks;
use crate::agent::{
    Launch, Start, further_prompt, refuse, refuse_claude_options, replacing_prompt,
};

pub(super) fn launch(
    start: &Start<'_>,
    quirks: Option<&AgentQuirks>,
) -> Result<Launch, GatewayError> {
    let config = start.config;
    let has_sandbox = quirks.is_some_and(|quirks| quirks.has_sandbox);
    let name = name(quirks);
    let sandbox = config.sandbox_mode.unwrap_or_default();
    refuse(
        name,
        &[
            ("sandboxMode readOnly", sandbox == SandboxMode::ReadOnly),
            ("sandboxMode workspaceWrite", sandbox == SandboxMode::WorkspaceWrite && !has_sandbox),
            ("sandbox", config.sandbox.is_some()),
            ("outputFormat", config.output_format.is_some()),
        ],
    )?;
    refuse_claude_options(name, config)?;
    mcp_servers(config, name, |_| true)?;
    working_directory(config)?;
    match quirks {
        Some(quirks) => (quirks.launch)(config),
        // The user's settings name the program and its arguments; the rest is sent on the wire.
        None => Ok(Launch::new("acp", config)),
    }
}

const SYSTEM_PROMPT: &str = "sessionCapabilities.systemPrompt";

/// The text before the first prompt, for agents that accept instructions in no other way.
pub(super) fn preface(config: &SessionConfig, announces: impl Fn(&str) -> bool) -> Option<String> {
    let text = further_prompt(config).filter(|_| !announces(SYSTEM_PROMPT))?;
    Some(format!(
        "These instructions hold for the whole session (agentwire added them before the first \
         prompt):\n\n{text}\n\nThe first prompt:\n\n"
    ))
}

/// The agent's name in error messages.
pub(super) fn name(quirks: Option<&AgentQuirks>) -> &'static str {
    quirks.map_or("the ACP agent", |quirks| quirks.name)
}

/// The parameters of `session/new`, `session/load`, `session/resume` and `session/fork`. `announces` says
/// whether the agent has the capability at that path.
pub(super) fn session(
    config: &SessionConfig,
    resume: Option<&str>,
    quirks: Option<&AgentQuirks>,
    announces: impl Fn(&str) -> bool,
) -> Result<Object, GatewayError> {
    let name = name(quirks);
    let servers =
        mcp_servers(config, name, |transport| announces(&format!("mcpCapabilities.{transport}")))?;
    let mut params = serde_json::Map::new();
    let mut add = |name: &str, value| params.insert(name.to_owned(), value);
    // A start without a directory was refused already; do not make one up here.
    if let Some(directory) = &config.working_directory {
        add("cwd", json!(directory));
    }
    add("mcpServers", json!(servers));
    if let Some(id) = resume {
        add("sessionId", json!(id));
    }
    if let Some(directories) = &config.additional_directories {
        if announces("sessionCapabilities.additionalDirectories") {
            add("additionalDirectories", json!(directories));
        } else if quirks.is_none() && !directories.is_empty() {
            return Err(GatewayError::unsupported(name, "the option additionalDirectories"));
        }
    }
    let whole = replacing_prompt(config).filter(|_| quirks.is_none());
    if announces(SYSTEM_PROMPT) {
        let further = further_prompt(config).map(|text| json!({ "append": text }));
        if let Some(prompt) = whole.map(|text| json!(text)).or(further) {
            add("_meta", json!({ "systemPrompt": prompt }));
        }
    } else if whole.is_some() {
        let what = "a systemPrompt that replaces its own; use a preset with append";
        return Err(GatewayError::unsupported(name, what));
    }
    if announces("_meta.claudeCode") {
        // claude-agent-acp runs reads without asking, but follows the deny rules that it knows.
        let rules = config.blocked_tools.as_deref().unwrap_or_default();
        let options = json!({
            "disallowedTools": denied(rules),
            "allowDangerouslySkipPermissions": false,
        });
        let meta = params.entry("_meta").or_insert_with(|| json!({}));
        if let Some(meta) = meta.as_object_mut() {
            meta.insert("claudeCode".to_owned(), json!({ "options": options }));
        }
    }
    Ok(Object::Object(params))
}

/// Deny rules in Claude's format, where `Edit` and `Read` each are one of several tools.
fn denied(rules: &[String]) -> Vec<String> {
    let each = rules.iter().flat_map(|rule| {
        let (name, rest) = rule.split_at(rule.find('(').unwrap_or(rule.len()));
        let alike: &[&str] = match name {
            "Edit" => &["Write", "NotebookEdit"],
            "Read" => &["Grep", "Glob", "NotebookRead"],
            _ => &[],
        };
        // A path means something else to a search.
        let alike = alike.iter().filter(move |_| name == "Edit" || rest.is_empty());
        std::iter::once(rule.clone()).chain(alike.map(move |alike| format!("{alike}{rest}")))
    });
    each.collect()
}

/// ACP requires an absolute path, and a dialect must not know the directory that agentwire runs in.
fn working_directory(config: &SessionConfig) -> Result<(), GatewayError> {
    let message = match config.working_directory.as_deref() {
        Some(directory) if Path::new(directory).is_absolute() => return Ok(()),
        Some(directory) => format!("workingDirectory must be an absolute path, not {directory:?}"),
        None => "workingDirectory is required: every ACP session has one".to_owned(),
    };
    Err(GatewayError::invalid(message))
}

fn mcp_servers(
    config: &SessionConfig,
    agent: &str,
    announces: impl Fn(&str) -> bool,
) -> Result<Vec<Object>, GatewayError> {
    let servers = config.mcp_servers.iter().flatten();
    servers.map(|(name, server)| mcp_server(name, server, agent, &announces)).collect()
}

fn mcp_server(
    name: &str,
    server: &McpServer,
    agent: &str,
    announces: impl Fn(&str) -> bool,
) -> Result<Object, GatewayError> {
    let pairs = |map: &std::collections::BTreeMap<String, String>| -> Vec<Object> {
        map.iter().map(|(name, value)| json!({ "name": name, "value": value })).collect()
    };
    let missing =
        |field: &str| GatewayError::invalid(format!("the MCP server {name} needs a {field}"));
    match server.kind.as_deref().unwrap_or("stdio") {
        "stdio" => Ok(json!({
            "name": name,
            "command": server.command.as_deref().ok_or_else(|| missing("command"))?,
            "args": server.args,
            "env": pairs(&server.env),
        })),
        kind @ ("http" | "sse") if announces(kind) => Ok(json!({
            "type": kind,
            "name": name,
            "url": server.url.as_deref().ok_or_else(|| missing("url"))?,
            "headers": pairs(&server.headers),
        })),
        kind => {
            Err(GatewayError::unsupported(agent, format!("the MCP server {name} of type {kind}")))
        }
    }
}
