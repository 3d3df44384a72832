//! Which agents are installed: where, in which version, and whether that one was tested.

use std::cmp::Ordering;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use agentwire_protocol::AgentType;
use agentwire_sessions::Settings;
use agentwire_sessions::process::{Contain, Spawn, StdinPlan, environment, resolve};
use serde::Serialize;
use tokio::io::AsyncReadExt as _;

use crate::settings::{AGENTS, program_variable};

/// How long a program may take to tell its version; some are slow to start.
const PATIENCE: Duration = Duration::from_secs(5);

/// How much of what it prints is read.
const ENOUGH: u64 = 4096;

/// An agent, installed or not.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Installed {
    pub(crate) name: &'static str,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<PathBuf>,
    /// Why it is nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) standing: Standing,
    /// How it can be driven; the first is the default.
    pub(crate) drivers: &'static [&'static str],
    /// The variable that names another program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) variable: Option<&'static str>,
    /// How to get it.
    pub(crate) install: &'static str,
    /// Whether the settings name the program.
    pub(crate) configured: bool,
}

/// How a version stands to those that agentwire was tested with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum Standing {
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

impl Standing {
    pub(crate) fn words(self) -> &'static str {
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

/// The versions that agentwire was tested with.
pub(crate) fn tested(agent: AgentType) -> &'static [&'static str] {
    match agent {
        AgentType::Claude => &["2.1.197", "2.1.325"],
        AgentType::Codex => &["0.166.0"],
        AgentType::Gemini => &["0.61.0"],
        AgentType::Acp => &[],
        AgentType::Demo => &[env!("CARGO_PKG_VERSION")],
    }
}

/// Looks for all agents at once.
pub(crate) async fn look(settings: &Settings, contain: &Contain) -> Vec<Installed> {
    let looks = AGENTS.map(|agent| {
        let (settings, contain) = (settings.clone(), contain.clone());
        tokio::spawn(async move { look_for(agent, &settings, &contain).await })
    });
    let mut found = Vec::new();
    for look in looks {
        found.extend(look.await);
    }
    found
}

async fn look_for(agent: AgentType, settings: &Settings, contain: &Contain) -> Installed {
    let command = settings.agent(agent);
    let program = match (&command.program, agent) {
        (Some(program), _) => Ok(program.clone()),
        (None, AgentType::Acp) => Err("no command is set".to_owned()),
        (None, AgentType::Demo) => settings
            .keeper
            .as_ref()
            .map(|path| path.to_string_lossy().into_owned())
            .ok_or_else(|| "failed to find agentwire itself".to_owned()),
        (None, AgentType::Claude | AgentType::Codex | AgentType::Gemini) => {
            Ok(agent.as_str().to_owned())
        }
    };
    let here = std::env::current_dir().unwrap_or_else(|_| PathBuf::from("/"));
    let search = std::env::var_os("PATH");
    let path = program.and_then(|program| {
        resolve(&program, search.as_deref(), &here).map_err(|error| error.to_string())
    });
    let own = command.program.is_none() && agent == AgentType::Demo;
    let version = match &path {
        Ok(_) if own => Some(env!("CARGO_PKG_VERSION").to_owned()),
        Ok(path) => {
            let args = command.args.iter().map(String::as_str).chain(["--version"]);
            let spawn = Spawn {
                program: path.clone(),
                args: args.map(OsString::from).collect(),
                env: environment(&command.env),
                directory: here,
                stdin: StdinPlan::Null,
            };
            let told = tokio::time::timeout(PATIENCE, told(contain, spawn)).await;
            told.ok().flatten().and_then(|text| version_in(&text).map(str::to_owned))
        }
        Err(_) => None,
    };
    Installed {
        name: agent.as_str(),
        standing: match &path {
            Ok(_) => standing(tested(agent), version.as_deref()),
            Err(_) => Standing::Missing,
        },
        error: path.as_ref().err().cloned(),
        path: path.ok(),
        version,
        drivers: drivers(agent),
        variable: program_variable(agent),
        install: install(agent),
        configured: command.program.is_some(),
    }
}

/// What the program prints. Dropping the process ends it and all it started.
async fn told(contain: &Contain, spawn: Spawn) -> Option<String> {
    let process = contain.spawn(spawn).await.ok()?;
    let mut text = Vec::new();
    process.stdout.take(ENOUGH).read_to_end(&mut text).await.ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// The first word that is numbers with dots between, such as the end of `codex-cli 0.166.0`.
fn version_in(text: &str) -> Option<&str> {
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

fn standing(tested: &[&str], version: Option<&str>) -> Standing {
    let Some(version) = version.and_then(numbers) else { return Standing::Unknown };
    let orders = || tested.iter().filter_map(|tested| Some(version.cmp(&numbers(tested)?)));
    let (older, newer) = (
        orders().all(|order| order == Ordering::Less),
        orders().all(|order| order == Ordering::Greater),
    );
    if orders().next().is_none() {
        Standing::Unknown
    } else if orders().any(|order| order == Ordering::Equal) {
        Standing::Tested
    } else if older {
        Standing::Older
    } else if newer {
        Standing::Newer
    } else {
        Standing::Between
    }
}

fn drivers(agent: AgentType) -> &'static [&'static str] {
    match agent {
        AgentType::Claude | AgentType::Demo => &["stream-json"],
        AgentType::Codex => &["app-server", "exec"],
        AgentType::Gemini => &["acp", "stream-json"],
        AgentType::Acp => &["acp"],
    }
}

fn install(agent: AgentType) -> &'static str {
    match agent {
        AgentType::Claude => "npm install -g @anthropic-ai/claude-code",
        AgentType::Codex => "npm install -g @openai/codex",
        AgentType::Gemini => "npm install -g @google/gemini-cli",
        AgentType::Acp => "name an agent that speaks ACP in [agents.acp] command",
        AgentType::Demo => "reinstall agentwire",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_programs_print() {
        assert_eq!(version_in("2.1.197 (Claude Code)\n"), Some("2.1.197"));
        assert_eq!(version_in("codex-cli 0.166.0\n"), Some("0.166.0"));
        assert_eq!(version_in("warning: 3 things\nv0.61.0-nightly.1\n"), Some("0.61.0-nightly.1"));
        assert_eq!(version_in("no version here 1.2 1.2.3.4 a.b.c"), None);
    }

    #[test]
    fn a_version_stands_to_those_tested() {
        let tested = ["2.1.197", "2.1.325"];
        let cases = [
            ("2.1.197", Standing::Tested),
            ("2.1.325", Standing::Tested),
            ("2.1.200", Standing::Between),
            ("2.1.99", Standing::Older),
            ("2.2.0", Standing::Newer),
            ("10.0.0", Standing::Newer),
            ("latest", Standing::Unknown),
        ];
        for (version, expected) in cases {
            assert_eq!(standing(&tested, Some(version)), expected, "{version}");
        }
        assert_eq!(standing(&[], Some("1.0.0")), Standing::Unknown);
        assert_eq!(standing(&tested, None), Standing::Unknown);
    }

    #[test]
    fn drivers_that_are_listed_are_taken() {
        for agent in AGENTS {
            for driver in drivers(agent) {
                assert!(
                    agentwire_dialects::driver(agent, Some(driver)).is_ok(),
                    "{agent:?} {driver}"
                );
            }
        }
    }
}
