//! When an agent may do what it asks for: one policy for all agents. Decides, and does nothing;
//! what it means is written in docs/policy.md.

mod call;
mod input;
pub mod paths;
pub mod readonly;
mod rules;
mod shell;
pub mod table;
mod told;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use agentwire_dialects::acp::gateway_mode;
use agentwire_protocol::event::{ToolKind, input_digest};
use agentwire_protocol::{AgentType, ApprovalMode, ErrorCode, GatewayError, Json, SessionConfig};

use call::{Call, Touches};
use paths::{Pattern, Places, Resolve};
use rules::{Denial, Detail, Measure, Rule, Subject};
use table::Class;

pub use paths::on_disk;

/// How many answers a session remembers, of each sort.
pub const REMEMBERED_LIMIT: usize = 256;

/// What an agent may do, in one session.
#[derive(Clone, Debug)]
pub struct Policy {
    agent: AgentType,
    mode: ApprovalMode,
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
    /// That name is only a title, which may be the model's own words: it allows nothing.
    pub is_title: bool,
    /// The agent's id of the call.
    pub call_id: Option<&'a str>,
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
        let mode = match config.permission_mode.as_deref() {
            Some(own) => own_mode(agent, own),
            None => config.approval_mode.unwrap_or_default(),
        };
        let (denied_here, allowed_here) = (Vec::new(), Vec::new());
        Ok(Self { agent, mode, places, blocked, allowed, denied_here, allowed_here })
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

    /// Whether any rule denies something.
    pub fn denies_anything(&self) -> bool {
        !self.blocked.is_empty() || !self.denied_here.is_empty()
    }

    /// Decides. `resolve` follows symbolic links: [`on_disk`], but for tests.
    pub fn decide(&self, asked: &Asked<'_>, resolve: Resolve<'_>) -> Verdict {
        let call = Call::of(self.agent, asked);
        let measure = Measure { places: &self.places, resolve, input: asked.input };
        let mut is_doubtful = false;
        for (rules, says) in [
            (&self.blocked, "blocked by the rule"),
            (&self.denied_here, "denied for this session:"),
        ] {
            for rule in rules {
                match rule.denies(&call, measure) {
                    Denial::Sure => return Verdict::Deny(format!("{says} {}", rule.text).into()),
                    Denial::Possible => is_doubtful = true,
                    Denial::None => {}
                }
            }
        }
        // No rule and no mode knows the answer to a question.
        if is_doubtful || call.class == Class::Question {
            return Verdict::Ask;
        }
        for (rules, says) in [
            (&self.allowed, "allowed by the rule"),
            (&self.allowed_here, "allowed for this session:"),
        ] {
            if let Some(rule) = rules.iter().find(|rule| rule.allows(&call, measure)) {
                return Verdict::Allow(format!("{says} {}", rule.text).into());
            }
        }
        self.by_mode(&call, asked.blocked_path, resolve)
    }

    /// Answers the same question in the same way for the rest of the session. Gives the rule in
    /// words, or why there is none.
    pub fn remember(&mut self, asked: &Asked<'_>, allow: bool) -> String {
        let call = Call::of(self.agent, asked);
        let rule = match self.rule_like(&call, asked, allow) {
            Ok(rule) => rule,
            Err(why) => return format!("not remembered: {why}"),
        };
        let kept = if allow { &mut self.allowed_here } else { &mut self.denied_here };
        let verb = if allow { "allowed" } else { "denied" };
        let words = format!("{verb} for this session: {}", rule.text);
        if kept.contains(&rule) {
            return words;
        }
        if kept.len() >= REMEMBERED_LIMIT {
            return format!(
                "not remembered: the session has {REMEMBERED_LIMIT} such rules already"
            );
        }
        kept.push(rule);
        words
    }

    fn by_mode(&self, call: &Call<'_>, blocked: Option<&str>, resolve: Resolve<'_>) -> Verdict {
        let here = |what: &'static str| match self.may_touch(call, blocked, resolve) {
            true => Verdict::Allow(Cow::Borrowed(what)),
            false => Verdict::Ask,
        };
        match (self.mode, call.class) {
            (ApprovalMode::Ask, _) => Verdict::Ask,
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
            places.read(path, resolve).is_some_and(|readings| match call.class {
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
                    && places.working.is_some()
                    && !denials.any(|rule| rule.limits_reading(self.agent))
                    && paths.is_some_and(|paths| paths.into_iter().all(inside))
            }
        }
    }

    /// The narrowest rule that answers the same question again.
    fn rule_like(
        &self,
        call: &Call<'_>,
        asked: &Asked<'_>,
        allow: bool,
    ) -> Result<Rule, &'static str> {
        let one = |text: String, subject, detail| Ok(Rule { text, subject, detail });
        if let Some((server, tool)) = call.mcp {
            let subject = Subject::Mcp { server: server.to_owned(), tool: Some(tool.to_owned()) };
            return one(format!("mcp__{server}__{tool}"), subject, Detail::Any);
        }
        let name = call.name.map(str::to_owned);
        match (&call.touches, call.class) {
            (_, Class::Question) => Err("a question has no answer that holds for others"),
            (Touches::Command(command), class) => match &command.words {
                Some(words) => {
                    let detail = Detail::Command { words: words.clone(), more: false };
                    let text = format!("Bash({})", shell::quoted(words));
                    one(text, Subject::Class(class), detail)
                }
                None if allow => Err("only one simple command can be allowed from now on"),
                None => {
                    let text = format!("Bash({})", command.text);
                    one(text, Subject::Class(class), Detail::Text(command.text.clone()))
                }
            },
            (Touches::Files(files), class) => {
                let paths = files.iter().map(|file| self.places.written(file));
                let paths: Option<Vec<_>> = paths.collect();
                let paths = paths.ok_or("its path is not certain")?;
                let texts: Vec<_> = paths.iter().map(|path| path.display().to_string()).collect();
                let patterns = paths.into_iter().map(Pattern::exactly).collect();
                let text = format!("{}({})", class.as_str(), texts.join(", "));
                one(text, Subject::Class(class), Detail::Paths(patterns))
            }
            (Touches::Host(host), class) => {
                let detail = Detail::Host { host: host.clone(), below: false };
                one(format!("WebFetch(domain:{host})"), Subject::Class(class), detail)
            }
            (_, Class::Shell) if allow => Err("only one simple command can be allowed from now on"),
            (Touches::Nothing, _) => {
                let name = name.ok_or("the tool has no name")?;
                one(name.clone(), Subject::Tool(name), Detail::Any)
            }
            (Touches::Unclear, _) => {
                let name = name.ok_or("the tool has no name")?;
                let digest = input_digest(asked.input);
                let text = format!("{name} with this input");
                one(text, Subject::Tool(name), Detail::Input(digest))
            }
        }
    }
}

/// The agent's own mode wins: then what it still asks about is for the user. Codex has no mode that
/// accepts edits: it asks, and is answered here.
fn own_mode(agent: AgentType, mode: &str) -> ApprovalMode {
    match (agent, mode) {
        // These always ask: the names of modes that approve are modes of the gateway.
        (AgentType::Gemini | AgentType::Acp, mode) => gateway_mode(mode).unwrap_or_default(),
        (AgentType::Codex, "acceptEdits") => ApprovalMode::AutoEdit,
        _ => ApprovalMode::Ask,
    }
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
