//! Runs the scenarios of `crates/cli/tests/real` and reads their results.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};

use agentwire_protocol::AgentType;
use serde::Deserialize;

use super::{Failure, Versions};

/// What a run writes next to the logs.
const FILE: &str = "results.json";

#[derive(Debug)]
pub(super) enum Outcome {
    Ran(Results),
    /// A program could not be installed.
    Skipped(String),
}

#[derive(Debug, Deserialize)]
pub(super) struct Results {
    pub(super) columns: Vec<Column>,
}

/// A program, and the results of its scenarios.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) agent: AgentType,
    pub(super) driver: String,
    pub(super) pinned: String,
    pub(super) version: String,
    /// The error of each scenario, if it failed.
    pub(super) scenarios: BTreeMap<String, Option<String>>,
}

#[derive(Deserialize)]
struct ResultsFile {
    skipped: Option<String>,
    #[serde(flatten)]
    results: Option<Results>,
}

/// Runs these columns, or all. Writes results and logs to the directory.
pub(super) fn run(
    root: &Path,
    versions: &Versions,
    columns: &[String],
    directory: &Path,
) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .args(["test", "--locked", "--package", "agentwire", "--test", "real", "--"])
        .args(columns.iter().map(|name| format!("={name}")))
        .env("AGENTWIRE_TEST_REAL", "1")
        .env("AGENTWIRE_REAL_RESULTS", directory)
        .env_remove("AGENTWIRE_REAL_VERSION")
        .env_remove("AGENTWIRE_UPDATE")
        .current_dir(root)
        .stdin(Stdio::null())
        // Stdout is for the report.
        .stdout(io::stderr());
    // Cargo's variables for this package would make build scripts of others run again.
    let ours = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(ours)) {
        command.env_remove(name);
    }
    if let Versions::Other(version) = versions {
        command.env("AGENTWIRE_REAL_VERSION", version);
    }
    let status = command.status().map_err(Failure::of("start cargo"))?;
    // If scenarios fail, cargo fails too; the results say more.
    if status.success() || directory.join(FILE).exists() {
        return Ok(());
    }
    Err(Failure::NotRun(format!("failed to run the scenarios: cargo: {status}")))
}

pub(super) fn read(directory: &Path) -> Result<Outcome, Failure> {
    let file = directory.join(FILE);
    let text = fs::read_to_string(&file);
    text.and_then(|text| parse(&text)).map_err(Failure::of(format!("read {}", file.display())))
}

fn parse(text: &str) -> io::Result<Outcome> {
    let written: ResultsFile = serde_json::from_str(text)?;
    match written {
        ResultsFile { skipped: Some(why), .. } => Ok(Outcome::Skipped(why)),
        ResultsFile { results: Some(results), .. } => Ok(Outcome::Ran(results)),
        ResultsFile { .. } => Err(io::Error::other("neither results nor a reason")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_a_run_are_read() {
        let text = r#"{"columns":[{"name":"gemini -p","agent":"gemini","driver":"stream-json",
            "pinned":"0.61.0","version":"0.62.0","scenarios":{"text":null,"shell":"no end came"}}]}"#;
        let Outcome::Ran(results) = parse(text).expect("results") else { panic!("it ran") };
        let column = &results.columns[0];
        assert_eq!((column.agent, &*column.version), (AgentType::Gemini, "0.62.0"));
        assert_eq!(column.scenarios["text"], None);
        assert_eq!(column.scenarios["shell"].as_deref(), Some("no end came"));
        let skipped = parse(r#"{"skipped":"failed to start npm"}"#).expect("a reason");
        assert!(matches!(skipped, Outcome::Skipped(why) if why.contains("npm")));
        assert!(parse("{}").is_err());
    }
}
