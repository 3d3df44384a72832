//! The columns: how each program is set up, and in which words the model calls its tools.

mod claude;
mod codex;
mod demo;
mod gemini;

use std::path::Path;

use serde_json::Value;

use crate::packages::Package;
use crate::trouble::SetUp;

/// A program of a version, and the driver that it is spoken to with.
#[derive(Clone, Copy)]
pub(crate) struct Agent {
    /// The head of its column.
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) driver: &'static str,
    pub(crate) package: Package,
    /// What names the program to agentwire.
    pub(crate) variable: &'static str,
    pub(crate) model: &'static str,
    pub(crate) other_model: &'static str,
    /// Writes what the program reads at its start.
    pub(crate) set_up: fn(home: &Path, url: &str),
    pub(crate) environment: fn(home: &Path, url: &str) -> Vec<(String, String)>,
    pub(crate) words: Words,
    /// The mode in which it asks questions, if not in any.
    pub(crate) question_mode: Option<&'static str>,
    /// Whether its text comes in pieces.
    pub(crate) has_deltas: bool,
    /// A script that ends with an answer of a wanted form.
    pub(crate) structured: fn(answer: &Value) -> String,
    /// Removes what the program keeps of its sessions.
    pub(crate) forget: fn(home: &Path),
    pub(crate) login: Login,
    /// Takes its key away.
    pub(crate) sign_out: SetUp,
    /// Lets it try again as often as it does by itself.
    pub(crate) retry: SetUp,
    /// Makes it fail at its start, and what it then says; some cannot be made to.
    pub(crate) broken: Option<Broken>,
    /// What it cannot do, and why.
    pub(crate) cannot: &'static [(&'static str, &'static str)],
}

/// How a program comes to be signed in, and whether it tells.
#[derive(Clone, Copy)]
pub(crate) enum Login {
    /// By a variable of its environment.
    Variable,
    /// By a command that reads a key.
    Command(&'static [&'static str]),
    /// It does not tell.
    Untold,
}

/// The key of every program. It opens nothing.
pub(crate) const KEY: &str = "made-up";

/// What a program cannot start with.
#[derive(Clone, Copy)]
pub(crate) struct Broken {
    pub(crate) set_up: SetUp,
    /// What agentwire reads at its start.
    pub(crate) settings: Option<&'static str>,
    /// What the program says of it.
    pub(crate) says: &'static str,
}

/// Steps of a script, in the words of one program's tools.
#[derive(Clone, Copy)]
pub(crate) struct Words {
    pub(crate) shell: fn(command: &str) -> Call,
    pub(crate) write: fn(path: &Path, text: &str) -> Call,
    pub(crate) edit: fn(path: &Path, old: &str, new: &str) -> Call,
    pub(crate) read: fn(path: &Path) -> Call,
    pub(crate) question: fn(question: &str, options: [&str; 2]) -> Call,
    pub(crate) subagent: fn(prompt: &str) -> Call,
    /// A list of two: the step that makes it.
    pub(crate) plan: fn(first: &str, second: &str) -> String,
    pub(crate) server_tool: fn(server: &str, tool: &str, arguments: Value) -> Call,
}

/// A tool's name and what it is given.
pub(crate) struct Call(pub(crate) String, pub(crate) Value);

impl Call {
    fn new(name: impl Into<String>, given: Value) -> Self {
        Self(name.into(), given)
    }

    /// A step that calls it.
    pub(crate) fn step(&self) -> String {
        format!("[[tool {} {}]]", self.0, self.1)
    }
}

/// A column of the SDKs' matrix alone.
pub(crate) const DEMO: Agent = demo::DEMO;

/// All columns.
pub(crate) const AGENTS: [Agent; 7] = [
    claude::NOW,
    claude::BEFORE,
    codex::APP_SERVER,
    codex::EXEC,
    gemini::ACP,
    gemini::HEADLESS,
    claude::OVER_ACP,
];

impl Agent {
    /// Why it cannot do that, if it cannot.
    pub(crate) fn cannot(&self, scenario: &str) -> Option<&'static str> {
        self.cannot.iter().find(|(name, _)| *name == scenario).map(|(_, why)| *why)
    }
}

fn remove(directory: &Path) {
    let _ = std::fs::remove_dir_all(directory);
}

fn variables<const N: usize>(pairs: [(&str, &str); N]) -> Vec<(String, String)> {
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}
