//! When an agent may do what it asks for: one policy for all agents. Decides, and does nothing;
//! what it means is written in docs/policy.md.

mod call;
mod input;
mod kept;
pub mod paths;
pub mod readonly;
mod rules;
mod shell;
pub mod table;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use agentwire_protocol::event::ToolKind;
use agentwire_protocol::{
    AgentType, ApprovalMode, ErrorCode, GatewayError, Json, SandboxMode, SessionConfig,
};

use call::{Call, Touches};
use paths::{Places, Resolve};
use rules::{Denial, Measure, Rule};
use table::Class;

pub use kept::REMEMBERED_LIMIT;
pub use paths::on_disk;

/// What an agent may do, in one session.
#[derive(Clone, Debug)]
pub struct Policy {
    agent: AgentType,
    mode: ApprovalMode,
    /// The sandbox that an allowed call can leave, and must not leave unasked.
    sandbox: Option<SandboxMode>,
    places: Places,
    blocked: Vec<Rule>,
    allowed: Vec<Rule>,
    denied_here: Vec<Rule>,
    allowed_here: Vec<Rule>,
}

/// What an agent asks permission for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// The tool, as the request names it.
    pub tool_name: Option<&'a str>,
    /// Its kind, as the call that started says.
    pub kind: Option<ToolKind>,
    /// What it wants to run with.
    pub input: Option<&'a Json<'a>>,
    /// The line to show.
    pub title: Option<&'a str>,
    /// The MCP server that has the tool.
    pub server: Option<&'a str>,
    /// The path that made the agent ask.
    pub blocked_path: Option<&'a str>,
    /// The agent itself warns of it.
    pub warns: bool,
    /// The agent may have left its directory: a shell command ran that could have changed it.
    pub moved: bool,
}

/// What is decided.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may; by which rule, in words.
    Allow(Cow<'static, str>),
    /// It may not; by which rule, in words.
    Deny(Cow<'static, str>),
    /// Somebody has to be asked.
    Ask,
}

/// What is decided of a call before the agent asks about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Screening {
    /// A rule denies it, in words.
    Deny(String),
    /// A rule may deny it: the agent has to ask.
    Ask,
    /// A rule allows it, in words.
    Allow(String),
    /// The agent goes on as it does without rules.
    Pass,
}

impl Policy {
    /// The policy of a session. `home` is what `~` stands for. A rule that cannot be understood is
    /// refused by its name: one that is passed over would allow or deny something else.
    pub fn new(
        agent: AgentType,
        config: &SessionConfig,
        home: Option<&Path>,
    ) -> Result<Self, GatewayError> {
        let places = places(config, home)?;
        let read = |field: &str, rules: &Option<Vec<String>>| {
            let rules = rules.iter().flatten().map(|text| {
                Rule::parse(agent, text, &places).map_err(|why| {
                    invalid(format!("failed to understand the rule {text:?} in {field}: {why}"))
                })
            });
            rules.collect::<Result<Vec<_>, _>>()
        };
        let blocked = read("blockedTools", &config.blocked_tools)?;
        let allowed = read("allowedTools", &config.allowed_tools)?;
        let mode = mode_of(agent, config);
        // Codex applies a change that is allowed, and runs an allowed command again, outside its sandbox.
        let is_left = |mode: &SandboxMode| match mode {
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => agent == AgentType::Codex,
            SandboxMode::None | SandboxMode::FullAccess => false,
        };
        let sandbox = config.sandbox_mode.filter(is_left);
        let (denied_here, allowed_here) = (Vec::new(), Vec::new());
        Ok(Self { agent, mode, sandbox, places, blocked, allowed, denied_here, allowed_here })
    }

    /// Changes to a mode of the agent's own.
    pub fn set_own_mode(&mut self, mode: &str) {
        self.mode = own_mode(self.agent, mode);
    }

    /// Changes the mode.
    pub fn set_mode(&mut self, mode: ApprovalMode) {
        self.mode = mode;
    }

    /// The mode.
    pub fn mode(&self) -> ApprovalMode {
        self.mode
    }

    /// Decides. `resolve` follows symbolic links: [`on_disk`], but for tests.
    pub fn decide(&self, asked: &Asked<'_>, resolve: Resolve<'_>) -> Verdict {
        let call = Call::of(self.agent, asked);
        let measure = Measure { places: &self.places, resolve, input: asked.input };
        let is_doubtful = match self.denial(&call, measure) {
            Ok(is_doubtful) => is_doubtful,
            Err(rule) => return Verdict::Deny(rule.into()),
        };
        // No rule and no mode knows the answer to a question.
        if is_doubtful || call.class == Class::Question {
            return Verdict::Ask;
        }
        // In `autoAll` the user has said that everything runs.
        let warns = asked.warns && self.mode != ApprovalMode::AutoAll;
        match self.allowance(&call, measure, warns) {
            Some(rule) => Verdict::Allow(rule.into()),
            None if warns => Verdict::Ask,
            None => self.by_mode(&call, asked.blocked_path, resolve),
        }
    }

    /// Decides what rules say of a call that the agent may not ask about.
    pub fn screen(&self, asked: &Asked<'_>, resolve: Resolve<'_>) -> Screening {
        let call = Call::of(self.agent, asked);
        let measure = Measure { places: &self.places, resolve, input: asked.input };
        match self.denial(&call, measure) {
            Err(rule) => Screening::Deny(rule),
            Ok(_) if call.class == Class::Question => Screening::Pass,
            Ok(true) => Screening::Ask,
            Ok(false) => {
                let rule = self.allowance(&call, measure, asked.warns);
                rule.map_or(Screening::Pass, Screening::Allow)
            }
        }
    }

    /// Whether a rule may deny the call; the error is the rule that does, in words.
    fn denial(&self, call: &Call<'_>, measure: Measure<'_>) -> Result<bool, String> {
        let mut is_doubtful = false;
        for (rules, says) in [
            (&self.blocked, "blocked by the rule"),
            (&self.denied_here, "denied for this session:"),
        ] {
            for rule in rules {
                match rule.denies(call, measure) {
                    Denial::Sure => return Err(format!("{says} {}", rule.text)),
                    Denial::Possible => is_doubtful = true,
                    Denial::None => {}
                }
            }
        }
        Ok(is_doubtful)
    }

    /// The rule that allows the call, in words. Of a call that the agent warns of, only one that names
    /// exactly this call and was there from the start.
    fn allowance(&self, call: &Call<'_>, measure: Measure<'_>, warns: bool) -> Option<String> {
        let own = (&self.allowed, "allowed by the rule", true);
        let here = (&self.allowed_here, "allowed for this session:", false);
        [own, here].into_iter().find_map(|(rules, says, is_own)| {
            let counts = |rule: &&Rule| !warns || (is_own && rule.is_exact());
            let rule = rules.iter().filter(counts).find(|rule| rule.allows(call, measure))?;
            Some(format!("{says} {}", rule.text))
        })
    }

    fn by_mode(&self, call: &Call<'_>, blocked: Option<&str>, resolve: Resolve<'_>) -> Verdict {
        let here = |what: &'static str| match self.may_touch(call, blocked, resolve) {
            true => Verdict::Allow(Cow::Borrowed(what)),
            false => Verdict::Ask,
        };
        match (self.mode, call.class) {
            (ApprovalMode::Ask, _) => Verdict::Ask,
            (_, Class::Edit) if self.sandbox == Some(SandboxMode::ReadOnly) => Verdict::Ask,
            (ApprovalMode::AutoAll, class) if self.sandbox.is_some() => match class {
                Class::Edit => here("mode autoAll: an edit in the session's directories"),
                Class::Shell => here("mode autoAll, in a sandbox: a command that only reads"),
                Class::Delete | Class::Move | Class::Unknown => Verdict::Ask,
                Class::Read
                | Class::Search
                | Class::Network
                | Class::Think
                | Class::Agent
                | Class::Question
                | Class::Mcp
                | Class::Mode => Verdict::Allow("mode autoAll: everything runs".into()),
            },
            (ApprovalMode::AutoAll, _) => Verdict::Allow("mode autoAll: everything runs".into()),
            (ApprovalMode::AutoEdit, Class::Edit) => {
                here("mode autoEdit: an edit in the session's directories")
            }
            (ApprovalMode::AutoEdit, _) => Verdict::Ask,
            (ApprovalMode::AskDangerous, class) => match class {
                Class::Think => Verdict::Allow("mode askDangerous: touches nothing".into()),
                Class::Read | Class::Search => {
                    here("mode askDangerous: reads in the session's directories")
                }
                Class::Edit => here("mode askDangerous: an edit in the session's directories"),
                Class::Shell => here("mode askDangerous: a command that only reads"),
                Class::Delete
                | Class::Move
                | Class::Network
                | Class::Agent
                | Class::Question
                | Class::Mcp
                | Class::Mode
                | Class::Unknown => Verdict::Ask,
            },
        }
    }

    /// Whether all that it touches lies where nobody need be asked.
    fn may_touch(&self, call: &Call<'_>, blocked: Option<&str>, resolve: Resolve<'_>) -> bool {
        let places = &self.places;
        let inside = |path: &str| {
            let readings = places.read(path, resolve).filter(|_| !call.is_adrift(path));
            readings.is_some_and(|readings| match call.class {
                Class::Edit => places.may_change(&readings, resolve),
                _ => places.hold(&readings, resolve),
            })
        };
        match &call.touches {
            Touches::Nothing | Touches::Unclear | Touches::Host(_) => false,
            Touches::Files(files) => {
                files.iter().all(|file| inside(file)) && blocked.is_none_or(inside)
            }
            Touches::Command(command) => {
                let mut denials = self.blocked.iter().chain(&self.denied_here);
                let paths = command.words.as_deref().and_then(readonly::paths);
                // In another directory the same words may mean another repository.
                let here = command.directory.as_ref().is_none_or(|directory| {
                    let readings = places.read(directory, resolve);
                    readings.is_some_and(|readings| places.are(&readings, resolve))
                });
                here && blocked.is_none()
                    && !call.moved
                    && places.working.is_some()
                    && !denials.any(|rule| rule.limits_reading(self.agent))
                    && paths.is_some_and(|paths| paths.into_iter().all(inside))
            }
        }
    }
}

/// The mode that a session runs in here. The agent's own name of one wins.
pub fn mode_of(agent: AgentType, config: &SessionConfig) -> ApprovalMode {
    match config.permission_mode.as_deref() {
        Some(own) => own_mode(agent, own),
        None => config.approval_mode.unwrap_or_default(),
    }
}

/// What the agent's own name of a mode means here. A mode that approves calls is the gateway's: the
/// agent asks. In any other the agent's own restrictions hold, and what it asks about is for the user.
/// Codex's `never` trusts its sandbox, which what is allowed here leaves.
fn own_mode(agent: AgentType, mode: &str) -> ApprovalMode {
    match (agent, mode) {
        (AgentType::Claude | AgentType::Demo | AgentType::Codex, "acceptEdits") => {
            ApprovalMode::AutoEdit
        }
        (AgentType::Claude | AgentType::Demo | AgentType::Codex, "bypassPermissions") => {
            ApprovalMode::AutoAll
        }
        (AgentType::Codex, "on-request" | "never") => ApprovalMode::AskDangerous,
        _ => ApprovalMode::Ask,
    }
}

/// Whether that shell command leaves the agent in its directory: it is one of those that only read.
pub fn stays_put(input: Option<&Json<'_>>) -> bool {
    let command = input.and_then(|input| input::fields(Some(input))?.remove("command"));
    let words = command.and_then(|command| shell::words(command.as_str()?));
    words.is_some_and(|words| readonly::paths(&words).is_some())
}

fn places(config: &SessionConfig, home: Option<&Path>) -> Result<Places, GatewayError> {
    let working = config.working_directory.as_deref().map(PathBuf::from);
    if let Some(relative) = working.as_ref().filter(|path| !path.is_absolute()) {
        let why = format!("workingDirectory {} must be an absolute path", relative.display());
        return Err(invalid(why));
    }
    let additional = config.additional_directories.iter().flatten().map(|directory| {
        match (Path::new(directory), &working) {
            (path, _) if path.is_absolute() => Ok(paths::normal(path)),
            (path, Some(working)) => Ok(paths::normal(&working.join(path))),
            (_, None) => {
                Err(invalid(format!("additionalDirectories: {directory} must be an absolute path")))
            }
        }
    });
    Ok(Places {
        additional: additional.collect::<Result<_, _>>()?,
        working: working.as_deref().map(paths::normal),
        home: home.map(paths::normal),
    })
}

fn invalid(message: String) -> GatewayError {
    GatewayError::new(ErrorCode::InvalidMessage, message)
}
