//! What a dialect must do to drive an agent.

use std::collections::BTreeMap;

use agentwire_protocol::event::{ErrorEvent, Status, StatusChanged, TurnFailed};
use agentwire_protocol::session::SystemPrompt;
use agentwire_protocol::{
    AgentType, ApprovalMode, Call, Command, Configure, ErrorCode, GatewayError, Json, JsonObject,
    Prompt, SessionConfig, Text,
};

use crate::describe::AgentTools;
use crate::guarded::{Guarded, MachineFile, OwnRules};
use crate::json::Value;
use crate::project::ProjectFile;
use crate::tape::Out;

/// One wire of one agent: how to start it, and how to understand it.
pub trait AgentDialect: Sync {
    /// The name by which `translate --from` and `native.dialect` know it.
    fn name(&self) -> &'static str;

    /// The agent it belongs to.
    fn agent_type(&self) -> AgentType;

    /// What an agent on this wire can do.
    fn capabilities(&self) -> Capabilities;

    /// What the agent's tools are, by which the session judges its calls.
    fn tools(&self) -> &'static AgentTools;

    /// Whether this JSON object looks like a line of this wire.
    fn recognises(&self, message: Value<'_>) -> bool;

    /// How to start the agent. What it cannot take is refused by name.
    fn launch(&self, start: &Start<'_>) -> Result<Launch, GatewayError>;

    /// Whether a turn failed because the agent is not signed in, or its key is not taken.
    fn wants_sign_in(&self, failed: &TurnFailed<'_>) -> bool;

    /// What a line on stderr tells, where the agent tells that nowhere else.
    fn overhear<'l>(&self, _line: &'l str) -> Option<ErrorEvent<'l>> {
        None
    }

    /// The files of a project that make the agent run something when it is started so. A launch with
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

    /// Whether a session of this config runs calls that change something, and nobody can be asked about
    /// them. A client that may not widen what an agent does must not start it so.
    fn runs_unasked(&self, _config: &SessionConfig) -> Result<bool, GatewayError> {
        Ok(!self.capabilities().permissions)
    }

    /// Which arguments and variables of the agent's own program take away what the gateway judges by.
    fn guarded(&self) -> Option<&'static Guarded> {
        None
    }

    /// Files of the machine that may let the agent run calls without asking.
    fn machine_files(&self) -> &'static [MachineFile] {
        &[]
    }

    /// Rules of its own by which it runs calls without asking.
    fn own_rules(&self) -> Option<&'static OwnRules> {
        None
    }

    /// How long a prompt it takes, where that is known.
    fn prompt_limit(&self) -> Option<PromptLimit> {
        None
    }

    /// A translator for one session.
    fn translator(&self, setup: &Setup) -> Box<dyn AgentTranslator>;
}

/// Understands one agent's lines and says commands in its words. Never fails: a line it does not
/// understand it leaves alone, and the tape keeps it.
pub trait AgentTranslator: Send {
    /// The process has started: what must be said first.
    fn on_start(&mut self, _out: &mut Out<'_>) {}

    /// The agent said this JSON object. Emitting nothing makes the line an `other`.
    fn on_line(&mut self, message: Value<'_>, out: &mut Out<'_>);

    /// A client wants this. Replies at once or later through [`Out::reply`]; an error is the reply.
    fn on_command(
        &mut self,
        call: Call,
        command: &Command,
        out: &mut Out<'_>,
    ) -> Result<(), GatewayError>;

    /// The process has ended, or the recording has. Closes what is still open.
    fn on_exit(&mut self, exit: Exit, out: &mut Out<'_>);
}

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// With this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
    /// Nobody knows: a recording ended.
    Unknown,
}

/// What a translator is told of its session.
#[derive(Clone, Debug, Default)]
pub struct Setup {
    /// What the session runs with.
    pub config: SessionConfig,
    /// The agent's own id of the session to resume.
    pub resume: Option<String>,
    /// It goes on in a copy; the session itself stays as it is.
    pub fork: bool,
    /// The agent's own id that a new session shall have, where it lets us choose.
    pub native_session_id: Option<String>,
    /// One recorded run, not a live session: its end is the session's end.
    pub recording: bool,
}

/// What an agent on a wire can do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It asks before tools run and takes the answer.
    pub permissions: bool,
    /// It asks questions.
    pub questions: bool,
    /// Which hooks of the client it calls itself.
    pub hooks: OwnHooks,
    /// It uses MCP servers that the client hosts.
    pub hosted_mcp: bool,
    /// Its text comes in pieces.
    pub deltas: bool,
    /// A turn can be interrupted and the session goes on.
    pub interrupt: bool,
    /// A prompt can join a running turn.
    pub steer: bool,
    /// It takes images.
    pub images: bool,
    /// It takes content blocks of Claude's other than text and images.
    pub content_blocks: bool,
    /// A session can be resumed.
    pub resume: bool,
    /// Model and mode can change in a session.
    pub configure: bool,
    /// One process serves one turn.
    pub process_per_turn: bool,
    /// Several prompts may become one turn.
    pub folds_prompts: bool,
    /// A session whose turns all failed before the model had answered is not kept: it cannot be resumed.
    pub forgets_failures: bool,
    /// It takes a form that its answers must have. For others the gateway sees to that.
    pub structured_output: bool,
    /// An answer to its permission requests can change what a call runs with.
    pub changed_input: bool,
    /// A session cannot be resumed in the minute of the clock in which it began; tried then, it is lost.
    pub resumes_next_minute: bool,
    /// Its own id of a session can be ours too.
    pub shares_session_id: bool,
    /// It takes changes of the permission rules with an answer (`updatedPermissions`), and requests suggest
    /// some.
    pub permission_updates: bool,
    /// A permission can be answered in Claude's own form.
    pub own_answer_form: bool,
}

/// How long the text of a prompt may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PromptLimit {
    /// So many of these.
    pub most: usize,
    /// What is counted.
    pub unit: TextUnit,
}

/// What a limit of a text counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextUnit {
    /// Of UTF-8.
    Bytes,
    /// Of Unicode, each as one.
    Characters,
}

impl TextUnit {
    /// The name, in words.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bytes => "bytes",
            Self::Characters => "characters",
        }
    }

    /// How many the text has.
    pub fn count(self, text: &str) -> usize {
        match self {
            Self::Bytes => text.len(),
            Self::Characters => text.chars().count(),
        }
    }
}

/// Which hooks of the client an agent calls itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OwnHooks {
    /// None.
    #[default]
    None,
    /// All but these.
    AllBut(&'static [&'static str]),
}

impl OwnHooks {
    /// Whether it calls those of that event.
    pub fn include(self, event: &str) -> bool {
        match self {
            Self::None => false,
            Self::AllBut(others) => !others.contains(&event),
        }
    }
}

/// A start that is wanted.
#[derive(Clone, Copy, Debug)]
pub struct Start<'s> {
    /// What the session runs with.
    pub config: &'s SessionConfig,
    /// The agent's own id of the session to resume.
    pub resume: Option<&'s str>,
    /// It goes on in a copy; the session itself stays as it is.
    pub fork: bool,
    /// The agent's own id that a new session shall have, where it lets us choose.
    pub native_session_id: Option<&'s str>,
    /// The prompt, for wires on which one process serves one turn.
    pub prompt: Option<&'s Prompt>,
}

/// How to start a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Launch {
    /// The program, to be found on PATH unless the user names another.
    pub program: String,
    /// Its arguments. No value of a user can become a flag, or the name of a file.
    pub args: Vec<Arg>,
    /// Variables to set beside those it inherits.
    pub env: BTreeMap<String, String>,
    /// Variables that name one of its files.
    pub env_files: BTreeMap<String, String>,
    /// Where it works.
    pub working_directory: Option<String>,
    /// What its stdin gets.
    pub stdin: Stdin,
    /// Files it needs, in a private directory of their own.
    pub files: BTreeMap<String, Vec<u8>>,
}

/// One argument: its parts, joined.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arg(pub Vec<Part>);

/// A part of an argument. Where the files are is known only when the process starts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// This text, as it is.
    Text(String),
    /// The path of the file of that name.
    File(String),
    /// The same, with backslashes as in a shell.
    EscapedFile(String),
    /// The same, as a string of JSON or TOML.
    QuotedFile(String),
    /// The directory of the files, in a list that commas divide.
    Directory,
}

impl Arg {
    /// As documents show it: `{file:NAME}`, `{escaped:NAME}`, `{quoted:NAME}` and `{file:}` stand for
    /// paths.
    pub fn shown(&self) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.clone(),
            Part::File(name) => format!("{{file:{name}}}"),
            Part::EscapedFile(name) => format!("{{escaped:{name}}}"),
            Part::QuotedFile(name) => format!("{{quoted:{name}}}"),
            Part::Directory => "{file:}".to_owned(),
        });
        parts.collect()
    }
}

impl<T: Into<String>> From<T> for Arg {
    fn from(text: T) -> Self {
        Self(vec![Part::Text(text.into())])
    }
}

/// What a process's stdin gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stdin {
    /// It stays open: the wire goes both ways.
    Open,
    /// This text, then its end.
    Text(String),
    /// Nothing.
    Empty,
}

impl Launch {
    /// A program without arguments.
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

    /// A flag alone, or several words of ours.
    pub fn words(&mut self, words: &[&str]) -> &mut Self {
        self.args.extend(words.iter().map(|word| Arg::from(*word)));
        self
    }

    /// A file of that name.
    pub fn file(&mut self, name: impl Into<String>, contents: impl Into<Vec<u8>>) -> &mut Self {
        self.files.insert(name.into(), contents.into());
        self
    }

    /// A file of that name, whose path that variable has.
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

    /// `--flag=value` in one word, so that no value can become a flag.
    pub fn option(&mut self, flag: &str, value: impl std::fmt::Display) -> &mut Self {
        self.args.push(Arg::from(format!("{flag}={value}")));
        self
    }

    /// `--flag=value` in one word, where parts of the value are known only when the process starts.
    pub fn option_of(&mut self, flag: &str, value: impl IntoIterator<Item = Part>) -> &mut Self {
        let flag = Part::Text(format!("{flag}="));
        self.args.push(Arg(std::iter::once(flag).chain(value).collect()));
        self
    }

    /// The arguments as documents show them.
    pub fn shown_args(&self) -> Vec<String> {
        self.args.iter().map(Arg::shown).collect()
    }
}

/// Fields of Claude's `initialize` that would change what the agent does, and are not its own.
const NOT_HINTS: [&str; 4] = ["skills", "plugins", "toolAliases", "planModeInstructions"];

/// Whether there is something in `nativeOptions` that only Claude can take.
pub(crate) fn has_native_options(config: &SessionConfig) -> bool {
    let says = |json: &Json<'_>| !matches!(json.get(), "null" | "[]" | "{}" | "\"\"");
    let options = config.native_options.iter().flatten();
    options.into_iter().any(|(name, json)| NOT_HINTS.contains(&name.as_str()) && says(json))
}

/// What the agent is told in place of its own prompt, or after it. To clients of Claude an empty prompt
/// is none at all; an agent that has its own keeps it then.
pub(crate) fn own_prompt(config: &SessionConfig) -> Option<&SystemPrompt> {
    let says = |prompt: &&SystemPrompt| match prompt {
        SystemPrompt::Text(text) => !text.is_empty(),
        SystemPrompt::Preset(_) => true,
    };
    config.system_prompt.as_ref().filter(says)
}

/// What stands in place of the agent's own prompt.
pub(crate) fn whole_prompt(config: &SessionConfig) -> Option<&str> {
    match own_prompt(config)? {
        SystemPrompt::Text(text) => Some(text),
        SystemPrompt::Preset(_) => None,
    }
}

/// What stands after the agent's own prompt.
pub(crate) fn further_prompt(config: &SessionConfig) -> Option<&str> {
    match own_prompt(config)? {
        SystemPrompt::Text(_) => None,
        SystemPrompt::Preset(preset) => preset.append.as_deref().filter(|text| !text.is_empty()),
    }
}

/// The name that clients of Claude know a mode by.
pub(crate) fn mode_name(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Ask | ApprovalMode::AskDangerous => "default",
        ApprovalMode::AutoEdit => "acceptEdits",
        ApprovalMode::AutoAll => "bypassPermissions",
    }
}

/// Tells of a change that the agent itself says nothing of. `model` is the one that is now set, if any.
pub(crate) fn tell_change(change: &Configure, model: Option<&str>, out: &mut Out<'_>) {
    if change.model.is_some() {
        let model = model.unwrap_or("default");
        out.emit(StatusChanged::new(Status::Model).message(Text::from(model)));
    }
    let mode = change.permission_mode.as_deref().or(change.approval_mode.map(mode_name));
    if let Some(mode) = mode {
        out.emit(StatusChanged::new(Status::Mode).message(Text::from(mode)));
    }
}

/// Denies a JSON-RPC request for which there is no room: nobody would answer it, and the agent would wait for
/// ever.
pub(crate) fn deny_overload(wire_id: &str, out: &mut Out<'_>) {
    let reason = "too many requests are open, this one was denied";
    let code = Some(Text::fixed(ErrorCode::Overloaded.as_str()));
    out.emit(ErrorEvent { code, ..ErrorEvent::new(reason) });
    let error = JsonObject::new().raw("code", &Json::of(&-32000)).text("message", reason);
    let reply = JsonObject::new().text("jsonrpc", "2.0").raw("id", &Json::trusted(wire_id));
    out.write(reply.raw("error", &error.finish()).finish().into_text());
}

/// Tells that a prompt which waited will not run.
pub(crate) fn tell_cancelled(message_id: &str, out: &mut Out<'_>) {
    let details = Json::of(&BTreeMap::from([("messageId", message_id)]));
    let status = StatusChanged::new(Status::Queue).message(Text::from("cancelled"));
    out.emit(status.details(details));
}

/// Refuses by name the first option that is given and cannot be taken.
pub(crate) fn refuse(agent: &str, options: &[(&str, bool)]) -> Result<(), GatewayError> {
    match options.iter().find(|(_, given)| *given) {
        Some((option, _)) => Err(GatewayError::unsupported(agent, &format!("the option {option}"))),
        None => Ok(()),
    }
}
