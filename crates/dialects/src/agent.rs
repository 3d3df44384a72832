//! What a dialect must do to drive an agent.

use std::collections::BTreeMap;

use agentwire_protocol::event::{ErrorEvent, Status, StatusChanged, TurnFailed};
use agentwire_protocol::session::SystemPrompt;
use agentwire_protocol::{
    AgentType, ApprovalMode, Call, Command, Configure, ErrorCode, GatewayError, Json, JsonObject,
    Prompt, SessionConfig, Settlement, Text,
};

use crate::describe::AgentTools;
use crate::json::Value;
use crate::overrides::{MachineFile, OwnRuleFiles, RefusedOptions};
use crate::project::ProjectFile;
use crate::tape::Out;

/// One wire of one agent: how to start it and how to read it.
pub trait AgentDialect: Sync {
    /// The name in `translate --from` and `native.dialect`.
    fn name(&self) -> &'static str;

    fn agent_type(&self) -> AgentType;

    fn capabilities(&self) -> Capabilities;

    /// The agent's tools. The session judges calls by them.
    fn tools(&self) -> &'static AgentTools;

    /// Whether this JSON object looks like a line of this wire.
    fn recognises(&self, message: Value<'_>) -> bool;

    /// How to start the agent. An option that it does not support is refused by name.
    fn launch(&self, start: &Start<'_>) -> Result<Launch, GatewayError>;

    /// Whether a turn failed because the agent is not signed in, or its key was rejected.
    fn wants_sign_in(&self, failed: &TurnFailed<'_>) -> bool;

    /// Reads what the agent reports on stderr and nowhere else.
    fn overhear<'l>(&self, _line: &'l str) -> Option<ErrorEvent<'l>> {
        None
    }

    /// The project files that make the agent run something when it starts with this config. A launch with
    /// `trust: false` must not read them.
    fn project_files(&self, _config: &SessionConfig) -> Vec<ProjectFile> {
        Vec::new()
    }

    /// Whether the agent can start without reading the project's files.
    fn starts_without_project(&self) -> bool {
        true
    }

    /// Whether it starts MCP servers only in a project that it trusts.
    fn servers_need_trust(&self) -> bool {
        false
    }

    /// Whether a session with this config runs calls that change something, without asking anyone. A client
    /// that may not widen what an agent does must not start such a session.
    fn runs_unasked(&self, _config: &SessionConfig) -> Result<bool, GatewayError> {
        Ok(!self.capabilities().permissions)
    }

    /// The program's arguments and variables that would disable what the gateway judges by.
    fn refused_options(&self) -> Option<&'static RefusedOptions> {
        None
    }

    /// Files on the machine that may let the agent run calls without asking.
    fn machine_files(&self) -> &'static [MachineFile] {
        &[]
    }

    /// The agent's own rules, by which it runs calls without asking.
    fn own_rules(&self) -> Option<&'static OwnRuleFiles> {
        None
    }

    /// How long a prompt may be, where that is known.
    fn prompt_limit(&self) -> Option<PromptLimit> {
        None
    }

    fn translator(&self, setup: &Setup) -> Box<dyn AgentTranslator>;
}

/// Reads one agent's lines and writes commands in its dialect. Never fails: it ignores a line that it does
/// not understand, and the tape records that line.
pub trait AgentTranslator: Send {
    /// The process has started. Writes what must come first.
    fn on_start(&mut self, _out: &mut Out<'_>) {}

    /// The agent wrote this JSON object. If nothing is emitted, the line becomes an `other` event.
    fn on_line(&mut self, message: Value<'_>, out: &mut Out<'_>);

    /// Handles a client's command. Replies at once or later through [`Out::reply`]; an error is the reply.
    fn on_command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError>;

    /// The process or the recording has ended. Closes what is still open.
    fn on_exit(&mut self, exit: Exit, out: &mut Out<'_>);
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
    /// Not known: a recording ended.
    Unknown,
}

/// What a translator knows about its session.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    pub config: SessionConfig,
    /// The agent's own id of the session to resume.
    pub resume: Option<String>,
    /// Resume in a copy; the original session stays as it is.
    pub fork: bool,
    /// The agent's id for a new session, if the agent lets us choose it.
    pub native_session_id: Option<String>,
    /// One recorded run, not a live session: its end is the session's end.
    pub recording: bool,
}

/// What an agent can do on a wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It asks before tools run and accepts the answer.
    pub permissions: bool,
    pub questions: bool,
    /// The client's hooks that it calls itself.
    pub hooks: OwnHooks,
    /// It uses MCP servers that the client hosts.
    pub hosted_mcp: bool,
    /// Its text arrives in pieces.
    pub deltas: bool,
    /// A turn can be interrupted, and the session continues.
    pub interrupt: bool,
    /// A prompt can join a running turn.
    pub steer: bool,
    pub images: bool,
    /// It accepts Claude's content blocks other than text and images.
    pub content_blocks: bool,
    pub resume: bool,
    /// Model and mode can change during a session.
    pub configure: bool,
    pub process_per_turn: bool,
    /// Several prompts may become one turn.
    pub folds_prompts: bool,
    /// A session whose turns all failed before the model answered is not stored: it cannot be resumed.
    pub forgets_failures: bool,
    /// It accepts a schema for its answers. For other agents the gateway enforces the schema.
    pub structured_output: bool,
    /// An answer to a permission request can change the call's input.
    pub changed_input: bool,
    /// A session cannot be resumed in the clock minute in which it started; an attempt loses it.
    pub resumes_next_minute: bool,
    /// Its session id can also be ours.
    pub shares_session_id: bool,
    /// An answer can change the permission rules (`updatedPermissions`), and requests suggest changes.
    pub permission_updates: bool,
    /// A permission can be answered in Claude's own form.
    pub own_answer_form: bool,
}

/// The longest text of a prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptLimit {
    pub most: usize,
    pub unit: TextUnit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextUnit {
    /// Of UTF-8.
    Bytes,
    /// Unicode scalar values.
    Characters,
}

impl TextUnit {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Characters => "characters",
        }
    }

    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Bytes => text.len(),
            Self::Characters => text.chars().count(),
        }
    }
}

/// The client's hooks that an agent calls itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnHooks {
    #[default]
    None,
    AllBut(&'static [&'static str]),
}

impl OwnHooks {
    /// Whether the agent calls the hooks of that event.
    pub fn include(self, event: &str) -> bool {
        match self {
            Self::None => false,
            Self::AllBut(others) => !others.contains(&event),
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Start<'s> {
    pub config: &'s SessionConfig,
    /// The agent's own id of the session to resume.
    pub resume: Option<&'s str>,
    /// Resume in a copy; the original session stays as it is.
    pub fork: bool,
    /// The agent's id for a new session, if the agent lets us choose it.
    pub native_session_id: Option<&'s str>,
    /// Set on wires where one process serves one turn.
    pub prompt: Option<&'s Prompt>,
}

/// How to start a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Looked up on PATH unless the user names another program.
    pub program: String,
    /// No value from a user can become a flag or a file name.
    pub args: Vec<Arg>,
    /// Variables to set in addition to the inherited ones.
    pub env: BTreeMap<String, String>,
    /// Variables whose value is the path of one of `files`.
    pub env_files: BTreeMap<String, String>,
    pub working_directory: Option<String>,
    pub stdin: Stdin,
    /// Files that the process needs, written to a private directory.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// One argument: its parts, joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg(pub Vec<ArgPart>);

/// A part of an argument. The paths of files are known only when the process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgPart {
    Text(String),
    /// The path of the file with this name.
    File(String),
    /// The path, escaped with backslashes as in a shell.
    EscapedFile(String),
    /// The path, as a JSON or TOML string.
    QuotedFile(String),
    /// The directory of the files, as an item of a comma-separated list: its path must not contain a comma.
    Directory,
}

impl Arg {
    /// The argument as the documents show it: `{file:NAME}`, `{escaped:NAME}`, `{quoted:NAME}` and
    /// `{file:}` stand for paths.
    pub fn shown(&self) -> String {
        let parts = self.0.iter().map(|part| match part {
            ArgPart::Text(text) => text.clone(),
            ArgPart::File(name) => format!("{{file:{name}}}"),
            ArgPart::EscapedFile(name) => format!("{{escaped:{name}}}"),
            ArgPart::QuotedFile(name) => format!("{{quoted:{name}}}"),
            ArgPart::Directory => "{file:}".to_owned(),
        });
        parts.collect()
    }
}

impl<T: Into<String>> From<T> for Arg {
    fn from(text: T) -> Self {
        Self(vec![ArgPart::Text(text.into())])
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// Stays open: the wire goes both ways.
    Open,
    /// This text, then end of file.
    Text(String),
    Empty,
}

impl Launch {
    pub fn new(program: &str, config: &SessionConfig) -> Self {
        Self {
            program: program.to_owned(),
            args: Vec::new(),
            env: config.env.clone().unwrap_or_default(),
            env_files: BTreeMap::new(),
            working_directory: config.working_directory.clone(),
            stdin: Stdin::Open,
            files: BTreeMap::new(),
        }
    }

    /// Adds arguments that contain no value from a user.
    pub fn words(&mut self, words: &[&str]) -> &mut Self {
        self.args.extend(words.iter().map(|word| Arg::from(*word)));
        self
    }

    pub fn file(&mut self, name: impl Into<String>, contents: impl Into<Vec<u8>>) -> &mut Self {
        self.files.insert(name.into(), contents.into());
        self
    }

    /// Adds a file, and a variable with its path.
    pub fn variable_file(
        &mut self,
        variable: &str,
        name: &str,
        contents: impl Into<Vec<u8>>,
    ) -> &mut Self {
        self.env.remove(variable);
        self.env_files.insert(variable.to_owned(), name.to_owned());
        self.file(name, contents)
    }

    /// Adds `--flag=value` as one argument, so that no value can become a flag.
    pub fn option(&mut self, flag: &str, value: impl std::fmt::Display) -> &mut Self {
        self.args.push(Arg::from(format!("{flag}={value}")));
        self
    }

    /// Adds `--flag=value` as one argument, where parts of the value are known only when the process
    /// starts.
    pub fn option_of(&mut self, flag: &str, value: impl IntoIterator<Item = ArgPart>) -> &mut Self {
        let flag = ArgPart::Text(format!("{flag}="));
        self.args.push(Arg(std::iter::once(flag).chain(value).collect()));
        self
    }

    pub fn shown_args(&self) -> Vec<String> {
        self.args.iter().map(Arg::shown).collect()
    }
}

/// Fields of Claude's `initialize` that would change what the agent does and that other agents do not have.
const NOT_HINTS: [&str; 4] = ["skills", "plugins", "toolAliases", "planModeInstructions"];

/// Whether `nativeOptions` has something that only Claude supports.
fn has_native_options(config: &SessionConfig) -> bool {
    let says = |json: &Json<'_>| !matches!(json.get(), "null" | "[]" | "{}" | "\"\"");
    let options = config.native_options.iter().flatten();
    options.into_iter().any(|(name, json)| NOT_HINTS.contains(&name.as_str()) && says(json))
}

/// The prompt that replaces the agent's own prompt or follows it. For Claude's clients an empty prompt
/// means none; the agent then keeps its own.
pub(crate) fn own_prompt(config: &SessionConfig) -> Option<&SystemPrompt> {
    let says = |prompt: &&SystemPrompt| match prompt {
        SystemPrompt::Text(text) => !text.is_empty(),
        SystemPrompt::Preset(_) => true,
    };
    config.system_prompt.as_ref().filter(says)
}

/// The prompt that replaces the agent's own.
pub(crate) fn replacing_prompt(config: &SessionConfig) -> Option<&str> {
    match own_prompt(config)? {
        SystemPrompt::Text(text) => Some(text),
        SystemPrompt::Preset(_) => None,
    }
}

/// The prompt that follows the agent's own.
pub(crate) fn further_prompt(config: &SessionConfig) -> Option<&str> {
    match own_prompt(config)? {
        SystemPrompt::Text(_) => None,
        SystemPrompt::Preset(preset) => preset.append.as_deref().filter(|text| !text.is_empty()),
    }
}

/// The mode's name for Claude's clients.
pub(crate) fn mode_name(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Ask | ApprovalMode::AskDangerous => "default",
        ApprovalMode::AutoEdit => "acceptEdits",
        ApprovalMode::AutoAll => "bypassPermissions",
    }
}

/// Reports a change that the agent itself does not report. `model` is the model now set, if any.
pub(crate) fn report_change(change: &Configure, model: Option<&str>, out: &mut Out<'_>) {
    if change.model.is_some() {
        let model = model.unwrap_or("default");
        out.emit(StatusChanged::new(Status::Model).message(Text::from(model)));
    }
    let mode = change.permission_mode.as_deref().or(change.approval_mode.map(mode_name));
    if let Some(mode) = mode {
        out.emit(StatusChanged::new(Status::Mode).message(Text::from(mode)));
    }
}

/// Denies a JSON-RPC request that exceeds the limit. Nobody would answer it, and the agent would wait
/// forever.
pub(crate) fn deny_overload(wire_id: &str, out: &mut Out<'_>) {
    let reason = "too many requests are open, this one was denied";
    let code = Some(Text::fixed(ErrorCode::Overloaded.as_str()));
    out.emit(ErrorEvent { code, ..ErrorEvent::new(reason) });
    let error = JsonObject::new().raw("code", &Json::of(&-32000)).text("message", reason);
    let reply = JsonObject::new().text("jsonrpc", "2.0").raw("id", &Json::trusted(wire_id));
    out.write(reply.raw("error", &error.finish()).finish().into_text());
}

/// Reports that a queued prompt will not run.
pub(crate) fn report_cancelled(message_id: &str, out: &mut Out<'_>) {
    let details = Json::of(&BTreeMap::from([("messageId", message_id)]));
    let status = StatusChanged::new(Status::Queue).message(Text::from("cancelled"));
    out.emit(status.details(details));
}

/// Why an agent that never asks, or has no such command, does not accept this one.
pub(crate) fn refused_command(agent: &str, command: &Command) -> GatewayError {
    match command {
        Command::Settle(Settlement { request_id, .. }) => {
            let message = format!("{agent} never asks, so there is no request {request_id}");
            GatewayError::new(ErrorCode::RequestNotFound, message)
        }
        Command::Query { method, .. } => {
            GatewayError::unsupported(agent, format!("the query {method}"))
        }
        _ => GatewayError::unsupported(agent, format!("the command {}", command.name())),
    }
}

/// Refuses, by name, an option that only Claude Code supports.
pub(crate) fn refuse_claude_options(
    agent: &str,
    config: &SessionConfig,
) -> Result<(), GatewayError> {
    refuse(
        agent,
        &[
            ("maxThinkingTokens", config.max_thinking_tokens.is_some()),
            ("enableFileCheckpointing", config.enable_file_checkpointing == Some(true)),
            ("agents", config.agents.is_some()),
            ("settingSources", config.setting_sources.is_some()),
            ("betas", config.betas.is_some()),
            ("fallbackModel", config.fallback_model.is_some()),
            ("nativeArgs", config.native_args.is_some()),
            ("nativeOptions", has_native_options(config)),
        ],
    )
}

/// Refuses, by name, the first given option that the agent does not support.
pub(crate) fn refuse(agent: &str, options: &[(&str, bool)]) -> Result<(), GatewayError> {
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(GatewayError::unsupported(agent, format!("the option {option}"))),
        None => Ok(()),
    }
}
