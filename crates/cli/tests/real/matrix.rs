//! All columns: installs the programs, runs a process for each, prints the matrix and compares it with the
//! documented one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use crate::agents::{AGENTS, Agent};
use crate::column::{self, OFFLINE};
use crate::scenarios::SCENARIOS;
use crate::{offline, packages, results};

const BEGIN: &str = "<!-- matrix: written by the tests -->";
const END: &str = "<!-- end of the matrix -->";

/// The result of a scenario.
pub(crate) enum Cell {
    Works,
    Cannot(String),
    Fails(String),
}

pub(crate) type Found = BTreeMap<(&'static str, &'static str), Cell>;

pub(crate) fn run(words: &[String]) -> ExitCode {
    let wants = |name: &str| {
        let is_in = |word: &String| match word.strip_prefix('=') {
            Some(whole) => name == whole,
            None => name.contains(word.as_str()),
        };
        words.is_empty() || words.iter().any(is_in)
    };
    let some_agent = AGENTS.iter().any(|agent| wants(agent.name));
    let some_scenario = SCENARIOS.iter().any(|scenario| wants(scenario.name));
    if !some_agent && !some_scenario {
        println!("no agent and no scenario has {} in its name", words.join(" or "));
        return ExitCode::SUCCESS;
    }
    let agents: Vec<Agent> =
        AGENTS.into_iter().filter(|agent| !some_agent || wants(agent.name)).collect();
    let scenarios: Vec<&'static str> = SCENARIOS
        .iter()
        .map(|scenario| scenario.name)
        .filter(|name| !some_scenario || wants(name))
        .collect();
    let mut programs = Vec::new();
    for agent in &agents {
        match agent.package.fetch() {
            Ok(program) => programs.push(program),
            Err(why) => return not_run(&why),
        }
    }
    let launcher = offline::launcher();
    if launcher.is_none() {
        eprintln!(
            "this machine allows no separate network: attempts to leave loopback go unnoticed"
        );
    }
    let found = Mutex::new(Found::new());
    // The slowest first.
    let queue: Vec<_> = agents.iter().zip(&programs).rev().collect();
    side_by_side(queue, |(agent, program)| {
        let column = run_column(agent, program, launcher.as_deref(), &scenarios);
        found.lock().expect("no panic").extend(column);
    });
    let found = found.into_inner().expect("no panic");
    let versions: Vec<String> =
        agents.iter().zip(&programs).map(|(agent, at)| agent.package.installed(at)).collect();
    if let Some(directory) = results::directory() {
        results::write(&directory, &agents, &versions, &found);
    }
    let heads = agents.iter().zip(&versions);
    let heads: Vec<(&str, String)> =
        heads.map(|(agent, version)| (agent.name, format!("{} {version}", agent.name))).collect();
    let table = table(&heads, &scenarios, &found);
    println!("\n{table}");
    let failures = found.values().filter(|cell| matches!(cell, Cell::Fails(_))).count();
    println!("{} scenarios of {} programs, {failures} failed", scenarios.len(), agents.len());
    let is_whole = agents.len() == AGENTS.len() && scenarios.len() == SCENARIOS.len();
    let is_whole = is_whole && packages::other_version().is_none();
    if failures > 0 || (is_whole && !is_documented("agents.md", &table)) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// A program could not be installed.
pub(crate) fn not_run(why: &str) -> ExitCode {
    eprintln!("{why}");
    if let Some(directory) = results::directory() {
        results::skip(&directory, why);
    }
    ExitCode::FAILURE
}

fn run_column(
    agent: &Agent,
    program: &Path,
    launcher: Option<&[&str]>,
    scenarios: &[&'static str],
) -> Found {
    let mut found = Found::new();
    let mut wanted = Vec::new();
    for scenario in scenarios {
        match agent.cannot(scenario) {
            Some(why) => {
                found.insert((agent.name, scenario), Cell::Cannot(why.to_owned()));
            }
            None => wanted.push(*scenario),
        }
    }
    let mut command = own(launcher);
    command.args([column::VERB, agent.name]).arg(program);
    command.arg(if launcher.is_some() { OFFLINE } else { "-" }).args(&wanted);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("this program starts");
    for line in BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok) {
        let Ok(told) = serde_json::from_str::<Value>(&line) else { continue };
        let scenario = wanted.iter().find(|name| told["scenario"] == **name);
        let Some(scenario) = scenario else { continue };
        if let Some(first) = told["first"].as_str() {
            eprintln!("{} · {scenario}: tried again after: {first}", agent.name);
        }
        let seconds = told["seconds"].as_f64().unwrap_or_default();
        let outside = told["outside"].as_str().map(|tried| format!("beyond loopback: {tried}"));
        let error = told["error"].as_str().map(str::to_owned).or(outside);
        eprintln!(
            "{} · {scenario}: {} ({seconds:.1} s)",
            agent.name,
            error.as_deref().unwrap_or("works")
        );
        found.insert((agent.name, *scenario), error.map_or(Cell::Works, Cell::Fails));
    }
    let status = child.wait().expect("this program ends");
    for scenario in wanted {
        found.entry((agent.name, scenario)).or_insert_with(|| {
            eprintln!("{} · {scenario}: not run: {status}", agent.name);
            Cell::Fails(format!("not run: {status}"))
        });
    }
    found
}

/// Handles all items, two at once for each processor: the programs often wait, for a retry or for the next
/// minute.
pub(crate) fn side_by_side<T: Send>(queue: Vec<T>, each: impl Fn(T) + Sync) {
    let queue = Mutex::new(queue.into_iter());
    let workers = 2 * thread::available_parallelism().map_or(1, usize::from);
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                loop {
                    let next = queue.lock().expect("no panic").next();
                    let Some(next) = next else { return };
                    each(next);
                }
            });
        }
    });
}

/// This program, in its own network if there is a launcher.
pub(crate) fn own(launcher: Option<&[&str]>) -> Command {
    let own = std::env::current_exe().expect("this program");
    let mut words: Vec<PathBuf> = launcher.unwrap_or_default().iter().map(PathBuf::from).collect();
    words.push(own);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

/// The first of each pair is the name of a column, the second its head.
pub(crate) fn table(
    columns: &[(&'static str, String)],
    scenarios: &[&'static str],
    found: &Found,
) -> String {
    let mut text = String::from("| |");
    for (_, head) in columns {
        let _ = write!(text, " {head} |");
    }
    text += "\n|---|";
    text += &"---|".repeat(columns.len());
    let mut notes: Vec<&str> = Vec::new();
    for scenario in scenarios {
        let _ = write!(text, "\n| {scenario} |");
        for (column, _) in columns {
            let cell = match &found[&(*column, *scenario)] {
                Cell::Works => "yes".to_owned(),
                Cell::Fails(_) => "**fails**".to_owned(),
                Cell::Cannot(why) => {
                    let place = notes.iter().position(|note| note == why).unwrap_or_else(|| {
                        notes.push(why);
                        notes.len() - 1
                    });
                    format!("no ({})", place + 1)
                }
            };
            let _ = write!(text, " {cell} |");
        }
    }
    text += "\n";
    for (number, note) in (1..).zip(notes) {
        let _ = write!(text, "\n{number}. {note}");
    }
    text + "\n"
}

/// Whether the document contains this matrix. With `AGENTWIRE_UPDATE=1`, writes it there.
pub(crate) fn is_documented(document: &str, table: &str) -> bool {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(document);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let begin = text.find(BEGIN).map(|at| at + BEGIN.len());
    let (Some(begin), Some(end)) = (begin, text.find(END)) else {
        println!("docs/{document} has no place for the matrix");
        return false;
    };
    let now = format!("\n\n{table}\n");
    if text[begin..end] == now {
        return true;
    }
    if std::env::var_os("AGENTWIRE_UPDATE").is_some_and(|value| value == "1") {
        fs::write(&path, format!("{}{now}{}", &text[..begin], &text[end..])).expect("a file");
        return true;
    }
    println!("docs/{document} has a different matrix; set AGENTWIRE_UPDATE=1 to write this one");
    false
}
