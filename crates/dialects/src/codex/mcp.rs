//! The MCP servers of a session, in the format of Codex's configuration.

use std::collections::BTreeMap;

use agentwire_protocol::session::McpServer;
use agentwire_protocol::shell::quoted;
use agentwire_protocol::{GatewayError, SessionConfig};
use serde_json::{Value, json};

use super::launch::toml;
use super::{Driver, rules};
use crate::agent::{ArgPart, Launch};

enum Endpoint<'c> {
    Command(&'c str),
    Address(&'c str),
}

/// Overrides for `thread/start`. Codex runs tools that claim to be read-only without asking, unless it is
/// told to ask about each.
pub(super) fn app_server(config: &SessionConfig) -> Result<BTreeMap<String, Value>, GatewayError> {
    let overrides = config.mcp_servers.iter().flatten().map(|(name, server)| {
        let mut value = match reach(Driver::AppServer, name, server)? {
            Endpoint::Command(command) => {
                json!({ "command": command, "args": server.args, "env": server.env })
            }
            Endpoint::Address(url) => json!({ "url": url, "http_headers": server.headers }),
        };
        if let Some(fields) = value.as_object_mut() {
            fields.insert("default_tools_approval_mode".to_owned(), json!("prompt"));
            fields.extend(rules::of_server(Driver::AppServer, config, name));
        }
        Ok((format!("mcp_servers.{name}"), value))
    });
    overrides.collect()
}

/// Arguments and files for `codex exec`. The command and variables of a server may be secret, so they go
/// into a private script; headers go into the environment.
pub(super) fn exec(config: &SessionConfig, launch: &mut Launch) -> Result<(), GatewayError> {
    let mut headers = (0..).map(|number: u32| format!("AGENTWIRE_MCP_SECRET_{number}"));
    for (name, server) in config.mcp_servers.iter().flatten() {
        let mut rules = rules::of_server(Driver::Exec, config, name);
        let parts = match reach(Driver::Exec, name, server)? {
            Endpoint::Command(command) => {
                let file = format!("mcp-{name}.sh");
                launch.file(file.as_str(), script(name, command, server)?);
                let begin = format!("mcp_servers.{name}={{\"command\" = \"/bin/sh\", \"args\" = [");
                let rules =
                    rules.iter().map(|(key, value)| format!(", \"{key}\" = {}", toml(value)));
                let end = format!("]{}}}", rules.collect::<String>());
                vec![ArgPart::Text(begin), ArgPart::QuotedFile(file), ArgPart::Text(end)]
            }
            Endpoint::Address(url) if has_secrets(url) => {
                let what = format!(
                    "the MCP server {name}, whose URL has a password or a query that would be visible \
                     on its command line; use the driver app-server"
                );
                return Err(Driver::Exec.unsupported(what));
            }
            Endpoint::Address(url) => {
                let mut named = BTreeMap::new();
                for (header, value) in &server.headers {
                    let variable = headers.next().unwrap_or_default();
                    launch.env.insert(variable.clone(), value.clone());
                    named.insert(header, variable);
                }
                rules.insert("url".to_owned(), json!(url));
                rules.insert("env_http_headers".to_owned(), json!(named));
                vec![ArgPart::Text(format!("mcp_servers.{name}={}", toml(&Value::Object(rules))))]
            }
        };
        launch.option_of("--config", parts);
    }
    Ok(())
}

fn reach<'c>(
    driver: Driver,
    name: &str,
    server: &'c McpServer,
) -> Result<Endpoint<'c>, GatewayError> {
    if !rules::is_plain(name) {
        return Err(driver.unsupported(format!("an MCP server named `{name}`")));
    }
    match (server.kind.as_deref(), &server.command, &server.url) {
        (None | Some("stdio"), Some(command), _) => Ok(Endpoint::Command(command)),
        (Some("http"), _, Some(url)) => Ok(Endpoint::Address(url)),
        (kind, _, _) => {
            let kind = kind.unwrap_or("stdio");
            Err(driver.unsupported(format!("the MCP server {name} of type {kind} as configured")))
        }
    }
}

/// A shell script that replaces itself with the server.
fn script(name: &str, command: &str, server: &McpServer) -> Result<String, GatewayError> {
    let mut script = String::new();
    for (variable, value) in &server.env {
        let plain = |(at, byte): (usize, u8)| {
            byte == b'_' || byte.is_ascii_alphabetic() || (at > 0 && byte.is_ascii_digit())
        };
        if variable.is_empty() || !variable.bytes().enumerate().all(plain) {
            let what = format!("the variable `{variable}` of the MCP server {name}");
            return Err(Driver::Exec.unsupported(what));
        }
        script += &format!("export {variable}={}\n", quoted(value));
    }
    let words = std::iter::once(command).chain(server.args.iter().map(String::as_str));
    let words: Vec<String> = words.map(quoted).collect();
    Ok(script + &format!("exec {}\n", words.join(" ")))
}

fn has_secrets(url: &str) -> bool {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split(['/', '?', '#']).next().unwrap_or_default();
    authority.contains('@') || url.contains('?') || url.contains('#')
}
