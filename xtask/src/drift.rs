//! `cargo xtask drift`: finds what other versions of the real programs send that agentwire does not
//! understand, and which scenarios fail with them.

mod known_residue;
mod report;
mod residue;
mod scenarios;

use std::fs;
use std::io::{self, IsTerminal as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use agentwire_dialects::program::{DefaultCommand, Program};
use agentwire_dialects::programs;
use agentwire_protocol::AgentType;

use self::known_residue::KnownResidue;
use self::report::{Report, Row};
use self::residue::Observed;
use self::scenarios::{Column, Outcome, Results};

/// Run all scenarios with other versions of the real programs and report what is new
///
/// The programs are installed from the npm registry; after that they can reach only loopback. The report
/// compares with crates/cli/tests/real/known.json, which lists what the pinned versions send and no unified
/// event carries.
///
/// Exit code: 0 nothing new; 1 something new or a scenario failed; 2 wrong arguments, or the scenarios
/// could not run; 3 a program could not be installed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Version to run: `latest`, `pinned`, or a version number together with --agent
    #[arg(long, default_value = "latest", value_name = "VERSION")]
    versions: Versions,
    /// Run only the programs of this agent
    #[arg(long, value_name = "NAME", value_parser = agent)]
    agent: Option<AgentType>,
    /// Print Markdown (the default in a pipe)
    #[arg(long, conflicts_with = "json")]
    markdown: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Record what the pinned versions send as known
    #[arg(long)]
    update: bool,
    /// Read the logs of the last run again without running anything, after a change of a dialect
    #[arg(long)]
    again: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Versions {
    Pinned,
    /// The version to request from npm.
    Other(String),
}

impl std::str::FromStr for Versions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_number = text.starts_with(|c: char| c.is_ascii_digit())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '+'));
        match text {
            "pinned" => Ok(Self::Pinned),
            "latest" => Ok(Self::Other(text.to_owned())),
            _ if is_number => Ok(Self::Other(text.to_owned())),
            _ => Err("not `latest`, `pinned` or a version".to_owned()),
        }
    }
}

fn agent(name: &str) -> Result<AgentType, String> {
    let is_foreign = |known: &&&Program| !matches!(known.command, DefaultCommand::BuiltIn { .. });
    let mut agents = programs().iter().filter(is_foreign).map(|known| known.agent);
    let found = agents.clone().find(|agent| agent.as_str() == name);
    found.ok_or_else(|| {
        let names: Vec<&str> = agents.by_ref().map(AgentType::as_str).collect();
        format!("not one of {}", names.join(", "))
    })
}

/// Why there is no report.
#[derive(Debug)]
enum Failure {
    /// The arguments are wrong, or the scenarios could not run.
    NotRun(String),
    /// A program could not be installed.
    NotInstalled(String),
}

impl Failure {
    /// For `map_err`: what failed, and why.
    fn of(what: impl std::fmt::Display) -> impl FnOnce(io::Error) -> Self {
        move |why| Self::NotRun(format!("failed to {what}: {why}"))
    }
}

pub(crate) fn run(args: &Args) -> ExitCode {
    let (message, code) = match make_report(args) {
        Ok(report) => match print(args, &report) {
            Ok(()) => return ExitCode::from(u8::from(report.has_drift())),
            Err(error) => (format!("failed to print: {error}"), 2),
        },
        Err(Failure::NotRun(message)) => (message, 2),
        Err(Failure::NotInstalled(message)) => (message, 3),
    };
    log(&message);
    ExitCode::from(code)
}

fn make_report(args: &Args) -> Result<Report, Failure> {
    let is_pinned = args.versions == Versions::Pinned;
    if args.update && !is_pinned {
        return Err(Failure::NotRun("--update needs --versions pinned".to_owned()));
    }
    let is_number = matches!(&args.versions, Versions::Other(version) if version != "latest");
    if is_number && args.agent.is_none() {
        return Err(Failure::NotRun("a version number needs --agent".to_owned()));
    }
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let root = own.parent().unwrap_or(own);
    let file = root.join("crates/cli/tests/real/known.json");
    let mut known = KnownResidue::read(&file)?;
    // With `pinned`, all columns run, including new ones that known.json does not list yet.
    let columns = match (is_pinned, args.agent) {
        (true, None) => Vec::new(),
        (_, agent) => known.columns(agent, !is_pinned),
    };
    if columns.is_empty() && !(is_pinned && args.agent.is_none()) {
        return Err(Failure::NotRun(format!("{} lists no such program", file.display())));
    }
    let directory = target(root).join("drift");
    if !args.again {
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::of(format!("empty {}", directory.display()))(error));
            }
            Ok(()) | Err(_) => scenarios::run(root, &args.versions, &columns, &directory)?,
        }
        log(&format!("the logs of all sessions are in {}", directory.display()));
    }
    let results = match scenarios::read(&directory)? {
        Outcome::Ran(results) => results,
        Outcome::Skipped(why) => return Err(Failure::NotInstalled(why)),
    };
    let Results { columns } = results;
    let mut rows = Vec::new();
    for column in columns {
        let observed = Observed::of(&column, &directory.join(&column.name))?;
        if args.update {
            known.record(&column, &observed.residue);
        }
        rows.push(row(column, observed, &known)?);
    }
    if args.update {
        known.write(&file)?;
        log(&format!("updated {}", file.display()));
    }
    Ok(Report { rows })
}

fn row(column: Column, observed: Observed, known: &KnownResidue) -> Result<Row, Failure> {
    let before = known.of(&column.name).ok_or_else(|| {
        Failure::NotRun(format!(
            "known.json has no entry for {}; add it with `cargo xtask drift --versions pinned --update`",
            column.name
        ))
    })?;
    Ok(Row::new(column, observed, before))
}

fn target(root: &Path) -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

fn print(args: &Args, report: &Report) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let text = if args.json {
        report.json()
    } else if args.markdown || !out.is_terminal() {
        report.markdown()
    } else {
        report.text()
    };
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Prints progress and failures.
fn log(message: &str) {
    let _ = writeln!(io::stderr().lock(), "drift: {message}");
}
