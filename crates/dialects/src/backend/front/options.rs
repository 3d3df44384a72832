//! `session.create`: each option is honoured, forwarded or refused by its name.

use std::collections::BTreeMap;

use agentwire_protocol::session::{
    AgentDefinition, HookMatcher, McpServer, OnLimit, OutputFormat, SandboxSettings, SystemPrompt,
    SystemPromptPreset,
};
use agentwire_protocol::{AgentType, ApprovalMode, Json, NewSession, Prompt, SessionConfig};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::backend::wire::Failure;
use crate::hooks::{Matcher, camel};

/// The hooks of the specification.
const HOOKS: [&str; 12] = [
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "Notification",
    "UserPromptSubmit",
    "SessionStart",
    "SessionEnd",
    "Stop",
    "SubagentStart",
    "SubagentStop",
    "PreCompact",
    "PermissionRequest",
];

/// What a session is created with.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    prompt: String,
    #[serde(default)]
    cwd: Option<String>,
    #[serde(default)]
    agent: Option<AgentType>,
    #[serde(default)]
    options: Option<BTreeMap<String, Json<'static>>>,
}

impl Create {
    /// The session that is wanted; of that agent, if it names none.
    pub(super) fn session(self, agent: AgentType) -> Result<NewSession, Failure> {
        let mut new = NewSession::of(self.agent.unwrap_or(agent));
        new.prompt = Some(Prompt::text(self.prompt)).filter(|prompt| !prompt.text.is_empty());
        new.config = SessionConfig {
            working_directory: self.cwd,
            // Whoever speaks this wire is there to be asked.
            approval_mode: Some(ApprovalMode::Ask),
            include_partial_messages: Some(false),
            // The wire has no word for going on past a limit.
            on_limit: Some(OnLimit::Fail),
            ..SessionConfig::default()
        };
        let given = self.options.into_iter().flatten().filter(|(_, value)| value.get() != "null");
        for (name, value) in given {
            set(&mut new, &name, &value)
                .map_err(|why| Failure::invalid(format!("failed to read options.{name}: {why}")))?;
        }
        Ok(new)
    }
}

fn set(new: &mut NewSession, name: &str, value: &Json<'static>) -> Result<(), String> {
    let config = &mut new.config;
    match name {
        "agent" => new.agent = whole(value)?,
        "model" => config.model = Some(whole(value)?),
        "permission_mode" => config.permission_mode = Some(whole(value)?),
        "allowed_tools" => config.allowed_tools = Some(whole(value)?),
        "disallowed_tools" => config.blocked_tools = Some(whole(value)?),
        "system_prompt" => config.system_prompt = Some(system_prompt(value)?),
        "max_turns" => config.max_turns = Some(count(value)?),
        "max_budget_usd" => {
            let dollars: f64 = whole(value)?;
            config.max_budget_usd = Some(dollars);
            if dollars <= 0.0 {
                return Err("it must be more than 0".to_owned());
            }
        }
        "max_thinking_tokens" => config.max_thinking_tokens = Some(count(value)?),
        "include_partial_messages" => config.include_partial_messages = Some(whole(value)?),
        "enable_file_checkpointing" => config.enable_file_checkpointing = Some(whole(value)?),
        "additional_directories" => config.additional_directories = Some(whole(value)?),
        "mcp_servers" => config.mcp_servers = Some(servers(value)?),
        "agents" => {
            let agents: BTreeMap<String, AgentDefinition> = whole(value)?;
            config.agents = Some(agents);
        }
        "hooks" => config.hooks = Some(hooks(value)?),
        "sandbox" => {
            let sandbox: SandboxSettings = whole(&camel_keys(value)?)?;
            config.sandbox = Some(sandbox);
        }
        "setting_sources" => {
            config.setting_sources = Some(whole(value)?);
            let known = ["user", "project", "local"];
            let sources = config.setting_sources.iter().flatten();
            if let Some(other) =
                sources.into_iter().find(|source| !known.contains(&source.as_str()))
            {
                return Err(format!("there is no source {other}; there are {}", known.join(", ")));
            }
        }
        "betas" => config.betas = Some(whole(value)?),
        "output_format" => {
            let format: OutputFormat = whole(value)?;
            if format.kind != "json_schema" || !format.schema.get().starts_with('{') {
                return Err("it must have the type json_schema and a schema".to_owned());
            }
            config.output_format = Some(format);
        }
        "fallback_model" => config.fallback_model = Some(whole(value)?),
        _ => return Err("there is no such option".to_owned()),
    }
    Ok(())
}

fn system_prompt(value: &Json<'_>) -> Result<SystemPrompt, String> {
    if value.get().starts_with('"') {
        return whole(value).map(SystemPrompt::Text);
    }
    let preset: SystemPromptPreset = whole(value)?;
    match preset.kind.as_str() {
        "preset" => Ok(SystemPrompt::Preset(preset)),
        other => Err(format!("it must be a text or have the type preset, not {other}")),
    }
}

fn servers(value: &Json<'_>) -> Result<BTreeMap<String, McpServer>, String> {
    let servers: BTreeMap<String, McpServer> = whole(value)?;
    for (name, server) in &servers {
        let (kind, needs) = match server.kind.as_deref() {
            None | Some("stdio") => ("stdio", server.command.as_ref().map_or("command", |_| "")),
            Some(kind @ ("sse" | "http")) => (kind, server.url.as_ref().map_or("url", |_| "")),
            Some("sdk") => {
                let why = "is of the type sdk: no client can host one on this wire";
                return Err(format!("the server {name} {why}; give stdio, sse or http"));
            }
            Some(other) => return Err(format!("the server {name} is of no known type: {other}")),
        };
        if !needs.is_empty() {
            return Err(format!("the server {name} is of type {kind} and needs a {needs}"));
        }
    }
    Ok(servers)
}

fn hooks(value: &Json<'_>) -> Result<BTreeMap<String, Vec<HookMatcher>>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct HookConfig {
        #[serde(default)]
        matcher: Option<String>,
        #[serde(default)]
        timeout: Option<u32>,
    }
    let hooks: BTreeMap<String, Vec<HookConfig>> = read(value)?;
    if let Some(other) = hooks.keys().find(|event| !HOOKS.contains(&event.as_str())) {
        return Err(format!("there is no hook {other}; there are {}", HOOKS.join(", ")));
    }
    for (event, configs) in &hooks {
        let patterns = configs.iter().filter_map(|config| config.matcher.as_deref());
        if let Some(pattern) = patterns.into_iter().find(|pattern| Matcher::is_broken(pattern)) {
            return Err(format!("the matcher {pattern:?} of {event} is no pattern"));
        }
    }
    let matcher = |config: HookConfig| HookMatcher {
        matcher: config.matcher,
        timeout: config.timeout,
        ..HookMatcher::default()
    };
    let hooks = hooks.into_iter().filter(|(_, list)| !list.is_empty());
    Ok(hooks.map(|(event, list)| (event, list.into_iter().map(matcher).collect())).collect())
}

/// A number of things, however it is written.
fn count(value: &Json<'_>) -> Result<u32, String> {
    let number: f64 = read(value)?;
    match format!("{number:.0}").parse() {
        Ok(count) if count > 0 && f64::from(count) == number => Ok(count),
        _ => Err(format!("{number} is not a whole number from 1 on")),
    }
}

fn read<T: DeserializeOwned>(value: &Json<'_>) -> Result<T, String> {
    value.read().map_err(|error| error.to_string())
}

/// Reads a value, and refuses what of it would be dropped.
fn whole<T: DeserializeOwned + Serialize>(value: &Json<'_>) -> Result<T, String> {
    let taken: T = read(value)?;
    let (given, kept) = (read(value)?, serde_json::to_value(&taken).unwrap_or_default());
    match dropped(&given, &kept) {
        Some(name) => Err(format!("there is no field {name}")),
        None => Ok(taken),
    }
}

/// The first field that was given and not kept.
fn dropped(given: &Value, kept: &Value) -> Option<String> {
    match (given, kept) {
        (Value::Object(given), Value::Object(kept)) => {
            given.iter().find_map(|(name, value)| match kept.get(name) {
                Some(kept) => dropped(value, kept),
                None => (!is_nothing(value)).then(|| name.clone()),
            })
        }
        (Value::Array(given), Value::Array(kept)) => {
            given.iter().zip(kept).find_map(|(given, kept)| dropped(given, kept))
        }
        // serde takes a list for an object whose fields come in order.
        (Value::Array(given), Value::Object(_)) => given.first().map(Value::to_string),
        _ => None,
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}

/// Settings that Claude has in camel case.
fn camel_keys(value: &Json<'_>) -> Result<Json<'static>, String> {
    fn renamed(value: Value) -> Value {
        match value {
            Value::Object(fields) => {
                let fields = fields.into_iter();
                fields.map(|(name, value)| (camel(&name), renamed(value))).collect()
            }
            other => other,
        }
    }
    Ok(Json::of(&renamed(read(value)?)))
}
