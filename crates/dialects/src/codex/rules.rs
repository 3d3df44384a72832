//! Rules that deny what Codex does without asking: the tool is switched off, or the rule is refused by
//! name. What Codex asks about is denied by the gateway's policy.

use std::collections::BTreeMap;

use agentwire_protocol::{GatewayError, SessionConfig};
use serde_json::{Map, Value, json};

use super::Driver;

enum RuleSubject<'r> {
    /// Searching the web, which never asks.
    Web,
    /// Reading files: by commands, and by Codex's own tool that views images.
    Reading,
    /// Only that tool.
    Images,
    /// Subagents: their calls ask, starting them does not.
    Agents,
    /// Codex's list of steps.
    Plan,
    /// Commands and file changes.
    Work,
    Resources,
    /// A tool by the name that only the model uses; the value is what to block instead.
    Inner(&'static str),
    /// An MCP server, or one tool of it.
    Mcp(&'r str),
    Nothing,
}

impl<'r> RuleSubject<'r> {
    fn of(rule: &'r str) -> Self {
        let name = rule.split('(').next().unwrap_or_default();
        if let Some(rest) = name.strip_prefix("mcp__") {
            return Self::Mcp(rest.strip_suffix("__*").unwrap_or(rest));
        }
        match name {
            "WebSearch" | "WebFetch" | "web_search" => Self::Web,
            "Read" | "NotebookRead" | "LS" => Self::Reading,
            "image_view" => Self::Images,
            "Agent" | "Task" | "SendMessage" | "TaskStop" => Self::Agents,
            "TodoWrite" | "TodoRead" => Self::Plan,
            "Bash"
            | "Monitor"
            | "PowerShell"
            | "command_execution"
            | "Edit"
            | "MultiEdit"
            | "Write"
            | "NotebookEdit"
            | "file_change"
            | "request_permissions" => Self::Work,
            "ListMcpResourcesTool"
            | "ReadMcpResourceTool"
            | "list_mcp_resources"
            | "list_mcp_resource_templates"
            | "read_mcp_resource" => Self::Resources,
            "exec_command" | "write_stdin" | "shell" | "shell_command" | "local_shell"
            | "container.exec" => Self::Inner("Bash"),
            "apply_patch" => Self::Inner("Edit"),
            "view_image" => Self::Inner("image_view"),
            "update_plan" => Self::Inner("TodoWrite"),
            "spawn_agent" | "send_input" | "wait" | "close_agent" => Self::Inner("Agent"),
            _ => Self::Nothing,
        }
    }
}

/// The Codex settings that enforce the session's rules. A rule that cannot be enforced is refused.
pub(super) fn enforce(
    driver: Driver,
    config: &SessionConfig,
) -> Result<BTreeMap<String, Value>, GatewayError> {
    let mut overrides = BTreeMap::new();
    let mut put = |key: &str, value: Value| drop(overrides.insert(key.to_owned(), value));
    for rule in config.blocked_tools.iter().flatten() {
        let refused =
            |why: &str| Err(driver.unsupported(format!("the rule {rule} in blockedTools: {why}")));
        match (RuleSubject::of(rule), driver) {
            (RuleSubject::Web, _) => put("web_search", json!("disabled")),
            (RuleSubject::Reading, Driver::Exec) => {
                return refused("`codex exec` reads files with commands and never asks");
            }
            (RuleSubject::Images, _) | (RuleSubject::Reading, Driver::AppServer) => {
                put("features.view_image", json!(false));
            }
            (RuleSubject::Agents, _) => {
                put("features.multi_agent", json!(false));
                put("features.multi_agent_v2", json!(false));
            }
            (RuleSubject::Plan, _) => put("tools.update_plan.enabled", json!(false)),
            (RuleSubject::Work, Driver::AppServer) | (RuleSubject::Nothing, _) => {}
            (RuleSubject::Work, Driver::Exec) => {
                return refused("`codex exec` never asks; use the driver app-server");
            }
            (RuleSubject::Resources, _) => {
                return refused(
                    "it reads MCP resources without asking; block the server as mcp__SERVER",
                );
            }
            (RuleSubject::Inner(name), _) => {
                return refused(&format!("agentwire knows this tool as {name}; block that"));
            }
            (RuleSubject::Mcp(rest), _) => {
                match (of_session(config, rest), rest.split_once("__")) {
                    (Some(_), _) => {}
                    // A server of the user's own configuration, or no server: either way, it must not start.
                    (None, None) if is_plain(rest) && rest != "codex_apps" => {
                        let off = json!({ "command": "false", "enabled": false });
                        put(&format!("mcp_servers.{rest}"), off);
                    }
                    (None, _) => {
                        return refused(
                            "the server is not among the session's mcpServers, so it may run tools without \
                         asking; add it there, or block the whole server",
                        );
                    }
                }
            }
        }
    }
    Ok(overrides)
}

/// The settings of one of the session's MCP servers that enforce the rules about it. A server that is
/// blocked as a whole does not start; a tool is denied when Codex asks, and is disabled in exec.
pub(super) fn of_server(
    driver: Driver,
    config: &SessionConfig,
    server: &str,
) -> Map<String, Value> {
    let rules =
        config.blocked_tools.iter().flatten().filter_map(|rule| match RuleSubject::of(rule) {
            RuleSubject::Mcp(rest) => of_session(config, rest).filter(|(own, _)| *own == server),
            _ => None,
        });
    let (mut fields, mut tools) = (Map::new(), Vec::new());
    for (_, tool) in rules {
        match (tool, driver) {
            (None, _) => drop(fields.insert("enabled".to_owned(), json!(false))),
            (Some(tool), Driver::Exec) => tools.push(tool),
            (Some(_), Driver::AppServer) => {}
        }
    }
    if !tools.is_empty() {
        fields.insert("disabled_tools".to_owned(), json!(tools));
    }
    fields
}

/// The session's server that a rule is about, and the tool, if the rule names one.
fn of_session<'c>(config: &'c SessionConfig, rest: &'c str) -> Option<(&'c str, Option<&'c str>)> {
    let mut servers = config.mcp_servers.iter().flatten().map(|(name, _)| name.as_str());
    servers.find_map(|name| match rest.strip_prefix(name)? {
        "" => Some((name, None)),
        more => Some((name, Some(more.strip_prefix("__")?))),
    })
}

pub(super) fn is_plain(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    !name.is_empty() && name.bytes().all(plain)
}
