//! Files that a machine's administrator writes for an agent; the agent obeys them over anything the gateway
//! says.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use agentwire_dialects::agent::AgentDialect;
use agentwire_dialects::overrides::{FileOverride, MachineFile};
use agentwire_protocol::{ErrorCode, GatewayError, SessionConfig};

/// How much of a file is read. Such files are small.
const LIMIT: u64 = 1 << 20;

/// A file that prevents the gateway from enforcing its rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverridingFile {
    pub file: PathBuf,
    pub does: FileOverride,
}

/// Finds such files, for an agent started with these variables in addition to our own.
pub fn find(dialect: &dyn AgentDialect, env: &BTreeMap<String, String>) -> Vec<OverridingFile> {
    let files = dialect.machine_files().iter();
    files
        .flat_map(|known| places(known, env).into_iter().filter_map(|at| judged(known, at)))
        .collect()
}

/// Refuses a session with a rule that the gateway cannot enforce because of such a file.
pub(crate) fn check(
    dialect: &dyn AgentDialect,
    config: &SessionConfig,
    env: &BTreeMap<String, String>,
) -> Result<(), GatewayError> {
    let Some(rule) = config.blocked_tools.iter().flatten().next() else { return Ok(()) };
    let Some(OverridingFile { file, does }) = find(dialect, env).into_iter().next() else {
        return Ok(());
    };
    let message = format!(
        "{} cannot be made to follow the rule {rule} in blockedTools: {} ({}); {}",
        dialect.agent_type().as_str(),
        does.what,
        file.display(),
        does.remedy
    );
    Err(GatewayError::new(ErrorCode::Unsupported, message))
}

impl OverridingFile {
    /// The warning at the start of a session that asks about some calls.
    pub(crate) fn warning(&self) -> String {
        let FileOverride { what, remedy } = self.does;
        format!("{what} ({}); {remedy}", self.file.display())
    }
}

fn places(known: &MachineFile, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let named = known.variable.and_then(|name| {
        let own = env.get(name).map(PathBuf::from);
        own.or_else(|| std::env::var_os(name).map(PathBuf::from))
    });
    let path = named.unwrap_or_else(|| PathBuf::from(known.path));
    let Ok(entries) = fs::read_dir(&path) else { return vec![path] };
    let entries = entries.flatten().map(|entry| entry.path());
    let fits = |path: &PathBuf| path.to_string_lossy().ends_with(known.ending);
    entries.filter(fits).collect()
}

fn judged(known: &MachineFile, file: PathBuf) -> Option<OverridingFile> {
    let does = (known.find_override)(&text(&file)?)?;
    Some(OverridingFile { file, does })
}

/// The text of a regular file.
fn text(path: &Path) -> Option<String> {
    let file = File::open(path).ok().filter(|file| file.metadata().is_ok_and(|it| it.is_file()))?;
    let mut bytes = Vec::new();
    file.take(LIMIT).read_to_end(&mut bytes).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use agentwire_dialects::driver;
    use agentwire_protocol::AgentType;

    use super::*;

    #[test]
    fn files_that_unguard_are_told_from_those_that_do_not() {
        let place = tempfile::tempdir().unwrap();
        for (agent, variable, text, is_found) in [
            ("gemini", "GEMINI_CLI_SYSTEM_SETTINGS_PATH", r#"{"adminPolicyPaths":[]}"#, true),
            ("gemini", "GEMINI_CLI_SYSTEM_SETTINGS_PATH", r#"{"tools":{}}"#, false),
        ] {
            let file = place.path().join("settings.json");
            fs::write(&file, text).unwrap();
            let env = BTreeMap::from([(variable.to_owned(), file.display().to_string())]);
            let agent: AgentType = agent.parse().unwrap();
            let dialect = driver(agent, None).unwrap();
            let found = find(dialect, &env);
            assert_eq!(found.iter().any(|found| found.file == file), is_found, "{text}");
            let with = |rules: &[&str]| SessionConfig {
                blocked_tools: Some(rules.iter().map(|rule| (*rule).to_owned()).collect()),
                ..SessionConfig::default()
            };
            assert_eq!(check(dialect, &with(&["Bash"]), &env).is_err(), is_found, "{text}");
            assert_eq!(check(dialect, &with(&[]), &env), Ok(()), "{text}");
        }
    }
}
