//! The client's `initialize`: its hooks, prompts and servers, as the session's configuration.

use std::collections::BTreeMap;

use agentwire_protocol::session::{
    AgentDefinition, HookMatcher, McpServer, OutputFormat, SystemPrompt,
};
use agentwire_protocol::{Json, SessionConfig};
use serde::Deserialize;

type Fields = BTreeMap<String, Json<'static>>;

/// How the client is asked for permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flavour {
    /// By `control_request`, as the real program does.
    Control,
    /// By `callback.request`, as in the specification.
    Callback,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Matcher {
    matcher: Option<String>,
    timeout: Option<f64>,
    #[serde(default, alias = "hook_callback_ids")]
    hook_callback_ids: Vec<String>,
    on_failure: Option<String>,
}

/// Applies `initialize` to the configuration. A client that uses the specification's names is asked in the
/// specification's format.
pub(super) fn apply(fields: &Fields, config: &mut SessionConfig) -> Result<Flavour, String> {
    let mut flavour = Flavour::Control;
    let mut native = config.native_options.take().unwrap_or_default();
    let given = config.system_prompt.take().map(SystemPrompt::parts);
    let (mut whole, mut append) = given.unwrap_or_default();
    for (name, value) in fields.iter().filter(|(_, value)| value.get() != "null") {
        match name.as_str() {
            "subtype" => {}
            "hooks" => config.hooks = hooks(value)?,
            "systemPrompt" => whole = Some(system_prompt(value)?),
            "appendSystemPrompt" => {
                let more = read::<String>(name, value)?;
                append = Some(match append.take().filter(|append| !append.is_empty()) {
                    Some(append) => format!("{append}\n\n{more}"),
                    None => more,
                });
            }
            "agents" => {
                let agents: BTreeMap<String, AgentDefinition> = read(name, value)?;
                if !agents.is_empty() {
                    config.agents = Some(agents);
                    // A definition may have fields that we do not know.
                    native.insert(name.clone(), value.clone());
                }
            }
            "sdkMcpServers" => {
                let servers = config.mcp_servers.get_or_insert_default();
                for server in read::<Vec<String>>(name, value)? {
                    let kind = Some("sdk".to_owned());
                    servers.insert(server, McpServer { kind, ..McpServer::default() });
                }
            }
            "jsonSchema" => {
                let schema = value.clone();
                config.output_format =
                    Some(OutputFormat { kind: "json_schema".to_owned(), schema });
            }
            "system_prompt" => {
                flavour = Flavour::Callback;
                (whole, append) = read::<SystemPrompt>(name, value)?.parts();
            }
            "mcp_servers" => {
                flavour = Flavour::Callback;
                let servers: BTreeMap<String, McpServer> = read(name, value)?;
                if !servers.is_empty() {
                    config.mcp_servers.get_or_insert_default().extend(servers);
                }
            }
            _ => {
                native.insert(name.clone(), value.clone());
            }
        }
    }
    config.system_prompt = SystemPrompt::joined(whole, append);
    config.native_options = (!native.is_empty()).then_some(native);
    Ok(flavour)
}

fn hooks(value: &Json<'_>) -> Result<Option<BTreeMap<String, Vec<HookMatcher>>>, String> {
    let events: BTreeMap<String, Option<Vec<Matcher>>> = read("hooks", value)?;
    let matcher = |matcher: Matcher| HookMatcher {
        matcher: matcher.matcher,
        timeout: matcher.timeout.map(|seconds| seconds.ceil().max(0.0) as u32),
        callback_ids: matcher.hook_callback_ids,
        on_failure: matcher.on_failure,
    };
    let hooks: BTreeMap<_, Vec<_>> = events
        .into_iter()
        .filter_map(|(event, matchers)| Some((event, matchers?.into_iter().map(matcher).collect())))
        .collect();
    Ok((!hooks.is_empty()).then_some(hooks))
}

/// A string, or a list of strings, which has one in practice.
fn system_prompt(value: &Json<'_>) -> Result<String, String> {
    match value.read::<String>() {
        Ok(text) => Ok(text),
        Err(_) => Ok(read::<Vec<String>>("systemPrompt", value)?.join("\n\n")),
    }
}

fn read<T: serde::de::DeserializeOwned>(name: &str, value: &Json<'_>) -> Result<T, String> {
    value.read().map_err(|error| format!("failed to read {name} of initialize: {error}"))
}
