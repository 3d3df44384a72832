//! `session.create`: each option is applied, forwarded or refused by name.

use std::collections::BTreeMap;

use agentwire_protocol::session::{
    AgentDefinition, HookMatcher, McpServer, OnLimit, OutputFormat, SandboxSettings, SystemPrompt,
    SystemPromptPreset,
};
use agentwire_protocol::strict::whole;
use agentwire_protocol::{
    AgentType, ApprovalMode, GatewayError, Json, NewSession, Prompt, SessionConfig, SessionId,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::backend::wire::Failure;
use crate::hooks::{Matcher, camel, snake};

/// The hooks in the specification.
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

/// The options in the specification, and ours.
const KNOWN: [&str; 21] = [
    "agent",
    "model",
    "permission_mode",
    "allowed_tools",
    "disallowed_tools",
    "system_prompt",
    "max_turns",
    "max_budget_usd",
    "max_thinking_tokens",
    "include_partial_messages",
    "enable_file_checkpointing",
    "additional_directories",
    "mcp_servers",
    "agents",
    "hooks",
    "sandbox",
    "setting_sources",
    "betas",
    "output_format",
    "fallback_model",
    "resume",
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Create {
    prompt: String,
    cwd: Option<String>,
    agent: Option<AgentType>,
    options: Option<BTreeMap<String, Json<'static>>>,
}

impl Create {
    /// The requested session; `agent` is the default.
    pub(super) fn session(self, agent: AgentType) -> Result<NewSession, Failure> {
        let mut new = NewSession::of(self.agent.unwrap_or(agent));
        new.prompt = Some(Prompt::text(self.prompt)).filter(|prompt| !prompt.text.is_empty());
        new.config = SessionConfig {
            working_directory: self.cwd,
            // A client on this wire can answer requests.
            approval_mode: Some(ApprovalMode::Ask),
            include_partial_messages: Some(false),
            // The wire has no message for continuing past a limit.
            on_limit: Some(OnLimit::Fail),
            ..SessionConfig::default()
        };
        for (name, value) in self.options.into_iter().flatten() {
            // An empty list of setting sources has a meaning: read no settings.
            let is_empty = name != "setting_sources" && is_empty(&value);
            if KNOWN.contains(&name.as_str()) && (is_empty || value.get() == "null") {
                continue;
            }
            set(&mut new, &name, &value)
                .map_err(|why| Failure::invalid(format!("failed to read options.{name}: {why}")))?;
        }
        Ok(new)
    }
}

fn is_empty(value: &Json<'_>) -> bool {
    let inside = value.get().strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inside =
        inside.or_else(|| value.get().strip_prefix('{').and_then(|rest| rest.strip_suffix('}')));
    inside.is_some_and(|inside| inside.trim().is_empty())
}

/// Translates option names in a gateway's refusal to the names on this wire.
pub(super) fn in_our_names(error: &mut GatewayError) {
    let mut first = None;
    let mut was_option = false;
    let mut words = Vec::new();
    for word in error.message.split(' ') {
        let bare = word.trim_end_matches([':', ',', ';']);
        let is_name = bare.contains(char::is_uppercase) || was_option;
        was_option = word == "option";
        let ours = match bare {
            "blockedTools" => Some("disallowed_tools".to_owned()),
            "workingDirectory" => Some("cwd".to_owned()),
            field if is_name && SessionConfig::FIELDS.contains(&field) => Some(snake(field)),
            _ => None,
        };
        words.push(match &ours {
            Some(ours) => word.replacen(bare, ours, 1),
            None => word.to_owned(),
        });
        first = first.or(ours.filter(|name| KNOWN.contains(&name.as_str())));
    }
    if let Some(name) = first {
        error.message = format!("options.{name}: {}", words.join(" "));
    }
}

fn set(new: &mut NewSession, name: &str, value: &Json<'static>) -> Result<(), String> {
    let config = &mut new.config;
    match name {
        "agent" => new.agent = whole(value)?,
        "model" => config.model = Some(whole(value)?),
        "permission_mode" => {
            let mode: String = whole(value)?;
            (config.approval_mode, config.permission_mode) = permission_mode(mode);
        }
        "resume" => {
            let id: String = whole(value)?;
            if id.is_empty() {
                return Err("it must be a session id".to_owned());
            }
            new.resume = Some(SessionId::from(id));
        }
        "allowed_tools" => config.allowed_tools = Some(whole(value)?),
        "disallowed_tools" => config.blocked_tools = Some(whole(value)?),
        "system_prompt" => config.system_prompt = Some(system_prompt(value)?),
        "max_turns" => match count(value)? {
            0 => return Err("it must be at least 1".to_owned()),
            turns => config.max_turns = Some(turns),
        },
        "max_budget_usd" => {
            let dollars: f64 = whole(value)?;
            config.max_budget_usd = Some(dollars);
            if dollars <= 0.0 {
                return Err("it must be greater than 0".to_owned());
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
                return Err(format!(
                    "unknown source {other}; expected one of {}",
                    known.join(", ")
                ));
            }
        }
        "betas" => config.betas = Some(whole(value)?),
        "output_format" => {
            let format: OutputFormat = whole(value)?;
            if format.kind != "json_schema" || !format.schema.get().starts_with('{') {
                return Err("it must have type json_schema and a schema".to_owned());
            }
            config.output_format = Some(format);
        }
        "fallback_model" => config.fallback_model = Some(whole(value)?),
        _ => return Err("unknown option".to_owned()),
    }
    Ok(())
}

/// The gateway itself implements "ask for everything" and "allow everything": they work with every agent
/// and can change at any time. The client started this program, so it may allow everything.
pub(super) fn permission_mode(mode: String) -> (Option<ApprovalMode>, Option<String>) {
    match mode.as_str() {
        "default" => (Some(ApprovalMode::Ask), None),
        "bypassPermissions" => (Some(ApprovalMode::AutoAll), None),
        _ => (Some(ApprovalMode::Ask), Some(mode)),
    }
}

fn system_prompt(value: &Json<'_>) -> Result<SystemPrompt, String> {
    if value.get().starts_with('"') {
        return whole(value).map(SystemPrompt::Text);
    }
    if !value.get().starts_with('{') {
        return Err("it must be a string, or an object of type preset".to_owned());
    }
    let preset: SystemPromptPreset = whole(value)?;
    match preset.kind.as_str() {
        "preset" => Ok(SystemPrompt::Preset(preset)),
        other => Err(format!("it must be a string or have type preset, not {other}")),
    }
}

fn servers(value: &Json<'_>) -> Result<BTreeMap<String, McpServer>, String> {
    let servers: BTreeMap<String, McpServer> = whole(value)?;
    for (name, server) in &servers {
        let (kind, needs) = match server.kind.as_deref() {
            None | Some("stdio") => ("stdio", server.command.as_ref().map_or("command", |_| "")),
            Some(kind @ ("sse" | "http")) => (kind, server.url.as_ref().map_or("url", |_| "")),
            Some("sdk") => {
                let why = "has type sdk: no client can host one on this wire";
                return Err(format!("server {name} {why}; use stdio, sse or http"));
            }
            Some(other) => return Err(format!("server {name} has unknown type {other}")),
        };
        if !needs.is_empty() {
            return Err(format!("server {name} has type {kind} and needs a {needs}"));
        }
    }
    Ok(servers)
}

fn hooks(value: &Json<'_>) -> Result<BTreeMap<String, Vec<HookMatcher>>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct HookConfig {
        matcher: Option<String>,
        timeout: Option<u32>,
    }
    let hooks: BTreeMap<String, Vec<HookConfig>> = read(value)?;
    if let Some(other) = hooks.keys().find(|event| !HOOKS.contains(&event.as_str())) {
        return Err(format!("unknown hook {other}; expected one of {}", HOOKS.join(", ")));
    }
    for (event, configs) in &hooks {
        let patterns = configs.iter().filter_map(|config| config.matcher.as_deref());
        if let Some(pattern) = patterns.into_iter().find(|pattern| Matcher::is_broken(pattern)) {
            return Err(format!("matcher {pattern:?} of {event} is not a valid pattern"));
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

/// A whole number in any JSON notation.
pub(super) fn count(value: &Json<'_>) -> Result<u32, String> {
    let number: f64 = read(value)?;
    match format!("{number:.0}").parse() {
        Ok(count) if f64::from(count) == number => Ok(count),
        _ => Err(format!("{number} is not a whole number")),
    }
}

fn read<T: DeserializeOwned>(value: &Json<'_>) -> Result<T, String> {
    value.read().map_err(|error| error.to_string())
}

/// Claude's settings, with keys in camel case.
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
