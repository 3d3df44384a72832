//! How `claude` is started, and the `initialize` request that it gets first.

use std::collections::BTreeMap;

use agentwire_protocol::session::{McpServer, SandboxSettings, SystemPrompt};
use agentwire_protocol::{GatewayError, Json, SandboxMode, SessionConfig};
use serde_json::json;

use super::{Claude, guard, modes, overrides, project};
use crate::agent::{Arg, ArgPart, Launch, Start, refuse};

/// Allows a change to a mode that Claude never runs in here.
const ALLOW_BYPASS: &str = "--allow-dangerously-skip-permissions";

pub(super) fn launch(claude: &Claude, start: &Start<'_>) -> Result<Launch, GatewayError> {
    let config = start.config;
    let name = claude.agent.as_str();
    refuse(
        name,
        &[
            (
                "sandboxMode readOnly (permissionMode plan is similar)",
                config.sandbox_mode == Some(SandboxMode::ReadOnly),
            ),
            (
                "sandboxMode workspaceWrite: it has no sandbox",
                !claude.has_sandbox && config.sandbox_mode == Some(SandboxMode::WorkspaceWrite),
            ),
            (
                "sandbox: it has no sandbox",
                !claude.has_sandbox
                    && config.sandbox.as_ref().is_some_and(|own| own.enabled == Some(true)),
            ),
            (
                "nativeOptions hooks; give the option hooks",
                config.native_options.iter().flatten().any(|(name, _)| name == "hooks"),
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
    guard::check(config)?;
    overrides::check_prompt_tool(name, config)?;
    let mut launch = Launch::new("claude", config);
    launch.words(&[
        "-p",
        "--output-format=stream-json",
        "--input-format=stream-json",
        "--verbose",
        "--permission-prompt-tool=stdio",
    ]);
    let mode = match &config.permission_mode {
        Some(mode) => modes::handed_down(name, mode, config)?,
        None => modes::ASKING,
    };
    launch.option("--permission-mode", mode);
    if config.include_partial_messages != Some(false) {
        launch.words(&["--include-partial-messages"]);
    }
    if let Some(id) = start.resume {
        launch.option("--resume", id);
    }
    if start.resume.is_some() && start.fork {
        launch.words(&["--fork-session"]);
    }
    // A resumed session keeps its id.
    if let Some(id) = start.native_session_id.filter(|_| start.resume.is_none() || start.fork) {
        launch.option("--session-id", id);
    }
    choices(config, &mut launch);
    if let Some(settings) = sandbox(config)? {
        launch.option("--settings", json!({ "sandbox": settings }));
    }
    let servers = servers(config, |server| !server.is_hosted());
    if !servers.is_empty() {
        // A file, not argv: servers have secrets in `env` and `headers`.
        launch.file("mcp.json", json!({ "mcpServers": servers }).to_string());
        launch.option_of("--mcp-config", [ArgPart::File("mcp.json".to_owned())]);
    }
    if config.enable_file_checkpointing == Some(true) {
        let name = "CLAUDE_CODE_ENABLE_SDK_FILE_CHECKPOINTING";
        launch.env.insert(name.to_owned(), "true".to_owned());
    }
    let native = config.native_args.iter().flatten().filter(|arg| *arg != ALLOW_BYPASS);
    for (at, arg) in native.enumerate() {
        match inline(arg) {
            Some((flag, json)) => {
                let name = format!("native-{at}.json");
                launch.option_of(flag, [ArgPart::File(name.clone())]);
                launch.file(name, json);
            }
            None => launch.args.push(Arg::from(arg.as_str())),
        }
    }
    Ok(launch)
}

/// Settings and servers given inline in the argument. They may hold secrets, and argv is visible to
/// everyone.
fn inline(arg: &str) -> Option<(&str, &str)> {
    let (flag, value) = arg.split_once('=')?;
    let is_source = matches!(flag, "--settings" | "--mcp-config");
    (is_source && value.trim_start().starts_with('{')).then_some((flag, value))
}

/// The options that are one flag each.
fn choices(config: &SessionConfig, launch: &mut Launch) {
    // Not `--allowedTools`: Claude would run those calls without asking, and it reads a rule more
    // generously than the gateway does.
    let lists = [("--disallowedTools", &config.blocked_tools), ("--betas", &config.betas)];
    for (flag, list) in lists {
        if let Some(list) = list.as_ref().filter(|list| !list.is_empty()) {
            launch.option(flag, list.join(","));
        }
    }
    // An empty list has a meaning here: read none.
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

/// The `initialize` request: what has no flag, or should not be visible in argv.
pub(super) fn initialize(config: &SessionConfig) -> BTreeMap<&str, Json<'static>> {
    // Without `forwardSubagentText`, the text of foreground subagents is left out.
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
    for (name, value) in config.native_options.iter().flatten() {
        request.insert(name, value.clone());
    }
    request.insert("hooks", Json::of(&guard::with_guard(config)));
    request
}

fn servers(
    config: &SessionConfig,
    fits: impl Fn(&McpServer) -> bool,
) -> BTreeMap<&String, &McpServer> {
    config.mcp_servers.iter().flatten().filter(|(_, server)| fits(server)).collect()
}

/// The agent's own settings win over `sandboxMode`, but cannot remove the sandbox. Sandboxed commands do
/// not run unasked just because they are sandboxed: the policy decides when to ask.
fn sandbox(config: &SessionConfig) -> Result<Option<SandboxSettings>, GatewayError> {
    // Claude's own default is to run sandboxed commands without asking.
    let own = config.sandbox.clone().map(|own| match own.enabled {
        Some(false) => own,
        Some(true) | None => SandboxSettings {
            auto_allow_bash_if_sandboxed: own.auto_allow_bash_if_sandboxed.or(Some(false)),
            ..own
        },
    });
    let mode = match config.sandbox_mode.unwrap_or_default() {
        SandboxMode::None | SandboxMode::ReadOnly => return Ok(own),
        SandboxMode::FullAccess => {
            SandboxSettings { enabled: Some(false), ..SandboxSettings::default() }
        }
        SandboxMode::WorkspaceWrite => SandboxSettings {
            enabled: Some(true),
            // Without this, a machine without a sandbox runs the commands unsandboxed.
            fail_if_unavailable: Some(true),
            auto_allow_bash_if_sandboxed: Some(false),
            allow_unsandboxed_commands: Some(false),
            ..SandboxSettings::default()
        },
    };
    let own = own.unwrap_or_default();
    let is_confined = config.sandbox_mode == Some(SandboxMode::WorkspaceWrite);
    let opts_out = own.enabled == Some(false) || own.fail_if_unavailable == Some(false);
    if is_confined && opts_out {
        let message = "sandboxMode workspaceWrite contradicts a sandbox that is not enabled or may \
                       be missing; leave one of them out";
        return Err(GatewayError::invalid(message));
    }
    Ok(Some(SandboxSettings {
        enabled: own.enabled.or(mode.enabled),
        fail_if_unavailable: own.fail_if_unavailable.or(mode.fail_if_unavailable),
        auto_allow_bash_if_sandboxed: own
            .auto_allow_bash_if_sandboxed
            .or(mode.auto_allow_bash_if_sandboxed),
        allow_unsandboxed_commands: own
            .allow_unsandboxed_commands
            .or(mode.allow_unsandboxed_commands),
        ..own
    }))
}
