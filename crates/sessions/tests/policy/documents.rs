//! docs/policy.md says what is: its lists are the code's, its examples are run.

use std::fmt::Write;

use agentwire_dialects::describe::{Class, Shows};
use agentwire_protocol::event::ToolKind;
use agentwire_protocol::{AgentType, ApprovalMode};
use agentwire_sessions::session::policy::PROTECTED;
use agentwire_sessions::session::policy::escapes::{ESCAPES, WRAPPERS};
use agentwire_sessions::session::policy::readonly::READERS;
use serde_json::json;

use super::{MODES, Question, policy, tools, word};

const DOCUMENT: &str = include_str!("../../../../docs/policy.md");

/// The cells of each row of the table that has this head.
fn rows(head: &str) -> Vec<Vec<String>> {
    let lines = DOCUMENT.lines().skip_while(|line| *line != head).skip(2);
    let rows = lines.take_while(|line| line.starts_with("| "));
    let cell = |cell: &str| {
        let cell = cell.trim();
        // Spaces within the ticks are part of the example.
        cell.strip_prefix('`').and_then(|cell| cell.strip_suffix('`')).unwrap_or(cell).to_owned()
    };
    let rows = rows.map(|row| {
        let row = row.strip_prefix('|').and_then(|row| row.strip_suffix('|'));
        row.expect("a row").split('|').map(cell).collect()
    });
    let rows: Vec<Vec<String>> = rows.collect();
    assert!(!rows.is_empty(), "there is no table {head}");
    rows
}

fn field(shows: Shows) -> String {
    match shows {
        Shows::Nothing => "nothing".to_owned(),
        Shows::Unclear => "not certain".to_owned(),
        Shows::Path(field) => format!("path `{field}`"),
        Shows::PathOrHere(field) => format!("path `{field}`, or here"),
        Shows::PathAndPattern(field, pattern) => format!("path `{field}`, or here; `{pattern}`"),
        Shows::Changes(field) => format!("files of `{field}`"),
        Shows::Command(field) => format!("command `{field}`"),
        Shows::Address(field) => format!("host of `{field}`"),
        Shows::Guess => "every path named".to_owned(),
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

fn escape_table() -> String {
    let mut table = "| program | options |\n|---|---|\n".to_owned();
    for escape in ESCAPES {
        let options = escape.options.join(" ");
        writeln!(table, "| `{}` | `{options}` |", escape.program).expect("text");
    }
    table
}

#[test]
fn the_lists_are_those_of_the_code() {
    let protected = format!("`{}`\n", PROTECTED.join("` `"));
    let wrappers = format!("`{}`\n", WRAPPERS.join("` `"));
    for part in [
        tool_table(AgentType::Claude),
        tool_table(AgentType::Codex),
        tool_table(AgentType::Gemini),
        protected,
        reader_table(),
        escape_table(),
        wrappers,
    ] {
        assert!(DOCUMENT.contains(&format!("\n\n{part}")), "docs/policy.md has not:\n{part}");
    }
}

/// A call of each class in the session's directories.
fn of_class(class: &str) -> (AgentType, Question) {
    let claude = |tool: &str, input| (AgentType::Claude, Question::new(tool, None, &input));
    let acp = |kind| (AgentType::Acp, Question::new("x", Some(kind), &json!({ "path": "a" })));
    match class {
        "think" => claude("TodoWrite", json!({ "todos": [] })),
        "read" => claude("Read", json!({ "file_path": "a" })),
        "search" => claude("Glob", json!({ "pattern": "**/*.rs" })),
        "edit" => claude("Edit", json!({ "file_path": "a" })),
        "shell" => claude("Bash", json!({ "command": "make" })),
        "delete" => acp(ToolKind::Delete),
        "move" => acp(ToolKind::Move),
        "network" => claude("WebFetch", json!({ "url": "https://example.org" })),
        "agent" => claude("Task", json!({ "prompt": "x" })),
        "mcp" => claude("mcp__a__b", json!({})),
        "mode" => claude("ExitPlanMode", json!({})),
        "unknown" => claude("Unheard", json!({ "file_path": "a" })),
        "question" => claude("AskUserQuestion", json!({})),
        _ => panic!("no such class: {class}"),
    }
}

#[test]
fn modes_do_what_the_table_says() {
    let rows = rows("| class | ask | askDangerous | autoEdit | autoAll |");
    assert_eq!(rows.len(), 13, "every class has a row");
    for row in rows {
        let (agent, question) = of_class(&row[0]);
        for (mode, expected) in MODES.into_iter().zip(&row[1..]) {
            let verdict = question.ask(&policy(agent, mode, &[], &[]));
            assert_eq!(word(&verdict), expected, "{} in {mode:?}", row[0]);
        }
    }
}

#[test]
fn rules_do_what_the_table_says() {
    for row in rows("| list | rule | tool | asked | verdict |") {
        let [list, rule, tool, asked, expected] = row.as_slice() else {
            panic!("five cells: {row:?}")
        };
        let input = match tool.as_str() {
            "Bash" => json!({ "command": asked }),
            "Read" | "Write" | "Edit" => json!({ "file_path": asked }),
            "Grep" => json!({ "path": asked, "pattern": "x" }),
            "WebFetch" => json!({ "url": asked }),
            _ => json!({}),
        };
        let policy = match list.as_str() {
            "allowed" => policy(AgentType::Claude, ApprovalMode::Ask, &[rule], &[]),
            "blocked" => policy(AgentType::Claude, ApprovalMode::AutoAll, &["Bash"], &[rule]),
            _ => panic!("no such list: {list}"),
        };
        let verdict = Question::new(tool, None, &input).ask(&policy);
        assert_eq!(word(&verdict), expected, "{row:?}");
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
