//! Adding an agent changes its folder and one table: no other source names an agent, and the folder of a
//! wire that several agents speak does not name its users.
#![expect(
    clippy::disallowed_methods,
    clippy::expect_used,
    reason = "a test reads sources and fails by panicking"
)]

use std::fs;
use std::path::{Path, PathBuf};

use agentwire_dialects::program::DefaultCommand;
use agentwire_dialects::programs;
use agentwire_protocol::AgentType;

/// The sources that name agents: the list of names, the table of programs, and the demo agent's own program.
const TABLES: [&str; 3] = [
    "crates/protocol/src/session.rs",
    "crates/dialects/src/lib.rs",
    "crates/cli/src/commands/demo_agent",
];

/// Names of agents that are also names of wires that others speak.
const WIRES: [&str; 2] = ["claude", "acp"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every source file of the crates, by its path in the repository.
fn sources() -> Vec<String> {
    fn collect(at: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(at).expect("a directory").flatten() {
            let path = entry.path();
            match path.is_dir() {
                true => collect(&path, found),
                false if path.extension().is_some_and(|end| end == "rs") => found.push(path),
                false => {}
            }
        }
    }
    let mut found = Vec::new();
    for part in fs::read_dir(root().join("crates")).expect("crates").flatten() {
        collect(&part.path().join("src"), &mut found);
    }
    collect(&root().join("xtask/src"), &mut found);
    let relative = |path: PathBuf| {
        let path = path.strip_prefix(root()).expect("in the repository").to_owned();
        path.to_str().expect("UTF-8").to_owned()
    };
    found.into_iter().map(relative).collect()
}

/// Whether a file may name agents: their folders, tests, and the models that the tests' agents call.
fn is_exempt(path: &str) -> bool {
    let in_folder = AgentType::NAMES
        .iter()
        .any(|name| path.starts_with(&format!("crates/dialects/src/{name}/")));
    let is_test = path.ends_with("tests.rs") || path.contains("/tests/") || path.contains("/wires");
    in_folder || is_test || path.starts_with("crates/models/")
}

/// The folders of wires that several agents speak, and the agents that use them.
const SHARED: [(&str, &[&str]); 2] = [("acp", &["gemini"]), ("claude", &["demo"])];

#[test]
fn a_shared_wire_does_not_import_who_uses_it() {
    for path in sources() {
        for (wire, users) in SHARED {
            if !path.starts_with(&format!("crates/dialects/src/{wire}/")) {
                continue;
            }
            let code = code(&path);
            for user in users {
                let imports = [format!("crate::{user}"), format!("{user}::")];
                assert!(!imports.iter().any(|it| code.contains(it)), "{path} imports {user}");
            }
        }
    }
}

/// The code of a file, without comments and the tests at its end.
fn code(path: &str) -> String {
    let text = fs::read_to_string(root().join(path)).expect("a source");
    let text = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn names_an_agent(code: &str) -> Option<String> {
    let variants = AgentType::ALL.iter().map(|agent| format!("AgentType::{agent:?}"));
    let others = AgentType::NAMES.iter().filter(|name| !WIRES.contains(*name));
    let modules = others.map(|name| format!("{name}::"));
    let mut marks = variants.chain(modules);
    marks.find(|mark| {
        code.match_indices(mark.as_str()).any(|(at, _)| {
            let before = code.get(..at).and_then(|text| text.chars().last());
            let after = code.get(at + mark.len()..).and_then(|text| text.chars().next());
            let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
            !is_word(before) && (mark.ends_with(':') || !is_word(after))
        })
    })
}

#[test]
fn only_the_tables_name_an_agent() {
    for table in TABLES {
        assert!(root().join(table).exists(), "{table} is gone");
    }
    for path in sources() {
        let is_table = TABLES.iter().any(|table| path.starts_with(table));
        if is_table || is_exempt(&path) {
            continue;
        }
        if let Some(mark) = names_an_agent(&code(&path)) {
            panic!("{path} names {mark}: ask agentwire_dialects::program() instead");
        }
    }
}

/// Code that runs agents or serves clients asks `program()` or a dialect for anything specific to an agent.
const NEUTRAL: [&str; 2] = ["crates/sessions/src/", "crates/server/src/"];

#[test]
fn the_engine_and_the_server_know_nothing_of_an_agent() {
    let commands = programs().iter().filter_map(|program| match program.command {
        DefaultCommand::Named(name) => Some(name),
        DefaultCommand::None | DefaultCommand::BuiltIn { .. } => None,
    });
    let names: Vec<&str> = commands.collect();
    assert!(names.len() > 2, "{names:?}");
    let mut seen = 0;
    for path in sources() {
        if !NEUTRAL.iter().any(|neutral| path.starts_with(neutral)) || is_exempt(&path) {
            continue;
        }
        seen += 1;
        let code = code(&path);
        for folder in AgentType::NAMES {
            let imports = code.match_indices("agentwire_dialects::").any(|(at, _)| {
                let import = code.get(at..).and_then(|text| text.split(';').next());
                import.is_some_and(|text| {
                    let mut words = text.split(|c: char| !c.is_alphanumeric() && c != '_');
                    words.any(|word| word == folder)
                })
            });
            assert!(!imports, "{path} imports {folder}'s folder");
        }
        // In strings (`.claude`, `CLAUDECODE`) and in names (`speaks_claude`).
        for line in code.lines() {
            let small = line.to_lowercase();
            let named = names.iter().find(|name| small.contains(*name));
            assert!(named.is_none(), "{path} names {named:?}, which is for its folder: {line}");
        }
    }
    assert!(seen > 100, "only {seen} sources were looked at");
}
