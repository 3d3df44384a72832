//! An agent's own rules: the agent runs what they allow without asking, so no rule of a session could deny
//! it.

use std::fs;
use std::path::{Path, PathBuf};

use agentwire_dialects::agent::Launch;
use agentwire_dialects::overrides::OwnRuleFiles;
use agentwire_protocol::{ErrorCode, GatewayError, SessionConfig};

/// Checks whether an agent has rules that bypass a rule of the session.
pub(super) struct OwnRulesCheck {
    agent: &'static str,
    own: &'static OwnRuleFiles,
    rule: String,
    places: Vec<PathBuf>,
}

impl OwnRulesCheck {
    /// Returns `None` if the session has no rule that they could bypass.
    pub(super) fn of(
        agent: &'static str,
        own: &'static OwnRuleFiles,
        config: &SessionConfig,
        launch: &Launch,
    ) -> Option<Self> {
        let is_meant =
            |rule: &&String| rule.split('(').next().is_some_and(|name| own.tools.contains(&name));
        let rule = config.blocked_tools.iter().flatten().find(is_meant)?.clone();
        Some(Self { agent, own, rule, places: places(own, launch) })
    }

    /// Reads the files and refuses the session if one may allow commands.
    pub(super) fn check(&self) -> Result<(), GatewayError> {
        let found = self.places.iter().find_map(|place| allowing(self.own, place));
        let Some(file) = found else { return Ok(()) };
        let message = format!(
            "{} does not support the rule {} in blockedTools: {} allows commands, which the agent then \
             runs without asking; remove its allow rules or move the file away",
            self.agent,
            self.rule,
            file.display()
        );
        Err(GatewayError::new(ErrorCode::Unsupported, message))
    }
}

/// Where the agent reads rules: its own directory and those of the project.
fn places(own: &OwnRuleFiles, launch: &Launch) -> Vec<PathBuf> {
    let variable = |name: &str| {
        let own = launch.env.get(name).map(PathBuf::from);
        own.or_else(|| std::env::var_os(name).map(PathBuf::from))
    };
    let home = variable(own.home).or_else(|| Some(variable("HOME")?.join(own.directory)));
    let working = launch.working_directory.as_deref().map(Path::new);
    let project = working.into_iter().flat_map(Path::ancestors).map(|at| at.join(own.directory));
    home.into_iter().chain(project).map(|place| place.join(own.rules)).collect()
}

/// A rules file in the directory that allows something, or may allow it (because it cannot be read).
fn allowing(own: &OwnRuleFiles, directory: &Path) -> Option<PathBuf> {
    let entries = fs::read_dir(directory).ok()?.flatten().map(|entry| entry.path());
    let mut files = entries.filter(|path| path.extension().is_some_and(|end| end == own.ending));
    files.find(|path| fs::read_to_string(path).map_or(true, |text| text.contains(own.allows)))
}

#[cfg(test)]
mod tests {
    use agentwire_dialects::driver;
    use agentwire_protocol::AgentType;

    use super::*;

    #[test]
    fn a_rule_that_codex_would_pass_over_is_refused() {
        let home = tempfile::tempdir().unwrap();
        let work = tempfile::tempdir().unwrap();
        let below = work.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let check = |rules: &[&str]| {
            let rules = rules.iter().map(|rule| (*rule).to_owned()).collect();
            let config = SessionConfig {
                working_directory: Some(below.to_str().unwrap().to_owned()),
                blocked_tools: Some(rules),
                ..SessionConfig::default()
            };
            let mut launch = Launch::new("codex", &config);
            let own = home.path().to_str().unwrap().to_owned();
            launch.env.insert("CODEX_HOME".to_owned(), own);
            let dialect = driver(AgentType::Codex, None).unwrap();
            let own = dialect.own_rules().unwrap();
            OwnRulesCheck::of("codex", own, &config, &launch)
                .map_or(Ok(()), |question| question.check())
        };
        assert_eq!(check(&["Bash"]), Ok(()));
        for place in [home.path().to_owned(), work.path().join(".codex")] {
            let file = place.join("rules/default.rules");
            fs::create_dir_all(place.join("rules")).unwrap();
            fs::write(&file, "prefix_rule(pattern=[\"rm\"], decision=\"forbidden\")").unwrap();
            assert_eq!(check(&["Bash"]), Ok(()), "it only denies");
            fs::write(&file, "prefix_rule(pattern=[\"touch\"], decision=\"allow\")").unwrap();
            assert_eq!(check(&["Edit", "WebSearch"]), Ok(()));
            let error = check(&["Edit", "Bash(rm:*)"]).unwrap_err();
            assert_eq!(error.code, ErrorCode::Unsupported);
            let named = |what: &str| error.message.contains(what);
            assert!(named("Bash(rm:*)") && named(file.to_str().unwrap()), "{error}");
            fs::remove_file(file).unwrap();
        }
    }
}
