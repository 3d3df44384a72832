//! Checks an agent's program: installation, version and login.

use agentwire_dialects::program::{Login, Source, Standing};
use agentwire_protocol::AgentType;

use super::{Check, Verdict};
use crate::format;
use crate::installed::Installed;

pub(super) fn check(agent: &Installed, wanted: Option<AgentType>) -> Check {
    let name = agent.name;
    let Some(path) = &agent.path else {
        let message = format!("not available: {}", agent.error.as_deref().unwrap_or_default());
        let is_set = |name: &String| std::env::var_os(name).is_some_and(|it| !it.is_empty());
        let fix = match &agent.variable {
            Some(variable) if is_set(variable) => format!("correct {variable}, or unset it"),
            Some(_) if agent.configured => format!("correct [agents.{name}] command"),
            Some(variable) => format!("{}, or set {variable} to its path", agent.source),
            None => agent.source.to_string(),
        };
        let needed = agent.configured || wanted.is_some_and(|wanted| wanted.as_str() == name);
        return match needed {
            true => Check::fail(name, message, fix),
            false => Check::warn(name, message, fix),
        };
    };
    let path = path.display();
    let version = format::line(agent.version.as_deref().unwrap_or("unknown version"));
    let mut message = format!("{version} at {path}");
    let mut fixes = Vec::new();
    // A program that the user configured has no tested versions.
    if agent.newest_tested.is_some() {
        message.push_str(&format!(", {}", agent.standing.words()));
        fixes.extend(about_version(agent, &path.to_string()));
    }
    if let Some(login) = &agent.login {
        message.push_str(&format!(", {}", login.words()));
        if login.login == Login::NotSignedIn {
            fixes.push(login.how_to.to_owned());
        }
    }
    for problem in agent.worst_first() {
        message.push_str(&format!("; known problem: {}", problem.what));
        fixes.push(problem.remedy.to_owned());
    }
    let status = match agent.problems.iter().any(|problem| problem.fatal) {
        true => Verdict::Fail,
        false if fixes.is_empty() => Verdict::Ok,
        false => Verdict::Warn,
    };
    // Two problems may have the same fix.
    let mut unique = Vec::new();
    for fix in fixes {
        if !unique.contains(&fix) {
            unique.push(fix);
        }
    }
    let fix = (!unique.is_empty()).then(|| unique.join("; "));
    Check { name, status, message, fix }
}

/// What to do about an untested version.
fn about_version(agent: &Installed, path: &str) -> Option<String> {
    match agent.standing {
        Standing::Tested | Standing::Between | Standing::Missing => None,
        Standing::Unknown => Some(format!("check the output of `{path} --version`")),
        Standing::Newer => {
            let words =
                "it will probably work: agentwire keeps and shows messages that it does not know";
            Some(match (agent.source, agent.newest_tested) {
                (Source::Npm(_), Some(tested)) => {
                    format!("{words}; the newest tested version is `{}@{tested}`", agent.source)
                }
                (Source::Npm(_) | Source::Other(_), _) => words.to_owned(),
            })
        }
        Standing::Older => Some(format!("upgrade it: {}", agent.source)),
    }
}
