//! How `claude` is started, and what it is told first.

use std::collections::BTreeMap;

use agentwire_protocol::session::{McpServer, SandboxSettings, SystemPrompt};
use agentwire_protocol::{ApprovalMode, ErrorCode, GatewayError, Json, SandboxMode, SessionConfig};
use serde_json::json;

use super::agent::NAME;
use super::project;
use crate::agent::{Launch, Start, refuse};

pub(super) fn launch(start: &Start<'_>) -> Result<Launch, GatewayError> {
    let config = start.config;
    refuse(
        NAME,
        &[
            (
                "sandboxMode readOnly (permissionMode plan comes near)",
                config.sandbox_mode == Some(SandboxMode::ReadOnly),
            ),
            (
                "outputFormat other than json_schema",
                config.output_format.as_ref().is_some_and(|format| format.kind != "json_schema"),
            ),
            (
                "systemPrompt with a preset other than claude_code",
                matches!(&config.system_prompt, Some(SystemPrompt::Preset(preset)) if preset.preset != "claude_code"),
            ),
        ],
    )?;
    let mut launch = Launch::new("claude", config);
    launch.words(&[
        "-p",
        "--output-format=stream-json",
        "--input-format=stream-json",
        "--verbose",
        "--permission-prompt-tool=stdio",
    ]);
    let mode = match &config.permission_mode {
        Some(mode) => permission_mode(mode)?,
        None => approval_mode(config.approval_mode.unwrap_or_default()),
    };
    launch.option("--permission-mode", mode);
    if mode == "bypassPermissions" {
        launch.words(&["--allow-dangerously-skip-permissions"]);
    }
    if config.include_partial_messages != Some(false) {
        launch.words(&["--include-partial-messages"]);
    }
    if let Some(id) = start.resume {
        launch.option("--resume", id);
    }
    if start.resume.is_some() && start.fork {
        launch.words(&["--fork-session"]);
    }
    // What is resumed keeps its id.
    if let Some(id) = start.native_session_id.filter(|_| start.resume.is_none() || start.fork) {
        launch.option("--session-id", id);
    }
    choices(config, &mut launch);
    if let Some(settings) = sandbox(config) {
        launch.option("--settings", json!({ "sandbox": settings }));
    }
    let servers = servers(config, |server| !server.is_hosted());
    if !servers.is_empty() {
        // A file, not argv: servers have secrets in `env` and `headers`.
        launch.file("mcp.json", json!({ "mcpServers": servers }).to_string());
        launch.option("--mcp-config", "{file:mcp.json}");
    }
    if config.enable_file_checkpointing == Some(true) {
        let name = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";
        launch.env.insert(name.to_owned(), "true".to_owned());
    }
    for (at, arg) in config.native_args.iter().flatten().enumerate() {
        match inline(arg) {
            Some((flag, json)) => {
                let name = format!("native-{at}.json");
                launch.option(flag, format!("{{file:{name}}}"));
                launch.file(name, json);
            }
            None => launch.args.push(arg.clone()),
        }
    }
    Ok(launch)
}

/// Settings and servers that stand in the argument itself: they may have secrets, and argv is for all to
/// see.
fn inline(arg: &str) -> Option<(&str, &str)> {
    let (flag, value) = arg.split_once('=')?;
    let is_source = matches!(flag, "--settings" | "--mcp-config");
    (is_source && value.trim_start().starts_with('{')).then_some((flag, value))
}

/// The options that are one flag each.
fn choices(config: &SessionConfig, launch: &mut Launch) {
    let lists = [
        ("--allowedTools", &config.allowed_tools),
        ("--disallowedTools", &config.blocked_tools),
        ("--betas", &config.betas),
    ];
    for (flag, list) in lists {
        if let Some(list) = list.as_ref().filter(|list| !list.is_empty()) {
            launch.option(flag, list.join(","));
        }
    }
    // Here an empty list says something: read none.
    if let Some(sources) = project::sources(config) {
        launch.option("--setting-sources", sources.join(","));
    }
    if config.trust == Some(false) {
        launch.words(&["--strict-mcp-config"]);
    }
    for directory in config.additional_directories.iter().flatten() {
        launch.option("--add-dir", directory);
    }
    if let Some(model) = &config.model {
        launch.option("--model", model);
    }
    if let Some(model) = &config.fallback_model {
        launch.option("--fallback-model", model);
    }
    if let Some(turns) = config.max_turns {
        launch.option("--max-turns", turns);
    }
    if let Some(budget) = config.max_budget_usd {
        launch.option("--max-budget-usd", budget);
    }
    if let Some(tokens) = config.max_thinking_tokens {
        launch.option("--max-thinking-tokens", tokens);
    }
}

/// What `initialize` says: what has no flag, or is better not seen on argv.
pub(super) fn initialize(config: &SessionConfig) -> BTreeMap<&str, Json<'static>> {
    // Without `forwardSubagentText` what subagents in the foreground say is left out.
    let mut request = BTreeMap::from([
        ("subtype", Json::of(&"initialize")),
        ("forwardSubagentText", Json::of(&true)),
    ]);
    match &config.system_prompt {
        Some(SystemPrompt::Text(text)) => {
            request.insert("systemPrompt", Json::of(&[text]));
        }
        Some(SystemPrompt::Preset(preset)) => {
            if let Some(append) = &preset.append {
                request.insert("appendSystemPrompt", Json::of(append));
            }
        }
        None => {}
    }
    if let Some(agents) = &config.agents {
        request.insert("agents", Json::of(agents));
    }
    if let Some(format) = &config.output_format {
        request.insert("jsonSchema", format.schema.clone());
    }
    let hosted: Vec<_> = servers(config, McpServer::is_hosted).into_keys().collect();
    if !hosted.is_empty() {
        request.insert("sdkMcpServers", Json::of(&hosted));
    }
    if let Some(hooks) = config.hooks.as_ref().filter(|hooks| !hooks.is_empty()) {
        request.insert("hooks", Json::of(hooks));
    }
    for (name, value) in config.native_options.iter().flatten() {
        request.insert(name, value.clone());
    }
    request
}

fn servers(
    config: &SessionConfig,
    fits: impl Fn(&McpServer) -> bool,
) -> BTreeMap<&String, &McpServer> {
    config.mcp_servers.iter().flatten().filter(|(_, server)| fits(server)).collect()
}

/// The agent's own settings win over what `sandboxMode` asks for. Sandboxed commands do not run
/// unasked for being sandboxed: when to ask is the approval mode's matter.
fn sandbox(config: &SessionConfig) -> Option<SandboxSettings> {
    let own = config.sandbox.clone();
    let mode = match config.sandbox_mode.unwrap_or_default() {
        SandboxMode::None | SandboxMode::ReadOnly => return own,
        SandboxMode::FullAccess => {
            SandboxSettings { enabled: Some(false), ..SandboxSettings::default() }
        }
        SandboxMode::WorkspaceWrite => SandboxSettings {
            enabled: Some(true),
            auto_allow_bash_if_sandboxed: Some(false),
            allow_unsandboxed_commands: Some(false),
            ..SandboxSettings::default()
        },
    };
    let own = own.unwrap_or_default();
    Some(SandboxSettings {
        enabled: own.enabled.or(mode.enabled),
        auto_allow_bash_if_sandboxed: own
            .auto_allow_bash_if_sandboxed
            .or(mode.auto_allow_bash_if_sandboxed),
        allow_unsandboxed_commands: own
            .allow_unsandboxed_commands
            .or(mode.allow_unsandboxed_commands),
        ..own
    })
}

/// The permission mode by its own name.
pub(super) fn permission_mode(mode: &str) -> Result<&'static str, GatewayError> {
    const MODES: [&str; 6] =
        ["default", "acceptEdits", "plan", "bypassPermissions", "dontAsk", "auto"];
    MODES.into_iter().find(|known| *known == mode).ok_or_else(|| {
        let message = format!("{NAME} has no permissionMode {mode}; it has {}", MODES.join(", "));
        GatewayError::new(ErrorCode::Unsupported, message)
    })
}

/// Never the bypass: root cannot start with it, a session cannot change to it, and nobody sees what
/// runs. In `autoAll` the agent asks and the gateway's policy allows.
pub(super) fn approval_mode(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Ask | ApprovalMode::AskDangerous => "default",
        ApprovalMode::AutoEdit | ApprovalMode::AutoAll => "acceptEdits",
    }
}
