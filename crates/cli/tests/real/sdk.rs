//! The official Agent SDKs over the real programs: `cargo test -p agentwire --test real -- sdk`.
//!
//! A column is an agent, a row is what a client does with an SDK (`../sdks/every_agent.py` and `.mjs`). A
//! cell is `yes`, or `no` with the reason of the refusal. The tables are in `docs/claude-drop-in.md`.

mod column;
mod words;

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;

use serde_json::{Value, json};

pub(crate) use self::column::{VERB, run as run_column};
use crate::agents::{self, Agent};
use crate::column::OFFLINE;
use crate::install::Sdk;
use crate::matrix::{self, Cell, Found};
use crate::offline;

/// The word that selects this part of the program.
pub(crate) const NAME: &str = "sdk";

const SDKS: [&str; 2] = ["Python", "TypeScript"];

const DOCUMENT: &str = "claude-drop-in.md";

fn sdk_of(name: &str) -> Sdk {
    if name == SDKS[0] { Sdk::Python } else { Sdk::TypeScript }
}

fn agents() -> Vec<Agent> {
    let is_shown = |agent: &Agent| ["claude", "codex", "gemini"].contains(&agent.name);
    let acp = agents::AGENTS.into_iter().filter(|agent| agent.kind == "acp");
    let mut all: Vec<Agent> = agents::AGENTS.into_iter().filter(is_shown).collect();
    all.extend(acp);
    all.push(agents::DEMO);
    all
}

/// The rows of an SDK, read from its source file.
fn rows(sdk: &str) -> Vec<&'static str> {
    if sdk == SDKS[0] {
        let source = include_str!("../sdks/every_agent.py");
        let rows =
            source.lines().filter_map(|line| line.strip_prefix("@row(\"")?.split('"').next());
        return rows.collect();
    }
    let source = include_str!("../sdks/every_agent.mjs");
    let rows = source.lines().filter_map(|line| line.strip_prefix("  async "));
    rows.filter_map(|row| match row.strip_prefix('"') {
        Some(row) => row.split('"').next(),
        None => row.split('(').next(),
    })
    .collect()
}

pub(crate) fn run(words: &[String]) -> ExitCode {
    let wants = |name: &str| words.iter().any(|word| name.contains(word.as_str()));
    let some_agent = agents().iter().any(|agent| wants(agent.name));
    let is_some = |names: &[&str]| names.iter().any(|name| wants(name));
    let some_sdk = is_some(&SDKS);
    let some_row = SDKS.iter().any(|sdk| is_some(&rows(sdk)));
    let agents: Vec<Agent> =
        agents().into_iter().filter(|agent| !some_agent || wants(agent.name)).collect();
    let wanted: BTreeMap<&str, Vec<&'static str>> = SDKS
        .into_iter()
        .filter(|sdk| !some_sdk || wants(sdk))
        .map(|sdk| (sdk, rows(sdk).into_iter().filter(|row| !some_row || wants(row)).collect()))
        .collect();
    let mut programs = Vec::new();
    for agent in &agents {
        if agent.kind == "demo" {
            programs.push(PathBuf::from(env!("CARGO_BIN_EXE_agentwire")));
            continue;
        }
        match agent.package.fetch() {
            Ok(program) => programs.push(program),
            Err(why) => return matrix::not_run(&why),
        }
    }
    install();
    let launcher = offline::launcher();
    let found = Mutex::new(BTreeMap::<&str, Found>::new());
    // The slowest first.
    let queue: Vec<_> = agents.iter().zip(&programs).rev().collect();
    matrix::side_by_side(queue, |(agent, program)| {
        for (sdk, cells) in play(agent, program, launcher.as_deref(), &wanted) {
            found.lock().expect("no panic").entry(sdk).or_default().extend(cells);
        }
    });
    let found = found.into_inner().expect("no panic");
    let heads: Vec<(&str, String)> = agents
        .iter()
        .zip(&programs)
        .map(|(agent, program)| match agent.kind {
            "demo" => (agent.name, "demo".to_owned()),
            _ => (agent.name, format!("{} {}", agent.name, agent.package.installed(program))),
        })
        .collect();
    let mut text = String::new();
    for (sdk, rows) in &wanted {
        text += &format!("### {sdk}\n\n{}\n", matrix::table(&heads, rows, &found[sdk]));
    }
    let text = text.trim_end().to_owned() + "\n";
    println!("\n{text}");
    let cells = || found.values().flat_map(BTreeMap::values);
    let failures = cells().filter(|cell| matches!(cell, Cell::Fails(_))).count();
    println!("{} cells of the SDKs, {failures} failed", cells().count());
    let is_whole = !(some_agent || some_sdk || some_row);
    if failures > 0 || (is_whole && !matrix::is_documented(DOCUMENT, &text)) {
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
}

/// Downloads the SDKs before the columns start: from then on they reach loopback only.
fn install() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    for sdk in SDKS {
        let directory = tempfile::tempdir().expect("a directory");
        runtime.block_on(sdk_of(sdk).command(directory.path(), "every_agent"));
    }
}

/// Runs one column and returns the cells of each SDK.
fn play(
    agent: &Agent,
    program: &Path,
    launcher: Option<&[&str]>,
    wanted: &BTreeMap<&'static str, Vec<&'static str>>,
) -> BTreeMap<&'static str, Found> {
    let mut command: Command = matrix::own(launcher);
    command.args([VERB, agent.name]).arg(program);
    command.arg(if launcher.is_some() { OFFLINE } else { "-" }).arg(json!(wanted).to_string());
    let mut child = command.stdout(Stdio::piped()).spawn().expect("this program starts");
    let mut found = BTreeMap::<&'static str, Found>::new();
    let mut trouble = None;
    for line in BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok) {
        let Ok(told) = serde_json::from_str::<Value>(&line) else { continue };
        if told.get("row").is_none() {
            let unknown = told["unknown"].as_array().is_some_and(|unknown| !unknown.is_empty());
            trouble = (unknown || !told["outside"].is_null()).then(|| told.to_string());
            continue;
        }
        let mut all = wanted.iter().filter(|(sdk, _)| told["sdk"] == **sdk);
        let Some((sdk, rows)) = all.next() else { continue };
        let Some(row) = rows.iter().find(|row| told["row"] == **row) else { continue };
        let why = told["why"].as_str().unwrap_or_default().to_owned();
        if let Some(first) = told["first"].as_str() {
            eprintln!("{} · {sdk} · {row}: tried again after: {first}", agent.name);
        }
        eprintln!("{} · {sdk} · {row}: {} {why}", agent.name, told["outcome"]);
        let cell = match told["outcome"].as_str() {
            Some("yes") => Cell::Works,
            Some("no") => Cell::Cannot(why),
            _ => Cell::Fails(why),
        };
        found.entry(sdk).or_default().insert((agent.name, row), cell);
    }
    let status = child.wait().expect("this program ends");
    let trouble = trouble.or((!status.success()).then(|| status.to_string()));
    for (sdk, rows) in wanted {
        for row in rows {
            let cells = found.entry(sdk).or_default();
            let cell = cells.entry((agent.name, row)).or_insert_with(|| {
                eprintln!("{} · {sdk} · {row}: not played: {status}", agent.name);
                Cell::Fails("not played".to_owned())
            });
            // It is unknown which row caused it.
            if let Some(trouble) = &trouble {
                *cell = Cell::Fails(trouble.clone());
            }
        }
    }
    if let Some(trouble) = trouble {
        eprintln!("{}: {trouble}", agent.name);
    }
    found
}
