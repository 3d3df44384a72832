//! How Codex is started: the arguments of both programs, and the parameters that open a thread.

use agentwire_protocol::id::is_uuid;
use agentwire_protocol::session::SystemPrompt;
use agentwire_protocol::{GatewayError, SessionConfig};
use serde_json::{Map, Value, json};

use super::{Driver, mcp, policy, project, rules};
use crate::agent::{ArgPart, Launch, Start, Stdin, own_prompt, refuse, refuse_claude_options};
use crate::images;

/// `codex app-server`. The session's settings are sent on stdin, where no other process of the machine can
/// read them; only the project's trust is an argument.
pub(super) fn app_server(start: &Start<'_>) -> Result<Launch, GatewayError> {
    thread_params(start.config)?;
    let mut launch = Launch::new("codex", start.config);
    launch.words(&["app-server"]);
    trust(start.config, &mut launch);
    Ok(launch)
}

/// `codex exec --json`, the prompt on stdin.
pub(super) fn exec(start: &Start<'_>) -> Result<Launch, GatewayError> {
    let config = start.config;
    check(Driver::Exec, config)?;
    let mut launch = Launch::new("codex", config);
    launch.words(&["exec", "--json", "--skip-git-repo-check"]);
    let sandbox = policy::of(Driver::Exec, config)?;
    // Only this flag lets MCP tools run that are not read-only.
    if sandbox == policy::Sandbox::FullAccess && policy::runs_all(config) {
        launch.words(&["--dangerously-bypass-approvals-and-sandbox"]);
    } else {
        launch.option("--sandbox", sandbox.word());
    }
    trust(config, &mut launch);
    if let Some(model) = &config.model {
        launch.option("--model", model);
    }
    for directory in config.additional_directories.iter().flatten() {
        launch.option("--add-dir", directory);
    }
    if let Some(format) = &config.output_format {
        launch.file("schema.json", format.schema.get());
        launch.option_of("--output-schema", [ArgPart::File("schema.json".to_owned())]);
    }
    // Every user of the machine can read a command line, so prompts and secrets are passed in other ways.
    match own_prompt(config) {
        None => {}
        Some(SystemPrompt::Text(text)) => {
            launch.file("instructions.md", text.as_str());
            // A path is not valid TOML, and Codex takes such a value as it is.
            let key = ArgPart::Text("model_instructions_file=".to_owned());
            launch.option_of("--config", [key, ArgPart::File("instructions.md".to_owned())]);
        }
        Some(SystemPrompt::Preset(preset)) => {
            let what = "systemPrompt with append, which would be visible on its command line; use the \
                        driver app-server, or give the whole prompt as a string";
            refuse(Driver::Exec.name(), &[(what, preset.append.is_some())])?;
        }
    }
    for (key, value) in rules::enforce(Driver::Exec, config)? {
        launch.option("--config", format!("{key}={}", toml(&value)));
    }
    mcp::exec(config, &mut launch)?;
    for name in images::add(start.prompt, &mut launch)? {
        launch.option_of("--image", [ArgPart::File(name)]);
    }
    if let Some(thread) = start.resume {
        // Codex treats anything but an id as a name, and an unknown name opens a new thread.
        if !is_uuid(thread) {
            let message = format!("`{thread}` is not the id of a codex thread");
            return Err(GatewayError::invalid(message));
        }
        launch.words(&[if start.fork { "fork" } else { "resume" }, thread]);
    }
    launch.words(&["-"]);
    let text = start.prompt.map(|prompt| prompt.text.clone());
    launch.stdin = Stdin::Text(text.unwrap_or_default());
    Ok(launch)
}

/// Tells Codex whether to read the project's own settings, if that is known.
fn trust(config: &SessionConfig, launch: &mut Launch) {
    if let Some(projects) = project::trust(config) {
        launch.option("--config", format!("projects={}", toml(&projects)));
    }
}

/// The parameters of `thread/start`, `thread/resume` and `thread/fork`.
pub(super) fn thread_params(config: &SessionConfig) -> Result<Map<String, Value>, GatewayError> {
    check(Driver::AppServer, config)?;
    let sandbox = policy::of(Driver::AppServer, config)?;
    let mut params = Map::new();
    let mut put = |name: &str, value: Value| drop(params.insert(name.to_owned(), value));
    if let Some(directory) = &config.working_directory {
        put("cwd", json!(directory));
    }
    if let Some(model) = &config.model {
        put("model", json!(model));
    }
    put("approvalPolicy", json!(policy::APPROVAL));
    // Codex's own reviewer, a model, would answer instead of us.
    put("approvalsReviewer", json!(policy::REVIEWER));
    put("sandbox", json!(sandbox.word()));
    match own_prompt(config) {
        None => {}
        Some(SystemPrompt::Text(text)) => put("baseInstructions", json!(text)),
        Some(SystemPrompt::Preset(preset)) => {
            if let Some(append) = &preset.append {
                put("developerInstructions", json!(append));
            }
        }
    }
    let mut overrides = mcp::app_server(config)?;
    overrides.extend(rules::enforce(Driver::AppServer, config)?);
    if let Some(roots) = &config.additional_directories {
        overrides.insert("sandbox_workspace_write.writable_roots".to_owned(), json!(roots));
    }
    if !overrides.is_empty() {
        put("config", json!(overrides));
    }
    Ok(params)
}

/// Notifications that a session without partial messages does not want.
pub(super) fn unwanted(config: &SessionConfig) -> &'static [&'static str] {
    match config.include_partial_messages {
        Some(false) => &[
            "item/agentMessage/delta",
            "item/reasoning/summaryTextDelta",
            "item/reasoning/textDelta",
            "item/plan/delta",
        ],
        Some(true) | None => &[],
    }
}

fn check(driver: Driver, config: &SessionConfig) -> Result<(), GatewayError> {
    refuse(driver.name(), &[("sandbox (use sandboxMode)", config.sandbox.is_some())])?;
    refuse_claude_options(driver.name(), config)
}

/// A value as TOML. JSON strings are TOML strings, except for one character.
pub(super) fn toml(value: &Value) -> String {
    let string = |text: &str| json!(text).to_string().replace('\u{7F}', "\\u007f");
    match value {
        Value::Array(items) => {
            format!("[{}]", items.iter().map(toml).collect::<Vec<_>>().join(", "))
        }
        Value::Object(fields) => {
            let fields =
                fields.iter().map(|(key, value)| format!("{} = {}", string(key), toml(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        Value::String(text) => string(text),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.to_string(),
    }
}
