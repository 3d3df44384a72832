//! What is known about an agent's program besides its wire: its source, the tested versions, how it reports
//! its login, and the known problems of each version.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

use agentwire_protocol::AgentType;
use serde::Serialize;

use crate::acp::AgentQuirks;
use crate::agent::AgentDialect;
use crate::overrides::FileOverride;

/// An agent's program. Each agent's folder has one, in `program.rs`.
#[derive(Clone, Copy)]
pub struct Program {
    pub agent: AgentType,
    /// A description in a few words.
    pub about: &'static str,
    /// The provider of its models, by the names in OpenTelemetry's conventions; the agent's own name if
    /// there can be several providers.
    pub provider: &'static str,
    pub source: Source,
    pub command: DefaultCommand,
    /// Whether it is a default when no agent is named and it is installed.
    pub is_candidate: bool,
    /// The default prompt, if it accepts one.
    pub default_prompt: Option<&'static str>,
    /// The wires that can drive it, by name; the first is the default.
    pub drivers: &'static [(&'static str, &'static dyn AgentDialect)],
    /// The wires by which recordings are recognised.
    pub wires: &'static [Wire],
    /// How it handles the flags of the `claude` program.
    pub claude_flags: ClaudeFlags,
    /// How it counts tokens that were read from a cache.
    pub cache: CacheCount,
    /// Its own extensions to ACP, if it speaks ACP.
    pub acp: Option<&'static AgentQuirks>,
    /// Its own files, by a name in their path. They control what it may do, so no mode lets any agent
    /// change them without asking.
    pub protected: &'static [&'static str],
    /// Variables that it sets for its children, and that no agent inherits from here: it would refuse to
    /// run inside itself.
    pub own_variables: &'static [&'static str],
    /// Placeholders for the project directory in the commands of a project's files.
    pub project_prefixes: &'static [&'static str],
    /// The versions that agentwire was tested with, oldest first.
    pub tested: &'static [&'static str],
    /// How it reports whether it is signed in.
    pub login: LoginQuestion,
    pub sign_in: &'static str,
    pub problems: &'static [Problem],
}

/// A wire whose recordings can be translated.
#[derive(Clone, Copy)]
pub struct Wire {
    pub dialect: &'static dyn AgentDialect,
    /// A description in a few words.
    pub about: &'static str,
}

/// What is started if the settings name no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultCommand {
    /// The program with this name on `PATH`.
    Named(&'static str),
    /// Nothing: the settings must name one.
    None,
    /// agentwire itself.
    BuiltIn {
        verb: &'static str,
        /// The directory for its own files, in the data directory.
        state: &'static str,
    },
}

/// How a program handles the flags of the `claude` program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaudeFlags {
    /// It is that program.
    All,
    /// It accepts the flags that do not need the real program.
    Some,
    /// It has its own flags.
    None,
}

/// How an agent counts tokens that were read from a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheCount {
    WithinInput,
    BesideInput,
    Unknown,
}

/// Where a program comes from. Its text says how to install it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Npm(&'static str),
    /// Instructions for any other source.
    Other(&'static str),
}

/// How a program reports whether it is signed in.
#[derive(Clone, Copy, Debug)]
pub enum LoginQuestion {
    /// Started with these arguments, it answers on stdout or stderr and exits. Versions older than all
    /// tested ones are not asked: a version that does not know the arguments may take them as a prompt.
    Ask {
        args: &'static [&'static str],
        /// Reads its stdout and stderr. Nothing else of the answer, which may contain names of people and
        /// parts of keys, is passed on.
        read: fn(&str, &str) -> Login,
    },
    /// It does not report it.
    None {
        /// The variable from which it reads a key.
        key: Option<&'static str>,
    },
    /// It needs no login.
    Needless,
}

/// Whether a program is signed in, as it reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// With the method, if it reports one.
    SignedIn(Option<LoginMethod>),
    NotSignedIn,
    NotTold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LoginMethod {
    /// A key, or a command that prints one.
    ApiKey,
    Token,
    /// An account with its vendor.
    Account,
    Cloud,
}

/// A known problem of some versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The first version with the problem; `None` if it was always there.
    #[serde(skip)]
    pub from: Option<&'static str>,
    /// The first version without the problem; `None` if there is no known fix.
    #[serde(skip)]
    pub before: Option<&'static str>,
    /// What is wrong.
    pub what: &'static str,
    pub remedy: &'static str,
    /// Whether sessions cannot work with it.
    pub fatal: bool,
}

/// How a version compares to those that agentwire was tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    Tested,
    /// Between two tested versions.
    Between,
    /// Newer than all tested versions.
    Newer,
    /// Older than all tested versions.
    Older,
    Unknown,
    Missing,
}

impl Problem {
    /// A problem that a file on the machine causes, with every version.
    pub fn of_machine(does: FileOverride) -> Self {
        let FileOverride { what, remedy } = does;
        Self { from: None, before: None, what, remedy, fatal: false }
    }
}

impl Program {
    /// Whether it speaks Claude's wire, so that Claude's clients get its own messages.
    pub fn speaks_claude(&self) -> bool {
        self.claude_flags != ClaudeFlags::None
    }

    /// The variable that names another program for it.
    pub fn variable(&self) -> Option<String> {
        match self.command {
            DefaultCommand::Named(_) | DefaultCommand::None => {
                Some(format!("AGENTWIRE_{}_BIN", self.agent.as_str().to_uppercase()))
            }
            DefaultCommand::BuiltIn { .. } => None,
        }
    }

    pub fn standing(&self, version: Option<&str>) -> Standing {
        let Some(version) = version.and_then(numbers) else { return Standing::Unknown };
        let orders =
            || self.tested.iter().filter_map(|tested| Some(version.cmp(&numbers(tested)?)));
        if orders().next().is_none() {
            Standing::Unknown
        } else if orders().any(Ordering::is_eq) {
            Standing::Tested
        } else if orders().all(Ordering::is_lt) {
            Standing::Older
        } else if orders().all(Ordering::is_gt) {
            Standing::Newer
        } else {
            Standing::Between
        }
    }

    pub fn problems_of(&self, version: Option<&str>) -> Vec<Problem> {
        let Some(version) = version.and_then(numbers) else { return Vec::new() };
        let has = |problem: &&Problem| {
            problem.from.and_then(numbers).is_none_or(|from| from <= version)
                && problem.before.and_then(numbers).is_none_or(|before| version < before)
        };
        self.problems.iter().filter(has).copied().collect()
    }

    pub fn newest_tested(&self) -> Option<&'static str> {
        self.tested.last().copied()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Npm(package) => write!(f, "npm install -g {package}"),
            Self::Other(words) => f.write_str(words),
        }
    }
}

impl Login {
    /// A text that can follow a comma.
    pub fn words(self) -> &'static str {
        match self {
            Self::SignedIn(None) => "signed in",
            Self::SignedIn(Some(LoginMethod::ApiKey)) => "signed in with an API key",
            Self::SignedIn(Some(LoginMethod::Token)) => "signed in with a token",
            Self::SignedIn(Some(LoginMethod::Account)) => "signed in with an account",
            Self::SignedIn(Some(LoginMethod::Cloud)) => "signed in through a cloud provider",
            Self::NotSignedIn => "not signed in",
            Self::NotTold => "login unknown",
        }
    }
}

impl Standing {
    pub fn words(self) -> &'static str {
        match self {
            Self::Tested => "tested",
            Self::Between => "between tested versions",
            Self::Newer => "newer than tested",
            Self::Older => "older than tested",
            Self::Unknown => "not tested",
            Self::Missing => "not installed",
        }
    }
}

/// The version in a program's version output: the first word of numbers separated by dots, such as the end
/// of `codex-cli 0.166.0`.
pub fn version_in(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c.is_whitespace() || c == '(' || c == ')');
    words.map(|word| word.trim_start_matches('v')).find(|word| numbers(word).is_some())
}

/// The numbers of a version; a suffix, as in `1.2.3-beta`, is ignored.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let plain = version.split(['-', '+']).next()?;
    let mut parts = plain.split('.').map(str::parse);
    let numbers = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
    parts.next().is_none().then_some(numbers)
}
