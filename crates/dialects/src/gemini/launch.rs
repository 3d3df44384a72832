//! How `gemini -o stream-json` is started.

use agentwire_protocol::{ApprovalMode, GatewayError, SandboxMode, SessionConfig};

use crate::agent::{ArgPart, Launch, Start, Stdin, further_prompt, refuse, refuse_claude_options};
use crate::images;

const NAME: &str = "gemini with stream-json";

pub(super) fn launch(start: &Start<'_>) -> Result<Launch, GatewayError> {
    let config = start.config;
    unenforceable("blockedTools", config.blocked_tools.as_deref())?;
    unenforceable("allowedTools", config.allowed_tools.as_deref())?;
    refuse(
        NAME,
        &[
            (
                "sandboxMode readOnly (permissionMode plan is similar)",
                config.sandbox_mode == Some(SandboxMode::ReadOnly),
            ),
            ("systemPrompt with append (the driver acp does)", further_prompt(config).is_some()),
            ("mcpServers (the driver acp does)", config.mcp_servers.is_some()),
            ("sandbox", config.sandbox.is_some()),
            ("outputFormat", config.output_format.is_some()),
            ("fork", start.fork),
        ],
    )?;
    refuse_claude_options(NAME, config)?;
    let mut launch = Launch::new("gemini", config);
    launch.words(&["--output-format=stream-json"]);
    super::project::trust(config.trust, &mut launch);
    super::system_prompt(config, &mut launch);
    launch.option(
        "--approval-mode",
        approval_mode(config.permission_mode.as_deref(), config.approval_mode)?,
    );
    choices(config, &mut launch);
    match (start.resume, start.native_session_id) {
        (Some(id), _) => launch.option("--resume", id),
        (None, Some(id)) => launch.option("--session-id", id),
        (None, None) => &mut launch,
    };
    launch.stdin = start.prompt.map_or(Stdin::Empty, |prompt| Stdin::Text(prompt.text.clone()));
    // A prompt may name files of the workspace; this one is appended to what arrives on stdin.
    let images = images::add(start.prompt, &mut launch)?;
    if !images.is_empty() {
        launch.option_of("--include-directories", [ArgPart::Directory]);
        let named = images.into_iter().enumerate().flat_map(|(at, name)| {
            let sign = if at == 0 { "@" } else { " @" };
            [ArgPart::Text(sign.to_owned()), ArgPart::EscapedFile(name)]
        });
        launch.option_of("--prompt", named);
    }
    Ok(launch)
}

/// The options that both drivers pass on in the same way.
pub(super) fn choices(config: &SessionConfig, launch: &mut Launch) {
    if let Some(model) = &config.model {
        launch.option("--model", model);
    }
    if config.sandbox_mode == Some(SandboxMode::WorkspaceWrite) {
        launch.words(&["--sandbox"]);
    }
    for directory in config.additional_directories.iter().flatten() {
        launch.option("--include-directories", directory);
    }
    // Gemini's launcher swallows signals; a single process does not.
    launch.env.entry("GEMINI_CLI_NO_RELAUNCH".to_owned()).or_insert_with(|| "1".to_owned());
}

/// Refuses rules by name: this wire never asks, so the gateway cannot apply them.
fn unenforceable(list: &str, rules: Option<&[String]>) -> Result<(), GatewayError> {
    match rules.and_then(<[String]>::first) {
        None => Ok(()),
        Some(rule) => {
            let what = format!(
                "the rule {rule} in {list}: `gemini -p` never asks, so no rule can be applied; use \
                 the driver acp"
            );
            Err(GatewayError::unsupported(NAME, what))
        }
    }
}

/// The value of `--approval-mode`. This wire cannot ask, so Gemini does not offer the model what would have
/// to ask.
pub(super) fn approval_mode(
    permission_mode: Option<&str>,
    approval_mode: Option<ApprovalMode>,
) -> Result<&'static str, GatewayError> {
    if let Some(mode) = permission_mode {
        return match mode {
            "default" => Ok("default"),
            "acceptEdits" | "auto_edit" | "autoEdit" => Ok("auto_edit"),
            "bypassPermissions" | "yolo" => Ok("yolo"),
            "plan" => Ok("plan"),
            other => Err(GatewayError::unsupported("gemini", format!("permissionMode {other}"))),
        };
    }
    Ok(match approval_mode.unwrap_or_default() {
        ApprovalMode::Ask | ApprovalMode::AskDangerous => "default",
        ApprovalMode::AutoEdit => "auto_edit",
        ApprovalMode::AutoAll => "yolo",
    })
}
