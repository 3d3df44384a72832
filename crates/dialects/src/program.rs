//! What is known of an agent's program beside its wire: where it comes from, with which versions it was
//! tested, how it tells whether it is signed in, and what is wrong with which version.

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;

use agentwire_protocol::AgentType;
use serde::Serialize;

use crate::acp::Own;
use crate::agent::AgentDialect;
use crate::guarded::Unguarded;

/// An agent's program. Each agent's folder has one, in `program.rs`.
#[derive(Clone, Copy)]
pub struct Program {
    /// The agent.
    pub agent: AgentType,
    /// What it is, in a few words.
    pub about: &'static str,
    /// Who provides its models, by the names of OpenTelemetry's conventions; its own name, if that may be
    /// anybody.
    pub provider: &'static str,
    /// Where it comes from.
    pub source: Source,
    /// What is started where the settings name no program.
    pub command: DefaultCommand,
    /// Whether it is chosen where no agent is named, if it is installed.
    pub is_candidate: bool,
    /// The prompt where none is given, if it takes one by itself.
    pub default_prompt: Option<&'static str>,
    /// The wires over which it is driven, by name; the first is the default.
    pub drivers: &'static [(&'static str, &'static dyn AgentDialect)],
    /// The wires that recordings are recognised by.
    pub wires: &'static [Wire],
    /// How it takes the flags of the `claude` program.
    pub claude_flags: ClaudeFlags,
    /// How it counts tokens that were read from a cache.
    pub cache: CacheCount,
    /// What is its own over ACP, if it speaks that.
    pub acp: Option<&'static Own>,
    /// Its own files, by a name in their path: they say what it may do, so no mode lets any agent change
    /// them unasked.
    pub protected: &'static [&'static str],
    /// Variables that it sets for what it runs, and that no agent gets from here: it would refuse to run
    /// inside itself.
    pub own_variables: &'static [&'static str],
    /// What may stand in a command of a project's file for the directory of the project.
    pub project_prefixes: &'static [&'static str],
    /// The versions that agentwire was tested with, oldest first.
    pub tested: &'static [&'static str],
    /// How it tells whether it is signed in.
    pub login: LoginQuestion,
    /// How to sign in.
    pub sign_in: &'static str,
    /// What is known to be wrong with some versions.
    pub problems: &'static [Problem],
}

/// A wire whose recordings can be translated.
#[derive(Clone, Copy)]
pub struct Wire {
    /// The dialect.
    pub dialect: &'static dyn AgentDialect,
    /// What it is, in a few words.
    pub about: &'static str,
}

/// What is started where the settings name no program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultCommand {
    /// The program of this name on `PATH`.
    Named(&'static str),
    /// Nothing: the settings must name one.
    None,
    /// agentwire itself.
    BuiltIn {
        /// The verb.
        verb: &'static str,
        /// The directory for its own files, in the data directory.
        state: &'static str,
    },
}

/// How a program takes the flags of the `claude` program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClaudeFlags {
    /// It is that program.
    All,
    /// It takes those that need nothing of the real program.
    Some,
    /// It has flags of its own.
    None,
}

/// How an agent counts tokens that were read from a cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CacheCount {
    /// As a part of the input.
    WithinInput,
    /// Beside the input.
    BesideInput,
    /// That is not known.
    Unknown,
}

/// Where a program comes from. Its text is what to do to get it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// This package of npm's.
    Npm(&'static str),
    /// Elsewhere: what to do.
    Other(&'static str),
}

/// How a program tells whether it is signed in.
#[derive(Clone, Copy, Debug)]
pub enum LoginQuestion {
    /// Started with these arguments, it answers on stdout or stderr and ends. Versions older than all
    /// tested ones are not asked: to one that does not know the words they may be a prompt.
    Ask {
        /// Its arguments.
        args: &'static [&'static str],
        /// Reads its stdout and stderr. Nothing else of the answer, which may name people and pieces of
        /// keys, goes any further.
        read: fn(&str, &str) -> Login,
    },
    /// It does not tell.
    None {
        /// The variable from which it takes a key.
        key: Option<&'static str>,
    },
    /// It needs no login.
    Needless,
}

/// Whether a program is signed in, as it says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Login {
    /// It is, in this way if it says how.
    SignedIn(Option<LoginMethod>),
    /// It is not.
    NotSignedIn,
    /// It does not say.
    NotTold,
}

/// By what a program is signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LoginMethod {
    /// A key, or a command that gives one.
    ApiKey,
    /// A token.
    Token,
    /// An account of its maker's.
    Account,
    /// A cloud provider.
    Cloud,
}

/// What is known to be wrong with some versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Problem {
    /// The first version that has it; without one, it was always there.
    #[serde(skip)]
    pub from: Option<&'static str>,
    /// The first version that does not have it any more; without one, none is known.
    #[serde(skip)]
    pub before: Option<&'static str>,
    /// What is wrong.
    pub what: &'static str,
    /// What to do.
    pub remedy: &'static str,
    /// Whether sessions cannot work with it.
    pub fatal: bool,
}

/// How a version stands to those that agentwire was tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Standing {
    /// It is one of them.
    Tested,
    /// It is between two of them.
    Between,
    /// It is newer than all of them.
    Newer,
    /// It is older than all of them.
    Older,
    /// Nobody knows.
    Unknown,
    /// There is none.
    Missing,
}

impl Problem {
    /// What a file of the machine makes wrong, with every version.
    pub fn of_machine(does: Unguarded) -> Self {
        let Unguarded { what, remedy } = does;
        Self { from: None, before: None, what, remedy, fatal: false }
    }
}

impl Program {
    /// Whether it speaks Claude's wire, so that clients of Claude get its own messages.
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

    /// How that version stands to those tested.
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

    /// What is known to be wrong with that version.
    pub fn problems_of(&self, version: Option<&str>) -> Vec<Problem> {
        let Some(version) = version.and_then(numbers) else { return Vec::new() };
        let has = |problem: &&Problem| {
            problem.from.and_then(numbers).is_none_or(|from| from <= version)
                && problem.before.and_then(numbers).is_none_or(|before| version < before)
        };
        self.problems.iter().filter(has).copied().collect()
    }

    /// The newest version that was tested.
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
    /// In words, to stand behind a comma.
    pub fn words(self) -> &'static str {
        match self {
            Self::SignedIn(None) => "signed in",
            Self::SignedIn(Some(LoginMethod::ApiKey)) => "signed in with an API key",
            Self::SignedIn(Some(LoginMethod::Token)) => "signed in with a token",
            Self::SignedIn(Some(LoginMethod::Account)) => "signed in with an account",
            Self::SignedIn(Some(LoginMethod::Cloud)) => "signed in through a cloud provider",
            Self::NotSignedIn => "not signed in",
            Self::NotTold => "login not told",
        }
    }
}

impl Standing {
    /// In words.
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

/// The version in what a program prints when it is asked for it: the first word that is numbers with dots
/// between, such as the end of `codex-cli 0.166.0`.
pub fn version_in(text: &str) -> Option<&str> {
    let words = text.split(|c: char| c.is_whitespace() || c == '(' || c == ')');
    words.map(|word| word.trim_start_matches('v')).find(|word| numbers(word).is_some())
}

/// The numbers of a version; what follows them, as in `1.2.3-beta`, does not count.
fn numbers(version: &str) -> Option<[u64; 3]> {
    let plain = version.split(['-', '+']).next()?;
    let mut parts = plain.split('.').map(str::parse);
    let numbers = [parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?];
    parts.next().is_none().then_some(numbers)
}
