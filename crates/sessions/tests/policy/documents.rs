//! docs/policy.md is correct: its lists are the code's. Its examples are run over every wire, in the crate
//! itself (`session/wires.rs`).

use std::fmt::Write;
use std::path::Path;

use agentwire_dialects::describe::{Class, TouchSource};
use agentwire_protocol::AgentType;
use agentwire_protocol::event::ToolKind;
use agentwire_sessions::session::policy::PROTECTED;
use agentwire_sessions::session::policy::readonly::READERS;
use agentwire_sessions::session::policy::side_effects::{
    CONFIG_KEYS, EVERYWHERE, FORMATS, OUTSIDE, UNCOVERED_OPTIONS, WRAPPERS,
};

use super::tools;

const DOCUMENT: &str = include_str!("../../../../docs/policy.md");

fn field(shows: TouchSource) -> String {
    match shows {
        TouchSource::Nothing => "nothing".to_owned(),
        TouchSource::Unclear => "not certain".to_owned(),
        TouchSource::Path(field) => format!("path `{field}`"),
        TouchSource::PathOrHere(field) => format!("path `{field}`, or here"),
        TouchSource::PathAndPattern(field, pattern) => {
            format!("path `{field}`, or here; `{pattern}`")
        }
        TouchSource::Changes(field) => format!("files of `{field}`"),
        TouchSource::Command(field) => format!("command `{field}`"),
        TouchSource::Address(field) => format!("host of `{field}`"),
        TouchSource::Guess => "every path named".to_owned(),
    }
}

fn tool_table(agent: AgentType) -> String {
    let mut table = "| tool | class | touches |\n|---|---|---|\n".to_owned();
    for tool in tools(agent).known {
        let (class, field) = (tool.class.as_str(), field(tool.shows));
        writeln!(table, "| `{}` | {class} | {field} |", tool.name).expect("text");
    }
    table
}

fn reader_table() -> String {
    let mut table = "| command | letters | options | with a number | with a text | then |\n|---|---|---|---|---|---|\n".to_owned();
    for reader in READERS {
        let number =
            |option: &&str| if *option == "-" { "-N".to_owned() } else { (*option).to_owned() };
        let numbers: Vec<String> = reader.numbers.iter().map(number).collect();
        let cells = [
            reader.words.join(" "),
            reader.letters.to_owned(),
            reader.options.join(" "),
            numbers.join(" "),
            reader.texts.join(" "),
        ];
        let cells = cells.map(|cell| if cell.is_empty() { cell } else { format!("`{cell}`") });
        writeln!(table, "| {} | {} |", cells.join(" | "), reader.operands.as_str()).expect("text");
    }
    table
}

fn options_table() -> String {
    let mut table = "| program | options |\n|---|---|\n".to_owned();
    for row in UNCOVERED_OPTIONS {
        writeln!(table, "| `{}` | `{}` |", row.program, row.options).expect("text");
    }
    table
}

#[test]
fn the_lists_are_those_of_the_code() {
    let protected = format!("`{}`\n", PROTECTED.join("` `"));
    let keys = format!("sets only these keys: `{}`. Any", CONFIG_KEYS.join("` `"));
    let everywhere = format!("before `--`: `{}`. Case", EVERYWHERE.join("` `"));
    let formats = format!("is a format: `{}`, `jsonpath", FORMATS.join("` `"));
    let outside = format!("out of the current directory: `{}`.", OUTSIDE.join("` `"));
    for part in [keys, everywhere, outside, formats] {
        assert!(DOCUMENT.contains(&part), "docs/policy.md has not:\n{part}");
    }
    let wrappers = format!("`{}`\n", WRAPPERS.join("` `"));
    let others = [protected, reader_table(), options_table(), wrappers];
    for part in AgentType::ALL.map(tool_table).into_iter().chain(others) {
        assert!(DOCUMENT.contains(&format!("\n\n{part}")), "docs/policy.md has not:\n{part}");
    }
}

#[test]
fn kinds_have_the_classes_of_the_document() {
    let named = [
        (ToolKind::Read, "read"),
        (ToolKind::Edit, "edit"),
        (ToolKind::Delete, "delete"),
        (ToolKind::Move, "move"),
        (ToolKind::Search, "search"),
        (ToolKind::Execute, "execute → shell"),
        (ToolKind::Fetch, "fetch → network"),
        (ToolKind::Think, "think"),
        (ToolKind::Agent, "agent"),
        (ToolKind::Question, "question"),
        (ToolKind::Mcp, "mcp"),
        (ToolKind::SwitchMode, "switchMode → mode"),
        (ToolKind::Other, "other → unknown"),
    ];
    let words: Vec<&str> = named.iter().map(|(_, words)| *words).collect();
    assert!(DOCUMENT.contains(&format!("({})", words.join(", "))));
    for (kind, words) in named {
        assert_eq!(Class::of_kind(kind).as_str(), words.rsplit("→ ").next().unwrap_or(words));
    }
}

/// The judge works on descriptions: its code names no agent, and knows only the describing part of
/// dialects.
#[test]
fn the_judge_names_no_agent() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/session/policy");
    let mut files = vec![folder.with_extension("rs")];
    let mut folders = vec![folder];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            match entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.retain(|file| !file.ends_with("tests.rs"));
    assert!(files.len() > 10, "{files:?}");
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a file");
        for line in text.lines().map(str::trim).filter(|line| !line.starts_with("//")) {
            // Directories of agents are protected, no matter who asks.
            let bare = PROTECTED
                .iter()
                .fold(line.to_lowercase(), |line, name| line.replace(&format!("{name:?}"), ""));
            let names = AgentType::ALL.iter().any(|agent| bare.contains(agent.as_str()));
            let imports = line.contains("agentwire_dialects::");
            let is_plain = !imports || line.contains("agentwire_dialects::describe::");
            assert!(
                !names && !line.contains("AgentType") && is_plain,
                "{}: {line}",
                file.display()
            );
        }
    }
}
