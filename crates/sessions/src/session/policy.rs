//! Decides whether an agent may do what it asks for: one policy for all agents. It decides and does nothing
//! else; docs/policy.md explains the rules.

mod call;
mod disk;
mod git;
mod own_files;
mod paths;
pub mod readonly;
mod remember;
mod rules;
mod shell;
pub mod side_effects;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use agentwire_dialects::describe::{
    AgentTools, Class, Description, INPUT_LIMIT, ShellCommand, Touches,
};
use agentwire_protocol::{ApprovalMode, ErrorCode, GatewayError, SandboxMode, SessionConfig};

use call::Call;
use disk::Lookups;
use own_files::OwnFiles;
use paths::{Resolve, SessionDirs};
use rules::{Denial, PathContext, Rule};

use crate::path_walk::by_name;

pub use disk::{Disk, Kind, OnDisk};
pub use paths::PROTECTED;
pub use remember::{Always, REMEMBERED_LIMIT};

/// What an agent may do in one session.
#[derive(Clone, Debug)]
pub struct Policy {
    tools: &'static AgentTools,
    mode: ApprovalMode,
    /// The sandbox that an allowed call could leave. A call must not leave it without a request.
    sandbox: Option<SandboxMode>,
    dirs: SessionDirs,
    own: OwnFiles,
    blocked: Vec<Rule>,
    allowed: Vec<Rule>,
    denied_here: Vec<Rule>,
    allowed_here: Vec<Rule>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Allowed; says by which rule.
    Allow(Cow<'static, str>),
    /// Denied; says by which rule.
    Deny(Cow<'static, str>),
    /// A client must be asked.
    Ask,
}

/// The decision about a call before the agent asks about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Screening {
    /// A rule denies it; says which.
    Deny(String),
    /// A rule may deny it, or it only looks harmless: the agent must ask.
    Ask,
    /// A rule that names this call or the whole tool allows it; says which.
    Allow(String),
    /// The agent continues as it would without rules.
    Pass,
}

impl Policy {
    /// The policy of a session. `home` is the directory that `~` means. An invalid rule is refused by name:
    /// ignoring it would allow or deny something else.
    pub fn new(
        tools: &'static AgentTools,
        config: &SessionConfig,
        home: Option<&Path>,
    ) -> Result<Self, GatewayError> {
        let dirs = dirs(config, home)?;
        let read = |field: &str, rules: &Option<Vec<String>>| {
            let rules = rules.iter().flatten().map(|text| {
                Rule::parse(tools, text, &dirs).map_err(|why| {
                    invalid(format!("failed to parse the rule {text:?} in {field}: {why}"))
                })
            });
            rules.collect::<Result<Vec<_>, _>>()
        };
        let blocked = read("blockedTools", &config.blocked_tools)?;
        let allowed = read("allowedTools", &config.allowed_tools)?;
        let mode = tools.mode_of(config);
        let is_left = |mode: &SandboxMode| match mode {
            SandboxMode::ReadOnly | SandboxMode::WorkspaceWrite => tools.leaves_sandbox,
            SandboxMode::None | SandboxMode::FullAccess => false,
        };
        let sandbox = config.sandbox_mode.filter(is_left);
        Ok(Self { mode, sandbox, dirs, blocked, allowed, ..Self::asking(tools) })
    }

    /// The policy without rules, modes and directories: nothing runs without asking.
    pub fn asking(tools: &'static AgentTools) -> Self {
        let dirs = SessionDirs { working: None, additional: Vec::new(), home: None };
        Self {
            tools,
            mode: ApprovalMode::Ask,
            sandbox: None,
            dirs,
            own: OwnFiles::default(),
            blocked: Vec::new(),
            allowed: Vec::new(),
            denied_here: Vec::new(),
            allowed_here: Vec::new(),
        }
    }

    /// Names agentwire's own files and directories: a call that may read or write them always asks.
    #[must_use]
    pub fn guarding(self, own: impl IntoIterator<Item = PathBuf>) -> Self {
        Self { own: OwnFiles::new(own), ..self }
    }

    /// Switches to one of the agent's own modes.
    pub fn set_own_mode(&mut self, mode: &str) {
        self.mode = self.tools.own_mode(mode);
    }

    pub fn set_mode(&mut self, mode: ApprovalMode) {
        self.mode = mode;
    }

    pub fn mode(&self) -> ApprovalMode {
        self.mode
    }

    pub fn denies_anything(&self) -> bool {
        !self.blocked.is_empty() || !self.denied_here.is_empty()
    }

    /// Decides about a call. `disk` is [`OnDisk`], except in tests.
    pub fn decide(&self, call: &Description<'_>, disk: &dyn Disk) -> Verdict {
        let lookups = Lookups::new(disk);
        let verdict = self.judge(&Call::of(call), &lookups);
        match verdict {
            Verdict::Allow(_) if lookups.are_over() => Verdict::Ask,
            verdict => verdict,
        }
    }

    fn judge(&self, call: &Call<'_>, disk: &Lookups<'_>) -> Verdict {
        let (dirs, resolve): (_, Resolve<'_>) = (&self.dirs, &|path| disk.resolve(path));
        let context = PathContext { dirs, resolve };
        let is_doubtful = match self.denial(call, context) {
            Ok(is_doubtful) => is_doubtful,
            Err(rule) => return Verdict::Deny(rule.into()),
        };
        // The agent asked for something other than its call said. Rules check both, because it is unknown
        // which one runs.
        for other in call.others() {
            if let Err(rule) = self.denial(&Call::of(other), context) {
                return Verdict::Deny(rule.into());
            }
        }
        let is_doubtful = is_doubtful || !call.others().is_empty();
        // No rule and no mode knows the answer to a question.
        if is_doubtful || call.class == Class::Question || is_too_long(call) {
            return Verdict::Ask;
        }
        if self.own.may_be_touched(call, dirs, resolve) {
            return Verdict::Ask;
        }
        // In `autoAll`, the user has said that everything runs.
        let warns = call.warns && self.mode != ApprovalMode::AutoAll;
        let counts = |rule: &Rule, is_own: bool| !warns || (is_own && rule.is_exact());
        match self.allowance(call, context, counts) {
            Some(rule) => Verdict::Allow(rule.into()),
            None if warns => Verdict::Ask,
            None => self.by_mode(call, disk),
        }
    }

    /// Decides what the rules say about a call that the agent may not ask about.
    pub fn screen(&self, call: &Description<'_>, disk: &dyn Disk) -> Screening {
        let lookups = Lookups::new(disk);
        let screening = self.screened(&Call::of(call), &lookups);
        match screening {
            Screening::Allow(_) | Screening::Pass if lookups.are_over() => Screening::Ask,
            screening => screening,
        }
    }

    fn screened(&self, call: &Call<'_>, disk: &Lookups<'_>) -> Screening {
        let (dirs, resolve): (_, Resolve<'_>) = (&self.dirs, &|path| disk.resolve(path));
        let context = PathContext { dirs, resolve };
        match self.denial(call, context) {
            Err(rule) => Screening::Deny(rule),
            Ok(_) if call.class == Class::Question => Screening::Pass,
            Ok(true) => Screening::Ask,
            Ok(false) if self.own.may_be_touched(call, dirs, resolve) => Screening::Ask,
            Ok(false) => {
                // It is not known yet whether the agent would warn about the call.
                let rule = self.allowance(call, context, |rule, _| rule.is_outright());
                let is_allowed = || self.allowance(call, context, |_, _| true).is_some();
                match rule {
                    Some(rule) => Screening::Allow(rule),
                    None if self.only_looks_harmless(call, disk) && !is_allowed() => Screening::Ask,
                    None => Screening::Pass,
                }
            }
        }
    }

    /// The rules that deny the call, or may deny it.
    pub fn doubts(&self, call: &Description<'_>, disk: &dyn Disk) -> Vec<&str> {
        let lookups = Lookups::new(disk);
        let context = PathContext { dirs: &self.dirs, resolve: &|path| lookups.resolve(path) };
        let (call, rules) = (Call::of(call), self.blocked.iter().chain(&self.denied_here));
        let fits = |rule: &&Rule| rule.denies(&call, context) != Denial::None;
        rules.filter(fits).map(|rule| rule.text.as_str()).collect()
    }

    /// Whether a rule may deny the call. The error names the rule that does.
    fn denial(&self, call: &Call<'_>, context: PathContext<'_>) -> Result<bool, String> {
        let mut is_doubtful = false;
        for (rules, says) in [
            (&self.blocked, "blocked by the rule"),
            (&self.denied_here, "denied for this session:"),
        ] {
            for rule in rules {
                match rule.denies(call, context) {
                    Denial::Sure => return Err(format!("{says} {}", rule.text)),
                    Denial::Possible => is_doubtful = true,
                    Denial::None => {}
                }
            }
        }
        Ok(is_doubtful)
    }

    /// The rule that allows the call, among those that count. `counts` also gets whether the rule was there
    /// from the start.
    fn allowance(
        &self,
        call: &Call<'_>,
        context: PathContext<'_>,
        counts: impl Fn(&Rule, bool) -> bool,
    ) -> Option<String> {
        let own = (&self.allowed, "allowed by the rule", true);
        let here = (&self.allowed_here, "allowed for this session:", false);
        [own, here].into_iter().find_map(|(rules, says, is_own)| {
            let mut rules = rules.iter().filter(|rule| counts(rule, is_own));
            let rule = rules.find(|rule| rule.allows(call, context))?;
            Some(format!("{says} {}", rule.text))
        })
    }

    fn by_mode(&self, call: &Call<'_>, disk: &Lookups<'_>) -> Verdict {
        let here = |what: &'static str| match self.may_touch(call, disk) {
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
                _ => Verdict::Ask,
            },
        }
    }

    /// Whether everything that it touches lies where no request is needed.
    fn may_touch(&self, call: &Call<'_>, disk: &Lookups<'_>) -> bool {
        let (dirs, blocked) = (&self.dirs, call.blocked_path.as_deref());
        let resolve: Resolve<'_> = &|path| disk.resolve(path);
        let inside = |path: &str| {
            let readings = dirs.read(path, resolve).filter(|_| !call.is_adrift(path));
            readings.is_some_and(|readings| match call.class {
                Class::Edit => dirs.may_change(&readings, resolve),
                _ => dirs.hold(&readings, resolve),
            })
        };
        match &call.touches {
            Touches::Nothing | Touches::Unclear | Touches::Host(_) => false,
            Touches::Files { paths, are_all } => {
                *are_all && paths.iter().all(|file| inside(file)) && blocked.is_none_or(inside)
            }
            Touches::Command(command) => {
                let mut denials = self.blocked.iter().chain(&self.denied_here);
                blocked.is_none()
                    && !call.moved
                    && !denials.any(|rule| rule.limits_reading(self.tools))
                    && self.only_reads(call, command, disk)
            }
        }
    }

    /// Whether a command is on the closed list and reads only in the session's directories.
    fn only_reads(&self, call: &Call<'_>, command: &ShellCommand, disk: &Lookups<'_>) -> bool {
        self.reads(call, None, disk).is_some_and(|git| self.is_quiet(command, git, disk))
    }

    /// The command of git, if any, that a command runs which is on the closed list and reads only in the
    /// session's directories. Its paths start at `directory`, or at the working directory.
    fn reads(
        &self,
        call: &Call<'_>,
        directory: Option<&str>,
        disk: &Lookups<'_>,
    ) -> Option<Option<&'static str>> {
        let dirs = &self.dirs;
        let resolve: Resolve<'_> = &|path| disk.resolve(path);
        let reads = call.words.as_deref().and_then(readonly::reads)?;
        let is_readable = |path: &str| {
            let readings = match directory.filter(|_| !path.starts_with(['/', '~'])) {
                Some(start) => dirs.read(&format!("{start}/{path}"), resolve),
                None => dirs.read(path, resolve),
            };
            let Some(readings) = readings else { return false };
            let fits = |kind| match kind {
                Kind::Missing | Kind::File => true,
                Kind::Directory => !reads.files_only,
                // Reading from a pipe or a device is more than reading.
                Kind::Other => false,
            };
            dirs.hold(&readings, resolve) && readings.iter().all(|path| fits(disk.kind(path)))
        };
        reads.paths.iter().all(|path| is_readable(path)).then_some(reads.git)
    }

    /// Whether the command runs in one of the session's directories, and git runs no program there that its
    /// settings name. In another directory, the same words may mean another repository.
    fn is_quiet(&self, command: &ShellCommand, git: Option<&str>, disk: &Lookups<'_>) -> bool {
        let (dirs, home) = (&self.dirs, self.dirs.home.as_deref());
        let resolve: Resolve<'_> = &|path| disk.resolve(path);
        let here = command.directory.as_deref().unwrap_or(".");
        let here = dirs.read(here, resolve).filter(|here| dirs.are(here, resolve));
        here.is_some_and(|here| {
            let is_quiet = |git| here.iter().all(|start| git::runs_nothing(start, git, home, disk));
            git.is_none_or(is_quiet)
        })
    }

    /// Whether an agent may take it for a read-only command and run it without asking, although it may read
    /// elsewhere or run a program that git's settings name. Agents have lists of such commands too.
    fn only_looks_harmless(&self, call: &Call<'_>, disk: &Lookups<'_>) -> bool {
        let Touches::Command(command) = &call.touches else { return false };
        if self.mode == ApprovalMode::AutoAll {
            return false;
        }
        let is_listed = call.words.as_deref().is_some_and(readonly::has_program);
        let is_word = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
        let mut words = command.text.split(|letter| !is_word(letter));
        let names_git = words.any(|word| word == "git");
        let directory = call.directory.as_deref();
        (is_listed && !(self.reads(call, directory, disk).is_some() && self.is_inside(call, disk)))
            || (names_git && !self.is_quiet_wherever(call, command, disk))
    }

    /// Whether the agent is in the session's directories, as far as it says where it is.
    fn is_inside(&self, call: &Call<'_>, disk: &Lookups<'_>) -> bool {
        let resolve: Resolve<'_> = &|path| disk.resolve(path);
        let here = self.dirs.read(call.directory.as_deref().unwrap_or("."), resolve);
        here.is_some_and(|here| self.dirs.hold(&here, resolve))
    }

    /// Whether git runs no program that settings name, in the directory where the agent is and in those
    /// that the command itself names for git or goes to. If the agent may be anywhere, this is unknown.
    fn is_quiet_wherever(
        &self,
        call: &Call<'_>,
        command: &ShellCommand,
        disk: &Lookups<'_>,
    ) -> bool {
        let (dirs, home) = (&self.dirs, self.dirs.home.as_deref());
        let resolve: Resolve<'_> = &|path| disk.resolve(path);
        let here = match &call.directory {
            Some(directory) => directory,
            None if call.moved => return false,
            None => command.directory.as_deref().unwrap_or("."),
        };
        let Some(targets) = shell::targets(&command.text) else { return false };
        let Some(here) = dirs.read(here, resolve) else { return false };
        let mut starts: Vec<PathBuf> = here.iter().map(Path::to_path_buf).collect();
        for target in targets {
            let mut further = Vec::new();
            for start in &starts {
                let path = match (target.starts_with('~'), start.to_str()) {
                    (true, _) => target.clone(),
                    (false, Some(start)) if !target.starts_with('/') => format!("{start}/{target}"),
                    (false, _) => target.clone(),
                };
                let Some(found) = dirs.read(&path, resolve) else { return false };
                further.extend(found.iter().map(Path::to_path_buf));
            }
            starts.extend(further);
            starts.sort();
            starts.dedup();
            if starts.len() > STARTS_LIMIT {
                return false;
            }
        }
        starts.iter().all(|start| git::runs_nothing(start, "status", home, disk))
    }
}

/// From how many directories git may start in one command. More are not examined.
const STARTS_LIMIT: usize = 32;

/// Whether that call leaves the agent in its directory, because it runs a read-only command.
pub fn stays_put(call: &Description<'_>) -> bool {
    match &call.touches {
        Touches::Command(command) => {
            shell::words(&command.text).is_some_and(|words| readonly::reads(&words).is_some())
        }
        Touches::Nothing | Touches::Unclear | Touches::Files { .. } | Touches::Host(_) => false,
    }
}

fn dirs(config: &SessionConfig, home: Option<&Path>) -> Result<SessionDirs, GatewayError> {
    let working = config.working_directory.as_deref().map(PathBuf::from);
    if let Some(relative) = working.as_ref().filter(|path| !path.is_absolute()) {
        let why = format!("workingDirectory {} must be an absolute path", relative.display());
        return Err(invalid(why));
    }
    let additional = config.additional_directories.iter().flatten().map(|directory| {
        match (Path::new(directory), &working) {
            (path, _) if path.is_absolute() => Ok(by_name(path)),
            (path, Some(working)) => Ok(by_name(&working.join(path))),
            (_, None) => {
                Err(invalid(format!("additionalDirectories: {directory} must be an absolute path")))
            }
        }
    });
    Ok(SessionDirs {
        additional: additional.collect::<Result<_, _>>()?,
        working: working.as_deref().map(by_name),
        home: home.map(by_name),
    })
}

fn invalid(message: String) -> GatewayError {
    GatewayError::new(ErrorCode::InvalidMessage, message)
}

fn is_too_long(call: &Call<'_>) -> bool {
    let is_long = match &call.touches {
        Touches::Command(command) => command.text.len() > shell::TEXT_LIMIT,
        Touches::Nothing | Touches::Unclear | Touches::Files { .. } | Touches::Host(_) => false,
    };
    is_long || call.input.as_ref().is_some_and(|input| input.get().len() > INPUT_LIMIT)
}
