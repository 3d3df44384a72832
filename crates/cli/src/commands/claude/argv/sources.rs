//! Values that are JSON or a path to a file.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;

use agentwire_dialects::program;
use agentwire_protocol::AgentType;
use agentwire_protocol::session::{AgentDefinition, McpServer};
use serde_json::{Map, Value, json};

use super::{Kept, Refused};

type Servers = BTreeMap<String, McpServer>;
type Agents = BTreeMap<String, AgentDefinition>;

/// The servers of every `--mcp-config`; a later one replaces an earlier one of the same name.
/// Fields that our configuration does not have go to the program unchanged.
pub(super) fn mcp_servers(
    words: &Kept,
    agent: AgentType,
    directory: &Path,
) -> Result<(Option<Servers>, Vec<String>), Refused> {
    let wrong = |what: &str| Refused::new(format!("Error: Invalid MCP configuration:\n{what}"));
    let mut servers = Servers::new();
    let mut native = Vec::new();
    for source in words.all("--mcp-config").filter(|source| !source.is_empty()) {
        let inline = serde_json::from_str::<Map<String, Value>>(source).ok();
        let in_file = inline.is_none();
        let mut config = match inline {
            Some(config) => config,
            None => {
                let path = directory.join(source);
                let text = fs::read_to_string(&path).map_err(|error| {
                    let path = path.display();
                    wrong(&match error.kind() {
                        io::ErrorKind::NotFound => format!("MCP config file not found: {path}"),
                        _ => format!("failed to read {path}: {error}"),
                    })
                })?;
                serde_json::from_str(&text)
                    .map_err(|error| wrong(&format!("{}: {error}", path.display())))?
            }
        };
        let Some(Value::Object(given)) = config.remove("mcpServers") else {
            return Err(wrong("mcpServers: must be an object of servers by name"));
        };
        let mut rest = Map::new();
        for (name, server) in given {
            match known_server(&server) {
                Ok(known) => {
                    servers.insert(name, known);
                }
                Err(_) if program(agent).speaks_claude() => {
                    rest.insert(name, server);
                }
                Err(what) => {
                    let agent = agent.as_str();
                    return Err(wrong(&format!("{name}: {what} is not supported with {agent}")));
                }
            }
        }
        if !rest.is_empty() {
            // Secrets in a file stay in the file.
            let source = match in_file {
                true => directory.join(source).display().to_string(),
                false => json!({ "mcpServers": rest }).to_string(),
            };
            native.push(format!("--mcp-config={source}"));
        }
    }
    Ok((Some(servers).filter(|servers| !servers.is_empty()), native))
}

/// The server, if our configuration covers all of it; else the part that it does not cover.
fn known_server(server: &Value) -> Result<McpServer, String> {
    const FIELDS: [&str; 6] = ["type", "command", "args", "env", "url", "headers"];
    let hosted = server.get("type").and_then(Value::as_str) == Some("sdk");
    let fields = server.as_object().ok_or("a server that is not an object")?;
    // A hosted server repeats its name.
    let mut names = fields.keys().filter(|name| !(hosted && *name == "name"));
    if let Some(name) = names.find(|name| !FIELDS.contains(&name.as_str())) {
        return Err(format!("the field {name}"));
    }
    serde_json::from_value(server.clone()).map_err(|error| error.to_string())
}

/// Subagent definitions. If our configuration does not cover all of them, they go to the program
/// unchanged.
pub(super) fn agents(
    words: &Kept,
    directory: &Path,
) -> Result<(Option<Agents>, Option<String>), Refused> {
    let wrong =
        |what: String| Refused::new(format!("Error: Invalid --agents configuration:\n{what}"));
    let Some(source) = words.last("--agents").filter(|source| !source.is_empty()) else {
        return Ok((None, None));
    };
    let is_json = source.trim_start().starts_with(['{', '[']);
    let text = if is_json {
        source.to_owned()
    } else {
        let path = directory.join(source);
        fs::read_to_string(&path)
            .map_err(|error| wrong(format!("failed to read {}: {error}", path.display())))?
    };
    let raw: Value =
        serde_json::from_str(&text).map_err(|error| wrong(format!("invalid JSON: {error}")))?;
    if !raw.is_object() {
        return Err(wrong("must be an object of agents by name".to_owned()));
    }
    let known = serde_json::from_value::<Agents>(raw.clone()).ok();
    match known.filter(|agents| serde_json::to_value(agents).is_ok_and(|said| said == raw)) {
        Some(agents) => Ok((Some(agents).filter(|agents| !agents.is_empty()), None)),
        None => Ok((None, Some(format!("--agents={raw}")))),
    }
}

pub(super) fn prompt_file(path: &str, directory: &Path) -> Result<String, Refused> {
    let path = directory.join(path);
    fs::read_to_string(&path).map_err(|error| {
        let path = path.display();
        Refused::new(match error.kind() {
            io::ErrorKind::NotFound => format!("Error: System prompt file not found: {path}"),
            _ => format!("Error: failed to read the system prompt file {path}: {error}"),
        })
    })
}
