//! What a session runs with.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{ErrorCode, GatewayError};
use crate::json::Json;

/// When the gateway asks before a tool runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalMode {
    /// Before every tool.
    #[default]
    Ask,
    /// Before dangerous ones.
    AskDangerous,
    /// File edits run unasked.
    AutoEdit,
    /// Everything runs unasked.
    AutoAll,
}

impl ApprovalMode {
    /// Its name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AskDangerous => "askDangerous",
            Self::AutoEdit => "autoEdit",
            Self::AutoAll => "autoAll",
        }
    }
}

/// What an agent's commands may touch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SandboxMode {
    /// The agent's own default.
    #[default]
    None,
    /// Nothing is written.
    ReadOnly,
    /// Only the workspace is written.
    WorkspaceWrite,
    /// No limits.
    FullAccess,
}

/// What happens at a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnLimit {
    /// The agent is paused and somebody is asked whether it may go on.
    #[default]
    Ask,
    /// The turn fails.
    Fail,
}

/// What a session runs with. The first nine are the specification's; the rest are the options of the
/// NDJSON backend and our own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct SessionConfig {
    /// Which agent, where it is not said elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// A project known to the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// Where the agent works.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// Which model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When to ask.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
    /// What commands may touch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_mode: Option<SandboxMode>,
    /// Tools that run unasked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that never run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_tools: Option<Vec<String>>,
    /// How many steps a turn may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_turns: Option<u32>,

    /// Which of the agent's drivers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The agent's own name of a permission mode; wins over `approvalMode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// What the agent is told before the first prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<SystemPrompt>,
    /// How much a session may cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
    /// How many tokens a session may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_tokens: Option<u64>,
    /// What happens where `maxTurns` or a budget is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<OnLimit>,
    /// How many tokens of reasoning a step may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_thinking_tokens: Option<u32>,
    /// Whether text comes in pieces as the model writes it. On unless said otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_partial_messages: Option<bool>,
    /// Whether the agent keeps copies of files, to rewind them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_file_checkpointing: Option<bool>,
    /// Further directories the agent may work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_directories: Option<Vec<String>>,
    /// MCP servers by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<BTreeMap<String, McpServer>>,
    /// Kinds of subagents by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<BTreeMap<String, AgentDefinition>>,
    /// Hooks that the client answers, by event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<BTreeMap<String, Vec<HookMatcher>>>,
    /// Sandbox settings of the agent's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSettings>,
    /// Which of the agent's settings files it reads: `user`, `project`, `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting_sources: Option<Vec<String>>,
    /// Whether the project's own files may make the agent run something: `true` trusts them as they
    /// are, `false` starts the agent without them. If left out, somebody is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Features of the model's service that are not yet for all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub betas: Option<Vec<String>>,
    /// What form the answer must have.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,
    /// The model to use where the first is not to be had.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// Variables for the agent's environment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Further arguments for the agent's program, in its own words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_args: Option<Vec<String>>,
    /// Further fields of Claude's `initialize`, in its own words. To other agents they are hints, but
    /// for those that would change what the agent does: these are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_options: Option<BTreeMap<String, Json<'static>>>,
}

impl SessionConfig {
    /// The names of its fields.
    pub const FIELDS: [&str; 31] = [
        "additionalDirectories",
        "agentType",
        "agents",
        "allowedTools",
        "approvalMode",
        "betas",
        "blockedTools",
        "driver",
        "enableFileCheckpointing",
        "env",
        "fallbackModel",
        "hooks",
        "includePartialMessages",
        "maxBudgetTokens",
        "maxBudgetUsd",
        "maxThinkingTokens",
        "maxTurns",
        "mcpServers",
        "model",
        "nativeArgs",
        "nativeOptions",
        "onLimit",
        "outputFormat",
        "permissionMode",
        "projectId",
        "sandbox",
        "sandboxMode",
        "settingSources",
        "systemPrompt",
        "trust",
        "workingDirectory",
    ];

    /// Checks what types cannot, and says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if let Some(turns) = self.max_turns.filter(|turns| !(1..=1000).contains(turns)) {
            return Err(format!("maxTurns is {turns}, it must be from 1 to 1000"));
        }
        Ok(())
    }

    /// At a limit the turn fails, unless something else is said: for clients that do not see the question
    /// whether to go on.
    pub fn fail_at_limits(&mut self) {
        let has_limit = self.max_turns.is_some()
            || self.max_budget_usd.is_some()
            || self.max_budget_tokens.is_some();
        if has_limit {
            self.on_limit.get_or_insert(OnLimit::Fail);
        }
    }

    /// Refuses what no process can be started with: variables that are none, and texts with a NUL byte.
    pub fn check_texts(&self) -> Result<(), GatewayError> {
        let lists = [
            ("additionalDirectories", &self.additional_directories),
            ("nativeArgs", &self.native_args),
        ];
        for (field, list) in lists {
            for (at, text) in list.iter().flatten().enumerate() {
                without_nul(text, || format!("{field}[{at}]"))?;
            }
        }
        if let Some(directory) = &self.working_directory {
            without_nul(directory, || "workingDirectory".to_owned())?;
        }
        self.env.as_ref().map_or(Ok(()), |env| check_variables(env, "env"))?;
        for (name, server) in self.mcp_servers.iter().flatten() {
            check_variables(&server.env, &format!("mcpServers.{name}.env"))?;
            for text in server.command.iter().chain(&server.args) {
                without_nul(text, || format!("mcpServers.{name}"))?;
            }
        }
        Ok(())
    }

    /// What readers of the log may see: no environment, no arguments, and of MCP servers only their
    /// names and kinds, since variables, headers, arguments and addresses hold secrets.
    pub fn shown(&self) -> Self {
        let mut shown = Self { env: None, native_args: None, native_options: None, ..self.clone() };
        for server in shown.mcp_servers.iter_mut().flat_map(BTreeMap::values_mut) {
            *server = McpServer { kind: server.kind.take(), ..McpServer::default() };
        }
        shown
    }

    /// What is kept to resume the session: nothing that may hold secrets (variables, headers, the
    /// agent's own arguments and options), and nothing that only the client of that time can answer
    /// (hooks, MCP servers that it hosts), nor that the project is trusted, which it is as it was then.
    pub fn kept(&self) -> Self {
        let mut kept = Self {
            env: None,
            hooks: None,
            native_args: None,
            native_options: None,
            trust: None,
            ..self.clone()
        };
        if let Some(servers) = &mut kept.mcp_servers {
            servers.retain(|_, server| !server.is_hosted());
            for server in servers.values_mut() {
                server.env = BTreeMap::new();
                server.headers = BTreeMap::new();
            }
        }
        kept.mcp_servers = kept.mcp_servers.filter(|servers| !servers.is_empty());
        kept
    }

    /// What is not kept, or not whole: it must come with each start.
    pub fn unkept(&self) -> Self {
        Self {
            env: self.env.clone(),
            hooks: self.hooks.clone(),
            mcp_servers: self.mcp_servers.clone(),
            native_args: self.native_args.clone(),
            native_options: self.native_options.clone(),
            trust: self.trust,
            ..Self::default()
        }
    }

    /// The fields that are given and not kept, or not whole.
    pub fn unkept_names(&self) -> Vec<&'static str> {
        let has = |list: &Option<Vec<String>>| list.as_ref().is_some_and(|list| !list.is_empty());
        let is_cut = |server: &McpServer| {
            server.is_hosted() || !server.env.is_empty() || !server.headers.is_empty()
        };
        let fields = [
            ("env", self.env.as_ref().is_some_and(|env| !env.is_empty())),
            ("hooks", self.hooks.as_ref().is_some_and(|hooks| !hooks.is_empty())),
            ("mcpServers", self.mcp_servers.iter().flatten().any(|(_, server)| is_cut(server))),
            ("nativeArgs", has(&self.native_args)),
            ("nativeOptions", self.native_options.as_ref().is_some_and(|them| !them.is_empty())),
        ];
        fields.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect()
    }

    /// Only what the specification has.
    pub fn core(&self) -> Self {
        Self {
            agent_type: self.agent_type.clone(),
            project_id: self.project_id.clone(),
            working_directory: self.working_directory.clone(),
            model: self.model.clone(),
            approval_mode: self.approval_mode,
            sandbox_mode: self.sandbox_mode,
            allowed_tools: self.allowed_tools.clone(),
            blocked_tools: self.blocked_tools.clone(),
            max_turns: self.max_turns,
            ..Self::default()
        }
    }
}

/// What the agent is told before the first prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SystemPrompt {
    /// In place of the agent's own.
    Text(String),
    /// The agent's own, with more after it.
    Preset(SystemPromptPreset),
}

impl SystemPrompt {
    /// What stands in place of the agent's own, and what after it.
    pub fn parts(self) -> (Option<String>, Option<String>) {
        match self {
            Self::Text(whole) => (Some(whole), None),
            Self::Preset(preset) => (None, preset.append),
        }
    }

    /// A prompt in place of the agent's own, if there is one, with more after it, if there is any.
    pub fn joined(whole: Option<String>, append: Option<String>) -> Option<Self> {
        match (whole, append.filter(|append| !append.is_empty())) {
            (Some(whole), Some(append)) if whole.is_empty() => Some(Self::Text(append)),
            (Some(whole), Some(append)) => Some(Self::Text(format!("{whole}\n\n{append}"))),
            (Some(whole), None) => Some(Self::Text(whole)),
            (None, Some(append)) => Some(Self::Preset(SystemPromptPreset {
                kind: "preset".to_owned(),
                preset: "claude_code".to_owned(),
                append: Some(append),
            })),
            (None, None) => None,
        }
    }
}

/// The agent's own system prompt, with more after it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SystemPromptPreset {
    /// Always `preset`.
    #[serde(rename = "type")]
    pub kind: String,
    /// Which one, such as `claude_code`.
    pub preset: String,
    /// What stands after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<String>,
}

/// An MCP server: a command to run, or an address.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct McpServer {
    /// `stdio` (the default), `sse`, `http`, or `sdk` for one that the client hosts.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// Its environment.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers to send there.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl McpServer {
    /// Whether the client hosts it.
    pub fn is_hosted(&self) -> bool {
        self.kind.as_deref() == Some("sdk")
    }
}

/// Refuses variables that an environment cannot have. A name with `=` would set another variable.
pub fn check_variables(
    variables: &BTreeMap<String, String>,
    field: &str,
) -> Result<(), GatewayError> {
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!(
                "{field}: {name:?} is not the name of a variable: it must not be empty, nor have = or a NUL byte"
            );
            return Err(GatewayError::new(ErrorCode::InvalidMessage, message));
        }
        without_nul(value, || format!("{field}.{name}"))?;
    }
    Ok(())
}

fn without_nul(text: &str, field: impl FnOnce() -> String) -> Result<(), GatewayError> {
    if !text.contains('\0') {
        return Ok(());
    }
    let message = format!("{}: it must not have a NUL byte", field());
    Err(GatewayError::new(ErrorCode::InvalidMessage, message))
}

/// A kind of subagent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentDefinition {
    /// When to use it.
    pub description: String,
    /// What it is told.
    pub prompt: String,
    /// The tools it has; all, if left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<Vec<String>>,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
}

/// When a hook is called.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct HookMatcher {
    /// A pattern of tool names, such as `Write|Edit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// How many seconds the agent waits for the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// The client's ids of what is called, one call each; one of ours if there is none.
    #[serde(rename = "hookCallbackIds", skip_serializing_if = "Vec::is_empty")]
    pub callback_ids: Vec<String>,
    /// What happens if the hook itself fails: `block`, or nothing.
    #[serde(rename = "onFailure", skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
}

/// Sandbox settings of the agent's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct SandboxSettings {
    /// Whether commands run in a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether the agent refuses to start where there is no sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_if_unavailable: Option<bool>,
    /// Whether sandboxed commands run unasked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Commands that run outside of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_commands: Option<Vec<String>>,
    /// Whether the agent may ask to run outside of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unsandboxed_commands: Option<bool>,
    /// What of the network it may use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<SandboxNetwork>,
    /// Violations that are passed over.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_violations: Option<SandboxViolations>,
}

/// What of the network a sandbox may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct SandboxNetwork {
    /// Listening on local ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_local_binding: Option<bool>,
    /// These sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unix_sockets: Option<Vec<String>>,
    /// All sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_all_unix_sockets: Option<bool>,
}

/// Violations that are passed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct SandboxViolations {
    /// Of these files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Vec<String>>,
    /// Of these hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Vec<String>>,
}

/// What form the answer must have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OutputFormat {
    /// Always `json_schema`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The schema.
    pub schema: Json<'static>,
}
