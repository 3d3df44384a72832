//! The config of a session.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::GatewayError;
use crate::json::Json;

/// When the gateway asks before a tool runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum ApprovalMode {
    /// Ask before every tool.
    #[default]
    Ask,
    /// Ask before dangerous tools.
    AskDangerous,
    /// File edits run without asking.
    AutoEdit,
    /// Everything runs without asking.
    AutoAll,
}

impl ApprovalMode {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ask => "ask",
            Self::AskDangerous => "askDangerous",
            Self::AutoEdit => "autoEdit",
            Self::AutoAll => "autoAll",
        }
    }
}

/// What an agent's commands may access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum SandboxMode {
    /// The agent's own default.
    #[default]
    None,
    /// Commands may not write.
    ReadOnly,
    /// Commands may only write to the workspace.
    WorkspaceWrite,
    /// No limits.
    FullAccess,
}

/// What to do when a limit is reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum OnLimit {
    /// Pause the agent and ask whether it may continue.
    #[default]
    Ask,
    /// Fail the turn.
    Fail,
}

/// The config of a session. The first nine fields are from the specification; the rest are options of the
/// NDJSON backend and agentwire's own.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct SessionConfig {
    /// The agent, if it is not given elsewhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// A project that the server knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project_id: Option<String>,
    /// The working directory of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// When to ask for approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<ApprovalMode>,
    /// What commands may access.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox_mode: Option<SandboxMode>,
    /// Tools that run without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Vec<String>>,
    /// Tools that never run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub blocked_tools: Option<Vec<String>>,
    /// Maximum number of steps per turn.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1000))]
    pub max_turns: Option<u32>,

    /// The driver to use for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub driver: Option<String>,
    /// The agent's own name for a permission mode; takes precedence over `approvalMode`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permission_mode: Option<String>,
    /// The system prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub system_prompt: Option<SystemPrompt>,
    /// Maximum cost of the session, in US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_usd: Option<f64>,
    /// Maximum number of tokens for the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_budget_tokens: Option<u64>,
    /// What to do when `maxTurns` or a budget is reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<OnLimit>,
    /// Maximum number of reasoning tokens per step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_thinking_tokens: Option<u32>,
    /// Whether text is streamed as the model writes it. On by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub include_partial_messages: Option<bool>,
    /// Whether the agent stores copies of files, so that they can be rewound.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enable_file_checkpointing: Option<bool>,
    /// Further directories the agent may work in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additional_directories: Option<Vec<String>>,
    /// MCP servers by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mcp_servers: Option<BTreeMap<String, McpServer>>,
    /// Subagent definitions by name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents: Option<BTreeMap<String, AgentDefinition>>,
    /// Hooks that the client answers, by event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hooks: Option<BTreeMap<String, Vec<HookMatcher>>>,
    /// The agent's own sandbox settings.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<SandboxSettings>,
    /// Which of the agent's settings files it reads: `user`, `project`, `local`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub setting_sources: Option<Vec<String>>,
    /// Whether the project's own files may make the agent run something: `true` trusts them as they are,
    /// `false` starts the agent without them. If omitted, agentwire asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trust: Option<bool>,
    /// Beta features of the model's service.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub betas: Option<Vec<String>>,
    /// The required format of the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_format: Option<OutputFormat>,
    /// The model to use if the first is not available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback_model: Option<String>,
    /// Environment variables for the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub env: Option<BTreeMap<String, String>>,
    /// Further arguments for the agent's program, passed on unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_args: Option<Vec<String>>,
    /// Further fields of Claude's `initialize`, in Claude's format. Other agents treat them as hints,
    /// except fields that would change what the agent does, which are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_options: Option<BTreeMap<String, Json<'static>>>,
}

impl SessionConfig {
    /// The names of all fields.
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

    /// Checks what the types cannot express. The error says what is wrong.
    pub fn check(&self) -> Result<(), String> {
        if let Some(turns) = self.max_turns.filter(|turns| !(1..=1000).contains(turns)) {
            return Err(format!("maxTurns is {turns}; it must be from 1 to 1000"));
        }
        Ok(())
    }

    /// Sets `onLimit` to fail if there is a limit and no `onLimit`: for clients that do not see the
    /// question whether to continue.
    pub fn fail_at_limits(&mut self) {
        let has_limit = self.max_turns.is_some()
            || self.max_budget_usd.is_some()
            || self.max_budget_tokens.is_some();
        if has_limit {
            self.on_limit.get_or_insert(OnLimit::Fail);
        }
    }

    /// Refuses what no process can be started with: invalid variable names, and texts with a NUL byte.
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

    /// What readers of the log may see: no environment, no arguments, and for MCP servers only names and
    /// types, because variables, headers, arguments and addresses hold secrets.
    pub fn shown(&self) -> Self {
        let mut shown = Self { env: None, native_args: None, native_options: None, ..self.clone() };
        for server in shown.mcp_servers.iter_mut().flat_map(BTreeMap::values_mut) {
            *server = McpServer { kind: server.kind.take(), ..McpServer::default() };
        }
        shown
    }

    /// What is stored to resume the session. It leaves out everything that may hold secrets (variables,
    /// headers, the agent's own arguments and options) and everything that only the original client can
    /// answer (hooks, MCP servers that it hosts). It also leaves out `trust`, which applies to the project
    /// as it was then.
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

    /// The fields that are not stored, or not in full. They must be given again with each start.
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

    /// The names of the fields that are given but not stored, or not in full.
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

    /// Only the specification's fields.
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

/// The system prompt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum SystemPrompt {
    /// Replaces the agent's own system prompt.
    Text(String),
    /// The agent's own system prompt, with text appended.
    Preset(SystemPromptPreset),
}

impl SystemPrompt {
    /// The text that replaces the agent's own prompt, and the text to append.
    pub fn parts(self) -> (Option<String>, Option<String>) {
        match self {
            Self::Text(whole) => (Some(whole), None),
            Self::Preset(preset) => (None, preset.append),
        }
    }

    /// A prompt that replaces the agent's own, if given, with text appended, if given.
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

/// The agent's own system prompt, with text appended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct SystemPromptPreset {
    /// Always `preset`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The preset, such as `claude_code`.
    pub preset: String,
    /// The text to append.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub append: Option<String>,
}

/// An MCP server: a command to run, or a URL.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct McpServer {
    /// `stdio` (the default), `sse`, `http`, or `sdk` for a server that the client hosts.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The program to run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// The program's arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub args: Vec<String>,
    /// The program's environment variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub env: BTreeMap<String, String>,
    /// The server's URL.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Headers to send to the URL.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
}

impl McpServer {
    /// Whether the client hosts it.
    pub fn is_hosted(&self) -> bool {
        self.kind.as_deref() == Some("sdk")
    }
}

/// Refuses variables that an environment cannot hold. A name with `=` would set a different variable.
pub fn check_variables(
    variables: &BTreeMap<String, String>,
    field: &str,
) -> Result<(), GatewayError> {
    for (name, value) in variables {
        if name.is_empty() || name.contains(['=', '\0']) {
            let message = format!(
                "{field}: {name:?} is not a valid variable name: it must not be empty or contain = or a NUL byte"
            );
            return Err(GatewayError::invalid(message));
        }
        without_nul(value, || format!("{field}.{name}"))?;
    }
    Ok(())
}

fn without_nul(text: &str, field: impl FnOnce() -> String) -> Result<(), GatewayError> {
    if !text.contains('\0') {
        return Ok(());
    }
    Err(GatewayError::invalid(format!("{}: it must not contain a NUL byte", field())))
}

/// A subagent definition.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct AgentDefinition {
    /// When to use it.
    pub description: String,
    /// Its system prompt.
    pub prompt: String,
    /// The tools it may use; all if omitted.
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
    /// A pattern for tool names, such as `Write|Edit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub matcher: Option<String>,
    /// How many seconds the agent waits for an answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<u32>,
    /// The client's ids of the callbacks, one call each. If there are none, agentwire uses its own id.
    #[serde(rename = "hookCallbackIds", skip_serializing_if = "Vec::is_empty")]
    pub callback_ids: Vec<String>,
    /// What to do if the hook itself fails: `block`, or nothing.
    #[serde(rename = "onFailure", skip_serializing_if = "Option::is_none")]
    pub on_failure: Option<String>,
}

/// The agent's own sandbox settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct SandboxSettings {
    /// Whether commands run in a sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
    /// Whether the agent refuses to start if no sandbox is available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fail_if_unavailable: Option<bool>,
    /// Whether sandboxed commands run without asking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_allow_bash_if_sandboxed: Option<bool>,
    /// Commands that run outside the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub excluded_commands: Option<Vec<String>>,
    /// Whether the agent may ask to run a command outside the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unsandboxed_commands: Option<bool>,
    /// The network access of the sandbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<SandboxNetwork>,
    /// Violations to ignore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ignore_violations: Option<SandboxViolations>,
}

/// The network access of a sandbox.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct SandboxNetwork {
    /// Allow listening on local ports.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_local_binding: Option<bool>,
    /// Unix sockets to allow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_unix_sockets: Option<Vec<String>>,
    /// Allow all Unix sockets.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_all_unix_sockets: Option<bool>,
}

/// Violations to ignore.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
#[schemars(deny_unknown_fields)]
pub struct SandboxViolations {
    /// Ignore violations for these files.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<Vec<String>>,
    /// Ignore violations for these hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<Vec<String>>,
}

/// The required format of the answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct OutputFormat {
    /// Always `json_schema`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The JSON Schema.
    pub schema: Json<'static>,
}
